// A forest's content in hashes: what fingerprint() is made of.
//
// A tree's digest chains (arrival, parent's arrival) in order of creation. The sum over examples has
// each one as often as nodes hold it, so it is also a sum over nodes, and engines that hold
// different trees of one forest can add theirs. Nothing depends on slots, and no row is copied.
#include <algorithm>

#include "base/rng.hpp"
#include "forest/state.hpp"

namespace boundary_forest {
namespace {

using Hash128 = std::array<std::uint64_t, 2>;

// Two chains that begin differently, and so never meet but by chance.
constexpr Hash128 beginning = {0x626F756E64617279ULL, 0x666F726573740A01ULL};

void absorb(Hash128& hash, std::uint64_t word) {
  for (std::uint64_t& half : hash) half = boundary_forest::absorb(half, word);
}

// Without those of columns to spare.
void absorb_weights(Hash128& hash, const Params& params, std::span<const LogWeight> logs) {
  for (const LogWeight log : logs.first(std::min(logs.size(), params.n_features)))
    absorb(hash, static_cast<std::uint64_t>(log));
}

void absorb_example(Hash128& hash, const Params& params, std::span<const std::uint64_t> label_keys,
                    Arrival arrival, const std::byte* row, const double* label) {
  absorb(hash, arrival);
  with_element_type(params.element_type, [&](auto zero) {
    const auto* x = reinterpret_cast<const decltype(zero)*>(row);
    for (std::uint64_t& half : hash) half = row_fingerprint(x, params.n_features, half);
  });
  const bool vote = params.estimator == Estimator::shepard_vote;
  for (std::size_t i = 0; i < params.label_length; ++i)
    absorb(hash, vote ? label_keys[static_cast<std::size_t>(label[i])]
                      : std::bit_cast<std::uint64_t>(label[i]));
}

// A sum over classes, so that their codes do not matter; 0 if none are counted.
Hash128 hash_of_counts(std::span<const double> counts, std::span<const std::uint64_t> label_keys) {
  Hash128 sum = {0, 0};
  for (std::size_t code = 0; code < counts.size(); ++code) {
    if (counts[code] == 0.0) continue;
    Hash128 hash = beginning;
    absorb(hash, label_keys[code]);
    absorb(hash, static_cast<std::uint64_t>(counts[code]));
    for (std::size_t half = 0; half < 2; ++half) sum[half] += hash[half];
  }
  return sum;
}

// What later learning depends on besides trees and examples; 0 if that is nothing.
Hash128 hash_of(const Adaptation& adaptation, const VoteState& votes, const Params& params,
                const ExampleStore& store, std::span<const std::uint64_t> label_keys) {
  const Window& window = adaptation.window;
  const Hash128 counts = hash_of_counts(votes.class_counts, label_keys);
  const MixtureArrays mixture = adaptation.stream.is_mixed() ? arrays_of(adaptation.stream, params)
                                                             : arrays_of(adaptation.mixture);
  if (votes.errors.empty() && !window.is_kept() && mixture.weights.empty()) return counts;
  Hash128 hash = beginning;
  for (const std::vector<double>* numbers : {&mixture.weights, &mixture.trial, &mixture.linear_map,
                                             &mixture.linear_sums, &mixture.linear_model})
    for (const double x : *numbers) absorb(hash, std::bit_cast<std::uint64_t>(x));
  for (const std::uint32_t code : mixture.classes) absorb(hash, label_keys[code]);
  if (!votes.class_counts.empty())
    for (const std::uint64_t half : counts) absorb(hash, half);
  absorb(hash, votes.rule);
  for (const double error : votes.errors) absorb(hash, std::bit_cast<std::uint64_t>(error));
  for (const double loss : votes.losses) absorb(hash, std::bit_cast<std::uint64_t>(loss));
  absorb_weights(hash, params, adaptation.settings->log_weights);
  for (const Arrival a : window.last(Window::capacity))
    absorb_example(hash, params, label_keys, a, window.row(a), window.label(a));
  for (const Reservoir::Member& member : adaptation.reservoir.members())
    if (member.slot == nothing)
      absorb(hash, member.arrival);
    else
      absorb_example(hash, params, label_keys, member.arrival, store.row(member.slot),
                     store.label(member.slot));
  if (adaptation.reservoir.replays()) absorb(hash, 1);
  return hash;
}

}  // namespace

std::optional<Digest> digest_of(const Params& params, const ExampleStore& store,
                                const Version& version, std::span<const std::uint64_t> label_keys,
                                const VoteState* votes) {
  const bool vote = params.estimator == Estimator::shepard_vote;
  if (vote && label_keys.size() < version.n_classes) return std::nullopt;
  Digest digest;
  digest.seen = version.seen;
  std::vector<std::uint32_t> n_holders(version.slots, 0);
  for (Slot slot = 0; !version.planted && slot < version.slots; ++slot)
    n_holders[slot] = store.is_in(version, slot) ? 1 : 0;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    Hash128 hash = beginning;
    absorb(hash, tree->place());
    if (generation > 0 || !answering) absorb(hash, 2 * std::uint64_t{generation} + answering);
    absorb_weights(hash, params, tree->settings()->log_weights);
    const std::vector<NodeId> parents = tree->parents(n_nodes);
    for (NodeId v = 0; v < n_nodes; ++v) {
      const NodeId parent = parents[v];
      absorb(hash, store.arrival(tree->example(v)));
      absorb(hash, parent == nothing ? ~0ULL : store.arrival(tree->example(parent)));
      ++n_holders[tree->example(v)];
    }
    digest.trees.push_back(hash);
  }
  for (Slot slot = 0; slot < version.slots; ++slot) {
    if (n_holders[slot] == 0) continue;
    Hash128 hash = beginning;
    absorb_example(hash, params, label_keys, store.arrival(slot), store.row(slot),
                   store.label(slot));
    if (store.is_forgotten(version, slot)) absorb(hash, 1);  // passed through, and never returned
    for (std::size_t half = 0; half < 2; ++half)
      digest.examples[half] += n_holders[slot] * hash[half];
  }
  const Adaptation& own = version.adaptation;
  digest.adaptation =
      hash_of(own, votes == nullptr ? own.votes : *votes, params, store, label_keys);
  return digest;
}

}  // namespace boundary_forest
