// The prefilter of the Euclidean metric for short rows of floats: a node's children are laid out by columns
// for the group that is compared with them, so that one row's distances come side by side, without the
// sum over lanes that each would need alone.
#pragma once

#include "distance/kernels/kernel.hpp"
#include "distance/prefilter.hpp"

namespace boundary_forest {

class ColumnPrefilter final : public Prefilter {
 public:
  // Longer rows gain more by codes.
  static constexpr std::size_t most_features = 32;

  // `scales` has the root of each feature's weight, or nothing; it must outlive this.
  ColumnPrefilter(const Metric& d, const QueryRows& block, ElementType stored,
                  std::span<const float> scales32, std::span<const double> scales64);

  std::size_t filter(std::span<const std::uint32_t> queries, const Rows& rows,
                     std::span<double> bounds, Workspace& workspace,
                     std::span<std::uint64_t> closest) const override;

 private:
  template <class T>
  const T* values_of(const Position& row, T* room) const;
  template <class T>
  void filter_as(kernels::ColumnKernels::Closest<T> compare, const T* scales,
                 std::span<const std::uint32_t> queries, std::span<const std::byte* const> rows,
                 std::span<double> bounds, Workspace& workspace,
                 std::span<std::uint64_t> closest) const;

  const QueryRows& block_;
  const PlainPrefilter plain_;
  const ElementType stored_;
  const std::size_t D_;  // features
  bool alike_ = true;  // queries are summed in what the rows are; else they are compared in double
  const std::span<const float> scales32_;
  const std::span<const double> scales64_;
};

}  // namespace boundary_forest
