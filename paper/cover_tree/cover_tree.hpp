// The online cover tree of Beygelzimer, Kakade and Langford (ICML 2006), which the paper compares
// the forest with ("Scaling properties"): insertion one by one, (1 + epsilon)-approximate search.
//
// C_i are the examples of level i; scale(i) = b^i. After every insertion
//   nesting     C_i is a subset of C_(i-1), and the root is in all of them;
//   covering    each example of C_(i-1) has a parent in C_i, at a distance of at most b^i;
//   separation  two examples of C_i are more than b^i apart.
// Only the highest level of an example is kept, and the children it has other than itself. A
// duplicate is a child of its twin, at the level `bottom`; it is in no C_i.
//
// What lies below an example by way of its children of level e and less is at most
// reach(e) = b^(e+1) + b^e + ... = b^(e+2) / (b - 1) away. Search and insertion prune by that.
//
// Comparisons are the distances computed: one for the root and one for each child that is looked
// at; an example is not compared again with itself at its lower levels. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "base/types.hpp"
#include "distance/metric.hpp"
#include "forest/boundary_forest.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"

namespace boundary_forest::baselines {

using Level = std::int32_t;

inline constexpr Level top = std::numeric_limits<Level>::max();     // of the root
inline constexpr Level bottom = std::numeric_limits<Level>::min();  // of a duplicate

struct CoverTreeParams {
  double base = 1.3;  // b
  std::size_t n_features = 0;
  ElementType element_type = ElementType::float64;

  // Which examples an insertion descends through. Separated: all that may have one below them that
  // is too close, so that separation holds for every b. Else only those within b^(e+2), as the
  // original procedure has it for b = 2: for a smaller b cheaper, but two examples of C_i may then
  // be closer than b^i. Nesting and covering, and so the search, do not depend on it.
  bool separated = true;

  // Whether an example also keeps how far away the farthest one below it is, and this is used where
  // it is less than reach(e). The tree is the same.
  bool tight = false;

  void validate() const;
};

class CoverTree {
 public:
  // The metric must obey the triangle inequality; nobody can check that.
  CoverTree(const CoverTreeParams& params, std::unique_ptr<Metric> metric);

  const CoverTreeParams& params() const { return params_; }

  // Inserts the rows in order. `now_and_then` may throw, and so may a user's metric: the rows
  // inserted by then, `inserted` of them, stay.
  void insert(const RowsView& rows, const std::function<void()>& now_and_then,
              std::size_t& inserted);

  // The n nearest, by (distance, arrival number). The j-th found is at most 1 + epsilon times as
  // far away as the j-th nearest of all.
  Neighbors neighbors(const RowsView& rows, std::size_t n, double epsilon,
                      const std::function<void()>& now_and_then);

  std::size_t size() const { return nodes_.size(); }
  std::uint64_t learn_comparisons() const { return learn_comparisons_; }
  std::uint64_t query_comparisons() const { return query_comparisons_; }

  // By arrival number; the root's parent is `nothing`.
  std::vector<Level> levels() const;
  std::vector<NodeId> parents() const;

 private:
  struct Child {
    Level level;
    NodeId node;
  };

  // An example is a node: both have the same number.
  struct Node {
    NodeId parent;
    Level level;
    Level highest_child = bottom;  // `bottom` without children: most have none, and need no look
    double farthest = 0.0;         // distance to the farthest node below
    std::vector<Child> children;   // from the highest level to the lowest
  };

  // A node that a descent has met.
  struct Met {
    NodeId node;
    std::uint32_t via;  // its parent's place among those met
    double d;
  };

  // A node that was met, whose children from `at` on were not looked at yet.
  struct Waiting {
    std::uint32_t met;
    std::uint32_t at;
  };

  class Inserting;
  class Searching;

  // Goes down level by level, through the nodes that `guide` wants to, and shows it all it meets.
  template <class Guide>
  void descend(const Position& p, Guide& guide);
  template <class Guide>
  void meet(const Position& p, Guide& guide);
  void in_order_of_arrival(std::size_t first);  // those met from `first` on
  void wait(Level level, const Waiting& waiting);
  bool next_level(Level& level);

  void insert_one(NodeId p);

  double scale(Level i) const;
  double reach(Level e) const;
  Level covering_level(double d) const;  // the lowest i with d <= b^i

  CoverTreeParams params_;
  std::unique_ptr<Metric> metric_;
  ExampleStore store_;
  std::vector<Node> nodes_;
  double slack_;  // bound on the relative rounding error of a distance
  std::uint64_t learn_comparisons_ = 0;
  std::uint64_t query_comparisons_ = 0;

  // What one descent needs, kept so that the next one allocates nothing.
  using ByLevel = std::map<Level, std::vector<Waiting>, std::greater<>>;
  std::vector<Met> met_;
  std::vector<const std::byte*> rows_;  // of the last met_
  std::vector<double> distances_;
  std::vector<std::uint64_t> marks_;  // a bit a node
  std::vector<std::uint32_t> vias_;   // by node, where it is marked
  ByLevel waiting_;
  std::vector<Waiting> at_level_;
  std::vector<ByLevel::node_type> spare_;
};

}  // namespace boundary_forest::baselines
