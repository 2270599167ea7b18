// Trees that come and go. A tree only grows: what changes it otherwise makes a new tree, of the next
// generation, in its place. Until that is published, the old one is kept to be returned to; then it
// is reclaimed by the learner, once no call that may read it still runs.
//
// A tree grown anew is a function of the order in which it is shown stored examples, its settings,
// the seed and its generation: its root is the first example, its threshold the one that holds for
// the next arrival, its ties are drawn by hash64(seed, place, generation).
#include <algorithm>
#include <numeric>

#include "forest/boundary_forest.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

void BoundaryForest::regrow(std::span<const Regrowth> trees, const Run& run) {
  const LearningLock learning = begin_learning();
  if (!planted()) throw std::logic_error("a forest that is not planted has no tree to replace");
  if (params_.has_graph) throw std::logic_error("trees that make up a graph are not replaced");
  trees_.reserve(trees_.size() + trees.size());  // so that taking back needs no memory
  replaced_.reserve(trees.size());
  try {
    for (const Regrowth& wanted : trees) {
      if (wanted.order.empty())
        throw std::invalid_argument("a tree is grown from at least one example");
      if (wanted.place - params_.first_tree >= params_.n_held())
        throw std::invalid_argument("no tree stands at place " + std::to_string(wanted.place));
      const std::vector<Slot> slots = slots_of(wanted.order);
      const auto same_place = [&](const LearnerTree& grown) {
        return grown.tree->place() == wanted.place && grown.answering == wanted.answering;
      };
      const auto at = std::find_if(trees_.begin(), trees_.end(), same_place);
      LearnerTree grown =
          make_tree(wanted.place, next_generation(wanted.place), progress_.adaptation.settings);
      grown.answering = wanted.answering;
      const QueryRows examples(store_, slots);
      std::vector<std::uint32_t> order(slots.size());
      std::iota(order.begin(), order.end(), 0);
      const BlockPrefilters prefilters(examples, plain_, std::span(&grown, 1),
                                       [](const LearnerTree& one) { return &*one.tree; });
      grow(grown, examples, order, epsilon_now(), prefilters.of(*grown.tree), run);
      if (at == trees_.end()) {
        // Those that only grow stand behind those that answer, by place too.
        const auto is_behind = [&](const LearnerTree& other) {
          return !other.answering && other.tree->place() > wanted.place;
        };
        trees_.insert(std::find_if(trees_.begin(), trees_.end(), is_behind), std::move(grown));
      } else {
        std::swap(*at, grown);
        replaced_.push_back(std::move(grown));
      }
    }
    close_block(store_.size());
    publish();
  } catch (...) {
    rollback();
    throw;
  }
}

void BoundaryForest::succeed(std::span<const std::uint32_t> places) {
  const LearningLock learning = begin_learning();
  replaced_.reserve(places.size());
  try {
    for (const std::uint32_t place : places) {
      const auto at_place = [&](bool answering) {
        return std::find_if(trees_.begin(), trees_.end(), [&](const LearnerTree& grown) {
          return grown.tree->place() == place && grown.answering == answering;
        });
      };
      const auto successor = at_place(false);
      if (successor == trees_.end())
        throw std::invalid_argument("no tree grows at place " + std::to_string(place));
      successor->answering = true;
      std::swap(*at_place(true), *successor);  // the first that answers is the predecessor
      replaced_.push_back(std::move(*successor));
      trees_.erase(successor);
    }
    close_block(store_.size());
    publish();
  } catch (...) {
    rollback();
    throw;
  }
}

// A step of growing anew after the weights have changed: in each step some of the trees
// get a successor with the new settings, and with the last all of these take over. A successor is grown
// from all stored examples that it may learn, whichever tree has kept them, in the order of
// hash64(seed, place, generation, arrival), and learns what arrives while it waits. Slots from `staged` on
// have examples that other engines store (parts.cpp).
void BoundaryForest::grow_successors(Arrival step, const Run& run, Slot staged) {
  const std::size_t n_T = params_.n_held();
  std::vector<LearnerTree> anew;
  for (std::size_t i = 0; i < n_T; ++i) {
    const BoundaryTree& old = *trees_[i].tree;
    if (is_to_grow(old, step))
      anew.push_back(make_tree(old.place(), old.generation() + 1, progress_.adaptation.settings));
  }
  grow_from_stored(anew, run, staged);
  trees_.reserve(trees_.size() + anew.size());
  for (LearnerTree& grown : anew) {
    grown.answering = false;
    trees_.push_back(std::move(grown));
  }
  // By place, also among those that will succeed trees of a lifetime.
  std::sort(
      trees_.begin() + static_cast<std::ptrdiff_t>(n_T), trees_.end(),
      [](const LearnerTree& a, const LearnerTree& b) { return a.tree->place() < b.tree->place(); });
  if (step == Schedule::growing_steps) take_over();
  close_block(staged);
}

bool BoundaryForest::is_to_grow(const BoundaryTree& old, Arrival step) const {
  const bool is_its_turn = old.place() * Schedule::growing_steps / params_.n_T + 1 == step;
  return is_its_turn && params_.is_lasting(old.place()) &&
         old.settings()->log_weights != progress_.adaptation.settings->log_weights;
}

void BoundaryForest::grow_from_stored(std::span<LearnerTree> anew, const Run& run, Slot staged) {
  if (anew.empty()) return;
  std::vector<Slot> slots;
  for (const auto& [arrival, slot] : stored_by_arrival(staged)) slots.push_back(slot);
  const QueryRows examples(store_, slots);
  const BlockPrefilters prefilters(examples, plain_, anew,
                                   [](const LearnerTree& grown) { return &*grown.tree; });
  const std::size_t n_threads = params_.label_function ? 1 : threads(run);
  parallel_for(anew.size(), n_threads, [&](std::size_t i) {
    const BoundaryTree& tree = *anew[i].tree;
    std::vector<std::uint32_t> learned;
    for (std::uint32_t j = 0; j < slots.size(); ++j)
      if (params_.learns(tree.place(), store_.arrival(slots[j]))) learned.push_back(j);
    if (learned.empty()) learned.push_back(0);
    grow(anew[i], examples, own_order(tree, slots, learned), epsilon_now(), prefilters.of(tree),
         run);
  });
}

// The order in which a tree that is grown anew is shown stored examples, given by their numbers among
// the slots: by hash64(seed, place, generation, arrival).
std::vector<std::uint32_t> BoundaryForest::own_order(const BoundaryTree& tree,
                                                     std::span<const Slot> slots,
                                                     std::span<const std::uint32_t> shown) const {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
  keyed.reserve(shown.size());
  for (const std::uint32_t j : shown)
    keyed.emplace_back(
        hash64(params_.seed, tree.place(), tree.generation(), store_.arrival(slots[j])), j);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::uint32_t> order;
  order.reserve(keyed.size());
  for (const auto& [key, j] : keyed) order.push_back(j);
  return order;
}

// Of a tree that is made at this place.
std::uint32_t BoundaryForest::next_generation(std::uint32_t place) const {
  std::uint32_t generation = 0;
  for (const LearnerTree& grown : trees_)
    if (grown.tree->place() == place)
      generation = std::max(generation, grown.tree->generation() + 1);
  return generation;
}

// The successors of trees that last take the places of those that answer.
void BoundaryForest::take_over() {
  const auto n_T = static_cast<std::ptrdiff_t>(params_.n_held());
  replaced_.reserve(replaced_.size() + trees_.size());
  trees_.reserve(trees_.size() + replaced_.capacity());  // so that taking back needs no memory
  for (auto successor = trees_.begin() + n_T; successor != trees_.end(); ++successor) {
    if (!params_.is_lasting(successor->tree->place())) continue;
    LearnerTree& old = trees_[successor->tree->place() - params_.first_tree];
    successor->answering = true;
    successor->cost += std::exchange(old.cost, Counts{});
    std::swap(old, *successor);
    replaced_.push_back(std::move(*successor));
  }
  std::erase_if(trees_, [](const LearnerTree& grown) { return !grown.tree; });
}

// The examples that are stored as the learner sees it, and those that are staged.
std::vector<std::pair<Arrival, Slot>> BoundaryForest::stored_by_arrival(Slot staged) const {
  std::vector<std::pair<Arrival, Slot>> stored;
  stored.reserve(store_.n_living());
  for (Slot slot = 0; slot < store_.size(); ++slot)
    if (slot >= staged || store_.is_alive(slot)) stored.emplace_back(store_.arrival(slot), slot);
  std::sort(stored.begin(), stored.end());
  return stored;
}

// Their slots.
std::vector<Slot> BoundaryForest::slots_of(std::span<const Arrival> arrivals) const {
  const std::vector<std::pair<Arrival, Slot>> stored = stored_by_arrival();
  std::vector<Slot> slots;
  slots.reserve(arrivals.size());
  for (const Arrival arrival : arrivals) {
    const auto at = std::lower_bound(stored.begin(), stored.end(), std::pair(arrival, Slot{0}));
    if (at == stored.end() || at->first != arrival)
      throw std::invalid_argument("example " + std::to_string(arrival) + " is not stored");
    slots.push_back(at->second);
  }
  return slots;
}

}  // namespace boundary_forest
