// Engines that hold parts of the trees, and the driver that decides for them, make up the forest of one
// engine: what boundary_forest.ray does over a network, done here in one process.
#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "boundary_forest/forest_driver.hpp"
#include "check.hpp"
#include "regrowths.hpp"
#include "streams.hpp"

using namespace streams;

namespace {

// Parts of a forest, in step.
class Parts {
 public:
  Parts(const Params& params, const std::vector<std::uint32_t>& ends)
      : params_(params), driver_(params) {
    std::uint32_t first = 0;
    for (const std::uint32_t end : ends) {
      Params held = params;
      held.first_tree = std::exchange(first, end);
      held.end_tree = end;
      parts_.push_back(forest_for(held));
    }
  }

  void learn(const Stream& stream, std::size_t begin, std::size_t n) {
    while (n > 0) {
      const Arrival end = driver_.block_end(stored().size());
      const auto some = static_cast<std::size_t>(std::min<Arrival>(n, end - driver_.seen()));
      learn_some(stream, begin, some);
      exchange();
      begin += some;
      n -= some;
    }
  }

  Digest digest(std::span<const std::uint64_t> keys) {
    Digest all;
    std::vector<std::array<std::uint64_t, 2>> growing;
    for (const auto& part : parts_) {
      const Digest one = part->digest(keys, &driver_.votes());
      const auto middle = one.trees.begin() + part->params().n_held();
      all.trees.insert(all.trees.end(), one.trees.begin(), middle);
      growing.insert(growing.end(), middle, one.trees.end());
      for (const std::size_t half : {0U, 1U}) all.examples[half] += one.examples[half];
      all.adaptation = one.adaptation;
    }
    all.trees.insert(all.trees.end(), growing.begin(), growing.end());
    return all;
  }

  Table<double> predict(const RowsView& rows) {
    const Said said = side_by_side([&](BoundaryForest& part) { return part.ends(rows, Run{}); });
    Table<double> out{rows.n, params_.label_length};
    driver_.answer(said.view(), {.out = &out});
    return out;
  }

 private:
  struct Said {
    std::size_t rows;
    std::vector<double> labels;
    std::vector<double> distances;

    ForestDriver::EndsView view() const { return {rows, labels.data(), distances.data()}; }
  };

  template <class F>
  Said side_by_side(F&& f) {
    std::vector<Ends> ends;
    for (const auto& part : parts_) ends.push_back(f(*part));
    Said said{ends[0].arrivals.rows, {}, {}};
    for (std::size_t row = 0; row < said.rows; ++row)
      for (Ends& one : ends) {
        std::ranges::copy(one.labels.row(row), std::back_inserter(said.labels));
        std::ranges::copy(one.distances.row(row), std::back_inserter(said.distances));
      }
    return said;
  }

  void learn_some(const Stream& stream, std::size_t begin, std::size_t n) {
    const RowsView rows = stream.rows(begin, n);
    const double* labels = stream.labels_from(begin);
    const std::span seen(labels, n * params_.label_length);
    std::size_t learned = 0;
    if (driver_.wants_ends()) {
      const Said said = side_by_side(
          [&](BoundaryForest& part) { return part.ends_then_learn(rows, labels, Run{}, learned); });
      driver_.learn(seen, n, said.view(), {});
      return;
    }
    for (const auto& part : parts_) part->learn(rows, labels, Run{}, learned);
    driver_.learn(seen, n, {}, {});
  }

  std::set<Arrival> stored() {
    std::set<Arrival> all;
    for (const auto& part : parts_) {
      const std::vector<Arrival> own = part->state(false).examples.arrivals;
      all.insert(own.begin(), own.end());
    }
    return all;
  }

  void exchange() {
    if (driver_.growing_step() > 0) grow();
    for (std::size_t n_cut = 0; driver_.is_full(stored().size(), n_cut); ++n_cut) {
      std::vector<std::tuple<Arrival, bool, std::uint32_t, BoundaryForest*>> oldest;
      for (const auto& part : parts_)
        if (const auto one = part->oldest())
          oldest.emplace_back(one->arrival, !one->answering, one->place, part.get());
      if (oldest.empty()) return;
      const auto [arrival, growing, place, part] = *std::min_element(oldest.begin(), oldest.end());
      part->cut(place, !growing, Run{});
    }
  }

  void grow() {
    for (const auto& part : parts_) {
      const std::vector<Arrival> own = part->state(false).examples.arrivals;
      Examples others;
      for (const Arrival a : stored()) {
        if (std::ranges::binary_search(own, a)) continue;
        for (const auto& other : parts_) {
          const std::vector<Arrival> has = other->state(false).examples.arrivals;
          if (!std::ranges::binary_search(has, a)) continue;
          const Examples one = other->examples({{a}});
          others.positions.insert(others.positions.end(), one.positions.begin(),
                                  one.positions.end());
          others.labels.insert(others.labels.end(), one.labels.begin(), one.labels.end());
          others.arrivals.push_back(a);
          break;
        }
      }
      const RowsView rows{others.positions.data(), others.arrivals.size(), params_.element_type};
      part->grow_part(rows, others.labels.data(), others.arrivals, {}, Run{});
    }
  }

  const Params params_;
  ForestDriver driver_;
  std::vector<std::unique_ptr<BoundaryForest>> parts_;
};

}  // namespace

CASE("parts in step are one forest, whatever it decides for itself") {
  for (const Task task : {Task::classes, Task::numbers})
    for (int kind = 0; kind < 4; ++kind) {
      Stream stream = stream_for(task);
      Params& params = stream.params;
      if (kind != 1) params.vote_weights = VoteWeights::automatic;
      if (kind == 1 || kind == 3) params.max_stored = 60;
      if (kind >= 2) params.has_learned_weights = true;
      if (kind == 3) params.lifetimes = {0, 20, 0, 64, 0, 20};
      const auto whole = forest_for(params);
      Parts parts(params, {1, 3, 6});
      const std::vector<std::uint64_t> keys = {1, 2, 3, 4};
      for (std::size_t begin = 0; begin < stream.n; begin += 50) {
        learn(*whole, stream, begin, 50);
        parts.learn(stream, begin, 50);
        const Table<double> expected = *whole->predict(stream.rows(begin, 50), Run{});
        CHECK(parts.predict(stream.rows(begin, 50)).values == expected.values);
      }
      const Digest mine = parts.digest(keys);
      const Digest expected = whole->digest(keys);
      CHECK(mine.trees == expected.trees);
      CHECK(mine.examples == expected.examples);
      CHECK(mine.adaptation == expected.adaptation);
    }
}

int main() { return check::run_all(); }
