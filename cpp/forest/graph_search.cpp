// Search over the forest as a graph: the union of the trees' edges (links.hpp).
//
// The way begins with a descent of the first tree; all that it compares is offered to the beam. Then,
// best first, the links of the closest example that was not gone on from are compared and offered,
// until there is none left in the beam, which keeps what lies within reach of the nearest (reach.hpp).
// Rows are compared as bytes where there are codes (row_codes.hpp), and what is in the beam at the end is
// ranked by its own distances. Ties go to the earlier arrival, so that what is found is a function of the
// version and the query alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "forest/boundary_forest.hpp"
#include "forest/search_plan.hpp"
#include "graph/beam_search.hpp"

namespace boundary_forest {

std::vector<Leaf> BoundaryForest::graph_search(const QueryRows& queries, std::size_t i,
                                               const Limit& limit, const SearchPlan& plan,
                                               Scratch& scratch, Counts& cost) const {
  const Version& version = plan.version;
  const Position& y = queries.position(i);
  const bool has_limit = limit.n <= plan.n_allowed;
  // A radius is reached when the beam goes beyond it.
  for (std::size_t beam = plan.beam;; beam *= 2) {
    const Beam::Width width = this->width(plan, beam, has_limit ? limit.n : 0);
    std::vector<Leaf> found;
    if (version.codes) {
      found = walk(y, width, plan, version.codes.get(), scratch, cost);
      // Within a step of the coding, bytes do not tell who is closer.
      const bool is_blind = found[std::min(limit.n, found.size()) - 1].reduced <= one_step_;
      if (is_blind)
        found.clear();
      else
        rank(y, found, cost);
    }
    if (found.empty()) found = walk(y, width, plan, nullptr, scratch, cost);
    const bool is_whole = found.size() == plan.n_allowed;
    if (has_limit || is_whole || settings_->d->distance(found.back().reduced) > limit.farthest) {
      cut(found, limit);
      return found;
    }
  }
}

// What a walk by codes, or by the rows themselves, leaves in the beam, in order.
std::vector<Leaf> BoundaryForest::walk(const Position& y, const Beam::Width& width,
                                       const SearchPlan& plan, const RowCodes* codes,
                                       Scratch& scratch, Counts& cost) const {
  const Version& version = plan.version;
  scratch.beam.reset(width);
  const auto run = [&](auto&& rows, std::size_t row_bytes, const Metric& d, const Position& y,
                       auto&& is_returned) {
    BeamSearch walk(links_, version.slots, rows, row_bytes, d, y, is_returned, scratch);
    walk.start_by_descent(*version.trees[0].tree, version.trees[0].n_nodes);
    walk.run();
    cost += {walk.n_compared(), walk.n_compared()};
  };
  const auto walk_by = [&](auto&& rows, std::size_t row_bytes, const Metric& d, const Position& y) {
    if (plan.is_filtered)
      run(rows, row_bytes, d, y, [&](Slot slot) { return plan.allowed[slot] != 0; });
    else if (version.stored < version.slots)
      run(rows, row_bytes, d, y, [&](Slot slot) { return !store_.is_forgotten(version, slot); });
    else
      run(rows, row_bytes, d, y, [](Slot) { return true; });
  };
  if (codes != nullptr) {
    scratch.codes.resize(params_.n_features);
    codes->encode(y, scratch.codes.data());
    walk_by(codes->rows(), params_.n_features, *code_metric_,
            {reinterpret_cast<const std::byte*>(scratch.codes.data()), ElementType::uint8});
  } else {
    walk_by(store_.rows(), store_.row_bytes(), *settings_->d, y);
  }
  std::vector<Leaf> found;
  found.reserve(scratch.beam.entries().size());
  for (const Beam::Entry& entry : scratch.beam.entries())
    if (entry.is_returned) found.push_back({entry.slot, entry.reduced});
  return found;
}

// By the distances of the rows themselves.
void BoundaryForest::rank(const Position& y, std::vector<Leaf>& found, Counts& cost) const {
  for (const Leaf& leaf : found) store_.prefetch(leaf.example);
  for (Leaf& leaf : found) {
    const std::byte* row = store_.row(leaf.example);
    settings_->d->distances(y, &row, 1, &leaf.reduced);
    if (std::isnan(leaf.reduced)) leaf.reduced = std::numeric_limits<double>::infinity();
  }
  cost += {found.size(), found.size()};
  std::sort(found.begin(), found.end(), [](const Leaf& a, const Leaf& b) {
    return a.reduced != b.reduced ? a.reduced < b.reduced : a.example < b.example;
  });
}

// Of a search for n examples, or, if n is 0, for all that a beam has.
Beam::Width BoundaryForest::width(const SearchPlan& plan, std::size_t beam, std::size_t n) const {
  const auto at_most = [&](std::size_t m) { return std::min(std::max(m, n), plan.n_allowed); };
  const double factor =
      n > 0 ? plan.version.search_radius.factor(beam, n) : std::numeric_limits<double>::infinity();
  if (std::isinf(factor)) return {n, at_most(beam), at_most(beam)};
  return {n, at_most(beam / 4), at_most(4 * beam), factor};
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
  if (search_is_late_ && progress_.seen == 0) return;  // it is being restored
  extend_codes();
  measure_search_radius();
}

void BoundaryForest::extend_codes() {
  if (!code_metric_ || store_.size() == 0) return;
  const Slot count = RowCodes::count_for(store_.size());
  if (!progress_.codes || progress_.codes->count() != count)
    progress_.codes = RowCodes::from(store_, count);
  if (progress_.codes) progress_.codes->extend(store_, store_.size());
}

// Distances that may be negative have no ratios, and a function of the user's would be called too often.
bool BoundaryForest::has_search_radius() const {
  return !settings_->d->may_be_negative() && !settings_->d->single_threaded();
}

// By searches that begin at the example that is asked and have a beam of a fixed width.
void BoundaryForest::measure_search_radius() {
  const Metric& d = *settings_->d;
  const Slot count = store_.size() == 0 ? 0 : RowCodes::count_for(store_.size());
  if (progress_.search_radius.count() == count || !has_search_radius()) return;
  SearchRadius radius(count);
  const RowCodes* codes = progress_.codes.get();
  std::unique_ptr<Scratch> scratch = scratch_.take();
  for (Slot i = 0; i < SearchRadius::n_samples && radius.is_measured(); ++i) {
    const Slot slot = radius.sample(i);
    const std::size_t n = radius.n_others() + 1;
    scratch->beam.reset({n, n, n});
    const auto walk = [&](auto&& rows, std::size_t row_bytes, const Metric& d, ElementType type) {
      const Position y{reinterpret_cast<const std::byte*>(rows.at(slot)), type};
      BeamSearch walk(links_, count, rows, row_bytes, d, y, [](Slot) { return true; }, *scratch);
      walk.begin_at(slot);
      walk.run();
    };
    if (codes != nullptr)
      walk(codes->rows(), params_.n_features, *code_metric_, ElementType::uint8);
    else
      walk(store_.rows(), store_.row_bytes(), d, params_.element_type);
    radius.add(scratch->beam);
  }
  scratch_.give_back(std::move(scratch));
  progress_.search_radius = std::move(radius);
}

// Rows in a mapped file are not touched before they are first searched. Whoever learns meanwhile may make
// what a search needs with its next block (publish), so that it is not waited for.
void BoundaryForest::prepare_search() {
  while (search_is_late_) {
    const std::unique_lock learning(learning_, std::try_to_lock);
    if (!learning) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const std::unique_lock block(block_);
    if (std::exchange(is_abandoned_, false)) rollback();
    if (!search_is_late_) return;
    try {
      extend_codes();
      measure_search_radius();
      publish();
    } catch (...) {
      rollback();
      throw;
    }
  }
}

}  // namespace boundary_forest
