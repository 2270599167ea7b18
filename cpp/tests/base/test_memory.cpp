// One copy (promise 5): beyond the rows themselves at most 20 bytes a node and 24 a stored example.
#include <cstdio>
#include <string>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

#if defined(CHECK_THREAD_SANITIZER) || defined(CHECK_ADDRESS_SANITIZER)
constexpr std::size_t n_rows = 20'000;
#else
constexpr std::size_t n_rows = 200'000;
#endif

void check_promise(const std::string& name, BoundaryForest& forest) {
  const Stats stats = forest.stats();
  double nodes = 0.0;
  for (const NodeId n : stats.nodes) nodes += n;
  const double stored = stats.stored;
  const double per_node = static_cast<double>(stats.tree_bytes) / nodes;
  const double per_example = static_cast<double>(stats.example_bytes) / stored;
  const double copy = stored * static_cast<double>(forest.params().n_features *
                                                   size_of(forest.params().element_type));
  const double copies = static_cast<double>(stats.position_bytes) / copy;
  std::printf("    %s: %.2f bytes a node, %.2f an example, %.4f copies of the rows\n", name.c_str(),
              per_node, per_example, copies);
  CHECK(per_node <= 20.0);
  CHECK(per_example <= 24.0);
  // Arrays grow by chunks of at most 64 KB, two of which may be begun.
  CHECK(static_cast<double>(stats.position_bytes) <= std::max(1.01 * copy, copy + 131072));
}

}  // namespace

CASE("hypercube rows are stored once, whatever the number of trees") {
  const Stream stream = cube(params_for(Task::retrieval, 10, 50, 10), n_rows, 1);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, stream.n, 2);
  CHECK_EQ(forest->stats().stored, static_cast<Slot>(n_rows));
  check_promise("retrieval, k = 50", *forest);
}

CASE("the bounds hold for every k") {
  for (const std::uint32_t k : {2U, 3U, 5U, unlimited}) {
    const Stream stream = cube(params_for(Task::retrieval, 1, k, 10), 20'000, k);
    const auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, stream.n);
    check_promise("retrieval, k = " + std::to_string(k), *forest);
  }
}

CASE("the bounds hold when most examples are dropped, example by example") {
  const Stream stream = cube(params_for(Task::classes, 5, 50, 3), 20'000, 3);
  const auto forest = forest_for(stream.params);
  learn_in_calls(*forest, stream, {1, 700});
  CHECK(forest->stats().stored < 15'000);
  check_promise("classes, k = 50", *forest);
}

CASE("the bounds hold when clusters fill side by side") {
  // The centres come first, then around each 49 points that are nearer to it than to one
  // another: all child lists grow at the same pace, and none that is outgrown finds a new owner.
  const std::size_t n_features = 100;
  const std::size_t n_clusters = 400;
  std::vector<double> centres;
  std::mt19937_64 random(4);
  for (std::size_t i = 0; i < n_clusters * n_features; ++i)
    centres.push_back(100.0 * uniform(random));
  std::size_t feature = 0;
  const Stream stream = draw(params_for(Task::retrieval, 1, 50, n_features), 50 * n_clusters, 5,
                             [&](std::mt19937_64& draws, std::size_t i) {
                               const double centre = centres[feature++ % centres.size()];
                               const double around = 2.0 * uniform(draws) - 1.0;
                               return i < n_clusters ? centre : centre + around;
                             });
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, stream.n);
  check_promise("clusters, k = 50", *forest);
}

int main() { return check::run_all(); }
