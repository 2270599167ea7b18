// argmin over candidates, ties by priority: the rule by which every BTQuery moves on.
//
// The winner is the least (reduced distance, priority), priority = hash64(seed, tree, key, arrival
// number). The key is the query's fingerprint, so that asking a row again takes the path that
// learning it took; at distance 0 it is the number of examples seen, so that duplicates spread
// instead of forming a chain. This minimum is associative: no grouping or order can change it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "store/example_store.hpp"
#include "store/query_rows.hpp"

namespace boundary_forest {

// An example that a descent may end at.
struct Leaf {
  Slot example;
  double reduced;  // its reduced distance to the query
};

// How retrieval ranks what it finds: the closest first, and of equals the earlier arrival.
template <class ArrivalOf>
auto ranked_by(ArrivalOf arrival_of) {
  return [arrival_of](const auto& a, const auto& b) {
    if (a.reduced != b.reduced) return a.reduced < b.reduced;
    return arrival_of(a) < arrival_of(b);
  };
}

// What was found in several places, in that order and each example once.
template <class T, class ArrivalOf>
void rank_once(std::vector<T>& found, ArrivalOf arrival_of) {
  std::sort(found.begin(), found.end(), ranked_by(arrival_of));
  const auto same = [&](const T& a, const T& b) { return arrival_of(a) == arrival_of(b); };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
}

inline auto arrival_in(const ExampleStore& store) {
  return [&store](const Leaf& leaf) { return store.arrival(leaf.example); };
}

class Nearest {
 public:
  // tie_hash is hash64(seed, tree).
  Nearest(std::uint64_t tie_hash, const ExampleStore& store, const Query& query)
      : tie_hash_(tie_hash), store_(store), query_(query) {}

  void consider(NodeId candidate, const Leaf& at_candidate) {
    if (node_ != nothing && !(at_candidate.reduced < at_.reduced)) {
      if (at_candidate.reduced > at_.reduced) return;
      if (!has_priority_) priority_ = priority_of(at_);
      has_priority_ = true;
      const std::uint64_t other = priority_of(at_candidate);
      if (other >= priority_) return;
      priority_ = other;
    } else {
      has_priority_ = false;
    }
    node_ = candidate;
    at_ = at_candidate;
  }

  NodeId node() const { return node_; }  // `nothing` if none was considered
  const Leaf& at() const { return at_; }

 private:
  // Only ties need it, and few queries have one.
  std::uint64_t priority_of(const Leaf& leaf) const {
    const std::uint64_t key = leaf.reduced == 0.0 ? query_.seen : query_.rows.fingerprint(query_.i);
    return absorb(absorb(tie_hash_, key), store_.arrival(leaf.example));
  }

  std::uint64_t tie_hash_;
  const ExampleStore& store_;
  Query query_;
  NodeId node_ = nothing;
  Leaf at_{};
  std::uint64_t priority_ = 0;
  bool has_priority_ = false;
};

}  // namespace boundary_forest
