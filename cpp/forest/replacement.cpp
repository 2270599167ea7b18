#include "forest/replacement.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "concurrency/thread_pool.hpp"

namespace boundary_forest {

void Replacement::regrow(std::span<const Regrowth> trees, const Run& run) {
  const Params& params = setup_.params;
  const LearningLock lock = draft_.begin();
  if (!draft_.planted())
    throw std::logic_error("a forest that is not planted has no tree to replace");
  if (params.has_graph) throw std::logic_error("trees that make up a graph are not replaced");
  draft_.commit([&] {
    for (const Regrowth& wanted : trees) {
      if (wanted.order.empty())
        throw std::invalid_argument("a tree is grown from at least one example");
      if (wanted.place - params.first_tree >= params.n_held())
        throw std::invalid_argument("no tree stands at place " + std::to_string(wanted.place));
      const std::vector<Slot> slots = slots_of(draft_.store(), wanted.order);
      std::vector<std::uint32_t> order(slots.size());
      std::iota(order.begin(), order.end(), 0);
      LearnerTree tree =
          grower_.make_tree(wanted.place, draft_.trees().next_generation(wanted.place),
                            draft_.progress().adaptation.settings);
      tree.answering = wanted.answering;
      grower_.grow({&tree, 1}, QueryRows(draft_.store(), slots), draft_.epsilon(), run,
                   [&](std::size_t) { return Grower::Shown{order}; });
      const std::size_t i = draft_.trees().find(wanted.place, wanted.answering);
      if (i == draft_.trees().size())
        draft_.trees().add(std::move(tree));
      else
        draft_.trees().replace(i, std::move(tree));
    }
    draft_.close_block(draft_.store().size());
  });
}

void Replacement::succeed(std::span<const std::uint32_t> places) {
  const LearningLock lock = draft_.begin();
  draft_.commit([&] {
    for (const std::uint32_t place : places) {
      const std::size_t successor = draft_.trees().find(place, /*answering=*/false);
      if (successor == draft_.trees().size())
        throw std::invalid_argument("no tree grows at place " + std::to_string(place));
      draft_.trees().succeed(successor);
    }
    draft_.close_block(draft_.store().size());
  });
}

std::vector<std::uint32_t> Replacement::places_to_grow(Arrival step) const {
  std::vector<std::uint32_t> places;
  for (const LearnerTree& one : draft_.trees().answering())
    if (step > 0 && decisions_.gets_successor(*one.tree, step, draft_.progress().adaptation))
      places.push_back(one.tree->place());
  return places;
}

// A successor is grown from all stored examples that it may learn, whichever tree has kept them, and learns
// what arrives while it waits.
void Replacement::grow_successors(Arrival step, const Run& run, Slot staged) {
  const Params& params = setup_.params;
  const ExampleStore& store = draft_.store();
  std::vector<LearnerTree> successors;
  for (const std::uint32_t place : places_to_grow(step)) {
    const BoundaryTree& old = *draft_.trees().all()[place - params.first_tree].tree;
    successors.push_back(
        grower_.make_tree(place, old.generation() + 1, draft_.progress().adaptation.settings));
    successors.back().answering = false;
  }
  if (!successors.empty()) {
    std::vector<Slot> slots;
    for (const auto& [arrival, slot] : stored_by_arrival(store, staged)) slots.push_back(slot);
    grower_.grow(successors, QueryRows(store, slots), draft_.epsilon(), run, [&](std::size_t i) {
      const BoundaryTree& tree = *successors[i].tree;
      std::vector<std::uint32_t> learned;
      for (std::uint32_t j = 0; j < slots.size(); ++j)
        if (params.learns(tree.place(), store.arrival(slots[j]))) learned.push_back(j);
      if (learned.empty()) learned.push_back(0);
      return Grower::Shown{grower_.own_order(tree, slots, learned)};
    });
  }
  TreeSet& trees = draft_.trees();
  for (LearnerTree& tree : successors) trees.add(std::move(tree));
  for (std::size_t i = params.n_held(); step == Schedule::growing_steps && i < trees.size();)
    if (params.is_lasting(trees.all()[i].tree->place()))
      trees.succeed(i);
    else
      ++i;
  draft_.close_block(staged);
}

void Replacement::keep_shallow(const Run& run) {
  if (!decisions_.depth_limit().is_due(draft_.progress().seen)) return;
  const std::span<const LearnerTree> trees = std::as_const(draft_).trees().all();
  std::vector<NodeId> tops(trees.size());
  const bool looks_at_all = DepthLimit::is_due_for_all(draft_.progress().seen);
  parallel_for(trees.size(), setup_.n_learning_threads(run), [&](std::size_t i) {
    const BoundaryTree& tree = *trees[i].tree;
    tops[i] = looks_at_all || is_reordered(tree) ? chain_top(tree) : nothing;
  });
  std::vector<Remainder> remainders;
  for (std::size_t i = 0; i < trees.size(); ++i)
    if (tops[i] != nothing) remainders.emplace_back(i, *trees[i].tree, tops[i]);
  if (remainders.empty()) return;
  rebuilding_.rebuild(remainders, run);
  draft_.relink();
}

// Trees only gain nodes that are in order, until one is replaced.
Arrival Replacement::next_look(Arrival end) const {
  const Arrival next = decisions_.depth_limit().next(draft_.progress().seen);
  if (end <= next) return end;
  const std::span<const LearnerTree> trees = std::as_const(draft_).trees().all();
  const bool comes_before = std::any_of(
      trees.begin(), trees.end(), [&](const LearnerTree& one) { return is_reordered(*one.tree); });
  return comes_before ? next : end;
}

// Whether the latest nodes are not in order of arrival.
bool Replacement::is_reordered(const BoundaryTree& tree) const {
  const Arrival period = DepthLimit::period(draft_.progress().seen);
  Arrival later = most_arrivals;
  for (NodeId v = tree.size(); v-- > 0 && v + period >= tree.size();) {
    if (v % DepthLimit::depth_stride != 0) continue;
    const Arrival arrival = draft_.store().arrival(tree.example(v));
    if (arrival > later) return true;
    later = arrival;
  }
  return false;
}

// The node from which on a tree is learned again, because the deepest of its latest nodes is too deep: that
// one's highest ancestor that has not too many nodes below it. `nothing` if the tree stays as it is.
NodeId Replacement::chain_top(const BoundaryTree& tree) const {
  const Arrival seen = draft_.progress().seen;
  NodeId top = nothing;
  NodeId depth = DepthLimit::most(tree.size());
  std::vector<NodeId> parents;  // once they are needed
  const auto depth_at = [&](NodeId v) {
    if (tree.depth(v) < BoundaryTree::greatest_depth) return tree.depth(v);
    if (parents.empty()) parents = tree.parents(tree.size());
    NodeId depth_of_v = 0;
    for (NodeId w = v; parents[w] != nothing; w = parents[w]) ++depth_of_v;
    return depth_of_v;
  };
  const NodeId n_replayed =  // latest nodes that may have earlier arrivals
      draft_.progress().adaptation.reservoir.replays() ? 2 * DepthLimit::depth_period : 0;
  for (NodeId v = tree.size(); v-- > 0;) {
    const bool is_early = draft_.store().arrival(tree.example(v)) + DepthLimit::depth_period < seen;
    if (is_early && v + n_replayed < tree.size()) break;
    if (v % DepthLimit::depth_stride != 0) continue;
    const NodeId depth_of_v = depth_at(v);
    if (depth_of_v > depth) {
      depth = depth_of_v;
      top = v;
    }
  }
  if (top == nothing) return nothing;
  if (parents.empty()) parents = tree.parents(tree.size());
  // Counted from the last node back, as far as needed: all that stands below a node came after it.
  const Arrival most = decisions_.depth_limit().most_regrown(seen);
  std::vector<NodeId> n_nodes(tree.size(), 1);  // at each node and below
  for (NodeId v = tree.size(), above = parents[top]; above != nothing; above = parents[top]) {
    for (; v > above + 1; --v) n_nodes[parents[v - 1]] += n_nodes[v - 1];
    if (n_nodes[above] > most) break;
    top = above;
  }
  return top;
}

void Replacement::keep_within_limit(const Run& run) {
  for (std::size_t n_cut = 0;
       decisions_.must_cut(draft_.progress().seen, draft_.store().n_living(), n_cut); ++n_cut)
    if (!cut_oldest(run)) return;
}

void Replacement::keep_below_max_stored(const Run& run) {
  const std::uint32_t most = setup_.params.max_stored;
  while (most > 0 && draft_.store().n_living() > most && cut_oldest(run)) {
  }
}

// False if no tree has more than one example.
bool Replacement::cut_oldest(const Run& run) {
  const std::optional<OldestTree> oldest = oldest_tree();
  if (oldest) cut(oldest->i, run);
  return oldest.has_value();
}

std::optional<Replacement::OldestTree> Replacement::oldest_tree() const {
  std::optional<OldestTree> oldest;
  const std::span<const LearnerTree> trees = std::as_const(draft_).trees().all();
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const BoundaryTree& tree = *trees[i].tree;
    for (NodeId v = 0; tree.size() > 1 && v < tree.size(); ++v)
      if (const Arrival a = draft_.store().arrival(tree.example(v)); !oldest || a < oldest->arrival)
        oldest = {i, a};
  }
  return oldest;
}

// The new tree has the settings of the old one and an order of its own.
void Replacement::cut(std::size_t i, const Run& run) {
  const ExampleStore& store = draft_.store();
  const BoundaryTree& old = *draft_.trees().all()[i].tree;
  std::vector<Slot> slots;
  for (NodeId v = 0; v < old.size(); ++v) slots.push_back(old.example(v));
  std::sort(slots.begin(), slots.end(),
            [&](Slot a, Slot b) { return store.arrival(a) > store.arrival(b); });
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());  // some were replayed
  slots.resize((slots.size() + 1) / 2);
  std::vector<std::uint32_t> all(slots.size());
  std::iota(all.begin(), all.end(), 0);
  LearnerTree tree =
      grower_.make_tree(old.place(), draft_.trees().next_generation(old.place()), old.settings());
  grower_.grow({&tree, 1}, QueryRows(store, slots), draft_.epsilon(), run, [&](std::size_t) {
    return Grower::Shown{grower_.own_order(*tree.tree, slots, all)};
  });
  draft_.trees().replace(i, std::move(tree));
  draft_.close_block(store.size());
}

}  // namespace boundary_forest
