// Atomic calls: a user's metric that fails takes the whole call back, wherever it fails, and the
// forest goes on as if the call had never been made. An interrupt keeps the blocks published before
// it.
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

// Distances that may still be measured before the metric fails, once.
std::atomic<long> countdown{-1};
constexpr long never = 1L << 60;

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown.fetch_sub(1) == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

std::unique_ptr<BoundaryForest> failing_forest(const Params& params) {
  return std::make_unique<BoundaryForest>(
      params, make_metric(failing_distance, params.element_type, params.n_features, true));
}

// How many distances the whole stream needs, learned in calls of these sizes.
long distances_of(const Stream& stream, const std::vector<std::size_t>& sizes) {
  countdown = never;
  learn_in_calls(*failing_forest(stream.params), stream, sizes);
  return never - countdown;
}

bool same_figures(const Stats& a, const Stats& b) {
  return a.seen == b.seen && a.stored == b.stored && a.nodes == b.nodes &&
         a.learn.comparisons == b.learn.comparisons && a.learn.evaluations == b.learn.evaluations;
}

// Learns the stream in calls; the metric fails after `failing_after` distances, and the call that
// it failed in is made again. Returns how many calls failed.
int learn_with_failure(BoundaryForest& forest, const Stream& stream,
                       const std::vector<std::size_t>& sizes, long failing_after,
                       std::size_t n_jobs = 1) {
  int n_failed = 0;
  countdown = failing_after;
  for (std::size_t begin = 0, call = 0; begin < stream.n; ++call) {
    const std::size_t count = std::min(sizes[call % sizes.size()], stream.n - begin);
    const BoundaryForest::State before = forest.state();
    const Stats figures = forest.stats();
    std::size_t learned = 12345;
    try {
      forest.learn(stream.rows(begin, count), stream.labels_from(begin), Run{n_jobs}, learned);
    } catch (const std::domain_error&) {
      ++n_failed;
      CHECK_EQ(learned, std::size_t{0});
      CHECK(same(forest.state(), before));
      CHECK(same_figures(forest.stats(), figures));
      learn(forest, stream, begin, count, n_jobs);
    }
    begin += count;
  }
  return n_failed;
}

}  // namespace

CASE("a call that fails teaches nothing, wherever it fails, and learning goes on unharmed") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval})
    for (const std::uint32_t k : {2U, 4U, unlimited}) {
      const Stream stream = grid(params_for(task, 5, k, 3), 60, k);
      const std::vector<std::size_t> sizes = {2, 9, 1, 30};
      const long distances = distances_of(stream, sizes);
      countdown = never;
      const auto never_failed = failing_forest(stream.params);
      learn_in_calls(*never_failed, stream, sizes);
      const BoundaryForest::State expected = never_failed->state();
      const Stats figures = never_failed->stats();
      // Densely while the trees begin, sparsely after.
      for (long at = 0; at < distances; at += at < 100 ? 1 : 37) {
        const auto forest = failing_forest(stream.params);
        CHECK_EQ(learn_with_failure(*forest, stream, sizes, at), 1);
        CHECK(same(forest->state(), expected));
        CHECK(same_figures(forest->stats(), figures));
      }
    }
}

CASE("the same with trees on several threads, of which one fails") {
  const Stream stream = grid(params_for(Task::retrieval, 6, 3, 3), 200, 1);
  const std::vector<std::size_t> sizes = {3, 40};
  const long distances = distances_of(stream, sizes);
  countdown = never;
  const auto never_failed = failing_forest(stream.params);
  learn_in_calls(*never_failed, stream, sizes);
  for (long at = 0; at < distances; at += 301) {
    const auto forest = failing_forest(stream.params);
    CHECK_EQ(learn_with_failure(*forest, stream, sizes, at, 4), 1);
    CHECK(same(forest->state(), never_failed->state()));
  }
}

CASE("a call of several blocks is taken back whole") {
  for (const std::uint32_t k : {3U, unlimited}) {
    const Stream stream = cube(params_for(Task::retrieval, 2, k, 6), 2200, 2);
    const std::vector<std::size_t> sizes = {100, 2100};
    const long distances = distances_of(stream, sizes);
    countdown = never;
    const auto never_failed = failing_forest(stream.params);
    learn_in_calls(*never_failed, stream, sizes);
    for (const double share : {0.1, 0.5, 0.999}) {
      const auto forest = failing_forest(stream.params);
      const auto at = static_cast<long>(share * static_cast<double>(distances));
      CHECK_EQ(learn_with_failure(*forest, stream, sizes, at), 1);
      CHECK(same(forest->state(), never_failed->state()));
    }
  }
}

CASE("a forest that fails to learn offline is as empty as before") {
  const Stream stream = grid(params_for(Task::classes, 5, 3, 4), 300, 3);
  countdown = never;
  const auto never_failed = failing_forest(stream.params);
  never_failed->learn_offline(stream.rows(), stream.labels.data(), Run{});
  const long distances = never - countdown;
  for (long at = 0; at < distances; at += 197) {
    const auto forest = failing_forest(stream.params);
    countdown = at;
    CHECK_THROWS(forest->learn_offline(stream.rows(), stream.labels.data(), Run{}),
                 std::domain_error);
    CHECK_EQ(forest->stats().seen, std::uint64_t{0});
    CHECK(forest->state().examples.arrivals.empty());
    forest->learn_offline(stream.rows(), stream.labels.data(), Run{});
    CHECK(same(forest->state(), never_failed->state()));
  }
}

CASE("a query that fails harms nothing") {
  const Stream stream = grid(params_for(Task::classes, 5, 3, 4), 300, 4);
  countdown = never;
  const auto forest = failing_forest(stream.params);
  learn(*forest, stream, 0, 200);
  const Table<Arrival> expected = forest->apply(stream.rows(200, 100), Run{});
  for (const std::size_t n_jobs : {1U, 4U}) {
    countdown = 1000;
    CHECK_THROWS(forest->apply(stream.rows(200, 100), Run{n_jobs}), std::domain_error);
    countdown = 1000;
    CHECK_THROWS(forest->neighbors(stream.rows(200, 100), 3, Run{n_jobs}), std::domain_error);
    countdown = never;
    CHECK(forest->apply(stream.rows(200, 100), Run{n_jobs}).values == expected.values);
  }
}

CASE("failing over and over does not use up memory") {
  const Stream stream = grid(params_for(Task::retrieval, 3, 50, 4), 600, 5);
  countdown = never;
  const auto forest = failing_forest(stream.params);
  learn(*forest, stream, 0, 300);
  const auto try_the_rest = [&] {
    countdown = 10000;
    CHECK_THROWS(learn(*forest, stream, 300, 300), std::domain_error);
  };
  try_the_rest();
  const std::size_t once = forest->stats().tree_bytes;
  for (int i = 0; i < 50; ++i) try_the_rest();
  CHECK_IN(std::to_string(forest->stats().tree_bytes) + " after " + std::to_string(once),
           forest->stats().tree_bytes <= 2 * once);
}

CASE("an interrupt keeps the blocks published before it, and says how far it came") {
  const Stream stream = grid(params_for(Task::classes, 5, 3, 4), 5000, 6);
  for (int interrupted_at = 1; interrupted_at <= 5; ++interrupted_at) {
    const auto forest = forest_for(stream.params);
    int call = 0;
    const auto interrupt = [&] {
      if (++call == interrupted_at) throw std::runtime_error("interrupted");
    };
    std::size_t learned = 0;
    CHECK_THROWS(forest->learn(stream.rows(), stream.labels.data(), Run{1, interrupt}, learned),
                 std::runtime_error);
    CHECK(learned > 0 && learned < stream.n);
    CHECK_EQ(forest->stats().seen, std::uint64_t{learned});
    const auto prefix = forest_for(stream.params);
    learn(*prefix, stream, 0, learned);
    CHECK(same(forest->state(), prefix->state()));
    learn(*forest, stream, learned, stream.n - learned);
    const auto whole = forest_for(stream.params);
    learn(*whole, stream, 0, stream.n);
    CHECK(same(forest->state(), whole->state()));
  }
}

CASE("an interrupt of a call whose metric may fail takes the whole call back") {
  const Stream stream = grid(params_for(Task::classes, 5, 3, 4), 3000, 7);
  countdown = never;
  const auto forest = failing_forest(stream.params);
  int call = 0;
  const auto interrupt = [&] {
    if (++call == 3) throw std::runtime_error("interrupted");
  };
  std::size_t learned = 12345;
  CHECK_THROWS(forest->learn(stream.rows(), stream.labels.data(), Run{1, interrupt}, learned),
               std::runtime_error);
  CHECK_EQ(learned, std::size_t{0});
  CHECK_EQ(forest->stats().seen, std::uint64_t{0});
}

int main() { return check::run_all(); }
