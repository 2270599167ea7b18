// Published versions: what a query call sees (promise 7).
//
// A learner works ahead of the published state and publishes a block at a time. A query call takes
// the newest version when it begins and keeps it to its end, for all its rows and trees. A version
// lists its trees, so that trees may come and go: what learning outgrows or replaces is reclaimed by
// the learner, once no call that began before still runs; oldest_read() tells.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "adapt/adaptation.hpp"
#include "base/types.hpp"
#include "distance/label_metric.hpp"
#include "graph/graph_index.hpp"
#include "store/example_store.hpp"
#include "tree/tree_set.hpp"

namespace boundary_forest {

struct Version : StoreVersion {
  std::uint32_t n_classes = 0;  // 1 + the largest class code
  Spread spread;                // of the labels, for epsilon = "auto"
  Adaptation adaptation;
  GraphVersion graph;
  bool planted = false;  // else the first n_T examples are awaited, and there are no trees
  std::vector<TreeVersion> trees;  // those that answer first, by place

  // Only a forest with a graph has marked examples, and it frees no slot.
  Slot n_marked(const Params& params) const { return params.has_graph ? slots - stored : 0; }
};

class Publication {
 public:
  explicit Publication(const Params& params) {
    versions_.emplace_back();
    versions_.back().version.spread = Spread(params.label_length);
  }

  // By a call, or by an object that holds the version for longer.
  enum class Reader { call, holder };

  const Version& begin_read(Reader reader) {
    const std::lock_guard lock(mutex_);
    ++versions_.back().readers(reader);
    return versions_.back().version;
  }

  void end_read(const Version& version, Reader reader, const Counts& cost) {
    const std::lock_guard lock(mutex_);
    query_counts_ += cost;
    for (PublishedVersion& entry : versions_)
      if (&entry.version == &version) --entry.readers(reader);
    drop_unread();
  }

  // `change` edits the newest version, in place if nobody reads it; it must not throw, for which
  // there is room for n_trees. If memory runs out, nothing is published.
  template <class Change>
  void publish(std::size_t n_trees, Change&& change, const Counts& cost) {
    const std::lock_guard lock(mutex_);
    if (versions_.back().is_read()) {
      versions_.push_back({versions_.back().version, 0, 0});
    }
    versions_.back().version.trees.reserve(n_trees);
    learn_counts_ += cost;
    ++versions_.back().version.number;
    change(versions_.back().version);
    seen_ = versions_.back().version.seen;
    n_classes_ = versions_.back().version.n_classes;
    drop_unread();
  }

  // Of the newest version. AnswerRequest at every call, and by whoever must not wait for a lock.
  std::uint64_t seen() const { return seen_; }
  std::uint32_t n_classes() const { return n_classes_; }

  // The number of the oldest version that a call still reads or may yet read.
  std::uint64_t oldest_read() {
    const std::lock_guard lock(mutex_);
    return versions_.front().version.number;
  }

  // For the learner, who alone changes it.
  const Version& newest() {
    const std::lock_guard lock(mutex_);
    return versions_.back().version;
  }

  // See forking.hpp. The calls that were reading are not in the child.
  bool try_pause() { return mutex_.try_lock(); }
  void resume() { mutex_.unlock(); }
  void resume_in_child() {
    for (PublishedVersion& entry : versions_) entry.calls = 0;
    drop_unread();
    mutex_.unlock();
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
  struct PublishedVersion {
    Version version;
    std::uint64_t calls = 0;
    std::uint64_t holders = 0;

    std::uint64_t& readers(Reader reader) { return reader == Reader::call ? calls : holders; }
    bool is_read() const { return calls + holders > 0; }
  };

  void drop_unread() {
    while (versions_.size() > 1 && !versions_.front().is_read()) versions_.pop_front();
  }

  std::mutex mutex_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint32_t> n_classes_{0};
  std::deque<PublishedVersion> versions_;  // oldest first; addresses stay; never empty
  Counts learn_counts_;
  Counts query_counts_;
};

// A hold on a version: nothing that the version has is reclaimed while it lives.
class Reading {
 public:
  explicit Reading(Publication& publication, Publication::Reader reader = Publication::Reader::call)
      : publication_(publication), reader_(reader), version(publication.begin_read(reader)) {}
  ~Reading() { publication_.end_read(version, reader_, cost); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Publication& publication_;
  Publication::Reader reader_;

 public:
  const Version& version;
  Counts cost;
};

}  // namespace boundary_forest
