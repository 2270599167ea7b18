// Rows that go through a tree together end where they would have ended one by one: same forest,
// same answers, same comparisons (promise 1), on data made to mislead the byte codes. So do rows that go
// alone through trees that tell each other distances.
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

std::unique_ptr<BoundaryForest> plain_forest(const Params& params, const std::string& metric) {
  setenv("BOUNDARY_FOREST_PATH", "plain", 1);
  auto forest = forest_for(params, metric);
  unsetenv("BOUNDARY_FOREST_PATH");
  return forest;
}

// Learns the first part of the stream both ways, asks the rest both ways.
void check_same(const std::string& what, const Stream& stream,
                const std::vector<std::size_t>& calls, const std::string& metric = "euclidean",
                bool offline = false) {
  const std::size_t n_learned = stream.n * 3 / 4;
  Stream learned = stream;
  learned.n = n_learned;
  const auto plain = plain_forest(stream.params, metric);
  const auto block = forest_for(stream.params, metric);
  if (offline) {
    plain->learn_offline(learned.rows(), learned.labels_from(0), Run{});
    block->learn_offline(learned.rows(), learned.labels_from(0), Run{});
  } else {
    learn_in_calls(*plain, learned, {n_learned});
    learn_in_calls(*block, learned, calls);
  }
  CHECK_IN(what, same(plain->state(), block->state()));
  const RowsView queries = stream.rows(0, stream.n);
  CHECK_IN(what, plain->apply(queries, Run{}).values == block->apply(queries, Run{}).values);
  CHECK_IN(what, plain->found(queries, Run{}).found.distances.values ==
                     block->found(queries, Run{}).found.distances.values);
  // Rows that are queried alone keep distances from tree to tree.
  for (std::size_t i = 0; i < stream.n; i += 1 + stream.n / 20) {
    const RowsView one = stream.rows(i, 1);
    CHECK_IN(what, plain->apply(one, Run{}).values == block->apply(one, Run{}).values);
  }
  // Queries that the stored type cannot hold.
  std::vector<double> wide(stream.n * stream.params.n_features);
  to_doubles({queries.data, queries.type}, wide.size(), wide.data());
  for (std::size_t i = 0; i < wide.size(); i += 3) wide[i] = wide[i] * 1.0000001 + 1e-9;
  const RowsView wide_queries{reinterpret_cast<const std::byte*>(wide.data()), stream.n,
                              ElementType::float64};
  CHECK_IN(what,
           plain->apply(wide_queries, Run{}).values == block->apply(wide_queries, Run{}).values);
  CHECK_IN(what, plain->stats().learn.comparisons == block->stats().learn.comparisons);
  CHECK_IN(what, plain->stats().query.comparisons == block->stats().query.comparisons);
}

// Sanitizers cost time: less data then.
#if defined(CHECK_THREAD_SANITIZER) || defined(CHECK_ADDRESS_SANITIZER)
constexpr std::size_t n_rows = 250;
#else
constexpr std::size_t n_rows = 900;
#endif

struct Kind {
  const char* name;
  double (*draw)(std::mt19937_64&, std::size_t);
  bool fits_float16 = true;
};

double sign(std::mt19937_64& random) { return random() % 2 == 0 ? 1.0 : -1.0; }

const std::vector<Kind> float_kinds = {
    {"grid",
     [](std::mt19937_64& random, std::size_t) { return static_cast<double>(random() % 4); }},
    {"bits",
     [](std::mt19937_64& random, std::size_t) { return static_cast<double>(random() % 2); }},
    {"cube", [](std::mt19937_64& random, std::size_t) { return uniform(random); }},
    {"all the same", [](std::mt19937_64&, std::size_t) { return 7.25; }},
    {"far from zero",
     [](std::mt19937_64& random, std::size_t) { return 1e6 + 8.0 * uniform(random); }, false},
    {"very far from zero",
     [](std::mt19937_64& random, std::size_t) { return -1e9 + 1e3 * uniform(random); }, false},
    {"outliers",
     [](std::mt19937_64& random, std::size_t) {
       return random() % 40 == 0 ? 1e4 * uniform(random) : uniform(random);
     }},
    {"all sizes",
     [](std::mt19937_64& random, std::size_t) {
       return sign(random) * std::pow(10.0, 30.0 * uniform(random) - 15.0);
     },
     false},
    {"squares underflow",
     [](std::mt19937_64& random, std::size_t) { return 1e-22 * uniform(random); }},
    {"some squares underflow",
     [](std::mt19937_64& random, std::size_t) {
       return random() % 3 == 0 ? 1e-18 * uniform(random) : 1e-23 * uniform(random);
     }},
    {"squares overflow",
     [](std::mt19937_64& random, std::size_t) { return sign(random) * 1e19 * uniform(random); },
     false},
    {"some squares overflow",
     [](std::mt19937_64& random, std::size_t) {
       return sign(random) * (random() % 9 == 0 ? 1e20 : 1e17) * uniform(random);
     },
     false},
    {"drifting", [](std::mt19937_64& random,
                    std::size_t i) { return static_cast<double>(i) * 0.01 + uniform(random); }},
    {"the steps of a code", [](std::mt19937_64& random,
                               std::size_t) { return static_cast<double>(random() % 511) * 0.5; }},
};

}  // namespace

CASE("floats: a block ends where its rows end one by one") {
  for (const ElementType type : {ElementType::float16, ElementType::float32, ElementType::float64})
    for (const Kind& kind : float_kinds)
      for (const std::size_t n_features : {1U, 3U, 16U, 17U, 70U})
        for (const std::uint32_t k : {3U, 50U}) {
          const Task task = k == 3 ? Task::retrieval : Task::classes;
          const Params params = params_for(task, 3, k, n_features, type);
          if (type == ElementType::float16 && !kind.fits_float16) continue;
          const std::string what = std::string(kind.name) + " x " + std::to_string(n_features);
          check_same(what, draw(params, n_rows, n_features + k, kind.draw), {n_rows});
        }
}

CASE("floats that are compared by their directions: a block ends where its rows end one by one") {
  for (const ElementType type : {ElementType::float16, ElementType::float32, ElementType::float64})
    for (const Kind& kind : float_kinds)
      for (const std::size_t n_features : {33U, 70U}) {
        if (type == ElementType::float16 && !kind.fits_float16) continue;
        const Params params = params_for(Task::retrieval, 3, 50, n_features, type);
        const std::string what = std::string(kind.name) + " x " + std::to_string(n_features);
        check_same(what, draw(params, n_rows, n_features, kind.draw), {n_rows}, "cosine");
      }
}

CASE("bytes: a block ends where its rows end one by one") {
  for (const unsigned range : {2U, 4U, 256U})
    for (const std::size_t n_features : {1U, 8U, 63U, 64U, 65U, 300U})
      for (const Task task : {Task::classes, Task::numbers, Task::retrieval})
        for (const std::uint32_t k : {2U, 20U, unlimited}) {
          const Params params = params_for(task, 3, k, n_features, ElementType::uint8);
          const Stream stream =
              draw(params, n_rows, range + n_features, [&](std::mt19937_64& random, std::size_t) {
                return static_cast<double>(random() % range);
              });
          check_same("range " + std::to_string(range) + " x " + std::to_string(n_features), stream,
                     {1, 40, 7, 300});
        }
}

CASE("every metric: a block ends where its rows end one by one") {
  for (const char* metric : {"euclidean", "manhattan", "chebyshev", "minkowski", "cosine",
                             "hamming", "canberra", "inner_product"})
    for (const ElementType type : element_types)
      check_same(metric, grid(params_for(Task::retrieval, 4, 5, 6, type), n_rows * 4 / 3, 8),
                 {n_rows}, metric);
}

CASE("offline: a block ends where its rows end one by one") {
  for (const Task task : {Task::classes, Task::numbers, Task::retrieval}) {
    check_same("offline grid", grid(params_for(task, 4, 5, 6), 2500, 9), {}, "euclidean", true);
    check_same("offline cube", cube(params_for(task, 4, 20, 40), 2500, 9), {}, "euclidean", true);
  }
}

CASE("a node that fills up within a block sends on the rows that had ended at it") {
  const Stream stream = star(params_for(Task::retrieval, 3, 40, 30), 2000, 5);
  check_same("star", stream, {20, 2000});
}

CASE("more children than one prefilter takes, and more features than codes can sum") {
  check_same("many children", star(params_for(Task::retrieval, 2, unlimited, 40), 1500, 6), {1500});
  check_same("many features", cube(params_for(Task::retrieval, 2, 5, 33000), 40, 6), {40});
  Params bytes = params_for(Task::retrieval, 2, 5, 32768, ElementType::uint8);
  check_same(
      "the largest sums",
      draw(bytes, 60, 7,
           [](std::mt19937_64& random, std::size_t i) {
             return i % 4 == 0 ? 0.0 : i % 4 == 1 ? 255.0 : static_cast<double>(random() % 256);
           }),
      {60});
}

CASE(
    "short rows: ties among more children than one prefilter takes, and a node that fills up "
    "beyond "
    "them") {
  for (const ElementType type : {ElementType::float16, ElementType::float32, ElementType::float64})
    for (const std::uint32_t k : {64U, 65U, 130U, unlimited}) {
      const Params params = params_for(Task::retrieval, 2, k, 20, type);
      const auto around_zero = [](std::mt19937_64& random, std::size_t i) {
        const auto value = static_cast<double>(random() % 3) - 1.0;
        return i == 0 ? 0.0 : value;
      };
      check_same("k = " + std::to_string(k), draw(params, 900, k, around_zero), {300, 600});
    }
}

CASE("an unknown path is refused") {
  setenv("BOUNDARY_FOREST_PATH", "shortest", 1);
  CHECK_THROWS(forest_for(params_for(Task::retrieval, 2, 5, 3)), std::invalid_argument);
  unsetenv("BOUNDARY_FOREST_PATH");
}

int main() { return check::run_all(); }
