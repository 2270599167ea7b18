#include "tree/block_descent.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace boundary_forest {

bool plain_path() {
  const char* path = std::getenv("BOUNDARY_FOREST_PATH");
  const std::string name = path == nullptr || *path == '\0' ? "block" : path;
  if (name != "plain" && name != "block")
    throw std::invalid_argument("BOUNDARY_FOREST_PATH must be plain or block, got '" + name + "'");
  return name == "plain";
}

void BlockDescent::descend(const BoundaryTree& tree, std::span<const std::uint32_t> rows,
                           const Clock& clock, NodeId n_nodes, Counts& counts, NodeId start) {
  clock_ = clock;
  n_nodes_ = n_nodes;
  const auto m = static_cast<std::uint32_t>(rows.size());
  order_.resize(m);
  std::iota(order_.begin(), order_.end(), 0);

  const Slot first = tree.example(start);
  const std::byte* first_row = tree.store().row(first);
  bounds_.assign(m, std::numeric_limits<double>::infinity());
  closest_.resize(m);
  counts.evaluations +=
      prefilter_.filter(rows, {{&first_row, 1}, &first}, bounds_, workspace_, closest_);
  endings_.resize(m);
  for (std::uint32_t j = 0; j < m; ++j) endings_[j] = {start, 0, {first, bounds_[j]}, 1};

  groups_.assign(1, {start, 0, m, nothing});
  const RowSketches* const sketches = prefilter_.sketches();
  const bool by_level = tree.store().has_short_rows() || sketches != nullptr;
  const std::uint32_t least_group = sketches != nullptr ? 1 : worth_grouping;
  const auto go_on = [&](std::uint32_t g) {
    if (groups_[g].end - groups_[g].begin >= least_group)
      step(tree, rows, g, counts);
    else
      step_alone(tree, rows, g, counts);
  };
  if (by_level) {
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
      prefetch_ahead(tree, g);
      go_on(g);
    }
  } else {
    for (waiting_.assign(1, 0); !waiting_.empty();) {
      const std::uint32_t g = waiting_.back();
      waiting_.pop_back();
      const auto first_new = static_cast<std::uint32_t>(groups_.size());
      go_on(g);
      for (std::uint32_t n = first_new; n < groups_.size(); ++n) waiting_.push_back(n);
    }
  }
  for (const Ending& ending : endings_) counts.comparisons += ending.compared;
}

// Level by level, what the groups after the next one will read is on its way meanwhile. (Long rows without
// sketches gain more by staying with a group to its end, while its queries are in cache.)
void BlockDescent::prefetch_ahead(const BoundaryTree& tree, std::size_t next) const {
  using Stage = BoundaryTree::Stage;
  const auto prefetch = [&](std::size_t ahead, Stage stage) {
    if (next + ahead < groups_.size())
      tree.prefetch(groups_[next + ahead].node, n_nodes_, stage, prefilter_.sketches());
  };
  prefetch(8, Stage::node);
  prefetch(6, Stage::list);
  prefetch(4, Stage::children);
  prefetch(2, Stage::rows);
}

// Each row of group g moves on to the closest child, or stays at the group's node for good.
void BlockDescent::step(const BoundaryTree& tree, std::span<const std::uint32_t> rows,
                        std::uint32_t g, Counts& counts) {
  const Group group = groups_[g];
  const ChildLists::View children = tree.children(group.node, n_nodes_);
  const std::uint32_t m = group.end - group.begin;
  const std::span<std::uint32_t> places(order_.data() + group.begin, m);
  if (children.count == 0) {
    for (const std::uint32_t j : places) endings_[j].group = g;
    return;
  }
  const bool v_may_win = children.count < tree.params().k;

  // Here nodes go by their number among the children; v's is the one after the last.
  queries_.resize(m);
  bounds_.resize(m);
  closest_.resize(m);
  v_min_.resize(m);
  for (std::uint32_t i = 0; i < m; ++i) {
    v_min_[i] = v_may_win ? children.count : nothing;
    queries_[i] = rows[places[i]];
    bounds_[i] =
        v_may_win ? endings_[places[i]].at.reduced : std::numeric_limits<double>::infinity();
  }
  const RowSketches* const sketches = prefilter_.sketches();
  constexpr std::uint32_t at_once = Prefilter::most_rows;
  Slot examples[at_once];
  const std::byte* child_rows[at_once];
  for (std::uint32_t begin = 0; begin < children.count; begin += at_once) {
    const std::uint32_t n = std::min(at_once, children.count - begin);
    for (std::uint32_t c = 0; c < n; ++c) {
      examples[c] = tree.example(children[begin + c]);
      child_rows[c] = tree.store().row(examples[c]);
      if (sketches != nullptr) sketches->prefetch(examples[c]);
    }
    counts.evaluations +=
        prefilter_.filter(queries_, {{child_rows, n}, examples}, bounds_, workspace_, closest_);
    for (std::uint32_t i = 0; i < m; ++i) {
      if (closest_[i] == 0) continue;
      Leaf& at = endings_[places[i]].at;  // v_min_[i]'s
      const bool is_tie = (closest_[i] & (closest_[i] - 1)) != 0 ||
                          (v_min_[i] != nothing && at.reduced == bounds_[i]);
      if (is_tie) {
        settle_tie(tree, query(rows, places[i]), begin, examples, i, at);
        continue;
      }
      const auto c = static_cast<std::uint32_t>(std::countr_zero(closest_[i]));
      v_min_[i] = begin + c;
      at = {examples[c], bounds_[i]};
    }
  }

  // Rows that go to the same child come to lie side by side.
  ends_.resize(children.count + 1);
  std::fill(ends_.begin(), ends_.end(), 0);
  for (std::uint32_t i = 0; i < m; ++i) {
    Ending& ending = endings_[places[i]];
    ending.compared += children.count;
    if (v_min_[i] < children.count)
      ending.node = children[v_min_[i]];
    else
      ending.group = g;
    ++ends_[v_min_[i]];
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  sorted_.resize(m);
  for (std::uint32_t i = m; i-- > 0;) sorted_[--ends_[v_min_[i]]] = places[i];
  std::copy(sorted_.begin(), sorted_.end(), places.begin());
  for (std::uint32_t c = 0; c < children.count; ++c)  // ends_ are now beginnings
    if (ends_[c] < ends_[c + 1])
      groups_.push_back({children[c], group.begin + ends_[c], group.begin + ends_[c + 1], g});
}

// Among the children closest_[i], whose examples are those from number `begin` on, and v_min_[i] so far,
// if that is as close. It becomes the winner, and `at` its leaf.
void BlockDescent::settle_tie(const BoundaryTree& tree, const Query& query, std::uint32_t begin,
                              const Slot* examples, std::uint32_t i, Leaf& at) {
  Nearest v_min(tree.tie_hash(), tree.store(), query);
  if (v_min_[i] != nothing) v_min.consider(v_min_[i], at);
  for (std::uint64_t left = closest_[i]; left != 0; left &= left - 1) {
    const auto c = static_cast<std::uint32_t>(std::countr_zero(left));
    v_min.consider(begin + c, {examples[c], bounds_[i]});
  }
  v_min_[i] = v_min.node();
  at = v_min.at();
}

// Likewise, for rows that are too few to share anything.
void BlockDescent::step_alone(const BoundaryTree& tree, std::span<const std::uint32_t> rows,
                              std::uint32_t g, Counts& counts) {
  const Group group = groups_[g];
  for (std::uint32_t place = group.begin; place < group.end; ++place) {
    const std::uint32_t j = order_[place];
    Ending& ending = endings_[j];
    Counts cost;
    if (tree.step(ending.node, ending.at, query(rows, j), cost))
      groups_.push_back({ending.node, place, place + 1, g});
    else
      ending.group = g;
    ending.compared += cost.comparisons;
    counts.evaluations += cost.evaluations;
  }
}

// What was found in the first n_before nodes becomes what the tree as it now is would have answered.
void BlockDescent::replay(const BoundaryTree& tree, std::uint32_t row, std::uint64_t seen,
                          NodeId n_before, Ending& ending, Counts& counts) {
  // The nodes to look at again, from the end of the descent up, each with the next one on the way.
  changes_.clear();
  for (std::uint32_t g = ending.group, next = nothing; g != nothing; g = groups_[g].before) {
    const NodeId v = groups_[g].node;
    if (changed_[v]) changes_.push_back({v, next, g});
    next = v;
  }
  // `above`: the last group before v.
  const auto go_on_from = [&](NodeId v, const Leaf& at_v, std::uint32_t above) {
    std::uint64_t compared = 1;
    for (; above != nothing; above = groups_[above].before)
      compared += tree.n_children(groups_[above].node);
    Counts cost;
    std::tie(ending.node, ending.at) =
        tree.descend(v, at_v, {block_, row, seen, tree.size()}, cost);
    ending.compared = compared + cost.comparisons;
    counts.evaluations += cost.evaluations;
  };
  for (; !changes_.empty(); changes_.pop_back()) {
    const auto [v, next, group] = changes_.back();
    const ChildLists::View children = tree.children(v, tree.size());
    if (next == nothing && children.count >= tree.params().k) {
      // v itself, which was the closest, no longer counts.
      go_on_from(v, ending.at, groups_[group].before);
      return;
    }
    std::uint32_t first_new = children.count;
    while (first_new > 0 && children[first_new - 1] >= n_before) --first_new;
    const NodeId old = next == nothing ? v : next;
    Leaf at_old = ending.at;
    if (old != ending.node) {
      at_old = tree.leaf(old, block_.position(row));
      ++counts.evaluations;
    }
    Nearest v_min(tree.tie_hash(), tree.store(), {block_, row, seen, tree.size()});
    v_min.consider(old, at_old);
    tree.for_each_distance(
        block_.position(row), children, first_new,
        [&](NodeId child, const Leaf& at_child) { v_min.consider(child, at_child); });
    counts.evaluations += children.count - first_new;
    if (v_min.node() != old) {
      go_on_from(v_min.node(), v_min.at(), group);
      return;
    }
    ending.compared += children.count - first_new;
  }
}

}  // namespace boundary_forest
