// Examples that are forgotten on request.
//
// A tree that has some of them is replaced by one that lacks them: what did not stand below them stays as
// it was, and the others are learned again, in order of arrival. The new tree is of the same generation,
// so that ties are settled as before and rows go the ways that they went. Rows are wiped when no call that
// may read them still runs (example_store.cpp).
#include <algorithm>
#include <numeric>

#include "boundary_forest/boundary_forest.hpp"
#include "sieves.hpp"

namespace boundary_forest {

std::vector<std::size_t> BoundaryForest::forget(const Ids& ids, const Run& run) {
  const Learning learning = begin_learning();
  Window& window = progress_.adaptation.window;
  std::vector<std::size_t> unknown;
  std::vector<char> forgotten(store_.size(), 0);
  std::vector<Arrival> erased;
  std::vector<char> known = find_in_window(ids, erased);
  Slot n_forgotten = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Slot slot = store_.ids().find(ids, i);
    if (slot != nothing && !std::exchange(forgotten[slot], 1)) ++n_forgotten;
    if (slot == nothing && !known[i]) unknown.push_back(i);
  }
  if (!unknown.empty()) return unknown;
  if (n_forgotten > 0 && n_forgotten == store_.n_living())
    throw std::invalid_argument(
        "ids are those of all stored examples, and a forest needs one: begin another forest");
  try {
    replaced_.reserve(trees_.size());
    trees_.reserve(2 * trees_.size());  // so that taking back needs no memory
    for (std::size_t i = 0; i < trees_.size(); ++i) {
      run.between_blocks();
      forget_in(i, forgotten);
    }
    close_block(store_.size());
    for (Slot slot = 0; !planted() && slot < forgotten.size(); ++slot)
      if (forgotten[slot]) store_.let_go(slot, publication_.newest().number + 1);
    for (const Arrival a : erased) window.erase(a);
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  return {};
}

// Of each id: whether some of the last arrivals have it. Those are added to `arrivals`. (There may be
// several, as an id may be given again once no tree has its example.)
std::vector<char> BoundaryForest::find_in_window(const Ids& ids,
                                                 std::vector<Arrival>& arrivals) const {
  const Window& window = progress_.adaptation.window;
  std::vector<char> found(ids.size(), 0);
  if (!window.is_kept()) return found;
  Ids one = store_.ids().blank(1);
  const auto search = [&](const auto& wanted, const auto& id) {
    std::vector<std::size_t> order(wanted.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
    for (const Arrival a : window.last(Window::capacity)) {
      window.get_id(a, one, 0);
      auto at = std::lower_bound(order.begin(), order.end(), id, [&](std::size_t i, const auto& x) {
        return wanted[i] < x;
      });
      if (at != order.end() && wanted[*at] == id) arrivals.push_back(a);
      for (; at != order.end() && wanted[*at] == id; ++at) found[*at] = 1;
    }
  };
  if (ids.kind() == IdKind::integer) search(ids.integers, one.integers[0]);
  if (ids.kind() == IdKind::text) search(ids.texts, one.texts[0]);
  return found;
}

// Replaces trees_[i] by a tree without the slots that are marked, if it has any.
void BoundaryForest::forget_in(std::size_t i, std::span<const char> forgotten) {
  const BoundaryTree& old = *trees_[i].tree;
  std::vector<NodeId> numbers(old.size(), nothing);  // in the new tree
  std::vector<Slot> examples;
  std::vector<NodeId> parents;
  std::vector<Slot> again;
  for (NodeId v = 0; v < old.size(); ++v) {
    const NodeId parent = old.parent(v);
    const bool is_lost = forgotten[old.example(v)];
    if (is_lost || (parent != nothing && numbers[parent] == nothing)) {
      if (!is_lost) again.push_back(old.example(v));
      continue;
    }
    numbers[v] = static_cast<NodeId>(examples.size());
    examples.push_back(old.example(v));
    parents.push_back(parent == nothing ? nothing : numbers[parent]);
  }
  if (examples.size() == old.size()) return;
  std::sort(again.begin(), again.end(),
            [&](Slot a, Slot b) { return store_.arrival(a) < store_.arrival(b); });
  if (examples.empty() && again.empty()) again.push_back(earliest_but(forgotten));
  Grown anew = make_tree(old.place(), old.generation(), old.settings());
  anew.answering = trees_[i].answering;
  if (!examples.empty()) anew.tree->restore(examples, parents);
  learn_again(anew, again);
  anew.cost += std::exchange(trees_[i].cost, Counts{});
  std::swap(trees_[i], anew);
  replaced_.push_back(std::move(anew));
}

// The earliest stored example that is not forgotten.
Slot BoundaryForest::earliest_but(std::span<const char> forgotten) const {
  for (const auto& [arrival, slot] : stored_by_arrival())
    if (!forgotten[slot]) return slot;
  __builtin_unreachable();
}

// Stored examples, in this order; an empty tree takes the first as its root.
void BoundaryForest::learn_again(Grown& grown, std::span<const Slot> slots) const {
  if (slots.empty()) return;
  BoundaryTree& tree = *grown.tree;
  const QueryRows rows(store_, slots);
  const Sieves sieves(rows, plain_, std::span(&grown, 1),
                      [](const Grown& one) { return &*one.tree; });
  std::vector<std::uint32_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<double> epsilon(slots.size(), epsilon_now());
  std::size_t begin = 0;
  if (tree.size() == 0) tree.plant(slots[begin++]);
  while (begin < slots.size()) {
    const std::size_t n = std::min(slots.size() - begin, block_rows(tree.size()));
    const std::span<const std::uint32_t> block = std::span(order).subspan(begin, n);
    if (const Sieve* sieve = sieves.of(tree))
      BlockDescent(rows, *sieve)
          .train(tree, block, {begin, BlockDescent::Clock::Pace::rows}, epsilon.data(), grown.cost,
                 [](std::size_t) { return true; });
    else
      for (std::size_t j = begin; j < begin + n; ++j)
        tree.BTTrain(rows, j, j, epsilon[j], grown.cost);
    begin += n;
  }
}

}  // namespace boundary_forest
