#include "graph/search_radius.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace boundary_forest {

// Few examples have few others: at most every fourth is searched for.
SearchRadius::SearchRadius(Slot count) : count_(count) {
  const std::size_t others = std::min<std::size_t>(most_others, count / 4);
  n_sums_ = static_cast<std::size_t>(std::bit_width(others));
}

Slot SearchRadius::sample(Slot i) const {
  return static_cast<Slot>((2 * std::uint64_t{i} + 1) * count_ / (2 * n_samples));
}

// Among the first slots alone an example may be linked to few others, or to none, where trees were shown
// them in an order of their own: then it does not count.
void SearchRadius::add(const Beam& found, std::size_t n_compared) {
  if (found.entries().size() <= n_others()) return;
  for (std::size_t i = 0; i < n_sums_; ++i)
    sums_[i] += found.entries()[std::size_t{1} << i].reduced;  // the first is the example itself
  n_compared_ += n_compared;
  n_expanded_ += found.entries().size();
}

double SearchRadius::n_compared_per_example() const {
  if (n_expanded_ == 0) return 16.0;
  return static_cast<double>(n_compared_) / static_cast<double>(n_expanded_);
}

double SearchRadius::factor(std::size_t beam, std::size_t n) const {
  const double infinity = std::numeric_limits<double>::infinity();
  if (n_sums_ < 2) return infinity;
  const double near = sum_at(n);
  const double far = sum_at(std::max(beam, n));
  return near > 0.0 && std::isfinite(far) ? far / near : infinity;
}

// In between, on a straight line; beyond the last, as from the last but one to the last.
double SearchRadius::sum_at(std::size_t rank) const {
  const std::size_t last = n_sums_ - 1;
  const std::size_t i = static_cast<std::size_t>(std::bit_width(rank)) - 1;
  const double past = static_cast<double>(rank) / static_cast<double>(std::size_t{1} << i) - 1.0;
  if (i < last) return sums_[i] + (sums_[i + 1] - sums_[i]) * past;
  const double growth = sums_[last] / sums_[last - 1];
  double sum = sums_[last];
  for (std::size_t j = last; j < i; ++j) sum *= growth;
  return sum + sum * (growth - 1.0) * past;
}

}  // namespace boundary_forest
