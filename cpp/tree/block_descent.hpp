// Algorithm 1 for a block of rows at once, with the same result as row by row.
//
// Querying: rows that stand at the same node are taken on together, so that the node's children are
// read once for all of them and compared by the metric's prefilter (prefilter.hpp). Every row makes the
// moves that BTQuery would make, as the closest child does not depend on the other rows.
//
// Learning: the block first descends through the tree as it stands; then it is replayed in order of
// arrival. A row's descent can differ from what was found only where a node on its way has gained
// children within the block, so only those nodes are looked at again.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "distance/distance_cache.hpp"
#include "distance/prefilter.hpp"
#include "tree/boundary_tree.hpp"

namespace boundary_forest {

// BOUNDARY_FOREST_PATH=plain keeps every row to the plain algorithm, for comparison: the answers are
// the same. Unset or "block", rows go together where there are enough of them. Anything else throws
// std::invalid_argument.
bool plain_path();

class BlockDescent {
 public:
  // Fewer rows than this go one by one: there is little to share.
  static constexpr std::size_t worth_it = 8;

  BlockDescent(const QueryRows& block, const Prefilter& prefilter)
      : block_(block), prefilter_(prefilter) {}

  bool is_by(const Prefilter& prefilter) const { return &prefilter_ == &prefilter; }

  // The block has a single row, and `known` keeps its distances from tree to tree.
  void remember_in(DistanceCache& known) {
    known.begin();
    workspace_.known = &known;
  }

  // How many examples had been seen when a row came: always as many, one more for each of the rows
  // before it, or one more for each of the block's rows before it, whether they are among the rows
  // or not; or for every other of these, the first included.
  struct Clock {
    enum class Pace : std::uint8_t { none, rows, block, every_other };
    std::uint64_t seen;
    Pace pace;

    // At rows[j].
    std::uint64_t at(std::span<const std::uint32_t> rows, std::size_t j) const {
      if (pace == Pace::every_other) return seen + (rows[j] + 1) / 2;
      return seen + (pace == Pace::none ? 0 : pace == Pace::rows ? j : rows[j]);
    }
  };

  // BTQuery for these rows of the block, among the first n_nodes nodes of the tree: endings()[j]
  // becomes what it returns for rows[j]. They start at the root, or at another node.
  void descend(const BoundaryTree& tree, std::span<const std::uint32_t> rows, const Clock& clock,
               NodeId n_nodes, Counts& counts, NodeId start = 0);

  struct Ending {
    NodeId node;
    std::uint32_t group;  // the last one that the row was in
    Leaf at;
    std::uint64_t compared;
  };
  std::span<const Ending> endings() const { return endings_; }

  // BTTrain for these rows of a block of examples, in this order, rows[j] with the threshold
  // epsilon[rows[j]]. endings()[j] becomes what the tree would have answered. Where learns(rows[j], leaf) is
  // false, that is all.
  template <class Learns>
  void train(BoundaryTree& tree, std::span<const std::uint32_t> rows, const Clock& clock,
             const double* epsilon, Counts& counts, Learns&& learns, NodeId start = 0) {
    const NodeId n_before = tree.size();
    Counts descended;
    descend(tree, rows, clock, n_before, descended, start);
    counts.evaluations += descended.evaluations;
    changed_.assign(n_before, 0);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      Ending& ending = endings_[j];
      replay(tree, rows[j], clock.at(rows, j), n_before, ending, counts);
      counts.comparisons += ending.compared;
      if (learns(rows[j], ending.at) &&
          tree.learn(block_.slot(rows[j]), ending.node, epsilon[rows[j]]) && ending.node < n_before)
        changed_[ending.node] = 1;
    }
  }

 private:
  // Rows that came to a node together. From the last group of a row back, the groups are its way.
  struct Group {
    NodeId node;
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t before;  // number of the group that they come from; `nothing` at the beginning
  };
  static constexpr std::size_t worth_grouping = 3;

  void prefetch_ahead(const BoundaryTree& tree, std::size_t next) const;
  void step(const BoundaryTree& tree, std::span<const std::uint32_t> rows, std::uint32_t g,
            Counts& counts);
  void settle_tie(const BoundaryTree& tree, const Query& query, std::uint32_t begin,
                  const Slot* examples, std::uint32_t i, Leaf& at);
  void step_alone(const BoundaryTree& tree, std::span<const std::uint32_t> rows, std::uint32_t g,
                  Counts& counts);
  void replay(const BoundaryTree& tree, std::uint32_t row, std::uint64_t seen, NodeId n_before,
              Ending& ending, Counts& counts);
  Query query(std::span<const std::uint32_t> rows, std::uint32_t j) const {
    return {block_, rows[j], clock_.at(rows, j), n_nodes_};
  }

  const QueryRows& block_;
  const Prefilter& prefilter_;
  Clock clock_ = {};
  NodeId n_nodes_ = 0;
  std::vector<Ending> endings_;

  // Rows are known by their place j; order_ holds the places, those of a group side by side.
  std::vector<std::uint32_t> order_;
  std::vector<Group> groups_;           // all of them, each after the one that it comes from
  std::vector<std::uint32_t> waiting_;  // numbers of those to go on with, where not level by level

  // For one step: of each row of the group.
  std::vector<std::uint32_t> queries_;
  std::vector<double> bounds_;
  std::vector<std::uint64_t> closest_;  // of the children
  std::vector<std::uint32_t> v_min_;    // so far
  std::vector<std::uint32_t> sorted_;
  std::vector<std::uint32_t> ends_;  // of each child: where its rows end
  Prefilter::Workspace workspace_;

  // For replaying.
  std::vector<char> changed_;  // of each node: has it gained children within this block?
  struct Change {
    NodeId node;
    NodeId next;          // on the way; `nothing` at its end
    std::uint32_t group;  // at the node
  };
  std::vector<Change> changes_;  // on one row's way
};

}  // namespace boundary_forest
