// Search over the forest as a graph: the union of the trees' edges (links.hpp).
//
// The way begins with a descent of the first tree; all that it compares is offered to the beam. Then,
// best first, the links of the closest example that was not gone on from are compared and offered,
// until there is none left in the beam. Rows are compared as bytes where there are codes
// (row_codes.hpp), and what is in the beam at the end is ranked by its own distances. Ties go to the
// earlier arrival, so that what is found is a function of the version and the query alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "boundary_forest/boundary_forest.hpp"
#include "sought.hpp"

namespace boundary_forest {
namespace {

// One search: what it reads, what it compares by, and the memory that it works in. Rows are what the
// search compares: codes, or the stored rows themselves.
template <class Rows>
struct Walk {
  const Version& version;
  const Links& links;
  const Rows row_places;
  const std::size_t row_bytes;
  const Metric& d;
  const Position y;
  Scratch& scratch;

  // is_returned(slot) tells whether an example may be returned; others are walked by.
  template <class IsReturned>
  void run(std::size_t width, IsReturned&& is_returned, Counts& cost) {
    scratch.beam.reset(width);
    scratch.visited.reset(version.slots);
    descend(is_returned, cost);
    for (Slot slot = scratch.beam.expand(); slot != nothing; slot = scratch.beam.expand()) {
      const ChildLists::View view = links.of(slot);
      const auto link = [&](std::size_t j) { return view.ids[j].load(std::memory_order_relaxed); };
      const auto only = [&](std::size_t) { return view.only_child; };
      offer(view.ids != nullptr ? scratch.visited.meet(view.count, version.slots, link)
                                : scratch.visited.meet(view.count, version.slots, only),
            is_returned, cost);
    }
  }

 private:
  // Offers examples to the beam, and returns the closest of them and its distance.
  template <class IsReturned>
  Leaf offer(std::span<const Slot> met, IsReturned&& is_returned, Counts& cost) {
    const std::size_t n = met.size();
    scratch.rows.resize(n);
    scratch.reduced.resize(n);
    const std::byte** const rows = scratch.rows.data();
    for (std::size_t j = 0; j < n; ++j) {
      rows[j] = reinterpret_cast<const std::byte*>(row_places.at(met[j]));
      for (std::size_t at = 0; at < row_bytes; at += 64) __builtin_prefetch(rows[j] + at);
    }
    d.distances(y, rows, n, scratch.reduced.data());
    cost += {n, n};
    Leaf closest{nothing, std::numeric_limits<double>::infinity()};
    for (std::size_t j = 0; j < n; ++j) {
      double reduced = scratch.reduced[j];
      // Rows in a mapped file are not checked.
      if (std::isnan(reduced)) reduced = std::numeric_limits<double>::infinity();
      if (scratch.beam.offer(reduced, met[j], is_returned(met[j]))) links.prefetch(met[j]);
      if (reduced < closest.reduced || (reduced == closest.reduced && met[j] < closest.example))
        closest = {met[j], reduced};
    }
    return closest;
  }

  // The first tree, as far as children are closer.
  template <class IsReturned>
  void descend(IsReturned&& is_returned, Counts& cost) {
    const auto& [tree, n_nodes, generation, answering] = version.trees[0];
    const auto root = [&](std::size_t) { return tree->example(0); };
    NodeId v = 0;
    Leaf at_v = offer(scratch.visited.meet(1, version.slots, root), is_returned, cost);
    for (;;) {
      const ChildLists::View children = tree->children(v, n_nodes);
      const auto child = [&](std::size_t j) {
        return tree->example(children[static_cast<std::uint32_t>(j)]);
      };
      // Nobody is met twice in a tree, so they stand as the children do.
      const auto met = scratch.visited.meet(children.count, version.slots, child);
      const Leaf closest = offer(met, is_returned, cost);
      const bool is_closer = closest.reduced < at_v.reduced ||
                             (closest.reduced == at_v.reduced && closest.example < at_v.example);
      if (closest.example == nothing || !is_closer) return;
      const auto at = std::find(met.begin(), met.end(), closest.example);
      v = children[static_cast<std::uint32_t>(at - met.begin())];
      at_v = closest;
    }
  }
};

}  // namespace

std::vector<Leaf> BoundaryForest::graph_search(const QueryRows& queries, std::size_t i,
                                               const Limit& limit, const Sought& sought,
                                               Scratch& scratch, Counts& cost) const {
  const Version& version = sought.version;
  const RowCodes* codes = version.codes.get();
  const Metric& d = *settings_->d;
  const Position& y = queries.position(i);
  Position walked = y;
  if (codes != nullptr) {
    scratch.codes.resize(params_.n_features);
    codes->encode(y, scratch.codes.data());
    walked = {reinterpret_cast<const std::byte*>(scratch.codes.data()), ElementType::uint8};
  }
  const bool has_forgotten = version.stored < version.slots;
  const auto walk = [&](auto&& walk, std::size_t width) {
    if (sought.is_filtered)
      walk.run(width, [&](Slot slot) { return sought.allowed[slot] != 0; }, cost);
    else if (has_forgotten)
      walk.run(width, [&](Slot slot) { return !store_.is_forgotten(version, slot); }, cost);
    else
      walk.run(width, [](Slot) { return true; }, cost);
  };
  // A radius is reached when the beam goes beyond it.
  for (std::size_t width = std::max(sought.beam, limit.n > sought.n_allowed ? 1 : limit.n);;
       width *= 2) {
    width = std::min(width, sought.n_allowed);
    if (codes != nullptr)
      walk(Walk{version, links_, codes->rows(), params_.n_features, *code_metric_, walked, scratch},
           width);
    else
      walk(Walk{version, links_, store_.rows(), store_.row_bytes(), d, walked, scratch}, width);
    std::vector<Leaf> found;
    found.reserve(width);
    for (const Beam::Entry& entry : scratch.beam.entries())
      if (entry.is_returned) found.push_back({entry.slot, entry.reduced});
    if (codes != nullptr) {
      for (const Leaf& leaf : found) store_.prefetch(leaf.example);
      for (Leaf& leaf : found) {
        const std::byte* row = store_.row(leaf.example);
        d.distances(y, &row, 1, &leaf.reduced);
        if (std::isnan(leaf.reduced)) leaf.reduced = std::numeric_limits<double>::infinity();
      }
      cost += {found.size(), found.size()};
      std::sort(found.begin(), found.end(), [](const Leaf& a, const Leaf& b) {
        return a.reduced != b.reduced ? a.reduced < b.reduced : a.example < b.example;
      });
    }
    const bool is_whole = found.size() == sought.n_allowed;
    if (is_whole || d.distance(found.back().reduced) > limit.farthest ||
        limit.n <= sought.n_allowed) {
      cut(found, limit);
      return found;
    }
  }
}

// The slots that have come get their links and codes. Every tree has every example, so the nodes that are
// new are as many as they, and the last.
void BoundaryForest::extend_graph() {
  const Slot end = store_.size();
  const NodeId first_new = links_.size();
  const std::size_t n_T = trees_.size();
  const std::size_t at_once = std::max<std::size_t>(1, (std::size_t{16} << 20) / n_T);  // 64 MB
  std::vector<Slot> parents;
  links_.make_heads(end);
  while (links_.size() < end) {
    const Slot first = links_.size();
    const std::size_t n = std::min<std::size_t>(end - first, at_once);
    parents.assign(n * n_T, nothing);
    for (std::size_t t = 0; t < n_T; ++t) {
      const BoundaryTree& tree = *trees_[t].tree;
      for (NodeId v = first_new; v < tree.size(); ++v) {
        const Slot slot = tree.example(v);
        if (slot < first || slot >= first + n || tree.parent(v) == nothing) continue;
        parents[(slot - first) * n_T + t] = tree.example(tree.parent(v));
      }
    }
    links_.add(parents, n_T);
  }
  if (codes_are_late_ && progress_.seen == 0) return;  // it is being restored
  extend_codes();
}

void BoundaryForest::extend_codes() {
  if (!code_metric_ || store_.size() == 0) return;
  const Slot count = RowCodes::count_for(store_.size());
  if (!progress_.codes || progress_.codes->count() != count)
    progress_.codes = RowCodes::from(store_, count);
  if (progress_.codes) progress_.codes->extend(store_, store_.size());
}

// Rows in a mapped file are coded when they are first searched.
void BoundaryForest::prepare_codes() {
  if (!codes_are_late_) return;
  const Learning learning = begin_learning();
  if (!codes_are_late_) return;
  try {
    extend_codes();
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  codes_are_late_ = false;
}

}  // namespace boundary_forest
