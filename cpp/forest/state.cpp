#include "forest/state.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

namespace boundary_forest {

Examples examples_at(const ExampleStore& store, std::span<const Slot> slots, bool with_positions) {
  const std::size_t label_length = store.label_length();
  const std::size_t row_bytes = store.row_bytes();
  Examples out{std::vector<std::byte>(with_positions ? slots.size() * row_bytes : 0),
               std::vector<double>(slots.size() * label_length), std::vector<Arrival>(slots.size()),
               store.ids().blank(slots.size())};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (with_positions)
      std::copy_n(store.row(slots[i]), row_bytes, out.positions.data() + i * row_bytes);
    std::copy_n(store.label(slots[i]), label_length, out.labels.data() + i * label_length);
    out.arrivals[i] = store.arrival(slots[i]);
    store.ids().get(slots[i], out.ids, i);
  }
  return out;
}

std::vector<Slot> living(const ExampleStore& store, const StoreVersion& version,
                         bool with_forgotten) {
  std::vector<Slot> slots;
  slots.reserve(version.stored);
  for (Slot slot = 0; slot < version.slots; ++slot)
    if (store.is_in(version, slot) && (with_forgotten || !store.is_forgotten(version, slot)))
      slots.push_back(slot);
  const auto earlier = [&](Slot a, Slot b) { return store.arrival(a) < store.arrival(b); };
  if (!std::is_sorted(slots.begin(), slots.end(), earlier))
    std::sort(slots.begin(), slots.end(), earlier);
  return slots;
}

namespace {

void put_adaptation(const Params& params, const ExampleStore& store, const Version& version,
                    ForestState& state) {
  const Adaptation& adaptation = version.adaptation;
  state.vote_rule = adaptation.votes.rule;
  state.tree_losses = adaptation.votes.losses;
  state.vote_errors = adaptation.votes.errors;
  state.class_weights = adaptation.votes.class_weights;
  state.class_counts = adaptation.votes.class_counts;
  state.mixture = adaptation.stream.is_mixed() ? arrays_of(adaptation.stream, params)
                                               : arrays_of(adaptation.mixture);
  for (const Reservoir::Member& member : adaptation.reservoir.members())
    state.reservoir.push_back(member.arrival);
  std::sort(state.reservoir.begin(), state.reservoir.end());
  state.replays = adaptation.reservoir.replays();
  const Window& window = adaptation.window;
  if (!window.is_kept()) return;
  state.window.arrivals = window.last(Window::capacity);
  state.window.ids = store.ids().blank(state.window.arrivals.size());
  for (std::size_t i = 0; i < state.window.arrivals.size(); ++i) {
    const Arrival a = state.window.arrivals[i];
    window.get_id(a, state.window.ids, i);
    state.window.positions.insert(state.window.positions.end(), window.row(a),
                                  window.row(a) + store.row_bytes());
    state.window.labels.insert(state.window.labels.end(), window.label(a),
                               window.label(a) + params.label_length);
  }
  if (!params.has_learned_weights) return;
  std::vector<const TreeSettings*> distinct;
  for (const TreeVersion& version_of_tree : version.trees) {
    const TreeSettings* settings = version_of_tree.tree->settings().get();
    auto at = std::find(distinct.begin(), distinct.end(), settings);
    if (at == distinct.end()) at = distinct.insert(at, settings);
    state.tree_weights.push_back(static_cast<std::uint32_t>(at - distinct.begin()));
  }
  distinct.push_back(adaptation.settings.get());
  for (const TreeSettings* settings : distinct) {
    LogWeights logs = settings->log_weights;
    logs.resize(params.n_features);  // zeros are the plain metric
    state.log_weights.insert(state.log_weights.end(), logs.begin(), logs.end());
  }
}

}  // namespace

ForestState state_of(const Params& params, const ExampleStore& store, const Version& version,
                     std::span<const Slot> living, bool with_positions) {
  ForestState state;
  state.seen = version.seen;
  state.n_classes = version.n_classes;
  state.spread = version.spread.sums();
  std::vector<std::uint32_t> numbers(version.slots);  // of each slot's example among the living
  for (std::size_t i = 0; i < living.size(); ++i)
    numbers[living[i]] = static_cast<std::uint32_t>(i);
  if (!version.planted) state.tree_sizes.assign(params.n_held(), 0);
  bool all_first = true;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    state.tree_sizes.push_back(n_nodes);
    state.tree_generations.push_back(generation);
    if (!answering) state.tree_places.push_back(tree->place());
    all_first = all_first && generation == 0;
  }
  if (all_first) state.tree_generations.clear();
  const std::size_t n_all =
      std::accumulate(state.tree_sizes.begin(), state.tree_sizes.end(), std::size_t{0});
  state.node_examples.reserve(n_all);
  state.node_parents.reserve(n_all);
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    for (NodeId v = 0; v < n_nodes; ++v) state.node_examples.push_back(numbers[tree->example(v)]);
    const std::vector<NodeId> parents = tree->parents(n_nodes);
    state.node_parents.insert(state.node_parents.end(), parents.begin(), parents.end());
  }
  state.examples = examples_at(store, living, with_positions);
  put_adaptation(params, store, version, state);
  return state;
}

void widen(ForestState& state, const Params& params, std::size_t n_features) {
  const auto add_zeros = [](auto& values, std::size_t before, std::size_t after) {
    std::remove_reference_t<decltype(values)> wider(values.size() / before * after);
    for (std::size_t i = 0; i * before < values.size(); ++i)
      std::copy_n(values.data() + i * before, before, wider.data() + i * after);
    values = std::move(wider);
  };
  const std::size_t before = params.n_features * size_of(params.element_type);
  const std::size_t after = n_features * size_of(params.element_type);
  add_zeros(state.examples.positions, before, after);
  add_zeros(state.window.positions, before, after);
  if (params.mixes_streams()) {
    StreamMixture mixture =
        stream_mixture_of(state.mixture, params, state.seen, state.n_classes, state.replays);
    mixture.widen(n_features);
    state.mixture = arrays_of(mixture, params);
  } else {
    MixtureState mixture = mixture_of(state.mixture, params, state.seen, state.n_classes);
    if (mixture.is_mixed()) mixture.widen(n_features);
    state.mixture = arrays_of(mixture);
  }
  const LogWeights narrow = state.log_weights;
  add_zeros(state.log_weights, params.n_features, n_features);
  for (std::size_t i = 0; i * params.n_features < narrow.size(); ++i)
    std::fill_n(
        state.log_weights.data() + i * n_features + params.n_features,
        n_features - params.n_features,
        least_log_weight(std::span(narrow).subspan(i * params.n_features, params.n_features)));
}

}  // namespace boundary_forest
