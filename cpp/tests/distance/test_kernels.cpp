// The distance kernels: every instruction set gives the same bits (promise 2), sums run in the
// stated order (metric.hpp), and no row, however long, short or large, gives NaN.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "distance/kernels/kernel.hpp"
#include "distance/metric.hpp"
#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace boundary_forest;
using kernels::Formula;

namespace {

constexpr double p = 3.0;
const double inf = std::numeric_limits<double>::infinity();

const std::vector<Formula> formulas = {
    Formula::euclidean, Formula::manhattan,     Formula::chebyshev,
    Formula::minkowski, Formula::cosine,        Formula::hamming,
    Formula::canberra,  Formula::inner_product, Formula::weighted_euclidean};
const char* const names[] = {"euclidean", "manhattan",     "chebyshev",
                             "minkowski", "cosine",        "hamming",
                             "canberra",  "inner_product", "weighted_euclidean"};

// Roots of weights, exact in float32: some features count not at all, some a thousand times.
double scale_of(std::size_t i) {
  return i % 7 == 3 ? 0.0 : std::ldexp(1.0 + i % 5 / 8.0, i % 11 - 5);
}

const struct Weighted {
  Weighted() {
    for (std::size_t i = 0; i < 1000; ++i) {
      scales32.push_back(static_cast<float>(scale_of(i)));
      scales64.push_back(scale_of(i));
    }
  }
  std::vector<float> scales32;
  std::vector<double> scales64;
} weighted;
const kernels::Arguments arguments{p, weighted.scales32.data(), weighted.scales64.data()};

// Stored type and query type: the same, or for a query that the stored type cannot hold float64, or
// float32 where rows are short for it.
struct Types {
  ElementType stored;
  ElementType query;
};
const std::vector<Types> all_types = {
    {ElementType::uint8, ElementType::uint8},     {ElementType::uint8, ElementType::float64},
    {ElementType::int8, ElementType::int8},       {ElementType::int8, ElementType::float32},
    {ElementType::int8, ElementType::float64},    {ElementType::float16, ElementType::float16},
    {ElementType::float16, ElementType::float32}, {ElementType::float16, ElementType::float64},
    {ElementType::float32, ElementType::float32}, {ElementType::float32, ElementType::float64},
    {ElementType::float64, ElementType::float64}};

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t n = 1; n <= 100; ++n) all.push_back(n);
  all.insert(all.end(), {784, 1000});
  return all;
}

// A row as bytes in a block of its own that ends where the row ends, so that AddressSanitizer sees
// any element read beyond it.
struct Row {
  Row(ElementType type, const std::vector<double>& values) : type(type) {
    std::vector<std::byte> row;
    for (const double value : values) streams::put(row, type, value);
    bytes = std::vector<std::byte>(row.begin(), row.end());
    held.resize(values.size());
    to_doubles({bytes.data(), type}, values.size(), held.data());
  }
  ElementType type;
  std::vector<std::byte> bytes;
  std::vector<double> held;  // its values, as the type holds them
};

double distance(const kernels::InstructionSet& set, Formula formula, const Row& query,
                const Row& row) {
  const std::byte* rows = row.bytes.data();
  double out = -1.0;
  set.table(formula, row.type, query.type)(query.bytes.data(), &rows, 1, row.held.size(), arguments,
                                           &out);
  return out;
}

double chosen_distance(Formula formula, const Row& query, const Row& row) {
  return distance(kernels::instruction_set(), formula, query, row);
}

template <class Draw>
std::vector<double> drawn(std::size_t n, Draw&& draw) {
  std::vector<double> values(n);
  for (double& value : values) value = draw();
  return values;
}

// Values that the type can hold, of both signs where it has them.
Row random_row(ElementType type, std::size_t n, std::mt19937_64& random) {
  return Row(type, drawn(n, [&] {
               if (type == ElementType::uint8) return static_cast<double>(random() % 256);
               if (type == ElementType::int8) return static_cast<double>(random() % 256) - 128.0;
               const double value = 20.0 * streams::uniform(random) - 10.0;
               return random() % 8 == 0 ? 0.0 : value;
             }));
}

// A query of another type than the store's is there because the store's type cannot hold it.
Row random_query(const Types& types, std::size_t n, std::mt19937_64& random) {
  if (types.query == types.stored) return random_row(types.stored, n, random);
  return Row(types.query, drawn(n, [&] { return 300.0 * streams::uniform(random) - 20.0; }));
}

double naive(Formula formula, const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0.0;
  double largest = 0.0;
  double xx = 0.0;
  double yy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(x[i] - y[i]);
    const double size = std::fabs(x[i]) + std::fabs(y[i]);
    largest = std::max(largest, difference);
    xx += x[i] * x[i];
    yy += y[i] * y[i];
    if (formula == Formula::euclidean) sum += difference * difference;
    if (formula == Formula::weighted_euclidean) sum += std::pow(difference * scale_of(i), 2);
    if (formula == Formula::manhattan) sum += difference;
    if (formula == Formula::minkowski) sum += std::pow(difference, p);
    if (formula == Formula::hamming) sum += x[i] != y[i];
    if (formula == Formula::canberra) sum += size == 0.0 ? 0.0 : difference / size;
    if (formula == Formula::cosine || formula == Formula::inner_product) sum += x[i] * y[i];
  }
  if (formula == Formula::chebyshev) return largest;
  if (formula == Formula::inner_product) return -sum;
  if (formula != Formula::cosine) return sum;
  if (xx == 0.0 || yy == 0.0) return xx == yy ? 0.0 : 1.0;
  return std::max(0.0, 1.0 - sum / (std::sqrt(xx) * std::sqrt(yy)));
}

// The order of summation that metric.hpp states, spelled out feature by feature in plain
// arithmetic.
template <class A, class Term>
double in_stated_order(const Row& query, const Row& row, Term&& term) {
  A lanes[16] = {};
  for (std::size_t i = 0; i < row.held.size(); ++i)
    lanes[i % 16] += term(static_cast<A>(query.held[i]), static_cast<A>(row.held[i]), i);
  for (const int half : {8, 4, 2, 1})
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return static_cast<double>(lanes[0]);
}

template <class A>
double stated(Formula formula, const Row& q, const Row& r) {
  switch (formula) {
    case Formula::euclidean:
      return in_stated_order<A>(q, r, [](A x, A y, std::size_t) { return (x - y) * (x - y); });
    case Formula::manhattan:
      return in_stated_order<A>(q, r, [](A x, A y, std::size_t) { return std::fabs(x - y); });
    case Formula::weighted_euclidean:
      return in_stated_order<A>(q, r, [](A x, A y, std::size_t i) {
        const A apart = (x - y) * static_cast<A>(scale_of(i));
        return apart * apart;
      });
    default:
      return -in_stated_order<A>(q, r, [](A x, A y, std::size_t) { return x * y; });
  }
}

std::string circumstances(Formula formula, const Types& types, std::size_t n, double got) {
  std::ostringstream text;
  text.precision(17);
  text << names[static_cast<int>(formula)] << ", stored " << name_of(types.stored) << ", query "
       << name_of(types.query) << ", " << n << " features, got " << got;
  return text.str();
}

void check_bits(double got, double expected, Formula formula, const Types& types, std::size_t n) {
  CHECK_IN(circumstances(formula, types, n, got),
           std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(expected));
}

}  // namespace

CASE("every instruction set gives the portable kernels' bits, at every length") {
  const auto sets = kernels::instruction_sets();
  if (sets.size() == 1) SKIP("this processor has no instruction set beside the portable one");
  std::mt19937_64 random(1);
  for (const Types& types : all_types)
    for (const std::size_t n : lengths()) {
      const Row query = random_query(types, n, random);
      std::vector<Row> rows;
      std::vector<const std::byte*> pointers;
      for (int j = 0; j < 5; ++j) rows.push_back(random_row(types.stored, n, random));
      for (const Row& row : rows) pointers.push_back(row.bytes.data());
      for (const Formula formula : formulas) {
        double expected[5];
        double out[5];
        sets[0].table(formula, types.stored, types.query)(query.bytes.data(), pointers.data(), 5, n,
                                                          arguments, expected);
        for (const auto& set : sets) {
          set.table(formula, types.stored, types.query)(query.bytes.data(), pointers.data(), 5, n,
                                                        arguments, out);
          for (int j = 0; j < 5; ++j) check_bits(out[j], expected[j], formula, types, n);
        }
      }
    }
}

CASE("a distance does not depend on the rows measured with it") {
  std::mt19937_64 random(2);
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types)
      for (const std::size_t n : {1U, 15U, 33U, 100U}) {
        const Row query = random_query(types, n, random);
        std::vector<Row> rows;
        std::vector<const std::byte*> pointers;
        for (int j = 0; j < 9; ++j) rows.push_back(random_row(types.stored, n, random));
        for (const Row& row : rows) pointers.push_back(row.bytes.data());
        for (const Formula formula : formulas) {
          double out[9];
          set.table(formula, types.stored, types.query)(query.bytes.data(), pointers.data(), 9, n,
                                                        arguments, out);
          for (std::size_t j = 0; j < 9; ++j)
            check_bits(out[j], distance(set, formula, query, rows[j]), formula, types, n);
        }
      }
}

CASE("distances are those of a plain computation in double, to the precision of the lanes") {
  std::mt19937_64 random(3);
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types)
      for (const std::size_t n : lengths()) {
        const Row query = random_query(types, n, random);
        const Row row = random_row(types.stored, n, random);
        double size = 0.0;  // of the terms of an inner product, which may cancel
        for (std::size_t i = 0; i < n; ++i) size += std::fabs(query.held[i] * row.held[i]);
        for (const Formula formula : formulas) {
          const double expected = naive(formula, query.held, row.held);
          const double got = distance(set, formula, query, row);
          // Queries of float32 or less, and weighted bytes on bytes, are summed in float32; all else is
          // to be exact to double, for a query is never rounded.
          const bool bytes = types.query == ElementType::uint8;
          const bool narrow = types.query != ElementType::float64 &&
                              (!bytes || formula == Formula::weighted_euclidean);
          double scale = std::fabs(expected);
          if (formula == Formula::inner_product) scale = size;
          if (formula == Formula::cosine) scale = 1.0;
          CHECK_IN(circumstances(formula, types, n, got),
                   std::fabs(got - expected) <= (narrow ? 1e-5 : 1e-12) * scale);
        }
      }
}

CASE("whole numbers are summed exactly, in every type") {
  std::mt19937_64 random(4);
  const auto whole = [&] { return static_cast<double>(random() % 17); };
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types)
      for (const std::size_t n : lengths()) {
        const Row query(types.query, drawn(n, whole));
        const Row row(types.stored, drawn(n, whole));
        for (const Formula formula : {Formula::euclidean, Formula::manhattan, Formula::chebyshev,
                                      Formula::hamming, Formula::inner_product})
          check_bits(distance(set, formula, query, row) + 0.0,
                     naive(formula, query.held, row.held) + 0.0, formula, types, n);
      }
}

CASE("floats are summed in sixteen lanes that are then halved") {
  std::mt19937_64 random(5);
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types) {
      for (const std::size_t n : lengths()) {
        const Row query = random_query(types, n, random);
        const Row row = random_row(types.stored, n, random);
        for (const Formula formula : {Formula::euclidean, Formula::manhattan,
                                      Formula::inner_product, Formula::weighted_euclidean}) {
          const bool bytes = types.query == ElementType::uint8;
          if (bytes && formula != Formula::weighted_euclidean)
            continue;  // integers: any order gives the same
          const double expected = types.query != ElementType::float64
                                      ? stated<float>(formula, query, row)
                                      : stated<double>(formula, query, row);
          check_bits(distance(set, formula, query, row) + 0.0, expected + 0.0, formula, types, n);
        }
      }
    }
}

CASE("the last feature counts, at every length") {
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types)
      for (const std::size_t n : lengths())
        for (const Formula formula : formulas) {
          std::vector<double> values(n, 1.0);
          const Row query(types.query, values);
          values.back() = 3.0;
          const Row row(types.stored, values);
          const double expected = naive(formula, query.held, row.held);
          CHECK(std::fabs(distance(set, formula, query, row) - expected) <=
                1e-6 * std::fabs(expected) + (n == 1 ? 0.0 : 1e-12));
        }
}

CASE("rows of bytes too long for 32-bit sums do not overflow") {
  const std::size_t n = 600'000;
  const double far = 255.0;
  const double count = static_cast<double>(n);
  for (const auto& set : kernels::instruction_sets()) {
    const Row zeros(ElementType::uint8, std::vector<double>(n, 0.0));
    const Row full(ElementType::uint8, std::vector<double>(n, far));
    CHECK_EQ(distance(set, Formula::euclidean, full, zeros), count * far * far);
    CHECK_EQ(distance(set, Formula::euclidean, zeros, full), count * far * far);
    CHECK_EQ(distance(set, Formula::manhattan, zeros, full), count * far);
    CHECK_EQ(distance(set, Formula::chebyshev, zeros, full), far);
    CHECK_EQ(distance(set, Formula::hamming, zeros, full), count);
    CHECK_EQ(distance(set, Formula::canberra, zeros, full), count);
    CHECK_EQ(distance(set, Formula::inner_product, full, full), -count * far * far);
    CHECK_EQ(distance(set, Formula::cosine, full, full), 0.0);
    CHECK_EQ(distance(set, Formula::cosine, full, zeros), 1.0);
  }
}

CASE("a row is at distance zero from itself, whatever its scale") {
  std::mt19937_64 random(6);
  for (const auto& set : kernels::instruction_sets())
    for (const ElementType type : element_types)
      for (const double scale : {1.0, 1e-30, 1e-18, 1e16, 1e30, 1e-100, 1e-80, 1e80, 1e100}) {
        if ((type == ElementType::uint8 || is_short_for_float32(type)) && scale != 1.0) continue;
        if (type == ElementType::float32 && (scale < 1e-30 || scale > 1e30)) continue;
        // Cosine needs the squared norm, which must be within what the type holds.
        const bool norm_fits = type == ElementType::float64 || (scale >= 1e-18 && scale <= 1e16);
        for (const std::size_t n : {1U, 7U, 16U, 50U, 784U}) {
          std::vector<double> values = random_row(type, n, random).held;
          for (double& value : values) value *= scale;
          const Row row(type, values);
          for (const Formula formula : formulas) {
            if (formula == Formula::inner_product) continue;  // it promises no such thing
            if (formula == Formula::cosine && !norm_fits) continue;
            const double got = distance(set, formula, row, row);
            CHECK_IN(circumstances(formula, {type, type}, n, got) + ", scale 1e" +
                         std::to_string(std::lround(std::log10(scale))),
                     got == 0.0);
          }
        }
      }
}

CASE("cosine: a row of zeros is at 0 from another and at 1 from all else") {
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types) {
      const Row zeros(types.stored, std::vector<double>(20, 0.0));
      const Row zero_query(types.query, zeros.held);
      const Row ones(types.stored, std::vector<double>(20, 1.0));
      const Row one_query(types.query, ones.held);
      CHECK_EQ(distance(set, Formula::cosine, zero_query, zeros), 0.0);
      CHECK_EQ(distance(set, Formula::cosine, zero_query, ones), 1.0);
      CHECK_EQ(distance(set, Formula::cosine, one_query, zeros), 1.0);
    }
}

CASE("the largest and the smallest values give no NaN and nothing below zero") {
  for (const auto& set : kernels::instruction_sets())
    for (const Types& types : all_types) {
      std::vector<double> extremes = {0.0, 1.0, 255.0};
      if (types.stored == ElementType::int8) extremes = {0.0, 1.0, 127.0, -128.0};
      if (types.stored == ElementType::float16) extremes = {0.0, 65504.0, -65504.0, 0x1p-24, 1.0};
      if (types.stored == ElementType::float32) extremes = {0.0, 3.4e38, -3.4e38, 1e-45, 1e20};
      if (types.stored == ElementType::float64) extremes = {0.0, 1.7e308, -1.7e308, 5e-324, 1e160};
      std::vector<double> others = {0.0, 1.7e308, -1.7e308, 5e-324, 255.0};
      if (types.query == ElementType::float32) others = {0.0, 3.4e38, -3.4e38, 1e-45, 255.0};
      for (const double a : extremes)
        for (const double b : extremes)
          for (const double c : others) {
            const double other = types.query == types.stored ? b : c;
            const Row query(types.query, {a, other, other, 0.0, a});
            const Row row(types.stored, {b, a, b, b, a});
            for (const Formula formula : formulas) {
              const double got = distance(set, formula, query, row);
              CHECK(!std::isnan(got));
              if (formula != Formula::inner_product) CHECK(got >= 0.0);
            }
          }
    }
}

CASE("metrics turn reduced distances into the distances that their names promise") {
  const Row x(ElementType::float64, {3.0, 0.0, 1.0, 2.0});
  const Row y(ElementType::float64, {0.0, 4.0, 1.0, 2.0});
  const double expected[] = {
      5.0, 7.0, 4.0,      std::pow(27.0 + 64.0, 1.0 / 3.0), 1.0 - 5.0 / std::sqrt(14.0 * 21.0),
      0.5, 2.0, 1.0 - 5.0};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const auto metric = make_metric(names[i], p, ElementType::float64, 4);
    const std::byte* rows = y.bytes.data();
    double reduced = 0.0;
    metric->distances({x.bytes.data(), ElementType::float64}, &rows, 1, &reduced);
    CHECK_EQ(reduced, chosen_distance(formulas[i], x, y));
    CHECK(std::fabs(metric->distance(reduced) - expected[i]) < 1e-15);
    CHECK_EQ(metric->may_be_negative(), formulas[i] == Formula::inner_product);
  }
}

CASE("rows measured together are as far away as rows measured alone") {
  std::mt19937_64 random(8);
  for (const kernels::InstructionSet& set : kernels::instruction_sets())
    for (const Types& types : all_types)
      for (const std::size_t n : {1U, 6U, 16U, 21U, 54U, 100U})
        for (const Formula formula : formulas) {
          const Row query = random_query(types, n, random);
          std::vector<Row> rows;
          std::vector<const std::byte*> pointers;
          for (std::size_t j = 0; j < 11; ++j) rows.push_back(random_row(types.stored, n, random));
          for (const Row& row : rows) pointers.push_back(row.bytes.data());
          std::vector<double> together(rows.size());
          set.table(formula, types.stored, types.query)(query.bytes.data(), pointers.data(),
                                                        rows.size(), n, arguments, together.data());
          for (std::size_t j = 0; j < rows.size(); ++j)
            CHECK_EQ(together[j], distance(set, formula, query, rows[j]));
        }
}

// Rows by columns, and how far a query is from each of them, measured alone.
template <class T>
struct Columned {
  Columned(const kernels::InstructionSet& set, ElementType type, std::size_t n, const T* scales,
           std::mt19937_64& random)
      : n_rows(3 * set.columns.column_bytes / sizeof(T)),  // two registers go together, then one
        query(random_row(type, n, random)),
        x(query.held.begin(), query.held.end()),
        values(n * n_rows) {
    for (std::size_t j = 0; j < n_rows; ++j) {
      const Row row = random_row(type, n, random);
      for (std::size_t f = 0; f < n; ++f) values[f * n_rows + j] = static_cast<T>(row.held[f]);
      alone.push_back(distance(
          set, scales == nullptr ? Formula::euclidean : Formula::weighted_euclidean, query, row));
    }
  }
  kernels::Columns<T> columns() const { return {values.data(), n_rows, x.size()}; }

  const std::size_t n_rows;
  const Row query;
  const std::vector<T> x;
  std::vector<T> values;
  std::vector<double> alone;
};

CASE(
    "rows by columns are as far away as rows measured alone, and those within the bound are told") {
  std::mt19937_64 random(9);
  for (const kernels::InstructionSet& set : kernels::instruction_sets())
    for (const std::size_t n : lengths()) {
      const Columned<float> rows(set, ElementType::float32, n, nullptr, random);
      for (const double bound : {rows.alone[5], 0.0, inf}) {
        float sums[kernels::most_columned_rows];
        const std::uint64_t near =
            set.columns.compare(rows.x.data(), rows.columns(), static_cast<float>(bound), sums);
        for (std::size_t j = 0; j < rows.n_rows; ++j) {
          CHECK_EQ(static_cast<double>(sums[j]), rows.alone[j]);
          CHECK_EQ((near >> j & 1) == 1, !(rows.alone[j] > bound));
        }
      }
    }
}

// Of several queries at once, one of which is among the rows.
template <class T>
void check_closest(kernels::ColumnKernels::Closest<T> closest, const Columned<T>& rows,
                   const T* scales) {
  std::vector<T> y;
  for (std::size_t f = 0; f < rows.x.size(); ++f) y.push_back(rows.values[f * rows.n_rows + 3]);
  const T* x[] = {rows.x.data(), y.data(), rows.x.data(), rows.x.data()};
  const double least = *std::min_element(rows.alone.begin(), rows.alone.end());
  double bounds[] = {inf, inf, least, least - 1.0};
  std::uint64_t found[4];
  closest(x, 4, scales, rows.columns(), bounds, found);
  for (const std::size_t i : {0U, 2U}) {
    CHECK_EQ(bounds[i], least);
    for (std::size_t j = 0; j < rows.n_rows; ++j)
      CHECK_EQ((found[i] >> j & 1) == 1, rows.alone[j] == least);
  }
  CHECK_EQ(bounds[1], 0.0);
  CHECK_EQ(found[1] >> 3 & 1, std::uint64_t{1});
  CHECK_EQ(bounds[3], least - 1.0);  // nothing is within it
  CHECK_EQ(found[3], std::uint64_t{0});
}

CASE("the closest of rows by columns are those that are closest alone") {
  std::mt19937_64 random(10);
  for (const kernels::InstructionSet& set : kernels::instruction_sets())
    for (const std::size_t n : lengths())
      for (const bool scaled : {false, true}) {
        const float* scales32 = scaled ? weighted.scales32.data() : nullptr;
        const double* scales64 = scaled ? weighted.scales64.data() : nullptr;
        check_closest(set.columns.closest_floats,
                      Columned<float>(set, ElementType::float32, n, scales32, random), scales32);
        check_closest(set.columns.closest_doubles,
                      Columned<double>(set, ElementType::float64, n, scales64, random), scales64);
      }
}

CASE("by columns, sums that overflow or are not a number make rows infinitely far") {
  for (const kernels::InstructionSet& set : kernels::instruction_sets())
    for (const bool scaled : {false, true}) {
      const float x[] = {-3e38F, 1.0F};
      const float* queries[] = {x};
      const float scales[] = {0.0F, 1.0F};  // infinity times 0
      std::vector<float> values(2 * 16, 3e38F);
      double bound = inf;
      std::uint64_t found = 0;
      const auto ask = [&] {
        set.columns.closest_floats(queries, 1, scaled ? scales : nullptr, {values.data(), 16, 2},
                                   &bound, &found);
      };
      ask();
      CHECK_EQ(bound, inf);
      CHECK_EQ(found, std::uint64_t{0xFFFF});  // all are the closest
      values[5] = x[0];
      values[16 + 5] = 3.0F;
      ask();
      CHECK_EQ(bound, 4.0);
      CHECK_EQ(found, std::uint64_t{1} << 5);
    }
}

CASE("minkowski with p = 1 and p = 2 is manhattan and euclidean, and other p < 1 are refused") {
  std::mt19937_64 random(7);
  const Row x = random_row(ElementType::float32, 37, random);
  const Row y = random_row(ElementType::float32, 37, random);
  for (const double power : {1.0, 2.0}) {
    const auto metric = make_metric("minkowski", power, ElementType::float32, 37);
    const std::byte* rows = y.bytes.data();
    double reduced = 0.0;
    metric->distances({x.bytes.data(), ElementType::float32}, &rows, 1, &reduced);
    CHECK_EQ(reduced,
             chosen_distance(power == 1.0 ? Formula::manhattan : Formula::euclidean, x, y));
  }
  for (const double power : {0.5, 0.0, -1.0, inf, std::nan("")})
    CHECK_THROWS(make_metric("minkowski", power, ElementType::float32, 37), std::invalid_argument);
  CHECK_THROWS(make_metric("euclid", p, ElementType::float32, 37), std::invalid_argument);
}

int main() { return check::run_all(); }
