// What sketches of rows are made by (row_sketches.hpp): where a row lies along a few orthonormal directions, and
// how far it is from what they span, both rounded to bytes.
//
// For any matrix G with |G|_2 <= 1, let rho(y) = sqrt(|y|^2 - |Gy|^2). It is a seminorm, as I - G'G is positive
// semidefinite, so that |Gy - Gz|^2 + (rho(y) - rho(z))^2 <= |y - z|^2: what a sketch says never puts rows farther
// apart than they are. The closer G's rows come to the principal directions of the data, the more of the distance
// is left; they are taken from a sample of the stored rows. The proof needs nothing of them but the norm.
//
// Then the directions are rotated among themselves by a Hadamard matrix, so that the sample varies as much along
// each of them, and one step suits all.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "store/example_store.hpp"
#include "store/row_sketches.hpp"

namespace boundary_forest {

class Projection final : public RowCoder {
 public:
  // Shorter rows gain as much by codes of all features (code_prefilter.hpp), which need no memory.
  static constexpr std::size_t least_bytes = 2048;
  static constexpr std::size_t least_of_bytes = 512;  // features, if they are bytes

  // From the stored rows and those that are staged from slot `staged` on; null if such sketches would not rule out
  // enough of them to pay.
  static std::shared_ptr<const Projection> from(const ExampleStore& store, Slot staged);

  void encode(const Position* rows, std::size_t n, Sketch* const* sketches) const override;
  double step() const override { return step_; }
  std::size_t bytes() const override {
    return (centre_.capacity() + panels_.capacity()) * sizeof(float);
  }

 private:
  static constexpr std::size_t n_directions = 108;  // a Hadamard matrix has this order
  static constexpr std::size_t n_panels = 7;
  static constexpr std::size_t width = 112;  // of a projected row

  explicit Projection(std::size_t n_features) : n_features_(n_features), centre_(n_features) {}

  bool choose_directions(const std::vector<float>& sample, std::size_t n);
  void choose_step(const std::vector<float>& sample, std::size_t n);
  bool pays(const std::vector<float>& sample, std::size_t n) const;
  void encode_centred(const float* y, const float* projected, Sketch& sketch) const;

  std::size_t n_features_;
  std::vector<float> centre_;  // is subtracted from rows
  std::vector<float> panels_;  // the directions, as the kernel wants them
  double norm_ = 1.0;          // at least |M|_2, if M has the directions as its rows: G = M / norm
  float scale_ = 1.0F;         // of projected rows: steps
  double step_ = 1.0;
  double residual_ = 0.0;  // in the sample, on average
};

}  // namespace boundary_forest
