// Memory that runs out: whichever allocation of a call fails, alone or with all that follow it, the
// forest is as it was before the call, or as some of its blocks left it, and goes on from there.
#include <algorithm>
#include <functional>

#include "tests/check.hpp"
#include "tests/failing_allocations.hpp"
#include "tests/streams.hpp"

using namespace streams;
using failing::fails_at;

namespace {

// What a forest is, as far as answers, files and further learning can tell.
bool same_forest(BoundaryForest& a, BoundaryForest& b, const Stream& stream) {
  const std::vector<std::uint64_t> keys(64, 1);
  return same(a.state(), b.state()) && a.digest(keys)->examples == b.digest(keys)->examples &&
         a.stats().seen == b.stats().seen && a.stats().stored == b.stats().stored &&
         a.apply(stream.rows(0, 20), Run{}).values == b.apply(stream.rows(0, 20), Run{}).values;
}

// Learning n rows after `before` others fails at each allocation in turn; of a long call at many.
void learns_whatever_fails(const Stream& stream, std::size_t before, std::size_t n, bool held) {
  const Params& params = stream.params;
  const Ids first = ids_for(params, 0, before);
  const Ids ids = ids_for(params, before, n);
  const Ids rest = ids_for(params, before + n, stream.n - before - n);
  const auto whole = forest_for(params);
  std::size_t learned = 0;
  learn_named(*whole, stream, 0, stream.n, learned, ids_for(params, 0, stream.n));
  for (const bool from_there_on : {false, true}) {
    for (long at = 0;; at += n > 100 ? 1 + at / 32 : 1) {
      const auto forest = forest_for(params);
      learn_named(*forest, stream, 0, before, learned, first);
      const auto holder = held ? std::make_unique<Snapshot>(*forest) : nullptr;
      const std::uint64_t seen = forest->seen();
      learned = 0;
      const bool failed = fails_at(at, from_there_on,
                                   [&] { learn_named(*forest, stream, before, n, learned, ids); });
      if (!failed) {
        CHECK_EQ(learned, n);
        break;
      }
      CHECK_EQ(forest->seen(), seen + learned);
      const auto expected = forest_for(params);
      std::size_t ignored = 0;
      learn_named(*expected, stream, 0, before + learned, ignored,
                  ids_for(params, 0, before + learned));
      CHECK(same_forest(*forest, *expected, stream));
      // The rest of the call, and of the stream.
      const std::size_t left = n - learned;
      learn_named(*forest, stream, before + learned, left, learned,
                  ids_for(params, before + learned, left));
      learn_named(*forest, stream, before + n, stream.n - before - n, learned, rest);
      CHECK(same_forest(*forest, *whole, stream));
    }
  }
}

}  // namespace

CASE("learning may run out of memory anywhere") {
  for (const Task task : {Task::classes, Task::numbers}) {
    for (const IdKind kind : {IdKind::none, IdKind::text}) {
      Params params = params_for(task, 2, 3, 2);
      params.ids = kind;
      const Stream stream = cube(params, 330, 5);
      for (const bool held : {false, true}) {
        learns_whatever_fails(stream, 1, 20, held);    // the trees are planted on the way
        learns_whatever_fails(stream, 30, 290, held);  // two blocks
      }
    }
  }
}

CASE("a forest that runs out of memory offline, or while it is restored, stays empty") {
  for (const IdKind kind : {IdKind::none, IdKind::text}) {
    Params params = params_for(Task::classes, 3, 3, 3);
    params.ids = kind;
    const Stream stream = cube(params, 300, 5);
    const Ids ids = ids_for(params, 0, stream.n);
    const auto whole = forest_for(params);
    whole->learn_offline(stream.rows(), stream.labels_from(0), Run{}, ids);
    const BoundaryForest::State state = whole->state();
    const std::function<void(BoundaryForest&)> calls[] = {
        [&](BoundaryForest& f) { f.learn_offline(stream.rows(), stream.labels_from(0), {}, ids); },
        [&](BoundaryForest& f) { f.restore(state); }};
    for (const auto& call : calls)
      for (const bool from_there_on : {false, true})
        for (long at = 0;; ++at) {
          const auto forest = forest_for(params);
          if (!fails_at(at, from_there_on, [&] { call(*forest); })) break;
          CHECK_EQ(forest->seen(), std::uint64_t{0});
          call(*forest);
          CHECK(same_forest(*forest, *whole, stream));
        }
  }
}

CASE("trees that come and go may run out of memory anywhere") {
  const Stream stream = cube(params_for(Task::classes, 4, 3, 3), 300, 5);
  const auto taught = [&] {
    auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, 250);
    return forest;
  };
  std::vector<Arrival> order = taught()->state().examples.arrivals;
  std::reverse(order.begin(), order.end());
  order.resize(order.size() / 2);
  const std::vector<Regrowth> regrowths = {{1, order, true}, {2, order, false}, {0, order, true}};
  const std::uint32_t place = 2;
  const auto whole = taught();
  whole->regrow(regrowths, Run{});
  whole->succeed({&place, 1});
  learn(*whole, stream, 250, 50);
  for (const bool from_there_on : {false, true})
    for (int step = 0; step < 2; ++step)
      for (long at = 0;; ++at) {
        const auto forest = taught();
        const auto go = [&](int which) {
          if (which == 0)
            forest->regrow(regrowths, Run{});
          else
            forest->succeed({&place, 1});
        };
        if (step == 1) go(0);
        const BoundaryForest::State before = forest->state();
        if (!fails_at(at, from_there_on, [&] { go(step); })) break;
        CHECK(same(forest->state(), before));
        for (int which = step; which < 2; ++which) go(which);
        learn(*forest, stream, 250, 50);
        CHECK(same_forest(*forest, *whole, stream));
      }
}

CASE("forests that forget may run out of memory anywhere") {
  for (const Task task : {Task::classes, Task::numbers}) {
    Params params = params_for(task, 3, 3, 2);
    params.lifetimes = {0, 4, 20};
    params.max_stored = 20;
    params.vote_weights = VoteWeights::automatic;
    params.ids = IdKind::text;
    learns_whatever_fails(cube(params, 160, 5), 30, 110, false);
  }
}

// Among these calls are some that begin and end while a successor grows: then both trees of the place are
// outlived, which is the most that a rollback has to bring back.
CASE("a forest of one tree with a short lifetime may run out of memory anywhere") {
  Params params = params_for(Task::classes, 1, 3, 2);
  params.lifetimes = {4};
  const Stream stream = cube(params, 80, 5);
  for (const std::size_t before : {32, 33, 34, 35})
    learns_whatever_fails(stream, before, 20, false);
}

CASE("forgetting on request may run out of memory anywhere") {
  Params params = params_for(Task::classes, 3, 3, 3);
  params.ids = IdKind::integer;
  const Stream stream = cube(params, 300, 5);
  const auto taught = [&] {
    auto forest = forest_for(params);
    std::size_t learned = 0;
    learn_named(*forest, stream, 0, 250, learned, ids_for(params, 0, 250));
    return forest;
  };
  Ids some = taught()->state().examples.ids;
  some.integers.resize(some.integers.size() / 3);
  const auto whole = taught();
  CHECK(whole->forget(some, Run{}).unknown.empty());
  for (const bool from_there_on : {false, true})
    for (long at = 0;; ++at) {
      const auto forest = taught();
      const BoundaryForest::State before = forest->state();
      if (!fails_at(at, from_there_on, [&] { forest->forget(some, Run{}); })) break;
      CHECK(same(forest->state(), before));
      CHECK(forest->forget(some, Run{}).unknown.empty());
      CHECK(same_forest(*forest, *whole, stream));
    }
}

CASE("a query that runs out of memory harms nothing") {
  const Stream stream = cube(params_for(Task::classes, 4, 3, 3), 300, 5);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 250);
  const auto expected = forest->estimate(stream.rows(), Run{})->values;
  const std::function<void()> calls[] = {
      [&] { forest->estimate(stream.rows(), Run{}); },
      [&] { forest->predict(stream.rows(), Run{}); },
      [&] { forest->neighbors(stream.rows(0, 20), 5, Run{}); },
      [&] { forest->paths(stream.rows(0, 1)); },
      [&] { forest->state(); },
  };
  for (const auto& call : calls)
    for (const bool from_there_on : {false, true})
      for (long at = 0; fails_at(at, from_there_on, call); ++at) {
      }
  CHECK(forest->estimate(stream.rows(), Run{})->values == expected);
  learn(*forest, stream, 250, 50);
  const auto whole = forest_for(stream.params);
  learn(*whole, stream, 0, 300);
  CHECK(same_forest(*forest, *whole, stream));
}

int main() { return check::run_all(); }
