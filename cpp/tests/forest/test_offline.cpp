// The paper's offline variant (OBF): each tree is shown its own shuffle of what `fit` was given,
// and learning goes on online from there.
#include <set>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

void learn_offline(BoundaryForest& forest, const Stream& stream, std::size_t n,
                   std::size_t n_jobs = 1) {
  forest.learn_offline(stream.rows(0, n), stream.labels_from(0), Run{.n_jobs = n_jobs});
}

}  // namespace

CASE("an offline forest does not depend on the number of threads") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = grid(params_for(task, 9, 3, 6), 1500, 3);
    const auto one = forest_for(stream.params);
    learn_offline(*one, stream, stream.n);
    for (const std::size_t n_jobs : {2U, 8U}) {
      const auto many = forest_for(stream.params);
      learn_offline(*many, stream, stream.n, n_jobs);
      CHECK(same(many->state(), one->state()));
    }
  }
}

CASE("tree i's root is the first of its own shuffle, and trees differ") {
  const Stream stream = cube(params_for(Task::retrieval, 12, 3, 6), 500, 4);
  const auto forest = forest_for(stream.params);
  learn_offline(*forest, stream, stream.n);
  const BoundaryForest::State state = forest->state();
  std::set<Arrival> roots;
  const std::vector<Tree> trees = trees_of(state);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const std::vector<std::uint32_t> order = shuffled(500, stream.params.seed, i);
    for (std::size_t v = 0; v < 500; ++v)  // retrieval keeps all, so the order shows whole
      CHECK_EQ(state.examples.arrivals[trees[i].examples[v]], Arrival{order[v]});
    roots.insert(order[0]);
  }
  CHECK(roots.size() > 6);
}

CASE("examples that no tree kept are not stored, and arrival numbers are row numbers") {
  const Stream stream = cube(params_for(Task::classes, 2, 5, 2), 1500, 5);
  const auto forest = forest_for(stream.params);
  learn_offline(*forest, stream, stream.n);
  const BoundaryForest::State state = forest->state();
  const std::set<Slot> kept(state.node_examples.begin(), state.node_examples.end());
  CHECK_EQ(kept.size(), state.examples.arrivals.size());
  CHECK(state.examples.arrivals.size() < stream.n);
  for (std::size_t slot = 0; slot < state.examples.arrivals.size(); ++slot) {
    const Arrival row = state.examples.arrivals[slot];
    CHECK_EQ(state.examples.labels[slot], stream.labels[row]);
    CHECK(std::memcmp(state.examples.positions.data() + slot * 8, stream.rows(row, 1).data, 8) ==
          0);
  }
}

CASE("a later call learns online, however it is cut, also after fewer examples than trees") {
  for (const std::size_t n_offline : {3U, 600U}) {
    const Stream stream = grid(params_for(Task::numbers, 9, 3, 6), 1200, 6);
    const auto whole = forest_for(stream.params);
    learn_offline(*whole, stream, n_offline);
    learn(*whole, stream, n_offline, stream.n - n_offline);
    const auto cut = forest_for(stream.params);
    learn_offline(*cut, stream, n_offline);
    for (std::size_t begin = n_offline; begin < stream.n; begin += 13)
      learn(*cut, stream, begin, std::min<std::size_t>(13, stream.n - begin));
    CHECK(same(whole->state(), cut->state()));
    CHECK_EQ(whole->stats().seen, std::uint64_t{stream.n});
    CHECK(whole->state().examples.arrivals.back() < stream.n);
  }
}

CASE("offline learning needs a forest that is still empty") {
  const Stream stream = grid(params_for(Task::classes, 4, 3, 6), 50, 7);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 1);
  const BoundaryForest::State before = forest->state();
  CHECK_THROWS(learn_offline(*forest, stream, 50), std::logic_error);
  CHECK(same(forest->state(), before));
}

int main() { return check::run_all(); }
