// What a distance kernel is, and the table of them that each instruction set provides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace boundary_forest::kernels {

enum class Formula {
  euclidean,
  manhattan,
  chebyshev,
  minkowski,
  cosine,
  hamming,
  canberra,
  inner_product,
  weighted_euclidean,
};

// What a formula needs to know besides the rows.
struct Arguments {
  double p = 2.0;                    // minkowski's exponent
  const float* scales32 = nullptr;   // the roots of the weights, for sums in float32
  const double* scales64 = nullptr;  // and for those in float64
};

// Reduced distances from one query to n rows.
using Kernel = void (*)(const std::byte* query, const std::byte* const* rows, std::size_t n,
                        std::size_t n_features, const Arguments& arguments, double* out);

// The kernel for rows of type `stored` and a query of type `query`: `stored`, float64, or float32 if
// is_short_for_float32(stored).
using Table = Kernel (*)(Formula formula, ElementType stored, ElementType query);

// Rows as bytes, for many queries against many rows at once (codes.hpp): a feature x is coded as
// the byte nearest to x / step - low. Step is a power of two and low an integer below 2^22, so that
// a code stands for an exact value. Distances between codes, and errors, are in steps.
//
// With weights a feature is coded as the byte nearest to x * scale - low, each feature with a scale
// and a low of its own; the scale is the root of its weight, divided by step.
struct Coding {
  double step = 1.0;
  double low = 0.0;
  const double* scales = nullptr;  // one for each feature, or null without weights
  const double* lows = nullptr;    // likewise
};

// A query's codes, each less 128, filled up with zeros to a multiple of code_width.
struct CodedQuery {
  const std::int8_t* codes;
  std::int32_t square;  // the sum of its squared codes
};

// Up to most_coded_rows rows, one after the other, each filled up with zeros.
struct CodedRows {
  std::uint8_t* codes;
  std::int32_t* terms;  // the sum of code * (code - 256), for each row
  std::size_t n;
  std::size_t stride;  // bytes from row to row: a multiple of code_width
};

constexpr std::size_t code_width = 64;
constexpr std::size_t most_coded_rows = 64;
constexpr std::size_t most_coded_features = 32768;  // so that 32 bits hold every sum

struct CodeKernels {
  // Codes n features. Two rows are at least as far apart as their codes, less what this returns
  // for each of them: how far rounding may have moved it. (Features beyond the codes' range are cut
  // off, which only brings rows closer together.)
  float (*encode)(const std::byte* row, ElementType type, std::size_t n, const Coding& coding,
                  std::uint8_t* codes);

  std::int32_t (*row_term)(const std::uint8_t* codes, std::size_t stride);

  // squares[i * most_coded_rows + j] becomes the squared distance between the codes of query i and
  // of row j, and bit j of closest[i] tells whether none is less.
  void (*compare)(const CodedQuery* queries, std::size_t m, const CodedRows& rows,
                  std::int32_t* squares, std::uint64_t* closest);

  // Bit j: sqrt(squares[j]) <= reach + errors[j], for one query's n squares.
  std::uint64_t (*within)(const std::int32_t* squares, std::size_t n, float reach,
                          const float* errors);
};

// Up to most_columned_rows rows by columns (columns.hpp): feature f of row j is values[f * n + j].
template <class T>
struct Columns {
  const T* values;
  std::size_t n;  // rows, filled up so that a column is a multiple of ColumnKernels::column_bytes
  std::size_t n_features;
};

constexpr std::size_t most_columned_rows = 64;

// Squared distances of rows to others by columns, as the kernel of Formula::euclidean has them, or with
// scales that of Formula::weighted_euclidean.
struct ColumnKernels {
  std::size_t column_bytes;  // 64 or a fraction of it

  // Without scales. sums[j] becomes the distance of x to row j, but that it may be NaN where that is infinite. Returns,
  // as bit j, whether !(sums[j] > bound).
  template <class T>
  using Compare = std::uint64_t (*)(const T* x, const Columns<T>& rows, T bound, T* sums);
  // If the row closest to x[i] is not farther than bounds[i], bounds[i] becomes its distance, and bit j
  // of closest[i] tells whether it is row j's, too; else closest[i] becomes 0. What would be NaN is
  // infinite. All n rows count: what a column is filled up with must be one of them.
  template <class T>
  using Closest = void (*)(const T* const* x, std::size_t m, const T* scales,
                           const Columns<T>& rows, double* bounds, std::uint64_t* closest);
  Compare<float> compare;
  Closest<float> closest_floats;
  Closest<double> closest_doubles;
};

// out[i * 16 * n_panels + 16 * p + j] becomes row i times direction j of panel p (projection.hpp): a panel
// has 16 directions, and of each feature in turn what these have of it.
using ProjectionKernel = void (*)(const float* rows, std::size_t n, std::size_t n_features,
                                  const float* panels, std::size_t n_panels, float* out);

constexpr std::size_t panel_width = 16;
constexpr std::size_t sum_block = 32;  // features

// G (size x size, symmetric) += the sum over rows r of the outer product of row r with itself. Of row j of G, only
// the elements from j on are defined (products.hpp).
using ProductKernel = void (*)(const double* rows, std::size_t n_rows, std::size_t size, double* G);

struct InstructionSet {
  std::string name;
  Table table;
  CodeKernels codes;
  ColumnKernels columns;
  ProjectionKernel project;
  ProductKernel add_outer_products;
  bool has_byte_products = false;  // one instruction multiplies and adds up four pairs of bytes
};

InstructionSet scalar();
#ifdef BOUNDARY_FOREST_X86
InstructionSet avx2();
InstructionSet avx512();
#endif

// Those that this processor can run, the best last.
std::vector<InstructionSet> instruction_sets();

// The best that the processor has, or the one that BOUNDARY_FOREST_ISA names.
const InstructionSet& instruction_set();

}  // namespace boundary_forest::kernels
