#include "store/ids.hpp"

#include <numeric>

namespace boundary_forest {
namespace {

// As Python would show it.
std::string shown(const Ids& ids, std::size_t i) {
  return ids.texts.empty() ? std::to_string(ids.integers[i]) : "'" + ids.texts[i] + "'";
}

// How often the most frequent of the values occurs, and where it first does.
template <class T>
std::pair<std::size_t, std::size_t> most_frequent(const std::vector<T>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::pair<std::size_t, std::size_t> most = {0, 0};
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    if (end - begin > most.first) most = {end - begin, order[begin]};
  }
  return most;
}

}  // namespace

void IdColumn::check_new(const Ids& ids, bool may_be_known) const {
  if (ids.size() > 1) {
    const auto [times, first] =
        ids.texts.empty() ? most_frequent(ids.integers) : most_frequent(ids.texts);
    if (times > 1)
      throw std::invalid_argument("ids must be unique, but " + shown(ids, first) + " occurs " +
                                  std::to_string(times) + " times: give each example its own id");
  }
  for (std::size_t i = 0; i < ids.size() && !may_be_known; ++i)
    if (find(ids, i) != nothing)
      throw std::invalid_argument("ids must be new, but " + shown(ids, i) +
                                  " is already the id of a stored example: use another id");
}

}  // namespace boundary_forest
