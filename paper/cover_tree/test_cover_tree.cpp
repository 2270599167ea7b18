// The cover tree (cover_tree.hpp) against its definition: the three invariants after
// every insertion, and exhaustive search.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "cover_tree.hpp"
#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;
using namespace boundary_forest::baselines;

namespace {

const std::vector<std::string> metrics = {"euclidean", "manhattan", "chebyshev",
                                          "minkowski", "hamming",   "canberra"};
const auto carry_on = [] {};

struct Tried {
  Stream stream;
  std::unique_ptr<Metric> metric;  // a second one, for the test's own distances
  CoverTree tree;

  Tried(const CoverTreeParams& params, const Stream& of, const std::string& name)
      : stream(of), metric(made(params, name)), tree(params, made(params, name)) {}

  static std::unique_ptr<Metric> made(const CoverTreeParams& params, const std::string& name) {
    return make_metric(name, 3.0, params.element_type, params.n_features);
  }

  void insert(std::size_t begin, std::size_t count) {
    std::size_t inserted = 0;
    tree.insert(stream.rows(begin, count), carry_on, inserted);
    CHECK_EQ(inserted, count);
  }

  double d(std::size_t a, std::size_t b) const {
    const std::byte* row = stream.rows(b, 1).data;
    double reduced = 0.0;
    metric->distances({stream.rows(a, 1).data, stream.params.element_type}, &row, 1, &reduced);
    return metric->distance(reduced);
  }
};

CoverTreeParams params_for(double base, std::size_t n_features, ElementType type) {
  CoverTreeParams params;
  params.base = base;
  params.n_features = n_features;
  params.element_type = type;
  return params;
}

// Nesting is kept by construction (an example is in C_i for every i up to its level), if only its
// parent is in C_(level + 1). `from` on, examples are new since the last check.
void check_invariants(const Tried& tried, std::size_t from, bool separated = true) {
  const std::vector<Level> levels = tried.tree.levels();
  const std::vector<NodeId> parents = tried.tree.parents();
  const double base = tried.tree.params().base;
  for (std::size_t p = from; p < levels.size(); ++p) {
    if (p == 0) {
      CHECK_EQ(parents[p], nothing);
      CHECK_EQ(levels[p], top);
      continue;
    }
    const NodeId parent = parents[p];
    CHECK(parent < p);
    CHECK(levels[parent] > levels[p]);
    if (levels[p] == bottom) {
      CHECK_EQ(tried.d(p, parent), 0.0);
      continue;
    }
    CHECK(tried.d(p, parent) <= std::pow(base, levels[p] + 1));
    for (std::size_t q = 0; q < p && separated; ++q)
      if (levels[q] != bottom)
        CHECK(tried.d(p, q) > std::pow(base, std::min(levels[p], levels[q])));
  }
}

// The distances of the n nearest to row q of the stream, among the first `size`.
std::vector<double> exhaustive(const Tried& tried, std::size_t q, std::size_t size, std::size_t n) {
  std::vector<double> all;
  for (std::size_t i = 0; i < size; ++i) all.push_back(tried.d(q, i));
  std::sort(all.begin(), all.end());
  all.resize(n);
  return all;
}

void check_search(Tried& tried, std::size_t first_query, std::size_t n, double epsilon) {
  const std::size_t count = tried.stream.n - first_query;
  const Neighbors found =
      tried.tree.neighbors(tried.stream.rows(first_query, count), n, epsilon, carry_on);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t q = first_query + i;
    const std::vector<double> nearest = exhaustive(tried, q, tried.tree.size(), n);
    std::vector<Arrival> once;
    for (std::size_t j = 0; j < n; ++j) {
      const Arrival arrival = found.arrivals.values[i * n + j];
      const double distance = found.distances.values[i * n + j];
      once.push_back(arrival);
      CHECK_EQ(distance, tried.d(q, arrival));
      CHECK(distance >= nearest[j]);
      CHECK(distance <= (1.0 + epsilon) * nearest[j] * (1.0 + 1e-12));
    }
    std::sort(once.begin(), once.end());
    CHECK(std::unique(once.begin(), once.end()) == once.end());
  }
}

Stream stream_of(std::size_t kind, std::size_t n_features, ElementType type, std::size_t n) {
  const Params params = streams::params_for(Task::retrieval, 1, 2, n_features, type);
  if (kind == 0 || type == ElementType::uint8 || type == ElementType::int8)
    return grid(params, n, n_features);
  return cube(params, n, n_features);
}

}  // namespace

CASE("nesting, covering and separation hold after every insertion") {
  for (const std::string& metric : metrics)
    for (const double base : {1.1, 1.3, 2.0, 5.0})
      for (const bool tight : {false, true}) {
        const auto type = element_types[metric.size() % std::size(element_types)];
        CoverTreeParams params = params_for(base, 3, type);
        params.tight = tight;
        Tried tried(params, stream_of(tight, 3, type, 150), metric);
        for (std::size_t i = 0; i < tried.stream.n; ++i) {
          tried.insert(i, 1);
          check_invariants(tried, i);
        }
      }
}

CASE("search is exact for epsilon 0, and within 1 + epsilon else") {
  for (const std::string& metric : metrics)
    for (const double base : {1.1, 1.3, 2.0})
      for (const bool separated : {false, true})
        for (const bool tight : {false, true}) {
          const std::size_t n_features = 1 + metric.size() % 5;
          const auto type = element_types[(metric.size() + tight) % std::size(element_types)];
          CoverTreeParams params = params_for(base, n_features, type);
          params.separated = separated;
          params.tight = tight;
          Tried tried(params, stream_of(separated, n_features, type, 240), metric);
          tried.insert(0, 200);
          check_invariants(tried, 0, separated);
          for (const double epsilon : {0.0, 0.1, 10.0})
            for (const std::size_t n : {1, 3, 200}) check_search(tried, 180, n, epsilon);
        }
}

CASE("keeping the farthest below saves comparisons, and leaves the tree as it is") {
  for (const bool separated : {false, true}) {
    CoverTreeParams params = params_for(1.3, 5, ElementType::float32);
    params.separated = separated;
    const Stream stream = stream_of(1, 5, ElementType::float32, 600);
    Tried plain(params, stream, "euclidean");
    params.tight = true;
    Tried tight(params, stream, "euclidean");
    plain.insert(0, stream.n);
    tight.insert(0, stream.n);
    CHECK(plain.tree.levels() == tight.tree.levels());
    CHECK(plain.tree.parents() == tight.tree.parents());
    CHECK(tight.tree.learn_comparisons() <= plain.tree.learn_comparisons());
    if (separated) CHECK(tight.tree.learn_comparisons() < plain.tree.learn_comparisons());
    check_search(plain, 500, 1, 0.0);
    check_search(tight, 500, 1, 0.0);
    CHECK(tight.tree.query_comparisons() < plain.tree.query_comparisons());
  }
}

CASE("base 2 needs no wider look for separation, and base 1.3 does") {
  const Stream stream = stream_of(1, 3, ElementType::float64, 400);
  for (const double base : {2.0, 1.3}) {
    CoverTreeParams params = params_for(base, 3, ElementType::float64);
    Tried wide(params, stream, "euclidean");
    params.separated = false;
    Tried narrow(params, stream, "euclidean");
    wide.insert(0, stream.n);
    narrow.insert(0, stream.n);
    CHECK_EQ(wide.tree.levels() == narrow.tree.levels(), base == 2.0);
    CHECK_EQ(wide.tree.learn_comparisons() > narrow.tree.learn_comparisons(), base != 2.0);
    if (base == 2.0) check_invariants(narrow, 0);
  }
}

CASE("duplicates are stored, found, and compared once for all") {
  const Params forest = streams::params_for(Task::retrieval, 1, 2, 2, ElementType::float64);
  const Stream stream = draw(
      forest, 300, 1, [](std::mt19937_64&, std::size_t i) { return static_cast<double>(i % 3); });
  Tried tried(params_for(1.3, 2, ElementType::float64), stream, "euclidean");
  tried.insert(0, stream.n);
  check_invariants(tried, 0);
  CHECK_EQ(tried.tree.size(), std::size_t{300});
  const Neighbors found = tried.tree.neighbors(stream.rows(1, 1), 100, 0.0, carry_on);
  for (std::size_t j = 0; j < 100; ++j) {
    CHECK_EQ(found.distances.values[j], 0.0);
    CHECK_EQ(found.arrivals.values[j], Arrival{3 * j + 1});
  }
  CHECK(tried.tree.query_comparisons() <= 3);
  CHECK(tried.tree.learn_comparisons() <= 3 * 300);
}

CASE("distances of any size have a level") {
  const Params forest = streams::params_for(Task::retrieval, 1, 2, 1, ElementType::float64);
  const Stream stream = draw(forest, 300, 1, [](std::mt19937_64&, std::size_t i) {
    return std::pow(10.0, static_cast<double>(i) - 150.0);
  });
  for (const double base : {1.001, 1.3, 1e30}) {
    Tried tried(params_for(base, 1, ElementType::float64), stream, "manhattan");
    tried.insert(0, stream.n);
    check_invariants(tried, 0);
    check_search(tried, 280, 2, 0.0);
  }
}

CASE("every comparison is counted, for learning and for queries apart") {
  const Params forest = streams::params_for(Task::retrieval, 1, 2, 1, ElementType::float64);
  const Stream stream = draw(forest, 3, 1, [](std::mt19937_64&, std::size_t i) {
    return std::vector<double>{0.0, 1.0, 9.0}[i];
  });
  Tried tried(params_for(2.0, 1, ElementType::float64), stream, "euclidean");
  tried.insert(0, 1);
  CHECK_EQ(tried.tree.learn_comparisons(), 0U);
  tried.insert(1, 1);  // with the root
  CHECK_EQ(tried.tree.learn_comparisons(), 1U);
  tried.insert(2, 1);  // with the root; what is within 2 of 0 is too far from 9 to matter
  CHECK_EQ(tried.tree.learn_comparisons(), 2U);
  CHECK_EQ(tried.tree.query_comparisons(), 0U);
  tried.tree.neighbors(stream.rows(2, 1), 1, 0.0, carry_on);  // 0, then 9, at no distance
  CHECK_EQ(tried.tree.query_comparisons(), 2U);
  CHECK_EQ(tried.tree.learn_comparisons(), 2U);
}

CASE("a call that ends early keeps what it inserted") {
  const Stream stream = stream_of(1, 4, ElementType::float32, 300);
  Tried tried(params_for(1.3, 4, ElementType::float32), stream, "euclidean");
  std::size_t inserted = 0;
  int looks = 0;
  const auto stop = [&] {
    if (++looks == 3) throw std::runtime_error("stop");
  };
  CHECK_THROWS(tried.tree.insert(stream.rows(), stop, inserted), std::runtime_error);
  CHECK_EQ(inserted, std::size_t{128});
  CHECK_EQ(tried.tree.size(), inserted);
  tried.insert(inserted, 100);
  check_invariants(tried, 0);
  check_search(tried, 200, 3, 0.0);
}

CASE("what cannot be done is refused") {
  const auto tree = [](double base) {
    const CoverTreeParams params = params_for(base, 1, ElementType::float64);
    return CoverTree(params, make_metric("euclidean", 2.0, ElementType::float64, 1));
  };
  for (const double base : {1.0, 0.5, -2.0, 1.0 + 1e-9, HUGE_VAL, std::nan("")})
    CHECK_THROWS(tree(base), std::invalid_argument);
  CoverTree empty = tree(1.3);
  const double values[] = {0.0, 1e200};
  const auto rows = [&](std::size_t n) {
    return RowsView{reinterpret_cast<const std::byte*>(values), n, ElementType::float64};
  };
  CHECK_THROWS(empty.neighbors(rows(1), 1, 0.0, carry_on), std::invalid_argument);
  std::size_t inserted = 0;
  CHECK_THROWS(empty.insert(rows(2), carry_on, inserted), std::domain_error);  // 1e400
  CHECK_EQ(inserted, std::size_t{1});
  CHECK_THROWS(empty.neighbors(rows(1), 2, 0.0, carry_on), std::invalid_argument);
  CHECK_THROWS(empty.neighbors(rows(1), 0, 0.0, carry_on), std::invalid_argument);
  for (const double epsilon : {-0.1, HUGE_VAL, std::nan("")})
    CHECK_THROWS(empty.neighbors(rows(1), 1, epsilon, carry_on), std::invalid_argument);
}

int main() { return check::run_all(); }
