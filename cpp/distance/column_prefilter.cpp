#include "distance/column_prefilter.hpp"

#include <algorithm>

namespace boundary_forest {

ColumnPrefilter::ColumnPrefilter(const Metric& d, const QueryRows& block, ElementType stored,
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

std::size_t ColumnPrefilter::filter(std::span<const std::uint32_t> queries, const Rows& rows,
                                    std::span<double> bounds, Workspace& workspace,
                                    std::span<std::uint64_t> closest) const {
  if (!alike_) return plain_.filter(queries, rows, bounds, workspace, closest);
  const kernels::ColumnKernels& columns = kernels::instruction_set().columns;
  if (stored_ == ElementType::float64)
    filter_as(columns.closest_doubles, scales64_.data(), queries, rows.data, bounds, workspace,
              closest);
  else
    filter_as(columns.closest_floats, scales32_.data(), queries, rows.data, bounds, workspace,
              closest);
  return queries.size() * rows.size();
}

// The row as it lies there, or converted into `room`.
template <class T>
const T* ColumnPrefilter::values_of(const Position& row, T* room) const {
  if (row.type == ElementTraits<T>::type) return reinterpret_cast<const T*>(row.data);
  with_element_type(row.type, [&](auto zero) {
    const auto* from = reinterpret_cast<const decltype(zero)*>(row.data);
    for (std::size_t f = 0; f < D_; ++f) room[f] = static_cast<T>(from[f]);
  });
  return room;
}

template <class T>
void ColumnPrefilter::filter_as(kernels::ColumnKernels::Closest<T> compare, const T* scales,
                                std::span<const std::uint32_t> queries,
                                std::span<const std::byte* const> rows, std::span<double> bounds,
                                Workspace& workspace, std::span<std::uint64_t> closest) const {
  static_assert(kernels::most_columned_rows >= most_rows);
  const std::size_t whole = kernels::instruction_set().columns.column_bytes / sizeof(T);
  const std::size_t n = (rows.size() + whole - 1) / whole * whole;
  workspace.rows.resize(n * D_ * sizeof(T));
  T* const values = reinterpret_cast<T*>(workspace.rows.data());
  T room[most_features];
  for (std::size_t j = 0; j < n; ++j) {
    // What fills the columns up is the first row again: it changes no minimum.
    const T* row = values_of({rows[j < rows.size() ? j : 0], stored_}, room);
    for (std::size_t f = 0; f < D_; ++f) values[f * n + j] = row[f];
  }
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - rows.size());
  constexpr std::size_t at_once = 16;
  T converted[at_once][most_features];
  const T* x[at_once];
  for (std::size_t begin = 0; begin < queries.size(); begin += at_once) {
    const std::size_t m = std::min(at_once, queries.size() - begin);
    for (std::size_t i = 0; i < m; ++i)
      x[i] = values_of(block_.position(queries[begin + i]), converted[i]);
    compare(x, m, scales, {values, n, D_}, bounds.data() + begin, closest.data() + begin);
  }
  for (std::uint64_t& rows_of_query : closest) rows_of_query &= all;
}

}  // namespace boundary_forest
