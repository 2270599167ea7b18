// Algorithm 2 (boundary_forest.hpp): the forest is a function of the examples in order, the
// parameters and the seed (promise 2), answers from the first example on (promise 3), and holds
// together.
#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

const std::vector<Task> tasks = {Task::classes, Task::numbers, Task::retrieval};

// Trees hang together: roots, parents before children, at most k children, no example twice, and
// the store is what the trees kept and nothing else, in order of arrival.
void check_structure(const BoundaryForest::State& state, std::uint32_t k, bool roots_by_number) {
  std::set<Slot> kept;
  const std::vector<Tree> trees = trees_of(state);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const Tree& tree = trees[i];
    std::vector<std::uint32_t> children(tree.examples.size(), 0);
    CHECK_EQ(tree.parents[0], nothing);
    if (roots_by_number) CHECK_EQ(state.examples.arrivals[tree.examples[0]], Arrival{i});
    for (NodeId v = 1; v < tree.parents.size(); ++v) {
      CHECK(tree.parents[v] < v);
      CHECK(++children[tree.parents[v]] <= k);
    }
    const std::set<Slot> once(tree.examples.begin(), tree.examples.end());
    CHECK_EQ(once.size(), tree.examples.size());
    kept.insert(once.begin(), once.end());
  }
  CHECK_EQ(kept.size(), state.examples.arrivals.size());
  CHECK(kept.empty() || *kept.rbegin() == state.examples.arrivals.size() - 1);
  for (std::size_t s = 1; s < state.examples.arrivals.size(); ++s)
    CHECK(state.examples.arrivals[s - 1] < state.examples.arrivals[s]);
}

double squared_distance(const Stream& stream, std::size_t a, std::size_t b) {
  const std::size_t n = stream.params.n_features;
  std::vector<double> x(n);
  std::vector<double> y(n);
  to_doubles({stream.rows(a, 1).data, stream.params.element_type}, n, x.data());
  to_doubles({stream.rows(b, 1).data, stream.params.element_type}, n, y.data());
  double sum = 0.0;
  for (std::size_t f = 0; f < n; ++f) sum += (x[f] - y[f]) * (x[f] - y[f]);
  return sum;
}

// The rows of `stream` that lie nearest to its row `y`, among the first n.
std::set<Arrival> exact_nearest(const Stream& stream, std::size_t y, std::size_t n) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) least = std::min(least, squared_distance(stream, y, i));
  std::set<Arrival> nearest;
  for (std::size_t i = 0; i < n; ++i)
    if (squared_distance(stream, y, i) == least) nearest.insert(i);
  return nearest;
}

}  // namespace

CASE("the forest does not depend on where the stream is cut into calls") {
  const std::vector<std::vector<std::size_t>> cuts = {{1}, {7}, {3, 50, 1}, {1000}, {2, 1040}};
  for (const Task task : tasks)
    for (const std::uint32_t n_T : {1U, 5U, 20U})
      for (const std::uint32_t k : {2U, 3U, 50U, unlimited}) {
        if (n_T != 5 && k != 3) continue;  // to save time
        const auto type = element_types[(n_T + k) % std::size(element_types)];
        const Stream stream = grid(params_for(task, n_T, k, 5, type), 1100, n_T);
        const auto whole = forest_for(stream.params);
        learn(*whole, stream, 0, stream.n);
        const BoundaryForest::State expected = whole->state();
        check_structure(expected, k, true);
        for (const auto& sizes : cuts) {
          const auto cut = forest_for(stream.params);
          learn_in_calls(*cut, stream, sizes);
          CHECK(same(cut->state(), expected));
          CHECK_EQ(cut->stats().learn.comparisons, whole->stats().learn.comparisons);
        }
      }
}

CASE("nor does it when more than a block of examples is awaited before the trees begin") {
#ifdef CHECK_THREAD_SANITIZER
  SKIP("two million descents on one thread, which take long and have nothing to race with");
#endif
  const Stream stream = grid(params_for(Task::classes, 1030, 4, 1), 1040, 11);
  const auto whole = forest_for(stream.params);
  learn(*whole, stream, 0, stream.n);
  const auto cut = forest_for(stream.params);
  learn_in_calls(*cut, stream, {300, 1});
  CHECK(same(cut->state(), whole->state()));
  check_structure(whole->state(), 4, true);
}

CASE("the forest and its answers do not depend on the number of threads") {
  for (const Task task : tasks) {
    const Stream stream = grid(params_for(task, 9, 3, 6), 1300, 3);
    const auto one = forest_for(stream.params);
    learn_in_calls(*one, stream, {1, 5, 400});
    for (const std::size_t n_jobs : {2U, 8U}) {
      const auto many = forest_for(stream.params);
      learn_in_calls(*many, stream, {1, 5, 400}, n_jobs);
      CHECK(same(many->state(), one->state()));
      const RowsView queries = stream.rows(700, 50);
      CHECK(many->apply(queries, Run{n_jobs}).values == one->apply(queries, Run{}).values);
      CHECK(many->estimate(queries, Run{n_jobs})->values == one->estimate(queries, Run{})->values);
      CHECK(many->neighbors(queries, 4, Run{n_jobs}).arrivals.values ==
            one->neighbors(queries, 4, Run{}).arrivals.values);
    }
  }
}

CASE("another seed gives another forest") {
  Params params = params_for(Task::classes, 5, 3, 5);
  const Stream stream = grid(params, 500, 4);
  const auto a = forest_for(params);
  learn(*a, stream, 0, stream.n);
  ++params.seed;
  const auto b = forest_for(params);
  learn(*b, stream, 0, stream.n);
  CHECK(!same(a->state(), b->state()));
}

CASE("a forest that has learned nothing says so") {
  const Stream stream = grid(params_for(Task::classes, 5, 3, 5), 10, 4);
  const auto forest = forest_for(stream.params);
  CHECK_THROWS(forest->apply(stream.rows(), Run{}), std::logic_error);
  CHECK_THROWS(forest->estimate(stream.rows(), Run{}), std::logic_error);
  CHECK_THROWS(forest->neighbors(stream.rows(), 1, Run{}), std::invalid_argument);
  CHECK_EQ(forest->stats().seen, std::uint64_t{0});
  learn(*forest, stream, 0, 0);
  CHECK_EQ(forest->stats().seen, std::uint64_t{0});
}

CASE("before n_T examples have come, the exact nearest of them answers for every tree") {
  for (const ElementType type : element_types) {
    const Params params = params_for(Task::classes, 30, 3, 4, type);
    const Stream stream = grid(params, 200, 5);
    const auto forest = forest_for(params);
    for (std::size_t seen = 1; seen < 30; ++seen) {
      learn(*forest, stream, seen - 1, 1);
      const Table<Arrival> found = forest->apply(stream.rows(30, 40), Run{});
      for (std::size_t y = 0; y < 40; ++y) {
        const std::set<Arrival> nearest = exact_nearest(stream, 30 + y, seen);
        CHECK_EQ(nearest.count(found.values[y * 30]), std::size_t{1});
        for (std::size_t i = 1; i < 30; ++i)
          CHECK_EQ(found.values[y * 30 + i], found.values[y * 30]);
      }
      CHECK_EQ(forest->stats().stored, static_cast<Slot>(seen));
      CHECK_EQ(forest->stats().nodes[0], NodeId{0});
    }
    learn(*forest, stream, 29, 1);  // the n_T-th: now every tree has its root
    for (const NodeId nodes : forest->stats().nodes) CHECK(nodes >= 1);
  }
}

CASE("an example is known at once: ask it, and its class comes back") {
  const Stream stream = cube(params_for(Task::classes, 10, 3, 4), 400, 6);
  const auto forest = forest_for(stream.params);
  for (std::size_t y = 0; y < stream.n; ++y) {
    learn(*forest, stream, y, 1);
    const Table<double> share = *forest->estimate(stream.rows(y, 1), Run{});
    const auto best = std::max_element(share.values.begin(), share.values.end());
    CHECK_EQ(static_cast<double>(best - share.values.begin()), stream.labels[y]);
  }
}

CASE("an example is known at once: ask it, and its target comes back within epsilon") {
  Params params = params_for(Task::numbers, 10, 3, 4);
  params.auto_epsilon = false;
  params.epsilon = 0.3;
  const Stream stream = cube(params, 400, 7);
  const auto forest = forest_for(params);
  for (std::size_t y = 0; y < stream.n; ++y) {
    learn(*forest, stream, y, 1);
    const Table<double> mean = *forest->estimate(stream.rows(y, 1), Run{});
    CHECK(euclidean_label_distance(mean.values.data(), stream.labels_from(y), 2) <=
          0.3 * (1 + 1e-12));
  }
}

CASE("a vote is made of shares that sum to one") {
  const Stream stream = cube(params_for(Task::classes, 10, 3, 4), 600, 8);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 300);
  const Table<double> share = *forest->estimate(stream.rows(300, 300), Run{});
  CHECK_EQ(share.columns, std::size_t{4});
  for (std::size_t y = 0; y < share.rows; ++y) {
    double sum = 0.0;
    for (std::size_t c = 0; c < share.columns; ++c) {
      CHECK(share.values[y * 4 + c] >= 0.0);
      sum += share.values[y * 4 + c];
    }
    CHECK(sum > 1 - 1e-12 && sum < 1 + 1e-12);
  }
}

CASE("retrieval keeps every example in every tree, and no node has more than k children") {
  for (const std::uint32_t k : {2U, 3U, 50U, 64U, unlimited}) {
    const Stream stream = star(params_for(Task::retrieval, 4, k, 40), 900, 9);
    const auto forest = forest_for(stream.params);
    learn_in_calls(*forest, stream, {100});
    const BoundaryForest::State state = forest->state();
    check_structure(state, k, true);
    CHECK_EQ(state.examples.arrivals.size(), stream.n);
    std::vector<std::uint32_t> children(stream.n, 0);
    const std::vector<Tree> trees = trees_of(state);
    for (const Tree& tree : trees) CHECK_EQ(tree.examples.size(), stream.n);
    for (const NodeId parent : trees[0].parents)
      if (parent != nothing) ++children[parent];
    const std::uint32_t most = *std::max_element(children.begin(), children.end());
    CHECK(k == unlimited ? most > 100 : most == k);  // the limit is reached, not only respected
  }
}

CASE("neighbours are distinct, in order, and exact when all that is stored is asked for") {
  const Stream stream = grid(params_for(Task::retrieval, 4, 3, 5), 300, 10);
  const auto forest = forest_for(stream.params);
  for (const std::size_t learned : {3U, 300U}) {  // while examples are awaited, and after
    learn(*forest, stream, forest->stats().seen, learned - forest->stats().seen);
    const Table<Arrival> leaves = forest->apply(stream.rows(), Run{});
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, learned}) {
      const Neighbors found = forest->neighbors(stream.rows(), n, Run{});
      for (std::size_t y = 0; y < stream.n; ++y) {
        const double* distances = found.distances.values.data() + y * n;
        const Arrival* arrivals = found.arrivals.values.data() + y * n;
        for (std::size_t j = 0; j < n; ++j)
          CHECK_EQ(distances[j], std::sqrt(squared_distance(stream, y, arrivals[j])));
        for (std::size_t j = 1; j < n; ++j)
          CHECK(distances[j - 1] < distances[j] ||
                (distances[j - 1] == distances[j] && arrivals[j - 1] < arrivals[j]));
        if (n == 1) {
          const Arrival* of_trees = leaves.values.data() + y * 4;
          CHECK(std::find(of_trees, of_trees + 4, arrivals[0]) != of_trees + 4);
          for (std::size_t i = 0; i < 4; ++i)
            CHECK(distances[0] <= std::sqrt(squared_distance(stream, y, of_trees[i])));
        }
      }
    }
    CHECK_THROWS(forest->neighbors(stream.rows(), learned + 1, Run{}), std::invalid_argument);
    CHECK_THROWS(forest->neighbors(stream.rows(), 0, Run{}), std::invalid_argument);
  }
}

CASE("a row gets the same answer in whatever element type it is asked") {
  for (const ElementType stored : element_types) {
    const Stream stream = grid(params_for(Task::retrieval, 6, 3, 5, stored), 400, 12);
    const auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, 300);
    const Table<Arrival> expected = forest->apply(stream.rows(300, 100), Run{});
    for (const ElementType type : element_types) {
      Stream asked = stream;
      asked.params.element_type = type;
      asked = grid(asked.params, 400, 12);
      CHECK(forest->apply(asked.rows(300, 100), Run{}).values == expected.values);
    }
  }
}

int main() { return check::run_all(); }
