// Examples that are forgotten on request.
//
// A tree that has some of them is replaced by one that lacks them: what did not stand below them stays as
// it was, and the others are learned again, in order of arrival; in a forest that is searched as a graph,
// in an order of the tree's own, as trees that differ make the better graph. The new tree is of the same generation,
// so that ties are settled as before and rows go the ways that they went. Rows are wiped when no call that
// may read them still runs (example_store.cpp).
//
// In a forest that is searched as a graph this is put off: examples are marked, searches go by them and
// return none. Once as many are marked as are not, and before anything is saved or copied, a forest
// without them takes the place of this one; it begins with no more memory than it needs.
#include <algorithm>
#include <numeric>

#include "forest/boundary_forest.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

std::vector<std::size_t> BoundaryForest::forget(const Ids& ids, const Run& run) {
  const LearningLock learning = begin_learning();
  if (params_.has_graph) return mark_forgotten(ids);
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
        "ids must not be those of all stored examples, because a forest needs at least one: start "
        "a new forest instead");
  try {
    forget_slots(forgotten, run);
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

std::vector<std::size_t> BoundaryForest::mark_forgotten(const Ids& ids) {
  std::vector<std::size_t> unknown;
  std::vector<Slot> known;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    known.push_back(store_.ids().find(ids, i));
    if (known.back() == nothing) unknown.push_back(i);
  }
  if (!unknown.empty()) return unknown;
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  if (!known.empty() && known.size() == store_.n_living() - store_.n_marked())
    throw std::invalid_argument(
        "ids must not be those of all stored examples, because a forest needs at least one: start "
        "a new forest instead");
  try {
    for (const Slot slot : known) store_.mark(slot, publication_.newest().number + 1);
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  return {};
}

// The examples whose ids rows begin to begin + n of a block will have.
void BoundaryForest::mark_known(const Ids& ids, std::size_t begin, std::size_t n) {
  for (std::size_t i = begin; i < begin + n; ++i)
    if (const Slot slot = store_.ids().find(ids, i); slot != nothing)
      store_.mark(slot, publication_.newest().number + 1);
}

std::unique_ptr<BoundaryForest> BoundaryForest::rebuilt_without_marked(std::unique_ptr<Metric> d,
                                                                       const Run& run) {
  State state;
  {
    const LearningLock learning = begin_learning();
    std::vector<char> forgotten(store_.size(), 0);
    std::vector<Slot> left;
    for (Slot slot = 0; slot < store_.size(); ++slot)
      if (store_.is_marked(slot))
        forgotten[slot] = 1;
      else
        left.push_back(slot);
    try {
      forget_slots(forgotten, run);
      Version version = publication_.newest();
      version.trees.clear();
      for (const LearnerTree& grown : trees_)
        version.trees.push_back(
            {grown.tree.get(), grown.tree->size(), grown.tree->generation(), grown.answering});
      state = state_of(version, left, true);
    } catch (...) {
      rollback();
      throw;
    }
    rollback();
  }
  auto anew = std::make_unique<BoundaryForest>(params_, std::move(d));
  anew->restore(state);
  return anew;
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
      auto at = std::lower_bound(order.begin(), order.end(), id,
                                 [&](std::size_t i, const auto& x) { return wanted[i] < x; });
      if (at != order.end() && wanted[*at] == id) arrivals.push_back(a);
      for (; at != order.end() && wanted[*at] == id; ++at) found[*at] = 1;
    }
  };
  if (ids.kind() == IdKind::integer) search(ids.integers, one.integers[0]);
  if (ids.kind() == IdKind::text) search(ids.texts, one.texts[0]);
  return found;
}

namespace {

// A tree without what is forgotten: the nodes that stay, and the examples that are to be learned again.
struct Rest {
  std::vector<Slot> examples;
  std::vector<NodeId> parents;
  std::vector<Slot> again;

  Rest(const BoundaryTree& tree, std::span<const char> forgotten) {
    std::vector<NodeId> numbers(tree.size(), nothing);  // of the nodes that stay
    for (NodeId v = 0; v < tree.size(); ++v) {
      const NodeId parent = tree.parent(v);
      const bool is_lost = forgotten[tree.example(v)];
      if (is_lost || (parent != nothing && numbers[parent] == nothing)) {
        if (!is_lost) again.push_back(tree.example(v));
        continue;
      }
      numbers[v] = static_cast<NodeId>(examples.size());
      examples.push_back(tree.example(v));
      parents.push_back(parent == nothing ? nothing : numbers[parent]);
    }
    const Params& params = tree.params();
    const auto key = [&](Slot slot) {
      const Arrival a = tree.store().arrival(slot);
      const std::uint64_t hash =
          params.has_graph ? hash64(params.seed, tree.place(), tree.generation(), a) : 0;
      return std::pair(hash, a);
    };
    const auto before = [&](Slot a, Slot b) { return key(a) < key(b); };
    // Nodes were made in order of arrival, but for the first and where trees were grown anew.
    if (!std::is_sorted(again.begin(), again.end(), before))
      std::sort(again.begin(), again.end(), before);
  }
};

}  // namespace

// Trees that have slots which are marked are replaced. Rows that several of them learn again are prepared
// once.
void BoundaryForest::forget_slots(std::span<const char> forgotten, const Run& run) {
  std::vector<std::size_t> places;
  std::vector<Rest> rests;
  std::vector<LearnerTree> anew;
  for (std::size_t i = 0; i < trees_.size(); ++i) {
    const BoundaryTree& old = *trees_[i].tree;
    Rest rest(old, forgotten);
    if (rest.examples.size() == old.size()) continue;
    if (rest.examples.empty() && rest.again.empty()) rest.again.push_back(earliest_but(forgotten));
    places.push_back(i);
    rests.push_back(std::move(rest));
    anew.push_back(make_tree(old.place(), old.generation(), old.settings()));
    anew.back().answering = trees_[i].answering;
  }
  std::vector<Slot> slots;
  std::vector<std::uint32_t> row_of(store_.size(), nothing);
  for (const Rest& rest : rests)
    for (const Slot slot : rest.again)
      if (row_of[slot] == nothing) {
        row_of[slot] = static_cast<std::uint32_t>(slots.size());
        slots.push_back(slot);
      }
  const QueryRows rows(store_, slots);
  const BlockPrefilters prefilters(rows, plain_, anew,
                                   [](const LearnerTree& grown) { return &*grown.tree; });
  const std::size_t n_threads = params_.label_function ? 1 : threads(run);
  parallel_for(anew.size(), n_threads, [&](std::size_t i) {
    const Rest& rest = rests[i];
    if (!rest.examples.empty()) anew[i].tree->restore(rest.examples, rest.parents);
    std::vector<std::uint32_t> order;
    for (const Slot slot : rest.again) order.push_back(row_of[slot]);
    grow(anew[i], rows, order, epsilon_now(), prefilters.of(*anew[i].tree), run);
  });
  replaced_.reserve(places.size());
  trees_.reserve(trees_.size() + places.size());  // so that taking back needs no memory
  for (std::size_t i = 0; i < anew.size(); ++i) {
    LearnerTree& old = trees_[places[i]];
    anew[i].cost += std::exchange(old.cost, Counts{});
    std::swap(old, anew[i]);
    replaced_.push_back(std::move(anew[i]));
  }
  close_block(store_.size());
}

// The earliest stored example that is not forgotten.
Slot BoundaryForest::earliest_but(std::span<const char> forgotten) const {
  for (const auto& [arrival, slot] : stored_by_arrival())
    if (!forgotten[slot]) return slot;
  __builtin_unreachable();
}

}  // namespace boundary_forest
