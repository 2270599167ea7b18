// Trees that are replaced and examples that are freed: the same forest however it came about, when
// calls are taken back, with rows in a mapped file, and in bounded memory.
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/replacements.hpp"
#include "tests/streams.hpp"

using namespace streams;

CASE("a tree that is replaced is of the next generation, and learns on") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = stream_for(task);
    const auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, 300);
    const State before = forest->state();
    const std::vector<Regrowth> one = {{2, order_of(before, 2, 5)}};
    forest->regrow(one, Run{});
    const State after = forest->state();
    CHECK(after.tree_generations == (std::vector<std::uint32_t>{0, 0, 1, 0, 0, 0}));
    CHECK_EQ(after.seen, before.seen);
    CHECK_EQ(after.examples.arrivals[trees_of(after)[2].examples[0]], one[0].order[0]);
    const std::vector<Tree> trees = trees_of(after);
    for (const std::size_t t : {0U, 1U, 3U, 4U, 5U})
      CHECK_EQ(trees[t].examples.size(), trees_of(before)[t].examples.size());
    check_living(after);
    learn(*forest, stream, 300, 300);
    check_living(forest->state());
  }
}

CASE("what no tree holds any more is freed, and its slots are used again") {
  for (const Task task : {Task::classes, Task::retrieval}) {
    const Stream stream = stream_for(task, 3000);
    const auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, 1000);
    const auto odd = [](Arrival arrival) { return arrival % 2 == 1; };
    forest->regrow(without(forest->state(), 1, odd), Run{});
    const State half = forest->state();
    check_living(half);
    for (const Arrival arrival : half.examples.arrivals) CHECK(odd(arrival));
    const Table<Arrival> found = forest->apply(stream.rows(0, 200), Run{});
    for (const Arrival arrival : found.values) CHECK(odd(arrival));
    // Brute force over the stored, and a learner that goes on, know the living alone.
    const std::size_t stored = half.examples.arrivals.size();
    for (const Arrival arrival :
         forest->neighbors(stream.rows(0, 5), stored, Run{}).arrivals.values)
      CHECK(odd(arrival));
    CHECK_THROWS(forest->neighbors(stream.rows(0, 5), stored + 1, Run{}), std::invalid_argument);
    const std::size_t bytes = forest->stats().position_bytes;
    learn(*forest, stream, 1000, 300);
    check_living(forest->state());
    CHECK_IN(std::to_string(forest->stats().position_bytes) + " after " + std::to_string(bytes),
             forest->stats().position_bytes <= 2 * bytes);  // there is room for a staged block
  }
}

CASE("a forest of reused slots is, by arrivals, the one that never freed any") {
  // A forest restored from a state has its examples side by side; one that has lived has not.
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    const Stream stream = stream_for(task, 2000);
    const auto lived = forest_for(stream.params);
    learn(*lived, stream, 0, 800);
    lived->regrow(without(lived->state(), 3, [](Arrival a) { return a % 3 != 0; }), Run{});
    learn(*lived, stream, 800, 400);
    const auto restored = forest_for(stream.params);
    restored->restore(lived->state());
    CHECK(same(lived->state(), restored->state()));
    std::vector<std::uint64_t> keys(4);
    std::iota(keys.begin(), keys.end(), 7);
    CHECK(lived->digest(keys)->trees == restored->digest(keys)->trees);
    CHECK(lived->digest(keys)->examples == restored->digest(keys)->examples);
    learn(*lived, stream, 1200, 800, 2);
    learn_in_calls(*restored, grid(stream.params, 0, 1), {1});
    for (std::size_t at = 1200; at < 2000; at += 7)
      learn(*restored, stream, at, std::min<std::size_t>(7, 2000 - at));
    CHECK(same(lived->state(), restored->state()));
    CHECK(lived->digest(keys)->examples == restored->digest(keys)->examples);
    CHECK(lived->neighbors(stream.rows(0, 50), 5, Run{}).arrivals.values ==
          restored->neighbors(stream.rows(0, 50), 5, Run{}).arrivals.values);
  }
}

CASE("a successor grows beside its predecessor, and answers once it has taken over") {
  const Stream stream = stream_for(Task::classes);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 200);
  const auto alone = forest_for(stream.params);
  learn(*alone, stream, 0, 200);
  const std::vector<Regrowth> successor = {{1, order_of(forest->state(), 1, 9), false}};
  forest->regrow(successor, Run{});
  CHECK(forest->state().tree_places == std::vector<std::uint32_t>{1});
  learn(*forest, stream, 200, 200);
  learn(*alone, stream, 200, 200);
  // It holds what it keeps, but no answer is its own.
  CHECK(forest->apply(stream.rows(), Run{}).values == alone->apply(stream.rows(), Run{}).values);
  check_living(forest->state());
  const auto restored = forest_for(stream.params);
  restored->restore(forest->state());
  CHECK(same(restored->state(), forest->state()));
  for (BoundaryForest* one : {forest.get(), restored.get()}) {
    const std::vector<std::uint32_t> places = {1};
    one->succeed(places);
    learn(*one, stream, 400, 200);
  }
  const State after = forest->state();
  CHECK(after.tree_places.empty());
  CHECK_EQ(after.tree_generations[1], 1U);
  CHECK(same(after, restored->state()));
  check_living(after);
  // Those that only grow are listed by place, in whatever order they came.
  const std::vector<Regrowth> two = {{4, order_of(after, 4, 9), false},
                                     {3, order_of(after, 3, 9), false}};
  forest->regrow(two, Run{});
  CHECK(forest->state().tree_places == (std::vector<std::uint32_t>{3, 4}));
  const auto again = forest_for(stream.params);
  again->restore(forest->state());
  CHECK(same(again->state(), forest->state()));
  const std::vector<std::uint32_t> both = {4, 3};
  forest->succeed(both);
  again->succeed(both);
  CHECK(same(again->state(), forest->state()));
  const State last = forest->state();
  const std::vector<std::uint32_t> nowhere = {2};
  CHECK_THROWS(forest->succeed(nowhere), std::invalid_argument);
  CHECK(same(last, forest->state()));
}

namespace {

std::atomic<long> countdown{-1};
constexpr long never = 1L << 60;

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown.fetch_sub(1) == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

}  // namespace

CASE("replacing that fails changes nothing, wherever it fails, nor does learning after it") {
  for (const Task task : {Task::classes, Task::retrieval}) {
    const Stream stream = stream_for(task, 700);
    const auto make = [&] {
      auto forest = std::make_unique<BoundaryForest>(
          stream.params, make_metric(failing_distance, ElementType::float32, 4, true));
      learn(*forest, stream, 0, 300);
      forest->regrow(without(forest->state(), 2, [](Arrival a) { return a % 2 == 0; }), Run{});
      return forest;
    };
    countdown = never;
    const auto forest = make();
    const State before = forest->state();
    const std::vector<Regrowth> some = without(before, 4, [](Arrival a) { return a % 4 == 0; });
    // How many distances the regrowing takes, and the learning of 300 rows into freed slots.
    const auto distances = [&](const std::function<void(BoundaryForest&)>& work) {
      countdown = never;
      const auto other = make();
      const long at = countdown;
      work(*other);
      return at - countdown;
    };
    const long to_regrow = distances([&](BoundaryForest& f) { f.regrow(some, Run{}); });
    const long to_learn = distances([&](BoundaryForest& f) { learn(f, stream, 300, 400); });
    for (long at = 0; at < to_regrow; at += 1 + to_regrow / 40) {
      countdown = at;
      CHECK_THROWS(forest->regrow(some, Run{}), std::domain_error);
      CHECK(same(forest->state(), before));
    }
    for (long at = 0; at < to_learn; at += 1 + to_learn / 40) {
      countdown = at;
      CHECK_THROWS(learn(*forest, stream, 300, 400), std::domain_error);
      CHECK(same(forest->state(), before));
    }
    // And it goes on as if nothing had happened.
    countdown = never;
    const auto untroubled = make();
    for (BoundaryForest* one : {forest.get(), untroubled.get()}) {
      one->regrow(some, Run{});
      learn(*one, stream, 300, 400);
    }
    CHECK(same(forest->state(), untroubled->state()));
    check_living(forest->state());
  }
}

CASE("memory stays flat while trees are replaced again and again") {
  const Stream stream = grid(params_for(Task::retrieval, 4, 5, 8), 20000, 3);
  const auto forest = forest_for(stream.params);
  std::size_t early = 0;
  for (std::size_t at = 0; at < stream.n; at += 100) {
    learn(*forest, stream, at, 100);
    const State state = forest->state();
    if (state.seen > 1000)
      forest->regrow(without(state, at, [&](Arrival a) { return a + 500 > state.seen; }), Run{});
    const Stats stats = forest->stats();
    const std::size_t bytes = stats.position_bytes + stats.example_bytes + stats.tree_bytes;
    if (at == 3000) early = bytes;
    if (at > 3000)
      CHECK_IN(std::to_string(bytes) + " after " + std::to_string(early),
               bytes <= early + early / 10);
  }
}

CASE("rows of a mapped file are never written, even where their examples are freed") {
  const Stream stream = stream_for(Task::retrieval, 1200);
  const auto saved = forest_for(stream.params);
  learn(*saved, stream, 0, 600);
  const State state = saved->state();
  const auto rows = std::make_shared<std::vector<std::byte>>(state.examples.positions);
  const auto forest = forest_for(stream.params);
  forest->restore(state,
                  {.data = rows->data(), .bytes = rows->size(), .owner = rows, .in_file = true});
  for (BoundaryForest* one : {saved.get(), forest.get()}) {
    one->regrow(without(state, 1, [](Arrival a) { return a % 2 == 1; }), Run{});
    learn(*one, stream, 600, 600);
  }
  CHECK(*rows == state.examples.positions);
  CHECK(same(saved->state(), forest->state()));
}

CASE("ids go where their examples go, and are free again when those are") {
  for (const IdKind kind : {IdKind::integer, IdKind::text}) {
    Params params = params_for(Task::retrieval, 4, 3, 4);
    params.ids = kind;
    const Stream stream = grid(params, 900, 5);
    const auto ids_for = [&](std::size_t begin, std::size_t n) {
      Ids ids;
      for (std::size_t i = begin; i < begin + n; ++i)
        if (kind == IdKind::text)
          ids.texts.push_back("the example number " + std::to_string(i));
        else
          ids.integers.push_back(static_cast<std::int64_t>(i) * 10);
      return ids;
    };
    const auto forest = forest_for(params);
    std::size_t learned = 0;
    const auto teach = [&](std::size_t begin, std::size_t n) {
      forest->learn(stream.rows(begin, n), stream.labels_from(begin), Run{}, learned,
                    ids_for(begin, n));
    };
    const auto check_names = [&] {
      const State state = forest->state();
      const Ids expected = ids_for(0, stream.n);
      for (std::size_t i = 0; i < state.examples.arrivals.size(); ++i) {
        const std::size_t arrival = state.examples.arrivals[i];
        if (kind == IdKind::text)
          CHECK_EQ(state.examples.ids.texts[i], expected.texts[arrival]);
        else
          CHECK_EQ(state.examples.ids.integers[i], expected.integers[arrival]);
      }
    };
    teach(0, 300);
    check_names();
    CHECK_THROWS(forest->check_ids(ids_for(299, 2)), std::invalid_argument);
    Ids twice = ids_for(500, 1);
    const Ids again = ids_for(500, 1);
    twice.integers.insert(twice.integers.end(), again.integers.begin(), again.integers.end());
    twice.texts.insert(twice.texts.end(), again.texts.begin(), again.texts.end());
    CHECK_THROWS(forest->check_ids(twice), std::invalid_argument);
    forest->regrow(without(forest->state(), 1, [](Arrival a) { return a >= 100; }), Run{});
    forest->check_ids(ids_for(0, 100));  // their examples are gone
    CHECK_THROWS(forest->check_ids(ids_for(100, 1)), std::invalid_argument);
    teach(300, 600);
    check_names();
    CHECK_THROWS(forest->check_ids(ids_for(899, 1)), std::invalid_argument);
    const auto restored = forest_for(params);
    restored->restore(forest->state());
    CHECK(same(restored->state(), forest->state()));
    CHECK_THROWS(restored->check_ids(ids_for(899, 1)), std::invalid_argument);
  }
}

CASE("engines that hold parts of the trees make up the forest that one engine holds") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval})
    for (const bool offline : {false, true}) {
      const Stream stream = stream_for(task);
      const auto whole = forest_for(stream.params);
      const auto teach = [&](BoundaryForest& forest) {
        if (offline)
          forest.learn_offline(stream.rows(), stream.labels.data(), Run{});
        else
          learn_in_calls(forest, stream, {1, 4, 50});
      };
      teach(*whole);
      const std::vector<std::uint64_t> keys = {1, 2, 3, 4};
      const Table<Arrival> expected = whole->apply(stream.rows(), Run{});
      Digest sum;
      for (const auto& [first, end] : {std::pair{0U, 1U}, {1U, 4U}, {4U, 6U}}) {
        Params params = stream.params;
        params.first_tree = first;
        params.end_tree = end;
        const auto part = forest_for(params);
        teach(*part);
        check_living(part->state());
        const Table<Arrival> found = part->apply(stream.rows(), Run{});
        for (std::size_t row = 0; row < stream.n; ++row)
          for (std::size_t t = first; t < end; ++t)
            CHECK_EQ(found.values[row * (end - first) + t - first], expected.values[row * 6 + t]);
        const Digest digest = *part->digest(keys);
        sum.trees.insert(sum.trees.end(), digest.trees.begin(), digest.trees.end());
        for (const std::size_t half : {0U, 1U}) sum.examples[half] += digest.examples[half];
        const auto restored = forest_for(params);
        restored->restore(part->state());
        CHECK(same(restored->state(), part->state()));
      }
      CHECK(sum.trees == whole->digest(keys)->trees);
      CHECK(sum.examples == whole->digest(keys)->examples);
    }
}

CASE("a tree is not grown from examples that are not stored, or where none stands") {
  const Stream stream = stream_for(Task::classes);
  const auto forest = forest_for(stream.params);
  const std::vector<Regrowth> early = {{0, {0}}};
  CHECK_THROWS(forest->regrow(early, Run{}), std::logic_error);
  learn(*forest, stream, 0, 300);
  const State before = forest->state();
  const std::vector<std::vector<Regrowth>> wrong = {
      {{0, {}}}, {{6, {0}}}, {{6, {0}, false}}, {{0, {0, 1'000'000}}}, {{1, {0}}, {0, {299, 300}}}};
  for (const std::vector<Regrowth>& one : wrong) {
    CHECK_THROWS(forest->regrow(one, Run{}), std::invalid_argument);
    CHECK(same(forest->state(), before));
  }
}

int main() { return check::run_all(); }
