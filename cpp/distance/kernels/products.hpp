// Sums of outer products, for small systems of equations (vote/local_fit.hpp).
//
// An element gets one product after another, in order of rows, so all instruction sets round alike.
//
// Like lanes.hpp, this is compiled once for each instruction set.
#pragma once

#include <cstddef>

#include "distance/kernels/kernel.hpp"

namespace boundary_forest::kernels {
namespace {

// Four rows at a time, so that an element of G is read and written once for them. A row of G begins before its
// diagonal, where whole registers do.
void add_outer_products(const double* rows, std::size_t n_rows, std::size_t size, double* G) {
  constexpr std::size_t width = 8;
  std::size_t r = 0;
  for (; r + 4 <= n_rows; r += 4) {
    const double* __restrict a = rows + r * size;
    const double* __restrict b = a + size;
    const double* __restrict c = b + size;
    const double* __restrict d = c + size;
    for (std::size_t j = 0; j < size; ++j) {
      double* __restrict g = G + j * size;
      const double aj = a[j], bj = b[j], cj = c[j], dj = d[j];
      for (std::size_t k = j / width * width; k < size; ++k)
        g[k] = (((g[k] + aj * a[k]) + bj * b[k]) + cj * c[k]) + dj * d[k];
    }
  }
  for (; r < n_rows; ++r) {
    const double* __restrict row = rows + r * size;
    for (std::size_t j = 0; j < size; ++j) {
      double* __restrict g = G + j * size;
      for (std::size_t k = j / width * width; k < size; ++k) g[k] += row[j] * row[k];
    }
  }
}

}  // namespace
}  // namespace boundary_forest::kernels
