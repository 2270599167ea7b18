// The byte codes of every instruction set: sums in plain arithmetic, and bounds that hold.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "distance/kernels/kernel.hpp"
#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace boundary_forest;
using namespace boundary_forest::kernels;

namespace {

std::size_t stride_of(std::size_t n) { return (n + code_width - 1) / code_width * code_width; }

struct Coded {
  Coded(std::size_t rows, std::size_t n)
      : n(n), stride(stride_of(n)), codes(rows * stride), terms(rows), errors(rows) {}
  std::uint8_t* row(std::size_t j) { return codes.data() + j * stride; }

  std::size_t n;
  std::size_t stride;
  std::vector<std::uint8_t> codes;
  std::vector<std::int32_t> terms;
  std::vector<float> errors;
};

std::int32_t square_between(const std::uint8_t* x, const std::uint8_t* y, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

}  // namespace

CASE("squares between codes, and which are the least, are those of plain arithmetic") {
  std::mt19937_64 random(11);
  for (const InstructionSet& set : instruction_sets())
    for (const std::size_t n : {1U, 15U, 16U, 63U, 64U, 65U, 130U, 784U})
      for (const std::size_t n_rows : {1U, 3U, 4U, 50U, 64U})
        for (const unsigned range : {2U, 256U}) {
          constexpr std::size_t m = 7;
          // Room for whole tiles, as the prefilter's workspace has.
          Coded rows(most_coded_rows, n);
          Coded queries(m, n);
          std::vector<std::int8_t> less_128(m * queries.stride);
          std::vector<CodedQuery> coded(m);
          for (std::size_t j = 0; j < n_rows; ++j) {
            for (std::size_t i = 0; i < n; ++i)
              rows.row(j)[i] = static_cast<std::uint8_t>(random() % range);
            rows.terms[j] = set.codes.row_term(rows.row(j), rows.stride);
          }
          for (std::size_t q = 0; q < m; ++q) {
            std::int32_t square = 0;
            for (std::size_t i = 0; i < n; ++i) {
              const auto code = static_cast<std::uint8_t>(random() % range);
              queries.row(q)[i] = code;
              less_128[q * queries.stride + i] = static_cast<std::int8_t>(code - 128);
              square += code * code;
            }
            coded[q] = {less_128.data() + q * queries.stride, square};
          }
          std::int32_t squares[m * most_coded_rows];
          std::uint64_t closest[m];
          set.codes.compare(coded.data(), m,
                            {rows.codes.data(), rows.terms.data(), n_rows, rows.stride}, squares,
                            closest);
          for (std::size_t q = 0; q < m; ++q) {
            std::int32_t least = std::numeric_limits<std::int32_t>::max();
            for (std::size_t j = 0; j < n_rows; ++j) {
              const std::int32_t expected = square_between(queries.row(q), rows.row(j), n);
              CHECK_EQ(squares[q * most_coded_rows + j], expected);
              least = std::min(least, expected);
            }
            for (std::size_t j = 0; j < most_coded_rows; ++j)
              CHECK_EQ((closest[q] >> j) & 1U,
                       std::uint64_t{j < n_rows && squares[q * most_coded_rows + j] == least});
          }
        }
}

CASE("rows are at least as far apart as their codes, less their errors") {
  std::mt19937_64 random(12);
  for (const InstructionSet& set : instruction_sets())
    for (const ElementType type :
         {ElementType::float16, ElementType::float32, ElementType::float64})
      for (const std::size_t n : {1U, 7U, 16U, 54U, 100U})
        for (const double offset : {0.0, 1000.0, -30.0})
          for (const double spread : {1.0, 200.0}) {  // within the codes' range, and far beyond
            const Coding coding{0.25, std::floor(offset / 0.25) - 100};
            std::vector<std::vector<std::byte>> rows(12);
            std::vector<std::vector<double>> values(12);
            Coded coded(12, n);
            for (std::size_t j = 0; j < rows.size(); ++j) {
              for (std::size_t i = 0; i < n; ++i)
                streams::put(rows[j], type,
                             offset + spread * (2.0 * streams::uniform(random) - 1.0));
              values[j].resize(n);
              to_doubles({rows[j].data(), type}, n, values[j].data());
              coded.errors[j] = set.codes.encode(rows[j].data(), type, n, coding, coded.row(j));
              CHECK(coded.errors[j] <= 0.51F * std::sqrt(static_cast<float>(n)));
            }
            for (std::size_t a = 0; a < rows.size(); ++a)
              for (std::size_t b = 0; b < a; ++b) {
                double apart = 0.0;
                for (std::size_t i = 0; i < n; ++i)
                  apart += std::pow((values[a][i] - values[b][i]) / coding.step, 2);
                const std::int32_t square = square_between(coded.row(a), coded.row(b), n);
                CHECK(std::sqrt(square) - coded.errors[a] - coded.errors[b] <= std::sqrt(apart));
                const float reach = static_cast<float>(std::sqrt(apart)) * 1.00001F;
                CHECK_EQ(set.codes.within(&square, 1, reach + coded.errors[a], &coded.errors[b]),
                         std::uint64_t{1});
              }
          }
}

CASE("with weights too, rows are at least as far apart as their codes, less their errors") {
  std::mt19937_64 random(13);
  for (const InstructionSet& set : instruction_sets())
    for (const ElementType type : element_types)
      for (const std::size_t n : {1U, 7U, 16U, 54U, 100U})
        for (const double spread : {1.0, 100.0}) {
          std::vector<double> scales(n);
          std::vector<double> lows(n);
          for (std::size_t i = 0; i < n; ++i) {
            scales[i] = i % 6 == 5 ? 0.0 : 0.7 * static_cast<double>(i % 9) + 0.1;
            lows[i] = 20.0 * scales[i] - 100.0 + 0.3 * static_cast<double>(i % 4);
          }
          const Coding coding{1.0, 0.0, scales.data(), lows.data()};
          std::vector<std::vector<std::byte>> rows(12);
          std::vector<std::vector<double>> values(12);
          Coded coded(12, n);
          for (std::size_t j = 0; j < rows.size(); ++j) {
            for (std::size_t i = 0; i < n; ++i)
              streams::put(rows[j], type,
                           (type == ElementType::int8 ? 20.0 : 120.0) +
                               spread * (2.0 * streams::uniform(random) - 1.0));
            values[j].resize(n);
            to_doubles({rows[j].data(), type}, n, values[j].data());
            coded.errors[j] = set.codes.encode(rows[j].data(), type, n, coding, coded.row(j));
          }
          for (std::size_t a = 0; a < rows.size(); ++a)
            for (std::size_t b = 0; b < a; ++b) {
              double apart = 0.0;
              for (std::size_t i = 0; i < n; ++i)
                apart += std::pow((values[a][i] - values[b][i]) * scales[i], 2);
              const std::int32_t square = square_between(coded.row(a), coded.row(b), n);
              CHECK(std::sqrt(square) - coded.errors[a] - coded.errors[b] <= std::sqrt(apart));
            }
        }
}

int main() { return check::run_all(); }
