#include "column_sieve.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace boundary_forest {

ColumnSieve::ColumnSieve(const Metric& d, const QueryRows& block, ElementType stored,
                         std::span<const float> scales32, std::span<const double> scales64)
    : block_(block),
      plain_(d, block),
      stored_(stored),
      D_(block.n_features()),
      scales32_(scales32),
      scales64_(scales64) {
  for (std::size_t i = 0; i < block.size(); ++i)
    alike_ = alike_ &&
             (block.position(i).type == stored ||
              (is_short_for_float32(stored) && block.position(i).type == ElementType::float32));
}

std::size_t ColumnSieve::sift(std::span<const std::uint32_t> queries,
                              std::span<const std::byte* const> rows, std::span<double> bounds,
                              Workspace& workspace, std::vector<Candidate>& found) const {
  // A few are as fast alone.
  if (rows.size() < 4 || !alike_) return plain_.sift(queries, rows, bounds, workspace, found);
  const kernels::ColumnKernels& columns = kernels::instruction_set().columns;
  if (stored_ == ElementType::float64)
    sift_as(columns.doubles, scales64_.data(), queries, rows, bounds, workspace, found);
  else
    sift_as(columns.floats, scales32_.data(), queries, rows, bounds, workspace, found);
  return queries.size() * rows.size();
}

// The row as it lies there, or converted into `room`.
template <class T>
const T* ColumnSieve::values_of(const Position& row, T* room) const {
  if (row.type == ElementTraits<T>::type) return reinterpret_cast<const T*>(row.data);
  with_element_type(row.type, [&](auto zero) {
    const auto* from = reinterpret_cast<const decltype(zero)*>(row.data);
    for (std::size_t f = 0; f < D_; ++f) room[f] = static_cast<T>(from[f]);
  });
  return room;
}

template <class T>
void ColumnSieve::sift_as(kernels::ColumnKernels::Kernel<T> compare, const T* scales,
                          std::span<const std::uint32_t> queries,
                          std::span<const std::byte* const> rows, std::span<double> bounds,
                          Workspace& workspace, std::vector<Candidate>& found) const {
  static_assert(kernels::most_columned_rows >= most_rows);
  constexpr std::size_t whole = kernels::column_bytes / sizeof(T);
  const std::size_t n = (rows.size() + whole - 1) / whole * whole;
  workspace.rows.resize(n * D_ * sizeof(T));
  T* const values = reinterpret_cast<T*>(workspace.rows.data());
  T x_or_row[most_features];
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const T* row = values_of({rows[j], stored_}, x_or_row);
    for (std::size_t f = 0; f < D_; ++f) values[f * n + j] = row[f];
  }
  for (std::size_t f = 0; f < D_; ++f)
    std::fill(values + f * n + rows.size(), values + (f + 1) * n, T{0});
  const kernels::Columns<T> columns{values, n, D_};
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - rows.size());
  T sums[most_rows];
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    const T* x = values_of(block_.position(queries[i]), x_or_row);
    std::uint64_t left = all & compare(x, scales, columns, static_cast<T>(bounds[i]), sums);
    for (; left != 0; left &= left - 1) {
      const auto j = static_cast<std::uint32_t>(std::countr_zero(left));
      const double reduced =
          std::isnan(sums[j]) ? std::numeric_limits<double>::infinity() : double{sums[j]};
      if (reduced > bounds[i]) continue;
      bounds[i] = reduced;
      found.push_back({i, j, reduced});
    }
  }
}

}  // namespace boundary_forest
