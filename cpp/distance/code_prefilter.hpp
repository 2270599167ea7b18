// The prefilter of the Euclidean metric: rows are compared by their byte codes (kernels/codes.hpp).
//
// And of the cosine: what is coded are rows divided by their lengths, u and v, as |u - v|^2 is twice the
// distance. A row is not divided, but coded with a step times its length. Rows of zeros, and those whose squares
// leave the range of float32, are never left out.
//
// uint8 rows are their own codes, int8 rows too but for 128, and what comes out is exact. Floats, and
// all rows if features have weights, are coded for every group, so that no second copy of a row is
// kept (promise 5): codes only tell which rows cannot be the closest, and the distances of the others
// are computed in the canonical order.
//
// Long rows have sketches, which are codes that are kept (projection.hpp): fewer bytes than features, and
// a row itself is read only where its sketch does not rule it out.
#pragma once

#include "distance/kernels/kernel.hpp"
#include "distance/prefilter.hpp"

namespace boundary_forest {

class CodePrefilter final : public Prefilter {
 public:
  // Rows of a block from which on it pays to choose a coding for them. MNIST, floats, plain distances / codes:
  // 16 rows 1.0 and, where weights of features are learned, .7; 32 rows 1.13 and .75; 64 rows 1.3 and .99.
  static constexpr std::size_t least_chosen_for = 32;

  // `block` must have at most kernels::most_coded_features features; `scales` has the root of each
  // one's weight, or nothing.
  CodePrefilter(const Metric& d, const QueryRows& block, ElementType stored,
                std::span<const double> scales);
  // By sketches.
  CodePrefilter(const Metric& d, const QueryRows& block, ElementType stored,
                std::shared_ptr<const RowSketches> sketches, std::size_t n_threads);

  const RowSketches* sketches() const override { return sketches_.get(); }

  std::size_t filter(std::span<const std::uint32_t> queries, const Rows& rows,
                     std::span<double> bounds, Workspace& workspace,
                     std::span<std::uint64_t> closest) const override;

 private:
  // Fewer queries than this, or rows of fewer bytes in all, do not make up for the coding of floats.
  static constexpr std::size_t worth_coding = 4;
  static constexpr std::size_t worth_coding_bytes = 4096;

  float encode(const Position& row, double squared_length, std::uint8_t* codes) const;
  void squared_lengths(ElementType type, const std::byte* const* rows, std::size_t n,
                       double* out) const;
  double longest_to_matter(double bound) const;
  void choose_coding(std::span<const double> scales);
  void bound_sums(bool weighted);
  void sketch_block(std::size_t n_threads);
  void code_rows(const Rows& rows, const kernels::CodedRows& coded, float* errors) const;
  std::size_t consider_rows(const Rows& rows, std::uint32_t query, std::uint64_t mask,
                            DistanceCache* known, double& bound, std::uint64_t& closest) const;
  std::size_t consider_possible(const Rows& rows, std::uint32_t query, const std::int32_t* squares,
                                std::uint64_t closest_codes, const float* errors,
                                DistanceCache* known, double& bound, std::uint64_t& closest) const;

  const Metric& d_;
  const QueryRows& block_;
  const std::shared_ptr<const RowSketches> sketches_;  // or null
  const kernels::CodeKernels& kernels_;
  PlainPrefilter plain_;
  ElementType stored_;
  std::size_t n_features_;
  std::size_t stride_;
  kernels::Coding coding_;
  std::vector<double> feature_scales_;  // of the coding, with weights
  std::vector<double> feature_lows_;
  bool exact_;                    // codes are the rows
  bool by_directions_;            // rows are divided by their lengths
  double uncertain_ = 0.0;        // of a cosine distance: how far it may be from the true one
  float direction_error_ = 0.0F;  // of codes of directions, by the rounding of lengths; in steps
  std::vector<std::byte> zeros_;  // a row, from which lengths are measured
  float slack_;     // how much the canonical distance may differ from the true one, as a factor
  float tiny_;      // and absolutely, where squares underflow; in steps
  float farthest_;  // beyond it squares may overflow; in steps
  std::vector<std::int8_t> codes_;     // stride_ bytes for each query of the block
  std::vector<std::int32_t> squares_;  // one for each
  std::vector<float> errors_;          // one for each
};

}  // namespace boundary_forest
