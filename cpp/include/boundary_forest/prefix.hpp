// Published prefixes: what a query call sees (promise 7).
//
// A learner works ahead of the published state and publishes a block at a time. A query call takes
// the newest prefix when it begins and keeps it to its end, for all its rows and trees. What
// learning outgrows is reused only when no call that began before still runs; oldest_read() tells.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "boundary_forest/label_metric.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

struct Prefix {
  std::uint64_t number = 0;     // of this publication
  std::uint64_t seen = 0;       // examples that had arrived
  Slot stored = 0;              // examples that are stored
  std::uint32_t n_classes = 0;  // 1 + the largest class code
  Spread spread;                // of the labels, for epsilon = "auto"
  std::vector<NodeId> nodes;    // nodes of each tree; 0 while the first n_T examples are awaited

  bool planted() const { return nodes[0] > 0; }
};

class Publication {
 public:
  explicit Publication(const Params& params) {
    versions_.emplace_back();
    versions_.back().prefix.nodes.assign(params.n_T, 0);
    versions_.back().prefix.spread = Spread(params.label_length);
  }

  const Prefix& begin_read() {
    const std::lock_guard lock(mutex_);
    ++versions_.back().readers;
    return versions_.back().prefix;
  }

  void end_read(const Prefix& prefix, const Counts& cost) {
    const std::lock_guard lock(mutex_);
    query_counts_ += cost;
    for (Version& version : versions_)
      if (&version.prefix == &prefix) --version.readers;
    drop_unread();
  }

  // `change` edits the newest prefix, in place if nobody reads it.
  template <class Change>
  void publish(Change&& change, const Counts& cost) {
    const std::lock_guard lock(mutex_);
    if (versions_.back().readers > 0) {
      versions_.push_back(versions_.back());
      versions_.back().readers = 0;
    }
    learn_counts_ += cost;
    ++versions_.back().prefix.number;
    change(versions_.back().prefix);
    drop_unread();
  }

  // The number of the oldest prefix that a call still reads or may yet read.
  std::uint64_t oldest_read() {
    const std::lock_guard lock(mutex_);
    return versions_.front().prefix.number;
  }

  // For the learner, who alone changes it.
  const Prefix& newest() {
    const std::lock_guard lock(mutex_);
    return versions_.back().prefix;
  }

  void count_queries(const Counts& cost) {
    const std::lock_guard lock(mutex_);
    query_counts_ += cost;
  }

  void count_learning(const Counts& cost) {
    const std::lock_guard lock(mutex_);
    learn_counts_ += cost;
  }

  Counts learn_counts() {
    const std::lock_guard lock(mutex_);
    return learn_counts_;
  }
  Counts query_counts() {
    const std::lock_guard lock(mutex_);
    return query_counts_;
  }

 private:
  struct Version {
    Prefix prefix;
    std::uint64_t readers = 0;
  };

  void drop_unread() {
    while (versions_.size() > 1 && versions_.front().readers == 0) versions_.pop_front();
  }

  std::mutex mutex_;
  std::deque<Version> versions_;  // oldest first; addresses stay; never empty
  Counts learn_counts_;
  Counts query_counts_;
};

// One query call's hold on a prefix.
class Reading {
 public:
  explicit Reading(Publication& publication)
      : publication_(publication), prefix(publication.begin_read()) {}
  ~Reading() { publication_.end_read(prefix, cost); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Publication& publication_;

 public:
  const Prefix& prefix;
  Counts cost;
};

}  // namespace boundary_forest
