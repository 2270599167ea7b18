// Small dense matrices: Cholesky's method without pivoting.
//
// The order of every sum is part of the definition, so that all instruction sets and reference/mixture.py
// agree bit for bit: an element gets one product after another, in order of rows; a dot product runs in 16
// lanes, as distances do (metric.hpp). Matrices are symmetric, and only the part k >= j of row j is used.
#pragma once

#include <cmath>
#include <cstddef>

namespace boundary_forest {

inline double lane_dot(const double* a, const double* b, std::size_t n) {
  if (n <= 8) {  // the other lanes are zero, and adding them changes nothing
    double lanes[8] = {};
    for (std::size_t l = 0; l < n; ++l) lanes[l] += a[l] * b[l];
    for (std::size_t l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }
  double lanes[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (std::size_t l = 0; l < 16; ++l) lanes[l] += a[i + l] * b[i + l];
  for (std::size_t l = 0; i + l < n; ++l) lanes[l] += a[i + l] * b[i + l];
  for (std::size_t half = 8; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

// y[i] += factor * x[i]
inline void add_multiple(double* __restrict y, double factor, const double* __restrict x,
                         std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// Turns row j of A into that of U, and takes it from the rows after it, before `end`. Returns whether A can
// still be positive definite.
inline bool eliminate(double* A, std::size_t size, std::size_t j, std::size_t end) {
  double* u = A + j * size;
  if (!(u[j] > 0.0) || !std::isfinite(u[j])) return false;
  u[j] = std::sqrt(u[j]);
  for (std::size_t k = j + 1; k < size; ++k) u[k] /= u[j];
  for (std::size_t k = j + 1; k < end; ++k) add_multiple(A + k * size + k, -u[k], u + k, size - k);
  return true;
}

// A becomes U with A = U' U. Returns whether A was positive definite, as far as doubles can tell. Four rows
// at a time, so that an element of the rows after them is read and written once for them.
inline bool cholesky(double* A, std::size_t size) {
  std::size_t j = 0;
  for (; j + 4 < size; j += 4) {
    for (std::size_t p = j; p < j + 4; ++p)
      if (!eliminate(A, size, p, j + 4)) return false;
    const double* __restrict a = A + j * size;
    const double* __restrict b = a + size;
    const double* __restrict c = b + size;
    const double* __restrict d = c + size;
    for (std::size_t k = j + 4; k < size; ++k) {
      double* __restrict row = A + k * size;
      const double ak = a[k], bk = b[k], ck = c[k], dk = d[k];
      for (std::size_t l = k; l < size; ++l)
        row[l] = (((row[l] - ak * a[l]) - bk * b[l]) - ck * c[l]) - dk * d[l];
    }
  }
  for (; j < size; ++j)
    if (!eliminate(A, size, j, size)) return false;
  return true;
}

// Solves U' U x = b in place.
inline void solve(const double* U, std::size_t size, double* b) {
  for (std::size_t j = 0; j < size; ++j) {
    const double* u = U + j * size;
    b[j] /= u[j];
    add_multiple(b + j + 1, -b[j], u + j + 1, size - j - 1);
  }
  for (std::size_t j = size; j-- > 0;) {
    const double* u = U + j * size;
    b[j] = (b[j] - lane_dot(u + j + 1, b + j + 1, size - j - 1)) / u[j];
  }
}

}  // namespace boundary_forest
