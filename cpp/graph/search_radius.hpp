// How far a graph search goes on: until all that is left is `factor` times as far away as its n-th nearest
// example.
//
// Some queries have few examples about them that could still be among the nearest, and some have very
// many. So it is not a number of examples that says where a search may end, but a distance: `factor`
// times the one to the n-th nearest so far. The factor is such that a typical search goes on from `beam`
// examples. (On GloVe, at a recall of 0.99, that takes 40 % fewer distances than to go on from as many
// for every query.) What is typical is measured: how far the nearest, second, fourth, ... others of some
// stored examples are, as a search finds them.
//
// The same searches tell what a search costs: how many distances it computes per example of its beam.
//
// It is a function of the links and the rows of the first slots, as many as RowCodes::count_for says: so
// neither threads, nor cuts of the stream, nor saving can matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "graph/beam.hpp"

namespace boundary_forest {

class SearchRadius {
 public:
  // How many stored examples are searched for, and how many neighbours of each.
  static constexpr Slot n_samples = 32;
  static constexpr std::size_t most_others = 256;

  SearchRadius() = default;
  // To be measured by the first `count` slots.
  explicit SearchRadius(Slot count);

  Slot count() const { return count_; }
  bool is_measured() const { return n_sums_ > 0; }
  std::size_t n_others() const { return std::size_t{1} << (n_sums_ - 1); }
  // The i-th of these examples.
  Slot sample(Slot i) const;
  // What was found for one of them: itself, and others; and how many distances that took.
  void add(const Beam& found, std::size_t n_compared);

  // Infinite if distances do not tell.
  double factor(std::size_t beam, std::size_t n) const;
  // How many distances a search computes per example of its beam; about 16 where it is not measured.
  double n_compared_per_example() const;

 private:
  double sum_at(std::size_t rank) const;

  Slot count_ = 0;
  std::size_t n_sums_ = 0;
  std::array<double, 9> sums_{};  // of the reduced distances to the 2^i-th nearest others
  std::uint64_t n_compared_ = 0;  // distances that the counted searches computed
  std::uint64_t n_expanded_ = 0;  // examples of their beams
};

}  // namespace boundary_forest
