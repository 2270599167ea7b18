// Trees are replaced and examples freed while readers run; some of the calls fail and are taken back.
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "tests/check.hpp"
#include "tests/replacements.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

// Does the work while three threads read: whatever a version names is stored in it.
void while_read(BoundaryForest& forest, const Stream& stream, const std::function<void()>& work) {
  std::atomic<bool> done{false};
  std::atomic<long> n_read{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      while (!done) {
        // One version: every example that it names is stored in it, and every stored one is held.
        const Snapshot snapshot(forest);
        const State state = snapshot.state(true);
        check_living(state);
        const std::set<Arrival> stored(state.examples.arrivals.begin(),
                                       state.examples.arrivals.end());
        const RowsView rows = stream.rows(static_cast<std::size_t>(100 * r), 30);
        const Neighbors found = snapshot.neighbors(rows, stored.size(), Search{}, Run{});
        for (const Arrival arrival : found.arrivals.values) CHECK(stored.contains(arrival));
        // Positions are those of the stream, whatever slots they lie in.
        for (std::size_t i = 0; i < state.examples.arrivals.size(); ++i)
          CHECK(std::memcmp(state.examples.positions.data() + 16 * i,
                            stream.rows(state.examples.arrivals[i], 1).data, 16) == 0);
        static_cast<void>(forest.apply(rows, Run{}));
        static_cast<void>(forest.paths(stream.rows(7, 1)));
        ++n_read;
      }
    });
  work();
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(n_read > 0);
  check_living(forest.state());
}

// The trees rebuilt from the last 400 examples.
std::vector<Regrowth> from_recent(const State& state, std::uint64_t seed) {
  return without(state, seed, [&](Arrival arrival) { return arrival + 400 > state.seen; });
}

constexpr long never = 1L << 60;
thread_local long countdown = never;  // the learner's; readers do not fail

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown-- == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

}  // namespace

CASE("readers see whole versions while trees are replaced and examples freed") {
  const Stream stream = stream_for(Task::classes, 4000);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 500);
  while_read(*forest, stream, [&] {
    for (std::size_t at = 500; at < 4000; at += 50) {
      learn(*forest, stream, at, 50);
      forest->regrow(from_recent(forest->state(), at), Run{});
    }
  });
}

CASE("readers see whole versions while replacing and learning are taken back") {
  const Stream stream = stream_for(Task::classes, 1500);
  BoundaryForest forest(stream.params,
                        make_metric(failing_distance, ElementType::float32, 4, true));
  learn(forest, stream, 0, 500);
  while_read(forest, stream, [&] {
    for (std::size_t at = 500; at < 1500; at += 50) {
      const State before = forest.state();
      const std::vector<Regrowth> trees = from_recent(before, at);
      for (const long fails_after : {0L, 40L, 250L}) {
        countdown = fails_after;
        CHECK_THROWS(forest.regrow(trees, Run{}), std::domain_error);
        countdown = fails_after;
        CHECK_THROWS(learn(forest, stream, at, 50), std::domain_error);
      }
      countdown = never;
      CHECK(same(forest.state(), before));
      forest.regrow(trees, Run{});
      learn(forest, stream, at, 50);
    }
  });
  // The same as one that never failed.
  const auto untroubled = forest_for(stream.params);
  learn(*untroubled, stream, 0, 500);
  for (std::size_t at = 500; at < 1500; at += 50) {
    untroubled->regrow(from_recent(untroubled->state(), at), Run{});
    learn(*untroubled, stream, at, 50);
  }
  CHECK(same(forest.state(), untroubled->state()));
}

int main() { return check::run_all(); }
