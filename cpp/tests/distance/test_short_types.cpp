// Rows of int8 and float16 are the float32 that have their values: every number of them, by every
// instruction set; the same distances, also where whole numbers leave what float32 has; the same trees.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "distance/kernels/kernel.hpp"
#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;
using kernels::Formula;

namespace {

double value_of(std::uint32_t bits) {
  const auto exponent = static_cast<int>(bits >> 10 & 31U);
  const double digits = bits & 1023U;
  const double size =
      exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024.0 + digits, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

Half half_of(std::uint32_t bits) { return std::bit_cast<Half>(static_cast<std::uint16_t>(bits)); }

// The same values as another type, which must hold them.
Stream as_type(const Stream& stream, ElementType type) {
  Stream out = stream;
  out.params.element_type = type;
  out.positions.clear();
  std::vector<double> values(stream.n * stream.params.n_features);
  to_doubles({stream.positions.data(), stream.params.element_type}, values.size(), values.data());
  for (const double value : values) put(out.positions, type, value);
  return out;
}

// Trees and answers are those of the same rows as float32.
void check_as_float32(const std::string& what, const Stream& stream, const std::string& metric) {
  const Stream wide = as_type(stream, ElementType::float32);
  const auto one = forest_for(stream.params, metric);
  const auto other = forest_for(wide.params, metric);
  learn(*one, stream, 0, stream.n * 3 / 4);
  learn(*other, wide, 0, stream.n * 3 / 4);
  const std::vector<std::uint64_t> keys(4, 1);
  CHECK_IN(what, one->digest(keys)->trees == other->digest(keys)->trees);
  CHECK_IN(what, one->digest(keys)->examples == other->digest(keys)->examples);
  const auto asked = one->found(stream.rows(), Run{});
  const auto expected = other->found(wide.rows(), Run{});
  CHECK_IN(what, asked.found.distances.values == expected.found.distances.values);
  CHECK_IN(what, asked.found.places.values == expected.found.places.values);
  // Rows that float32 holds and the stored type does not.
  Stream between = wide;
  auto* x = reinterpret_cast<float*>(between.positions.data());
  for (std::size_t i = 0; i < between.n * between.params.n_features; i += 2) x[i] += 0x1p-13F;
  CHECK_IN(what, one->found(between.rows(), Run{}).found.distances.values ==
                     other->found(between.rows(), Run{}).found.distances.values);
}

}  // namespace

CASE("every float16 becomes the float32 that it is") {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Half half = half_of(bits);
    if ((bits & 0x7C00U) == 0x7C00U) {
      CHECK(!std::isfinite(static_cast<float>(half)));
      CHECK_EQ(std::isnan(static_cast<float>(half)), (bits & 0x3FFU) != 0);
      continue;
    }
    CHECK_EQ(static_cast<double>(half), value_of(bits));
    CHECK(holds_exactly<Half>(value_of(bits)));
    const Half back(value_of(bits));
    CHECK(std::memcmp(&back, &half, sizeof half) == 0);
  }
  for (const double value : {0x1p-25, 1.0 + 0x1p-11, 65504.0 + 16.0, -65520.0, 2049.0, 1e-30})
    CHECK(!holds_exactly<Half>(value));
}

CASE("every float16 and int8 is read alike by every instruction set") {
  for (const auto& set : kernels::instruction_sets())
    for (const ElementType type : {ElementType::float16, ElementType::int8})
      for (const ElementType query : {type, ElementType::float32, ElementType::float64})
        for (const std::size_t n : {1U, 5U, 15U, 16U, 23U}) {
          std::vector<std::byte> ones;
          for (std::size_t i = 0; i < n; ++i) put(ones, query, 1.0);
          for (std::uint32_t bits = 0; bits < (type == ElementType::int8 ? 256U : 0x10000U);
               ++bits) {
            if (type == ElementType::float16 && (bits & 0x7C00U) == 0x7C00U) continue;
            const double value =
                type == ElementType::int8 ? static_cast<double>(bits) - 128.0 : value_of(bits);
            std::vector<std::byte> row;
            for (std::size_t i = 0; i < n; ++i) put(row, type, i + 1 == n ? value : 0.0);
            // In a block of its own, so that AddressSanitizer sees what is read beyond it.
            const std::vector<std::byte> own(row);
            const std::byte* rows[] = {own.data()};
            double out = -1.0;
            set.table(Formula::inner_product, type, query)(ones.data(), rows, 1, n, {}, &out);
            CHECK_EQ(-out + 0.0, value + 0.0);
          }
        }
}

CASE("one row or many, a query of float16 is at the same distances") {
  std::mt19937_64 random(3);
  for (const auto& set : kernels::instruction_sets())
    for (const std::size_t n : {3U, 16U, 40U, 2048U, 2049U}) {
      std::vector<std::vector<std::byte>> values(20);
      std::vector<const std::byte*> rows;
      for (auto& row : values) {
        for (std::size_t i = 0; i < n; ++i)
          put(row, ElementType::float16, 10.0 * uniform(random) - 5.0);
        rows.push_back(row.data());
      }
      for (const Formula formula : {Formula::euclidean, Formula::cosine, Formula::canberra}) {
        const auto kernel = set.table(formula, ElementType::float16, ElementType::float16);
        std::vector<double> together(rows.size());
        kernel(rows[0], rows.data(), rows.size(), n, {}, together.data());
        for (std::size_t j = 0; j < rows.size(); ++j) {
          double alone = -1.0;
          kernel(rows[0], &rows[j], 1, n, {}, &alone);
          CHECK_EQ(together[j], alone);
        }
      }
    }
}

CASE("trees and answers are those of the same rows as float32") {
  for (const char* metric : {"euclidean", "manhattan", "chebyshev", "minkowski", "cosine",
                             "hamming", "canberra", "inner_product"})
    for (const ElementType type : {ElementType::int8, ElementType::float16})
      for (const std::size_t n_features : {1U, 6U, 33U}) {
        const Params params = params_for(Task::retrieval, 4, 5, n_features, type);
        check_as_float32(metric, grid(params, 400, 8), metric);
        if (type == ElementType::float16)
          check_as_float32(metric, cube(params, 400, n_features), metric);
      }
}

// The largest sums of squares are beyond 2^24 from 259 features on, and then float32 rounds them: rows at
// different distances tie, which whole numbers would tell apart.
CASE("int8: sums that float32 rounds are those of float32") {
  for (const std::size_t n_features : {258U, 259U, 300U, 1000U, 33000U})
    for (const unsigned n_changed : {1U, 3U}) {
      const Params params = params_for(Task::retrieval, 3, 50, n_features, ElementType::int8);
      const std::size_t n = n_features > 1000 ? 60 : 300;
      std::size_t f = 0;
      const auto extremes = [&](std::mt19937_64& random, std::size_t i) {
        const bool is_changed = f++ % n_features < n_changed;
        const double far = i % 2 == 0 ? 127.0 : -128.0;
        return is_changed ? far + (i % 2 == 0 ? -1.0 : 1.0) * static_cast<double>(random() % 4)
                          : far;
      };
      check_as_float32(std::to_string(n_features), draw(params, n, 5, extremes), "euclidean");
    }
}

int main() { return check::run_all(); }
