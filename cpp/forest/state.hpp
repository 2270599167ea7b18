// The whole content of a version as plain arrays: what is saved, copied, and put back (restoring.hpp); and
// what else can be said of a version: figures, weights of features, hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "adapt/stream_mixture_arrays.hpp"
#include "distance/feature_weights.hpp"
#include "forest/results.hpp"
#include "forest/setup.hpp"
#include "forest/version.hpp"
#include "store/example_store.hpp"
#include "vote/mixture_arrays.hpp"

namespace boundary_forest {

struct ForestState {
  std::uint64_t seen = 0;
  std::uint32_t n_classes = 0;
  std::vector<double> spread;
  Counts learn;
  Counts query;
  // Trees that answer first, by place; sizes are all 0 while the first n_T examples are awaited.
  std::vector<NodeId> tree_sizes;
  std::vector<std::uint32_t> tree_places;       // of those that only grow
  std::vector<std::uint32_t> tree_generations;  // none: all are 0
  std::vector<std::uint32_t> node_examples;     // tree by tree, in order of creation
  std::vector<NodeId> node_parents;             // `nothing` for a root
  // If weights are learned: the distinct ones, the last of which new trees get, feature by feature;
  // which of them each tree has; and the last arrivals.
  LogWeights log_weights;
  std::vector<std::uint32_t> tree_weights;
  Examples window;
  // The arrivals in the reservoir, ascending: those that are not stored are forgotten. Whether they are
  // replayed.
  std::vector<Arrival> reservoir;
  bool replays = false;
  // How votes are weighed: see VoteState.
  std::uint32_t vote_rule = 0;
  std::vector<double> vote_errors;
  std::vector<double> tree_losses;
  std::vector<double> class_weights;
  std::vector<double> class_counts;
  MixtureArrays mixture;
  Examples examples;  // all that are stored, by arrival
};

// Examples taken out of the store.
Examples examples_at(const ExampleStore& store, std::span<const Slot> slots,
                     bool with_positions = true);

// The slots of all examples of a version, by arrival.
std::vector<Slot> living(const ExampleStore& store, const StoreVersion& version,
                         bool with_forgotten = false);

// The state of a version whose examples have these slots, by arrival. `learn` and `query` are left at 0.
ForestState state_of(const Params& params, const ExampleStore& store, const Version& version,
                     std::span<const Slot> living, bool with_positions);

// `learn` and `query` are left at 0.
Stats stats_of(const Params& params, const ExampleStore& store, const Version& version);

Features features_of(const Params& params, const ExampleStore& store, const Version& version);

// label_keys stands for class codes, which depend on the order in which classes were named; it is empty
// where labels are numbers. `votes`: those of the forest if they are kept elsewhere, or null. Nothing is
// returned where there are more classes than keys.
std::optional<Digest> digest_of(const Params& params, const ExampleStore& store,
                                const Version& version, std::span<const std::uint64_t> label_keys,
                                const VoteState* votes);

// Rows and weights get further features: zeros, and the least weight of the others.
void widen(ForestState& state, const Params& params, std::size_t n_features);

}  // namespace boundary_forest
