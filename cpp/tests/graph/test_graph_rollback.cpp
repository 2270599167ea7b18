// Atomic calls of a forest that is searched as a graph: a user's metric that fails takes learning,
// replacing and rebuilding back, wherever it fails; the forest finds what it found before, and goes on.
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "tests/check.hpp"
#include "tests/graphs.hpp"

using namespace streams;

namespace {

// Distances that may still be measured before the metric fails, once.
constexpr long never = 1L << 60;
std::atomic<long> countdown{never};

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown.fetch_sub(1) == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

std::unique_ptr<Metric> failing_metric(const Params& params) {
  return make_metric(failing_distance, params.element_type, params.n_features, true);
}

using Forest = std::unique_ptr<BoundaryForest>;

Forest taught(const Stream& stream, std::size_t n) {
  auto forest = std::make_unique<BoundaryForest>(stream.params, failing_metric(stream.params));
  std::size_t learned = 0;
  learn_named(*forest, stream, 0, n, learned, ids_for(stream.params, 0, n));
  return forest;
}

// The call fails after ever more distances; each time it is made again.
template <class Prepared, class Call>
void wherever_it_fails(const Stream& stream, Prepared&& prepared, Call&& call) {
  countdown = never;
  Forest forest = prepared();
  const Content before(*forest, stream);
  countdown = never;
  call(forest);
  const long distances = never - countdown;
  CHECK(distances > 300);
  const Content after(*forest, stream);
  CHECK(!(before == after));
  // Densely at the beginning, where the trees may be planted, sparsely after.
  for (long at = 0; at < distances; at += at < 20 ? 1 : 1 + distances / 20) {
    countdown = never;
    forest = prepared();
    countdown = at;
    CHECK_THROWS(call(forest), std::domain_error);
    countdown = never;
    CHECK(Content(*forest, stream) == before);
    call(forest);
    CHECK(Content(*forest, stream) == after);
  }
}

}  // namespace

CASE("a graph that fails to learn is as it was, wherever it fails, and goes on unharmed") {
  for (const std::uint32_t k : {3U, unlimited}) {
    const Stream stream = cube(graph_params(ElementType::float32, 3, k), 400, k);
    for (const auto& [before, n] : {std::pair<std::size_t, std::size_t>{1, 30}, {40, 300}})
      wherever_it_fails(
          stream, [&] { return taught(stream, before); },
          [&](Forest& forest) {
            std::size_t learned = 0;
            learn_named(*forest, stream, before, n, learned, ids_for(stream.params, before, n));
          });
  }
}

CASE("a graph that fails while chains of its trees are rebuilt is as it was") {
  const Stream stream = line(graph_params(), 1040);
  for (const auto& [before, n] : {std::pair<std::size_t, std::size_t>{500, 30}, {500, 540}})
    wherever_it_fails(
        stream, [&] { return taught(stream, before); },
        [&](Forest& forest) {
          std::size_t learned = 0;
          learn_named(*forest, stream, before, n, learned, ids_for(stream.params, before, n));
        });
}

CASE("an example that fails to be replaced is found where it was") {
  const Stream stream = cube(graph_params(), 700, 6);
  wherever_it_fails(
      stream, [&] { return taught(stream, 300); },
      [&](Forest& forest) {
        std::size_t learned = 0;
        const auto state = forest->replace(stream.rows(400, 120), stream.labels_from(0), Run{},
                                           learned, ids_for(stream.params, 0, 120));
        CHECK(!state);
        CHECK_EQ(learned, std::size_t{120});
      });
}

CASE("a graph that fails to replace so many that it must be rebuilt is as it was") {
  const Stream stream = cube(graph_params(), 700, 6);
  wherever_it_fails(
      stream,
      [&] {
        Forest forest = taught(stream, 300);
        CHECK(forest->forget(ids_for(stream.params, 0, 100), Run{}).unknown.empty());
        return forest;
      },
      [&](Forest& forest) {
        std::size_t learned = 0;
        const auto state = forest->replace(stream.rows(400, 200), stream.labels_from(0), Run{},
                                           learned, ids_for(stream.params, 100, 200));
        CHECK(state && learned >= 100 && learned < 200);
        forest = forest->rebuilt(*state, failing_metric(stream.params));
      });
}

CASE("a graph that fails to forget so many that it must be rebuilt has forgotten nothing") {
  const Stream stream = cube(graph_params(), 300, 7);
  wherever_it_fails(
      stream, [&] { return taught(stream, 300); },
      [&](Forest& forest) {
        const Forgetting forgetting = forest->forget(ids_for(stream.params, 50, 200), Run{});
        CHECK(forgetting.unknown.empty() && forgetting.rebuilt);
        forest = forest->rebuilt(*forgetting.rebuilt, failing_metric(stream.params));
      });
}

CASE("failing over and over does not use up the memory of links") {
  const Stream stream = cube(graph_params(), 600, 8);
  countdown = never;
  const Forest forest = taught(stream, 300);
  const auto try_the_rest = [&] {
    std::size_t learned = 0;
    countdown = 6000;
    CHECK_THROWS(learn_named(*forest, stream, 300, 300, learned, ids_for(stream.params, 300, 300)),
                 std::domain_error);
  };
  try_the_rest();
  const std::size_t once = forest->stats().link_bytes;
  for (int i = 0; i < 50; ++i) try_the_rest();
  CHECK_IN(std::to_string(forest->stats().link_bytes) + " after " + std::to_string(once),
           forest->stats().link_bytes <= 2 * once);
}

CASE("links are those of the trees, also after these were rebuilt") {
  countdown = never;
  for (const std::size_t n : {512, 700, 1040}) {
    const Stream stream = line(graph_params(), n);
    const Forest forest = taught(stream, n);
    const Content content(*forest, stream);
    CHECK(forest->stats().learn.comparisons < n * 3 * 400);  // 3 trees; chains take n / 2
    Forest other = std::make_unique<BoundaryForest>(stream.params, failing_metric(stream.params));
    other->restore(content.state);
    CHECK(Content(*other, stream) == content);
    CHECK_EQ(other->stats().link_bytes, forest->stats().link_bytes);
  }
}

int main() { return check::run_all(); }
