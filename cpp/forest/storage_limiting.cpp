// Trees are cut so that stored examples stay within max_stored: the tree that has the oldest example is
// grown anew from the newer half of its own. So what is stored longest goes first, and an example goes
// when the last tree that has it is cut.
#include <algorithm>
#include <numeric>
#include <utility>

#include "forest/boundary_forest.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

void BoundaryForest::keep_within_limit(const Run& run) {
  for (std::size_t n_cut = 0; storage_limit_.is_reached(progress_.seen, store_.n_living(), n_cut);
       ++n_cut)
    if (!cut_oldest(run)) return;
}

// False if no tree has more than one example.
bool BoundaryForest::cut_oldest(const Run& run) {
  const auto [cut, oldest] = oldest_tree();
  if (cut == trees_.size()) return false;
  replace(cut, newer_half(*trees_[cut].tree), run);
  return true;
}

// The first of those that have the oldest example, and its arrival; of trees with more than one.
std::pair<std::size_t, Arrival> BoundaryForest::oldest_tree() const {
  const auto oldest_in = [&](const LearnerTree& grown) {
    Arrival oldest = ~Arrival{0};
    if (grown.tree->size() > 1)
      for (NodeId v = 0; v < grown.tree->size(); ++v)
        oldest = std::min(oldest, store_.arrival(grown.tree->example(v)));
    return oldest;
  };
  std::pair found{trees_.size(), ~Arrival{0}};
  for (std::size_t i = 0; i < trees_.size(); ++i)
    if (const Arrival arrival = oldest_in(trees_[i]); arrival < found.second) found = {i, arrival};
  return found;
}

std::vector<Slot> BoundaryForest::newer_half(const BoundaryTree& tree) const {
  std::vector<Slot> slots;
  for (NodeId v = 0; v < tree.size(); ++v) slots.push_back(tree.example(v));
  std::sort(slots.begin(), slots.end(),
            [&](Slot a, Slot b) { return store_.arrival(a) > store_.arrival(b); });
  slots.resize((slots.size() + 1) / 2);
  return slots;
}

// A tree of the same settings, from these examples in an order of its own, in the place of trees_[i].
void BoundaryForest::replace(std::size_t i, std::span<const Slot> slots, const Run& run) {
  replaced_.reserve(replaced_.size() + 1);
  trees_.reserve(trees_.size() + replaced_.capacity());  // so that taking back needs no memory
  const BoundaryTree& old = *trees_[i].tree;
  LearnerTree anew = make_tree(old.place(), next_generation(old.place()), old.settings());
  anew.answering = trees_[i].answering;
  const QueryRows examples(store_, slots);
  const BlockPrefilters prefilters(examples, plain_, std::span(&anew, 1),
                                   [](const LearnerTree& one) { return &*one.tree; });
  std::vector<std::uint32_t> all(slots.size());
  std::iota(all.begin(), all.end(), 0);
  grow(anew, examples, own_order(*anew.tree, slots, all), epsilon_now(), prefilters.of(*anew.tree),
       run);
  anew.cost += std::exchange(trees_[i].cost, Counts{});
  std::swap(trees_[i], anew);
  replaced_.push_back(std::move(anew));
  close_block(store_.size());
}

}  // namespace boundary_forest
