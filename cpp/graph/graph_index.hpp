// The graph of a forest that is searched by it: the links (links.hpp), the rows as bytes (row_codes.hpp),
// how far a search goes on (search_radius.hpp), and the search itself.
//
// The learner extends it at the end of a block, and commits or rolls back with the version. Where trees have been
// replaced, other links are made, in a new object. Readers search what their version has of it. A search starts with a descent of the first tree; all that this compares
// is offered to the beam. Then, best first, the links of the closest example that was not yet expanded are
// compared and offered, until none is left in the beam. Rows are compared as bytes where there are codes,
// and what is in the beam at the end is ranked by its own distances. Ties go to the earlier arrival, so that
// the result is a function of the version and the query alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "concurrency/object_pool.hpp"
#include "distance/metric.hpp"
#include "graph/links.hpp"
#include "graph/row_codes.hpp"
#include "graph/search_radius.hpp"
#include "graph/search_scratch.hpp"
#include "store/example_store.hpp"
#include "tree/tree_set.hpp"

namespace boundary_forest {

// Which of the examples that a search finds are wanted.
struct Limit {
  std::size_t n = std::numeric_limits<std::size_t>::max();
  double farthest = std::numeric_limits<double>::infinity();  // a distance, not reduced

  // Of what was found, in order: as far as the limit goes.
  void apply(std::vector<Leaf>& found, const Metric& d) const;
};

// What a version has of the graph. Links to slots that are not its own are invisible.
struct GraphVersion {
  std::shared_ptr<Links> links;     // null where there is no graph
  std::shared_ptr<RowCodes> codes;  // that are compared; null: the rows themselves
  SearchRadius radius;
};

// What a search reads, and which examples it may return.
struct GraphQuery {
  const StoreVersion& version;
  const GraphVersion& graph;
  const TreeVersion& entry;  // the tree that it starts with
  std::size_t beam;
  std::size_t n_allowed;                  // how many may be returned
  std::span<const std::uint8_t> allowed;  // by slot; none: all that are stored and not forgotten
  bool is_filtered;
  double widest_beam;  // a wider one costs more than to compare all that may be returned

  // Whether a search for n examples, or, if n is 0, for all within a radius, is dearer than that. To reach a
  // radius, the beam is doubled again and again: all of these searches together must be cheaper.
  bool is_too_wide(std::size_t beam, std::size_t n) const {
    return static_cast<double>(n > 0 ? std::max(beam, n) : 2 * beam) > widest_beam;
  }
};

class GraphIndex {
 public:
  // Of the rows in the store; `d` must outlive this. Does nothing where params.has_graph is false.
  GraphIndex(const Params& params, const Metric& d, const ExampleStore& store);

  // The stored slots that have come get their links, codes and radius. Every tree has every example, so
  // the nodes that are new are as many as these, and the last. `lazily`: rows lie in a mapped file and are
  // not touched before the first search or the next block; until then there are only links.
  void extend(std::span<const LearnerTree> trees, bool lazily = false);
  // All slots get other links, because trees were replaced; and the radius is measured along these.
  void relink(std::span<const LearnerTree> trees);
  // Before a call is published that has learned most of the slots: the same links in lists as long as they are to be.
  // Block by block, outgrown lists leave gaps: on GloVe a sixteenth of the links' memory.
  void compact(std::span<const LearnerTree> trees);
  // Whether a search must wait until prepare() has made the rest, and that is published.
  bool is_late() const { return is_late_; }
  void prepare();

  // See BoundaryTree. The learner's side is ahead of what is published.
  const GraphVersion& draft() const { return draft_; }
  void commit(std::uint64_t number, std::uint64_t oldest_read);
  void rollback(const GraphVersion& committed, const StoreVersion& version);

  // The closest examples to row i, in order, as far as the limit goes. Nothing where that would take too
  // wide a beam.
  std::optional<std::vector<Leaf>> search(const QueryRows& queries, std::size_t i,
                                          const Limit& limit, const GraphQuery& query,
                                          SearchScratch& scratch, Counts& cost) const;
  // The widest beam whose search costs no more than to compare all `n_allowed` that may be returned.
  double widest_beam(const GraphVersion& graph, std::size_t n_slots, std::size_t n_allowed) const;
  ObjectPool<SearchScratch>& scratch() const { return scratch_; }

 private:
  bool has_radius() const;
  static std::size_t links_at_once(std::size_t n_T);
  void extend_links(std::span<const LearnerTree> trees);
  void extend_codes();
  void measure_radius();
  Beam::Width width(const GraphQuery& query, std::size_t beam, std::size_t n) const;
  std::vector<Leaf> beam_search(const Position& y, const Beam::Width& width,
                                const GraphQuery& query, const RowCodes* codes,
                                SearchScratch& scratch, Counts& cost) const;
  void rank(const Position& y, std::vector<Leaf>& found, Counts& cost) const;

  const bool has_graph_;
  const std::size_t n_features_;
  const Metric& d_;
  const ExampleStore& store_;
  const std::unique_ptr<Metric> code_metric_;  // of rows as bytes; null: rows are compared
  const double one_step_;  // the reduced distance between codes that differ by 1 in every feature
  mutable ObjectPool<SearchScratch> scratch_;
  GraphVersion draft_;
  std::atomic<bool> is_late_{false};
};

}  // namespace boundary_forest
