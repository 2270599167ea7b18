#include <algorithm>
#include <vector>

#include "adapt/weight_learning.hpp"
#include "forest/state.hpp"

namespace boundary_forest {
namespace {

Stats::Turnover turnover_of(const ExampleStore& store, const Version& version) {
  Stats::Turnover out;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    if (!answering) continue;
    Arrival oldest = version.seen;
    for (NodeId v = 0; v < n_nodes; ++v) oldest = std::min(oldest, store.arrival(tree->example(v)));
    out.generations.push_back(generation);
    out.ages.push_back(version.seen - oldest);
  }
  out.losses = version.adaptation.votes.losses;
  out.rule = version.adaptation.votes.rule;
  return out;
}

}  // namespace

Stats stats_of(const Params& params, const ExampleStore& store, const Version& version) {
  Stats stats;
  stats.seen = version.seen;
  stats.stored = version.stored;
  stats.position_bytes = store.position_bytes();
  stats.example_bytes = store.example_bytes();
  stats.id_bytes = store.id_bytes();
  stats.window_bytes = version.adaptation.window.bytes() + version.adaptation.stream.bytes();
  stats.reservoir_bytes = version.adaptation.reservoir.bytes();
  stats.mixture_bytes = version.adaptation.mixture.linear.bytes();
  stats.link_bytes = version.graph.links ? version.graph.links->bytes() : 0;
  stats.code_bytes = version.graph.codes ? version.graph.codes->bytes() : 0;
  stats.sketch_bytes = version.sketches ? version.sketches->bytes() : 0;
  if (!version.planted) stats.nodes.assign(params.n_held(), 0);
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    if (answering) stats.nodes.push_back(n_nodes);
    stats.tree_bytes += tree->bytes();
  }
  if (params.forgets() && version.planted) stats.turnover = turnover_of(store, version);
  return stats;
}

Features features_of(const Params& params, const ExampleStore& store, const Version& version) {
  Features out;
  out.weights = weights_of(version.adaptation.settings->log_weights);
  if (const Window& window = version.adaptation.window; window.is_kept()) {
    const std::vector<Arrival> known = window.last(Window::capacity);
    out.variances = moments(params, known.size(), [&](std::size_t i) {
                      return window.row(known[i]);
                    }).variances;
  } else {
    const std::vector<Slot> slots = living(store, version);
    out.variances =
        moments(params, slots.size(), [&](std::size_t i) { return store.row(slots[i]); }).variances;
  }
  return out;
}

}  // namespace boundary_forest
