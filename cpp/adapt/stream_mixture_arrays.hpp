// The state of a stream's mixture as plain arrays, in those of mixture_arrays.hpp.
//
// Weights are those in use and the sharpness, which follow from the losses: a reader of a file need not know
// how. The trial has the decayed sums, then for how many outputs each linear model was solved. Linear models
// stand one behind the other.
#pragma once

#include <cstdint>

#include "adapt/stream_mixture.hpp"
#include "vote/mixture_arrays.hpp"

namespace boundary_forest {

MixtureArrays arrays_of(const StreamMixture& mixture, const Params& params);

// Throws std::invalid_argument if these could not have come about.
StreamMixture stream_mixture_of(const MixtureArrays& arrays, const Params& params,
                                std::uint64_t seen, std::uint32_t n_classes, bool is_sorted);

}  // namespace boundary_forest
