// A state put into a forest that is still empty. Nothing is believed: std::invalid_argument where the arrays
// do not make a forest of these parameters; then, and if memory runs out, the forest stays empty.
#pragma once

#include "adapt/decisions.hpp"
#include "forest/draft.hpp"
#include "forest/grower.hpp"
#include "forest/state.hpp"

namespace boundary_forest {

void restore(const ForestState& state, const SavedRows& rows, const Setup& setup,
             const Decisions& decisions, const Grower& grower, Draft& draft);

}  // namespace boundary_forest
