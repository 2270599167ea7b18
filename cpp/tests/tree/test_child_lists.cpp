// The children of a tree's nodes (child_lists.hpp): what readers hold stays, memory is used again,
// and eight bytes a child are enough (promise 5).
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/check.hpp"
#include "tree/child_lists.hpp"

using namespace boundary_forest;
using Ref = ChildLists::Ref;

namespace {

const std::vector<std::uint32_t> limits = {2, 3, 4, 5, 50, 63, 64, 100, unlimited};

std::vector<NodeId> ids_of(const ChildLists::View& view) {
  std::vector<NodeId> ids;
  for (std::uint32_t i = 0; i < view.count; ++i) ids.push_back(view[i]);
  return ids;
}

std::uint32_t fullest(std::uint32_t k) { return k == unlimited ? 300 : k; }

// The lists of nodes that gain children one at a time, recycled as soon as they are outgrown.
struct Nodes {
  explicit Nodes(std::uint32_t k) : k(k), lists(k) {}

  void add(std::size_t node) {
    const Ref before = refs[node];
    refs[node] = lists.append(before, next++);
    if (refs[node] != before) lists.recycle(before);
  }
  std::uint32_t count(std::size_t node) const { return lists.view(refs[node]).count; }
  // Leaves out what is fixed: a chunk that was only begun, and the chunks' directory.
  double bytes_per_child() {
    lists.settle(0);
    lists.recycle_before(1);  // nobody reads
    return (static_cast<double>(lists.bytes()) - 4096) / next;
  }

  std::uint32_t k;
  ChildLists lists;
  std::vector<Ref> refs;
  NodeId next = 0;
};

}  // namespace

CASE("a list keeps its children in the order in which they came, for any k") {
  for (const std::uint32_t k : limits) {
    ChildLists lists(k);
    Ref list = nothing;
    std::vector<NodeId> expected;
    CHECK_EQ(lists.view(list).count, 0U);
    for (NodeId child = 0; child < fullest(k); ++child) {
      list = lists.append(list, 7 * child + 3);
      expected.push_back(7 * child + 3);
      CHECK(ids_of(lists.view(list)) == expected);
    }
  }
}

CASE("a list that is made at once is the one that appending leads to, and goes on like it") {
  for (const std::uint32_t k : limits) {
    ChildLists at_once(k), one_by_one(k);
    std::vector<NodeId> children;
    Ref grown = nothing;
    for (NodeId child = 0; child + 1 < fullest(k); ++child) {
      children.push_back(5 * child + 1);
      grown = one_by_one.append(grown, children.back());
      Ref made = at_once.make(children.data(), child + 1);
      CHECK(ids_of(at_once.view(made)) == ids_of(one_by_one.view(grown)));
      const Ref before = made;
      made = at_once.append(made, 77);
      CHECK_EQ(at_once.view(made).count, child + 2);
      CHECK_EQ(at_once.view(made)[child + 1], 77U);
      if (made != before) at_once.recycle(before);
      at_once.recycle(made);
    }
  }
}

CASE("many lists that grow side by side do not disturb one another") {
  std::mt19937_64 random(1);
  for (const std::uint32_t k : limits) {
    ChildLists lists(k);
    std::vector<Ref> refs(200, nothing);
    std::vector<std::vector<NodeId>> expected(refs.size());
    for (NodeId child = 0; child < 8000; ++child) {
      const std::size_t node = random() % refs.size();
      if (expected[node].size() == k) continue;
      const Ref before = refs[node];
      refs[node] = lists.append(before, child);
      if (refs[node] != before) lists.recycle(before);
      expected[node].push_back(child);
    }
    for (std::size_t node = 0; node < refs.size(); ++node)
      CHECK(ids_of(lists.view(refs[node])) == expected[node]);
  }
}

CASE("an outgrown list stays as it was until it is recycled") {
  for (const std::uint32_t k : limits) {
    ChildLists lists(k);
    std::vector<ChildLists::View> views;
    std::vector<std::vector<NodeId>> held;
    std::vector<Ref> outgrown;
    for (NodeId node = 0; node < 20; ++node) {
      Ref list = nothing;
      for (NodeId child = 0; child < fullest(k); ++child) {
        const Ref before = list;
        views.push_back(lists.view(before));
        held.push_back(ids_of(views.back()));
        list = lists.append(before, 1000 * node + child);
        if (list != before && before != nothing) outgrown.push_back(before);
      }
    }
    for (std::size_t i = 0; i < views.size(); ++i) CHECK(ids_of(views[i]) == held[i]);
    for (const Ref list : outgrown) lists.recycle(list);
  }
}

CASE("what is recycled is used again, so that a second round needs no more memory") {
  for (const std::uint32_t k : limits) {
    ChildLists lists(k);
    std::size_t after_first = 0;
    for (int round = 0; round < 5; ++round) {
      std::vector<Ref> full;
      for (int node = 0; node < 50; ++node) {
        Ref list = nothing;
        for (NodeId child = 0; child < fullest(k); ++child) {
          const Ref before = list;
          list = lists.append(before, child);
          if (list != before) lists.recycle(before);
        }
        full.push_back(list);
      }
      if (round == 0) after_first = lists.bytes();
      CHECK_EQ(lists.bytes(), after_first);
      for (const Ref list : full) lists.recycle(list);
    }
  }
}

CASE("taking back appends one by one leads through the same lists as before") {
  std::mt19937_64 random(2);
  for (const std::uint32_t k : limits) {
    ChildLists lists(k);
    Ref list = nothing;
    std::vector<NodeId> expected;
    for (int round = 0; round < 60; ++round) {
      struct Step {
        Ref before;
        Ref after;
      };
      std::vector<Step> steps;
      std::vector<NodeId> grown = expected;
      const std::size_t more = random() % 40;
      for (std::size_t i = 0; i < more && grown.size() < fullest(k); ++i) {
        const auto child = static_cast<NodeId>(random() % 100000);
        const Ref after = lists.append(list, child);
        steps.push_back({list, after});
        list = after;
        grown.push_back(child);
      }
      CHECK(ids_of(lists.view(list)) == grown);
      if (round % 3 == 2) {  // these stay, and what they outgrew goes
        for (const Step& step : steps)
          if (step.after != step.before) lists.recycle(step.before);
        expected = grown;
        continue;
      }
      for (; !steps.empty(); steps.pop_back()) {
        if (steps.back().after != steps.back().before)
          lists.recycle(steps.back().after);
        else
          lists.remove_last(list);
        list = steps.back().before;
      }
      CHECK(ids_of(lists.view(list)) == expected);
    }
  }
}

CASE("a long list's memory goes back when it is outgrown") {
  ChildLists lists(unlimited);
  Ref list = nothing;
  for (NodeId child = 0; child < 100000; ++child) {
    const Ref before = list;
    list = lists.append(before, child);
    if (list != before) lists.recycle(before);
  }
  const std::size_t grown = lists.bytes();
  CHECK(grown >= 400000 && grown <= 610000);
  lists.recycle(list);
  CHECK(lists.bytes() < 10000);
}

CASE("eight bytes a child suffice while nodes appear and fill in a random order") {
  // Each new child goes to a random node that has room, and is a node itself: as in a tree.
  for (const std::uint32_t k : limits) {
    std::mt19937_64 random(k);
    for (const double reach : {1.0, 0.1, 0.01}) {  // the share of the newest nodes that may grow
      Nodes tree(k);
      tree.refs.push_back(nothing);
      while (tree.next < 30000) {
        const std::size_t n = tree.refs.size();
        const std::size_t window = std::max<std::size_t>(1, static_cast<std::size_t>(reach * n));
        std::size_t node = n - 1 - random() % window;
        while (tree.count(node) == k) node = (node + 1) % n;
        tree.add(node);
        tree.refs.push_back(nothing);
      }
      CHECK_IN(std::to_string(tree.bytes_per_child()) + " with k = " + std::to_string(k),
               tree.bytes_per_child() <= 8.0);
    }
  }
}

CASE("eight bytes a child suffice while all nodes fill side by side") {
  // A random tree first, then each of its nodes gets one child after another at the same pace, as
  // clusters do whose centres came first: no list that is outgrown finds a new owner.
  for (const std::uint32_t k : limits) {
    for (const std::uint32_t filled : {2U, 4U, 8U, 16U, 40U, 50U, 60U, 200U}) {
      if (filled > k) continue;
      std::mt19937_64 random(filled);
      Nodes tree(k);
      const std::size_t n_hubs = 20000 / filled;
      tree.refs.assign(n_hubs, nothing);
      for (std::size_t hub = 1; hub < n_hubs; ++hub) {
        std::size_t node = random() % hub;
        while (tree.count(node) == k) node = (node + 1) % hub;
        tree.add(node);
      }
      for (std::uint32_t round = 0; round < filled; ++round)
        for (std::size_t node = 0; node < n_hubs; ++node)
          if (tree.count(node) < std::min(k, round + 1)) tree.add(node);
      CHECK_IN(std::to_string(tree.bytes_per_child()) + " with k = " + std::to_string(k) + " and " +
                   std::to_string(filled) + " children",
               tree.bytes_per_child() <= 8.0);
    }
  }
}

int main() { return check::run_all(); }
