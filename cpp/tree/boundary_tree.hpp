// ALGORITHM 1 of the paper: the boundary tree. BTQuery and BTTrain, in the paper's names.
//
//   y      the query position          v      the current node
//   A_v    v's children, and v itself while it has fewer than k
//   k      the most children a node may have
//   d      the metric                  d_c    the metric on labels, epsilon its threshold
//
// Ties are settled as nearest.hpp says.
//
// Readers see the first n_nodes nodes: later children are invisible and do not count towards k. A
// tree only grows; anything else makes a new tree in its place, of the next generation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/types.hpp"
#include "distance/feature_weights.hpp"
#include "distance/label_metric.hpp"
#include "distance/metric.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"
#include "tree/child_lists.hpp"
#include "tree/nearest.hpp"
#include "tree/node_examples.hpp"

namespace boundary_forest {

// What a tree is grown with: the trees of a forest may differ. The metrics of one forest are of one kind,
// so that their reduced distances stand for distances in the same way.
struct TreeSettings {
  std::shared_ptr<const Metric> d;
  LogWeights log_weights = {};  // that d has, if they were learned; none: d is the plain metric
};

// A visitor that does not want to know which examples a descent compared.
struct Unobserved {
  void operator()(Slot, double) const {}
};

class BoundaryTree {
 public:
  // The tree of generation `generation` at `place`, one of 0 .. n_T - 1.
  BoundaryTree(std::uint32_t place, std::uint32_t generation, const Params& params,
               std::shared_ptr<const TreeSettings> settings, ExampleStore& store)
      : place_(place),
        generation_(generation),
        params_(params),
        settings_(std::move(settings)),
        d_(*settings_->d),
        store_(store),
        tie_hash_(tie_hash(params, place, generation)),
        examples_(params.has_graph),
        heads_(node_chunk_log2, 1, 2),
        depths_(node_chunk_log2, 1, 4),
        lists_(params.k) {}

  // `observe` sees every example compared; `counts` gains what the descent cost. It starts at the root, or,
  // where part of a tree is made again, at the node above.
  template <class Observe = Unobserved>
  std::pair<NodeId, Leaf> BTQuery(const Query& query, Counts& counts, Observe&& observe = {},
                                  NodeId start = 0) const {
    const Leaf at_start = leaf(start, query.y());
    observe(at_start.example, at_start.reduced);
    counts += {1, 1};
    return descend(start, at_start, query, counts, observe);
  }

  // BTQuery from node v on, which is at `at_v`.
  template <class Observe = Unobserved>
  std::pair<NodeId, Leaf> descend(NodeId v, Leaf at_v, const Query& query, Counts& counts,
                                  Observe&& observe = {}) const {
    while (step(v, at_v, query, counts, observe)) {
    }
    return {v, at_v};
  }

  // v becomes the closest of A_v; false if that is v itself.
  template <class Observe = Unobserved>
  bool step(NodeId& v, Leaf& at_v, const Query& query, Counts& counts,
            Observe&& observe = {}) const {
    const ChildLists::View children = this->children(v, query.n_nodes);
    Nearest v_min(tie_hash_, store_, query);
    if (children.count < params_.k) v_min.consider(v, at_v);
    for_each_distance(query.y(), children, 0, [&](NodeId child, const Leaf& at_child) {
      observe(at_child.example, at_child.reduced);
      v_min.consider(child, at_child);
    });
    counts += {children.count, children.count};
    const bool moves = v_min.node() != v;
    v = v_min.node();
    at_v = v_min.at();
    return moves;
  }

  // Learns example i of `examples`, after `seen` others. Returns what the tree would have answered.
  Leaf BTTrain(const QueryRows& examples, std::size_t i, std::uint64_t seen, double epsilon,
               Counts& counts, NodeId start = 0) {
    const auto [v_min, at] = BTQuery({examples, i, seen, size_}, counts, Unobserved{}, start);
    learn(examples.slot(i), v_min, epsilon);
    return at;
  }

  // The example `slot`, whose descent ended at v_min, becomes its child if their labels are more
  // than epsilon apart. Tells whether.
  bool learn(Slot slot, NodeId v_min, double epsilon) {
    const Slot closest = examples_[v_min];
    if (!(label_distance(params_, store_.label(slot), store_.label(closest)) > epsilon))
      return false;
    add_node(slot, v_min);
    return true;
  }

  // The first n_nodes nodes' view of v's children: ids are in order of creation, so the visible
  // ones are the first of the list.
  ChildLists::View children(NodeId v, NodeId n_nodes) const {
    ChildLists::View view = lists_.view(heads_[v].load(std::memory_order_acquire));
    while (view.count > 0 && view[view.count - 1] >= n_nodes) --view.count;
    return view;
  }

  // Node v's example and its distance to y.
  Leaf leaf(NodeId v, const Position& y) const {
    Leaf at_v{examples_[v], 0.0};
    const std::byte* row = store_.row(at_v.example);
    d_.distances(y, &row, 1, &at_v.reduced);
    return at_v;
  }

  // f(child, its leaf) for the children from number `begin` on.
  template <class F>
  void for_each_distance(const Position& y, const ChildLists::View& children, std::uint32_t begin,
                         F&& f) const {
    Slot examples[Metric::group];
    const std::byte* rows[Metric::group];
    double reduced[Metric::group];
    for (; begin < children.count; begin += Metric::group) {
      const std::uint32_t n = std::min(Metric::group, children.count - begin);
      for (std::uint32_t j = 0; j < n; ++j) {
        examples[j] = examples_[children[begin + j]];
        rows[j] = store_.row(examples[j]);
      }
      d_.distances(y, rows, n, reduced);
      for (std::uint32_t j = 0; j < n; ++j) f(children[begin + j], Leaf{examples[j], reduced[j]});
    }
  }

  // Prefetches what step() will read at v. Each stage reads what the one before has prefetched:
  // the node, its list of children, the children, their rows or, if there are any, sketches.
  enum class Stage { node, list, children, rows };
  void prefetch(NodeId v, NodeId n_nodes, Stage stage, const RowSketches* sketches) const {
    if (stage == Stage::node) {
      __builtin_prefetch(&heads_[v]);
      return;
    }
    if (stage == Stage::list) {
      lists_.prefetch(heads_[v].load(std::memory_order_acquire));
      return;
    }
    const ChildLists::View children = this->children(v, n_nodes);
    const std::uint32_t n = std::min(children.count, Metric::group);
    for (std::uint32_t j = 0; j < n; ++j)
      if (stage == Stage::children)
        examples_.prefetch(children[j]);
      else if (sketches != nullptr)
        sketches->prefetch(examples_[children[j]]);
      else
        store_.prefetch(examples_[children[j]]);
  }

  void plant(Slot root) { add_node(root, nothing); }

  // Puts back the nodes of a saved tree, in order of creation, into one that is empty: every node
  // after its parent, and no more than k under any. If it throws, the tree is of no more use.
  void restore(std::span<const Slot> examples, std::span<const NodeId> parents);

  NodeId size() const { return size_; }
  std::uint32_t n_children(NodeId v) const { return children(v, size_).count; }
  Slot example(NodeId v) const { return examples_[v]; }
  // Of the first n_nodes nodes; `nothing` for the root. No node has its parent: it follows from the children.
  std::vector<NodeId> parents(NodeId n_nodes) const;
  // Of the nodes from `first` on. Little work where they have come since the last publication.
  std::vector<NodeId> parents_from(NodeId first) const;
  // The root's is 0; this one stands for itself and all that are greater.
  static constexpr NodeId greatest_depth = 255;
  NodeId depth(NodeId v) const { return depths_[v]; }
  void set_example(NodeId v, Slot slot) { examples_.set(v, slot); }
  std::uint32_t place() const { return place_; }
  std::uint32_t generation() const { return generation_; }
  const Metric& d() const { return d_; }
  const std::shared_ptr<const TreeSettings>& settings() const { return settings_; }
  std::uint64_t tie_hash() const { return tie_hash_; }
  static std::uint64_t tie_hash(const Params& params, std::uint32_t place,
                                std::uint32_t generation = 0) {
    const std::uint64_t hash = hash64(params.seed, place);
    return generation == 0 ? hash : absorb(hash, generation);
  }
  const Params& params() const { return params_; }
  const ExampleStore& store() const { return store_; }

  // What happened since the last publication is settled: child lists outgrown by it wait until no
  // call that began before publication `number` + 1 still runs.
  void settle(std::uint64_t number);
  void recycle_before(std::uint64_t oldest_read);

  // Takes back every node from `n_nodes` on, none of which was published.
  void rollback(NodeId n_nodes, std::uint64_t number);

  // May be called by any thread; leaves out the bookkeeping of a block that is being learned.
  std::size_t bytes() const;

 private:
  static constexpr unsigned node_chunk_log2 = 7;

  void add_node(Slot example, NodeId parent);
  std::uint8_t depth_below(NodeId parent) const;
  void retire(std::uint64_t number, ChildLists::Ref list);

  const std::uint32_t place_;
  const std::uint32_t generation_;
  const Params& params_;
  const std::shared_ptr<const TreeSettings> settings_;
  const Metric& d_;
  ExampleStore& store_;
  std::uint64_t tie_hash_;

  NodeExamples examples_;
  ChunkedArray<std::atomic<ChildLists::Ref>> heads_;  // of each node's children
  ChunkedArray<std::uint8_t> depths_;                 // at most greatest_depth
  ChildLists lists_;
  NodeId size_ = 0;

  // Parents of the nodes that have come since the last publication.
  NodeId n_settled_ = 0;
  std::vector<NodeId> new_parents_;

  // Since the last publication: the node whose arrival made its parent's list move, and the list it
  // left. Rollback goes back through them; settling retires them.
  struct Outgrown {
    NodeId by;
    ChildLists::Ref list;
  };
  std::vector<Outgrown> outgrown_;
  std::vector<ChildLists::Retired> retired_;  // by publication number, ascending
};

}  // namespace boundary_forest
