// Engines that hold parts of the trees, and the driver that decides for them, make up the forest of one
// engine: what boundary_forest.ray does over a network, done here in one process.
#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "distributed/forest_driver.hpp"
#include "distributed/partial_forest.hpp"
#include "tests/check.hpp"
#include "tests/replacements.hpp"
#include "tests/streams.hpp"

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
      const Digest one = *part->digest(keys, &driver_.votes());
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
    const AllLeaves leaves =
        side_by_side([&](BoundaryForest& part) { return PartialForest(part).leaves(rows, Run{}); });
    Table<double> out{rows.n, params_.label_length};
    driver_.answer(leaves.view(), {.out = &out});
    return out;
  }

  // The arrival numbers of the n closest of each row.
  std::vector<Arrival> neighbors(const RowsView& rows, std::size_t n, const Search& search) {
    std::vector<Candidates> found;
    for (const auto& part : parts_)
      found.push_back(PartialForest(*part).candidates(rows, n, infinity, search, Run{}));
    std::vector<std::span<const std::uint64_t>> ends;
    std::vector<double> reduced;
    std::vector<Arrival> arrivals, out;
    for (const Candidates& one : found) {
      ends.emplace_back(one.row_ends);
      std::ranges::copy(one.reduced, std::back_inserter(reduced));
      std::ranges::copy(one.arrivals, std::back_inserter(arrivals));
    }
    for (const std::uint64_t number : closest(ends, reduced, arrivals, n).numbers)
      out.push_back(arrivals[number]);
    return out;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  struct AllLeaves {
    std::size_t rows;
    std::vector<double> labels;
    std::vector<double> distances;

    ForestDriver::LeavesView view() const { return {rows, labels.data(), distances.data()}; }
  };

  template <class F>
  AllLeaves side_by_side(F&& f) {
    std::vector<TreeLeaves> parts;
    for (const auto& part : parts_) parts.push_back(f(*part));
    AllLeaves leaves{parts[0].arrivals.rows, {}, {}};
    for (std::size_t row = 0; row < leaves.rows; ++row)
      for (TreeLeaves& one : parts) {
        std::ranges::copy(one.labels.row(row), std::back_inserter(leaves.labels));
        std::ranges::copy(one.distances.row(row), std::back_inserter(leaves.distances));
      }
    return leaves;
  }

  void learn_some(const Stream& stream, std::size_t begin, std::size_t n) {
    const RowsView rows = stream.rows(begin, n);
    const double* labels = stream.labels_from(begin);
    const std::span seen(labels, n * params_.label_length);
    std::size_t learned = 0;
    if (driver_.wants_leaves()) {
      const AllLeaves leaves = side_by_side([&](BoundaryForest& part) {
        return PartialForest(part).leaves_then_learn(rows, labels, Run{}, learned);
      });
      driver_.learn(seen, n, leaves.view(), {});
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
        if (const auto one = PartialForest(*part).oldest())
          oldest.emplace_back(one->arrival, !one->answering, one->place, part.get());
      if (oldest.empty()) return;
      const auto [arrival, growing, place, part] = *std::min_element(oldest.begin(), oldest.end());
      PartialForest(*part).cut(place, !growing, Run{});
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
          const Examples one = PartialForest(*other).examples({{a}});
          others.positions.insert(others.positions.end(), one.positions.begin(),
                                  one.positions.end());
          others.labels.insert(others.labels.end(), one.labels.begin(), one.labels.end());
          others.arrivals.push_back(a);
          break;
        }
      }
      const RowsView rows{others.positions.data(), others.arrivals.size(), params_.element_type};
      PartialForest(*part).grow(rows, others.labels.data(), others.arrivals, {}, Run{});
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
      const Digest expected = *whole->digest(keys);
      CHECK(mine.trees == expected.trees);
      CHECK(mine.examples == expected.examples);
      CHECK(mine.adaptation == expected.adaptation);
    }
}

CASE("parts in step limit the depth of their trees as one forest does") {
  for (int kind = 0; kind < 2; ++kind) {
    Params params = params_for(Task::classes, 6, 50, 1);
    params.has_learned_weights = true;
    if (kind == 1) params.max_stored = 900;
    if (kind == 1) params.lifetimes = {0, 20, 0, 640, 0, 20};
    const Stream stream = draw(
        params, 1100, 5, [](std::mt19937_64&, std::size_t i) { return static_cast<double>(i); });
    const auto whole = forest_for(params);
    Parts parts(params, {1, 3, 6});
    learn(*whole, stream, 0, stream.n);
    for (std::size_t begin = 0; begin < stream.n; begin += 275) parts.learn(stream, begin, 275);
    CHECK(parts.digest({{1, 2, 3, 4}}).trees == whole->digest({{1, 2, 3, 4}})->trees);
    CHECK(whole->stats().learn.comparisons < 1100 * 6 * 400);
  }
}

CASE("what parts find, ranked together, is what one forest finds") {
  const Stream stream = stream_for(Task::retrieval);
  const auto whole = forest_for(stream.params);
  Parts parts(stream.params, {1, 3, 6});
  learn(*whole, stream, 0, stream.n);
  parts.learn(stream, 0, stream.n);
  const RowsView rows = stream.rows(0, 50);
  for (const std::size_t n : {1U, 4U}) {
    const Search search{.exact = n > 1};
    CHECK(parts.neighbors(rows, n, search) ==
          whole->neighbors(rows, n, search, Run{}).arrivals.values);
  }
}

CASE("of candidates with one distance the earlier is closer, and each is listed once") {
  const std::vector<std::uint64_t> one = {2, 2}, other = {1, 3};
  const std::vector<std::span<const std::uint64_t>> ends = {one, other};
  const std::vector<double> reduced = {1.0, 2.0, 1.0, 3.0, 3.0};
  const std::vector<Arrival> arrivals = {7, 8, 7, 6, 5};
  const Closest all = closest(ends, reduced, arrivals, 9);
  CHECK(all.row_ends == std::vector<std::uint64_t>({2, 4}));
  CHECK(all.numbers == std::vector<std::uint64_t>({0, 1, 4, 3}));
  CHECK(closest(ends, reduced, arrivals, 1).numbers == std::vector<std::uint64_t>({0, 4}));
  CHECK_THROWS(closest(ends, reduced, std::span(arrivals).first(4), 1), std::invalid_argument);
  const std::vector<std::span<const std::uint64_t>> uneven = {one, std::span(other).first(1)};
  CHECK_THROWS(closest(uneven, reduced, arrivals, 1), std::invalid_argument);
}

int main() { return check::run_all(); }
