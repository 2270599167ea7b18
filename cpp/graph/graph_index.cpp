#include "graph/graph_index.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/beam_search.hpp"

namespace boundary_forest {

void Limit::apply(std::vector<Leaf>& found, const Metric& d) const {
  if (found.size() > n) found.resize(n);
  if (std::isinf(farthest)) return;
  while (!found.empty() && d.distance(found.back().reduced) > farthest) found.pop_back();
}

GraphIndex::GraphIndex(const Params& params, const Metric& d, const ExampleStore& store)
    : has_graph_(params.has_graph),
      n_features_(params.n_features),
      d_(d),
      store_(store),
      code_metric_(params.has_graph ? d.on_codes() : nullptr),
      one_step_(code_metric_ ? RowCodes::one_step(*code_metric_, params.n_features) : 0.0) {
  if (has_graph_) draft_.links = std::make_shared<Links>();
}

std::optional<std::vector<Leaf>> GraphIndex::search(const QueryRows& queries, std::size_t i,
                                                    const Limit& limit, const GraphQuery& query,
                                                    SearchScratch& scratch, Counts& cost) const {
  const Position& y = queries.position(i);
  const bool has_limit = limit.n <= query.n_allowed;
  // A radius is reached when the beam goes beyond it.
  for (std::size_t beam = query.beam;; beam *= 2) {
    if (query.is_too_wide(beam, has_limit ? limit.n : 0)) return std::nullopt;
    const Beam::Width width = this->width(query, beam, has_limit ? limit.n : 0);
    std::vector<Leaf> found;
    if (query.graph.codes) {
      found = beam_search(y, width, query, query.graph.codes.get(), scratch, cost);
      // Within a step of the coding, bytes do not tell who is closer.
      const bool is_blind = found[std::min(limit.n, found.size()) - 1].reduced <= one_step_;
      if (is_blind)
        found.clear();
      else
        rank(y, found, cost);
    }
    if (found.empty()) found = beam_search(y, width, query, nullptr, scratch, cost);
    const bool is_whole = found.size() == query.n_allowed;
    if (has_limit || is_whole || d_.distance(found.back().reduced) > limit.farthest) {
      limit.apply(found, d_);
      return found;
    }
  }
}

// What a search by codes, or by the rows themselves, leaves in the beam, in order.
std::vector<Leaf> GraphIndex::beam_search(const Position& y, const Beam::Width& width,
                                          const GraphQuery& query, const RowCodes* codes,
                                          SearchScratch& scratch, Counts& cost) const {
  const StoreVersion& version = query.version;
  scratch.beam.reset(width);
  const auto run = [&](auto&& rows, std::size_t row_bytes, const Metric& d, const Position& y,
                       auto&& is_returned) {
    BeamSearch search(*query.graph.links, version.slots, rows, row_bytes, d, y, is_returned,
                      scratch);
    search.start_by_descent(*query.entry.tree, query.entry.n_nodes);
    search.run();
    cost += {search.n_compared(), search.n_compared()};
  };
  const auto search_by = [&](auto&& rows, std::size_t row_bytes, const Metric& d,
                             const Position& y) {
    if (query.is_filtered)
      run(rows, row_bytes, d, y, [&](Slot slot) { return query.allowed[slot] != 0; });
    else if (version.stored < version.slots)
      run(rows, row_bytes, d, y, [&](Slot slot) { return !store_.is_forgotten(version, slot); });
    else
      run(rows, row_bytes, d, y, [](Slot) { return true; });
  };
  if (codes != nullptr) {
    scratch.codes.resize(n_features_);
    codes->encode(y, scratch.codes.data());
    search_by(codes->rows(), n_features_, *code_metric_,
              {reinterpret_cast<const std::byte*>(scratch.codes.data()), ElementType::uint8});
  } else {
    search_by(store_.rows(), store_.row_bytes(), d_, y);
  }
  std::vector<Leaf> found;
  found.reserve(scratch.beam.entries().size());
  for (const Beam::Entry& entry : scratch.beam.entries())
    if (entry.is_returned) found.push_back({entry.slot, entry.reduced});
  return found;
}

// By the distances of the rows themselves.
void GraphIndex::rank(const Position& y, std::vector<Leaf>& found, Counts& cost) const {
  for (const Leaf& leaf : found) store_.prefetch(leaf.example);
  for (Leaf& leaf : found) {
    const std::byte* row = store_.row(leaf.example);
    d_.distances(y, &row, 1, &leaf.reduced);
    if (std::isnan(leaf.reduced)) leaf.reduced = std::numeric_limits<double>::infinity();
  }
  cost += {found.size(), found.size()};
  std::sort(found.begin(), found.end(), [](const Leaf& a, const Leaf& b) {
    return a.reduced != b.reduced ? a.reduced < b.reduced : a.example < b.example;
  });
}

// A search passes through what may not be returned, so it goes on from the more examples, the fewer may be. To
// go on from one costs about as much as 16 distances, besides those that it computes: links are followed, and
// the beam is kept in order. A distance costs as much as `ratio` rows of a scan, which are read in their order
// and for several queries at once: measured, about 4 for rows of up to 64 bytes, 3 for 256, 2 for 1,024 and 1
// for 6,144; and 1 for a function of the user's.
double GraphIndex::widest_beam(const GraphVersion& graph, std::size_t n_slots,
                               std::size_t n_allowed) const {
  const double row_bytes = static_cast<double>(store_.row_bytes());
  const double ratio = d_.single_threaded() ? 1.0 : 1.0 + 1024.0 / (row_bytes + 256.0);
  const double per_example = ratio * (16.0 + graph.radius.n_compared_per_example());
  const double n = static_cast<double>(n_allowed);
  return n * n / (per_example * static_cast<double>(n_slots));
}

// Of a search for n examples, or, if n is 0, for all that a beam has.
Beam::Width GraphIndex::width(const GraphQuery& query, std::size_t beam, std::size_t n) const {
  const auto at_most = [&](std::size_t m) { return std::min(std::max(m, n), query.n_allowed); };
  const double factor =
      n > 0 ? query.graph.radius.factor(beam, n) : std::numeric_limits<double>::infinity();
  if (std::isinf(factor)) return {n, at_most(beam), at_most(beam)};
  return {n, at_most(beam / 4), at_most(4 * beam), factor};
}

void GraphIndex::extend(std::span<const LearnerTree> trees, bool lazily) {
  if (!has_graph_ || trees.empty()) return;
  is_late_ = is_late_ || (lazily && has_radius());
  extend_links(trees);
  if (!lazily || !has_radius()) prepare();
}

void GraphIndex::relink(std::span<const LearnerTree> trees) {
  if (!has_graph_) return;
  draft_.links = std::make_shared<Links>();
  draft_.radius = SearchRadius();
  extend_links(trees);
  prepare();
}

void GraphIndex::compact(std::span<const LearnerTree> trees) {
  if (!has_graph_ || trees.empty() || store_.size() > links_at_once(trees.size())) return;
  draft_.links = std::make_shared<Links>();
  extend_links(trees);
}

// Slots whose parents in all trees take 64 MB.
std::size_t GraphIndex::links_at_once(std::size_t n_T) {
  return std::max<std::size_t>(1, (std::size_t{16} << 20) / n_T);
}

void GraphIndex::extend_links(std::span<const LearnerTree> trees) {
  const Slot end = store_.size();
  Links& links = *draft_.links;
  const NodeId first_new = links.size();
  const std::size_t n_T = trees.size();
  const std::size_t at_once = links_at_once(n_T);
  std::vector<Slot> parents;
  links.make_heads(end);
  while (links.size() < end) {
    const Slot first = links.size();
    const std::size_t n = std::min<std::size_t>(end - first, at_once);
    parents.assign(n * n_T, nothing);
    for (std::size_t t = 0; t < n_T; ++t) {
      const BoundaryTree& tree = *trees[t].tree;
      const std::vector<NodeId> above = tree.parents_from(first_new);
      for (NodeId v = first_new; v < tree.size(); ++v) {
        const Slot slot = tree.example(v);
        const NodeId parent = above[v - first_new];
        if (slot < first || slot >= first + n || parent == nothing) continue;
        parents[(slot - first) * n_T + t] = tree.example(parent);
      }
    }
    links.add(parents, n_T);
  }
}

void GraphIndex::prepare() {
  extend_codes();
  measure_radius();
}

void GraphIndex::extend_codes() {
  if (!code_metric_ || store_.size() == 0) return;
  const Slot count = RowCodes::count_for(store_.size());
  if (!draft_.codes || draft_.codes->count() != count)
    draft_.codes = RowCodes::from(store_, d_.compares_directions(), count);
  if (draft_.codes) draft_.codes->extend(store_, store_.size());
}

// Distances that may be negative have no ratios, and a function of the user's would be called too often.
bool GraphIndex::has_radius() const { return !d_.may_be_negative() && !d_.single_threaded(); }

// By searches that start at a stored example and have a beam of a fixed width.
void GraphIndex::measure_radius() {
  const Slot count = store_.size() == 0 ? 0 : RowCodes::count_for(store_.size());
  if (draft_.radius.count() == count || !has_radius()) return;
  SearchRadius radius(count);
  const RowCodes* codes = draft_.codes.get();
  std::unique_ptr<SearchScratch> scratch = scratch_.take();
  for (Slot i = 0; i < SearchRadius::n_samples && radius.is_measured(); ++i) {
    const Slot slot = radius.sample(i);
    const std::size_t n = radius.n_others() + 1;
    scratch->beam.reset({n, n, n});
    const auto search = [&](auto&& rows, std::size_t row_bytes, const Metric& d, ElementType type) {
      const Position y{reinterpret_cast<const std::byte*>(rows.at(slot)), type};
      BeamSearch search(
          *draft_.links, count, rows, row_bytes, d, y, [](Slot) { return true; }, *scratch);
      search.start_at(slot);
      search.run();
      radius.add(scratch->beam, search.n_compared());
    };
    if (codes != nullptr)
      search(codes->rows(), n_features_, *code_metric_, ElementType::uint8);
    else
      search(store_.rows(), store_.row_bytes(), d_, store_.element_type());
  }
  scratch_.give_back(std::move(scratch));
  draft_.radius = std::move(radius);
}

void GraphIndex::commit(std::uint64_t number, std::uint64_t oldest_read) {
  if (!has_graph_) return;
  if (draft_.radius.count() > 0) is_late_ = false;
  draft_.links->settle(number);
  draft_.links->recycle_before(oldest_read);
  if (!draft_.codes) return;
  draft_.codes->settle(number);
  draft_.codes->recycle_before(oldest_read);
}

void GraphIndex::rollback(const GraphVersion& committed, const StoreVersion& version) {
  if (!has_graph_) return;
  draft_ = committed;
  draft_.links->rollback(version.number);
  if (draft_.links->size() == 0) is_late_ = false;
  if (draft_.codes) draft_.codes->truncate(version.slots);
}

}  // namespace boundary_forest
