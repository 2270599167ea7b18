// What a distance kernel is, and the table of them that each instruction set provides.
#pragma once

#include <cstddef>
#include <string>

#include "boundary_forest/types.hpp"

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
};

// Reduced distances from one query to n rows; `p` is minkowski's exponent.
using Kernel = void (*)(const std::byte* query, const std::byte* const* rows, std::size_t n,
                        std::size_t n_features, double p, double* out);

// The kernel for rows of type `stored` and a query of type `query`: `stored` or float64.
using Table = Kernel (*)(Formula formula, ElementType stored, ElementType query);

Kernel scalar_kernel(Formula formula, ElementType stored, ElementType query);
#ifdef BOUNDARY_FOREST_AVX2
Kernel avx2_kernel(Formula formula, ElementType stored, ElementType query);
#endif

struct InstructionSet {
  std::string name;
  Table table;
};

// The best that the processor has, or the one that BOUNDARY_FOREST_ISA names.
const InstructionSet& instruction_set();

}  // namespace boundary_forest::kernels
