// Algorithm 1 (boundary_tree.hpp) against itself written as plainly as it can be: no store, no
// chunks, no kernels. Real-valued positions, so that no tie needs the keyed priorities; ties are
// tested against reference/.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

struct PlainTree {
  struct PlainNode {
    std::size_t example;  // row of the stream
    NodeId parent;
    std::vector<NodeId> children;
  };

  double d(std::size_t a, std::size_t b) const {
    double sum = 0.0;
    for (std::size_t f = 0; f < stream.params.n_features; ++f) {
      const double difference = feature(a, f) - feature(b, f);
      sum += difference * difference;
    }
    return sum;
  }

  double feature(std::size_t row, std::size_t f) const {
    double value;
    const std::byte* at = stream.positions.data() + (row * stream.params.n_features + f) * 8;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  bool differ(std::size_t a, std::size_t b, double epsilon) const {
    const std::size_t length = stream.params.label_length;
    const double* x = stream.labels_from(a);
    const double* y = stream.labels_from(b);
    if (stream.params.label_metric == LabelMetric::always) return true;
    if (stream.params.label_metric == LabelMetric::discrete) return *x != *y;
    double sum = 0.0;
    for (std::size_t i = 0; i < length; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return std::sqrt(sum) > epsilon;
  }

  // A tenth of the standard deviation of the labels before `row`, in two passes.
  double epsilon_at(std::size_t row) const {
    if (!stream.params.auto_epsilon) return stream.params.epsilon;
    double variance = 0.0;
    for (std::size_t l = 0; l < stream.params.label_length; ++l) {
      double mean = 0.0;
      for (std::size_t i = 0; i < row; ++i) mean += stream.labels_from(i)[l];
      mean /= static_cast<double>(row);
      for (std::size_t i = 0; i < row; ++i)
        variance += (stream.labels_from(i)[l] - mean) * (stream.labels_from(i)[l] - mean);
    }
    return 0.1 * std::sqrt(variance / static_cast<double>(row));
  }

  NodeId query(std::size_t y) {
    NodeId v = 0;
    ++comparisons;
    for (;;) {
      std::vector<NodeId> A_v = nodes[v].children;
      comparisons += A_v.size();
      if (A_v.size() < stream.params.k) A_v.push_back(v);
      const NodeId v_min = *std::min_element(A_v.begin(), A_v.end(), [&](NodeId a, NodeId b) {
        return d(nodes[a].example, y) < d(nodes[b].example, y);
      });
      if (v_min == v) return v;
      v = v_min;
    }
  }

  void train(std::size_t y) {
    if (nodes.empty()) {
      nodes.push_back({y, nothing, {}});
      return;
    }
    const NodeId v_min = query(y);
    if (!differ(y, nodes[v_min].example, epsilon_at(y))) return;
    nodes[v_min].children.push_back(static_cast<NodeId>(nodes.size()));
    nodes.push_back({y, v_min, {}});
  }

  const Stream& stream;
  std::vector<PlainNode> nodes = {};
  std::uint64_t comparisons = 0;
};

}  // namespace

CASE("one tree is Algorithm 1, node for node and comparison for comparison") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval})
    for (const std::uint32_t k : {2U, 3U, 5U, 50U, unlimited})
      for (const bool around_one : {false, true}) {  // then one node gets most of the children
        const Params params = params_for(task, 1, k, 12, ElementType::float64);
        const Stream stream = around_one ? star(params, 600, k) : cube(params, 600, k);
        PlainTree plain{stream};
        for (std::size_t y = 0; y < stream.n; ++y) plain.train(y);

        const auto forest = forest_for(params);
        learn(*forest, stream, 0, stream.n);
        const BoundaryForest::State state = forest->state();
        const Tree tree = trees_of(state)[0];
        const std::string where = std::string(name_of(task)) + ", k = " + std::to_string(k);
        CHECK_IN(where, tree.examples.size() == plain.nodes.size());
        for (std::size_t v = 0; v < std::min(tree.examples.size(), plain.nodes.size()); ++v) {
          CHECK_IN(where, state.examples.arrivals[tree.examples[v]] == plain.nodes[v].example);
          CHECK_IN(where, tree.parents[v] == plain.nodes[v].parent);
        }
        CHECK_EQ(forest->stats().learn.comparisons, plain.comparisons);

        const std::uint64_t learned_with = plain.comparisons;
        const Table<Arrival> found = forest->apply(stream.rows(), Run{});
        for (std::size_t y = 0; y < stream.n; ++y)
          CHECK_IN(where, found.values[y] == plain.nodes[plain.query(y)].example);
        CHECK_EQ(forest->stats().query.comparisons, plain.comparisons - learned_with);
      }
}

CASE("a fixed epsilon keeps exactly what differs by more") {
  // One feature, one tree, labels equal to positions: kept if and only if the nearest kept one is
  // farther than epsilon, as a chain of values in steps of a quarter shows.
  Params params = params_for(Task::numbers, 1, unlimited, 1, ElementType::float64);
  params.label_length = 1;
  params.auto_epsilon = false;
  params.epsilon = 0.5;
  Stream stream{params, 13, {}, {}};
  for (int i = 0; i < 13; ++i) {
    put(stream.positions, ElementType::float64, 0.25 * i);
    stream.labels.push_back(0.25 * i);
  }
  const auto forest = forest_for(params);
  learn(*forest, stream, 0, stream.n);
  CHECK(forest->state().examples.arrivals == (std::vector<Arrival>{0, 3, 6, 9, 12}));
}

int main() { return check::run_all(); }
