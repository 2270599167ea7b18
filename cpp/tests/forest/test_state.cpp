// The whole state of a forest, taken out and put back: what is restored goes on as the original, and
// arrays that make no forest are refused, each by what is wrong with it.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

using State = BoundaryForest::State;

Stream stream_for(Task task) { return grid(params_for(task, 7, 3, 5), 600, 11); }

std::function<void(State&)> edit(const std::function<void(std::vector<Tree>&)>& change) {
  return [change](State& state) {
    std::vector<Tree> trees = trees_of(state);
    change(trees);
    set_trees(state, trees);
  };
}

// What restore() says of a state that was changed, or "" if it takes it.
std::string refusal(const Stream& stream, std::size_t learned,
                    const std::function<void(State&)>& change) {
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, learned);
  State state = forest->state();
  change(state);
  const auto other = forest_for(stream.params);
  try {
    other->restore(state);
  } catch (const std::invalid_argument& error) {
    CHECK_EQ(other->seen(), 0U);
    learn(*other, stream, 0, learned);  // and it is as good as new
    CHECK(same(other->state(), forest->state()));
    return error.what();
  }
  return "";
}

}  // namespace

CASE("a restored forest goes on as the one that was saved, from any moment") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = stream_for(task);
    for (const std::size_t cut : {1U, 5U, 7U, 8U, 300U, 600U}) {
      const auto saved = forest_for(stream.params);
      learn(*saved, stream, 0, cut);
      const auto restored = forest_for(stream.params);
      restored->restore(saved->state());
      CHECK(same(restored->state(), saved->state()));
      CHECK_EQ(restored->stats().learn.comparisons, saved->stats().learn.comparisons);
      learn(*saved, stream, cut, stream.n - cut);
      learn(*restored, stream, cut, stream.n - cut);
      CHECK(same(restored->state(), saved->state()));
    }
  }
}

CASE("rows that stay where they are serve as well, and learning goes on beside them") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = stream_for(task);
    for (const std::size_t cut : {5U, 300U, 600U}) {
      const auto saved = forest_for(stream.params);
      learn(*saved, stream, 0, cut);
      const State state = saved->state();
      const auto rows = std::make_shared<std::vector<std::byte>>(state.examples.positions);
      const auto restored = forest_for(stream.params);
      restored->restore(state, {.data = rows->data(), .bytes = rows->size(), .owner = rows});
      CHECK(same(restored->state(), state));
      CHECK(restored->stats().position_bytes < rows->size() + 1000);  // there is one copy
      learn(*saved, stream, cut, stream.n - cut);
      learn(*restored, stream, cut, stream.n - cut);
      CHECK(same(restored->state(), saved->state()));
      CHECK(*rows == state.examples.positions);
    }
  }
}

CASE("rows of others are let go when a state is refused") {
  const Stream stream = stream_for(Task::classes);
  const auto saved = forest_for(stream.params);
  learn(*saved, stream, 0, 300);
  State state = saved->state();
  edit([](auto& trees) { trees[6].parents[2] = 2; })(state);
  const auto rows = std::make_shared<std::vector<std::byte>>(state.examples.positions);
  const auto other = forest_for(stream.params);
  bool refused = false;
  try {
    other->restore(state, {.data = rows->data(), .bytes = rows->size(), .owner = rows});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
  CHECK_EQ(rows.use_count(), 1);
  learn(*other, stream, 0, 300);
  CHECK(same(other->state(), saved->state()));
}

CASE("rows that are no numbers give answers, if wrong ones, and learning goes on") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = stream_for(task);
    const auto saved = forest_for(stream.params);
    learn(*saved, stream, 0, 300);
    State state = saved->state();
    auto rows = std::make_shared<std::vector<std::byte>>(state.examples.positions);
    std::fill(rows->begin() + static_cast<std::ptrdiff_t>(rows->size() / 3), rows->end(),
              std::byte{0xFF});
    const auto restored = forest_for(stream.params);
    restored->restore(state, {.data = rows->data(), .bytes = rows->size(), .owner = rows});
    CHECK_EQ(restored->apply(stream.rows(0, 100), {}).rows, 100U);
    CHECK_EQ(restored->estimate(stream.rows(0, 100), {})->rows, 100U);
    CHECK_EQ(restored->neighbors(stream.rows(0, 100), 9, {}).distances.rows, 100U);
    const std::size_t all = state.examples.arrivals.size();
    CHECK_EQ(restored->neighbors(stream.rows(0, 3), all, {}).distances.rows, 3U);
    learn(*restored, stream, 300, 300);
    CHECK_EQ(restored->seen(), 600U);
  }
}

CASE("only an empty forest can be restored") {
  const Stream stream = stream_for(Task::classes);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 50);
  bool refused = false;
  try {
    forest->restore(forest->state());
  } catch (const std::logic_error&) {
    refused = true;
  }
  CHECK(refused);
}

CASE("a state that makes no forest is refused by what is wrong with it") {
  const Stream stream = stream_for(Task::classes);
  const std::vector<std::pair<std::string, std::function<void(State&)>>> wrong = {
      {"positions has the wrong size", [](State& s) { s.examples.positions.pop_back(); }},
      {"labels has the wrong size", [](State& s) { s.examples.labels.push_back(0.0); }},
      {"is not ascending", [](State& s) { s.examples.arrivals[1] = s.examples.arrivals[0]; }},
      {"exceeds", [](State& s) { s.seen = s.examples.arrivals.back(); }},
      {"class that does not exist", [](State& s) { s.examples.labels[3] = 99.0; }},
      {"class that does not exist", [](State& s) { s.examples.labels[3] = 0.5; }},
      {"class that does not exist", [](State& s) { s.examples.labels[3] = -1.0; }},
      {"the number of trees is wrong", edit([](auto& trees) { trees.pop_back(); })},
      {"trees are missing", edit([](auto& trees) { trees[0] = {}; })},
      {"others not", edit([](auto& trees) { trees[2] = {}; })},
      {"does not add up", edit([](auto& trees) { trees[1].parents.pop_back(); })},
      {"does not add up", [](State& s) { ++s.tree_sizes[1]; }},
      {"does not add up", [](State& s) { s.node_examples.push_back(0); }},
      {"not stored", edit([](auto& trees) { trees[1].examples[2] = 1u << 30; })},
      {"twice", edit([](auto& trees) { trees[1].examples[2] = trees[1].examples[1]; })},
      {"before its parent", edit([](auto& trees) { trees[1].parents[2] = 2; })},
      {"before its parent", edit([](auto& trees) { trees[1].parents[2] = nothing; })},
      {"before its parent", edit([](auto& trees) { trees[1].parents[0] = 0; })},
      {"more children", edit([](auto& trees) {
         for (std::size_t v = 1; v < 6; ++v) trees[1].parents[v] = 0;
       })},
      {"in no tree", edit([](auto& trees) {
         for (Tree& tree : trees) {
           tree.examples.resize(1);
           tree.parents.resize(1);
         }
       })},
      {"spread", [](State& s) { s.spread.push_back(1.0); }},
      {"spread", [](State& s) { s.spread.clear(); }},
      {"spread", [](State& s) { s.spread[0] = 600.0; }},
      {"not finite", [](State& s) { s.examples.labels[3] = std::nan(""); }},
      {"class that does not exist", [](State& s) { --s.n_classes; }},
      {"the number of trees is wrong", [](State& s) { s.tree_places = {3}; }},
      {"tree_generations", [](State& s) { s.tree_generations = {1}; }},
      {"ids", [](State& s) { s.examples.ids.integers = {1}; }},
      {"seen is too large", [](State& s) { s.seen = std::uint64_t{1} << 60; }},
  };
  for (const auto& [what, change] : wrong) {
    const std::string said = refusal(stream, 600, change);
    CHECK_IN(what + " expected, got: " + said, said.find(what) != std::string::npos);
  }
  CHECK_EQ(refusal(stream, 600, [](State&) {}), "");
}

CASE("a state from before the trees were planted must hold all that arrived") {
  const Stream stream = stream_for(Task::classes);
  CHECK_EQ(refusal(stream, 5, [](State&) {}), "");
  CHECK(refusal(stream, 5, [](State& s) { s.seen = 6; }).find("trees are missing") !=
        std::string::npos);
}

CASE("a snapshot stays what it was while the forest goes on learning") {
  const Stream stream = stream_for(Task::numbers);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 300);
  const State before = forest->state();
  const Snapshot snapshot(*forest);
  learn(*forest, stream, 300, 300);
  CHECK(same(snapshot.state(true), before));
  CHECK_EQ(snapshot.size(), before.examples.arrivals.size());
  const Examples some = snapshot.examples(2, 5);
  CHECK_EQ(some.arrivals[0], before.examples.arrivals[2]);
  CHECK_EQ(some.labels[2], before.examples.labels[2 * 2 + 2]);
  CHECK_THROWS(snapshot.examples(0, snapshot.size() + 1), std::invalid_argument);
  CHECK_THROWS(snapshot.neighbors(stream.rows(0, 1), snapshot.size() + 1, Search{}, Run{}),
               std::invalid_argument);
}

int main() { return check::run_all(); }
