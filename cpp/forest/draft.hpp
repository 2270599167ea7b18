// The next version while it is learned: what is ahead of the published state, and the one commit.
//
// A learning call begins with begin(); others wait. It changes the draft block by block, and publish()
// makes the draft the newest version: whatever ends a call before that leaves no trace, as rollback()
// returns to the newest version. Queries may run at any time, and a fork goes between two blocks
// (forking.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <utility>
#include <vector>

#include "concurrency/forking.hpp"
#include "forest/setup.hpp"
#include "forest/version.hpp"
#include "graph/graph_index.hpp"
#include "store/example_store.hpp"
#include "tree/query_cache.hpp"
#include "tree/tree_set.hpp"

namespace boundary_forest {

// What a learning call holds: other calls wait for the whole of it, forks for a block.
struct LearningLock {
  std::unique_lock<std::mutex> call;
  std::unique_lock<ChangeMutex> block;
};

class Draft {
 public:
  // What a version has besides trees and examples.
  struct Progress {
    std::uint64_t seen = 0;       // examples that have arrived
    std::uint32_t n_classes = 0;  // 1 + the largest class code
    Spread spread;                // of the labels
    Adaptation adaptation;
  };

  Draft(const Setup& setup, Adaptation adaptation, ExampleStore& store, GraphIndex& graph,
        Publication& publication, QueryCache& query_cache);

  LearningLock begin();
  // Nothing is published as long as it is held: the newest version and the index of ids belong together.
  std::unique_lock<std::mutex> hold_newest() { return std::unique_lock(publishing_); }

  Progress& progress() { return progress_; }
  const Progress& progress() const { return progress_; }
  TreeSet& trees() { return trees_; }
  const TreeSet& trees() const { return trees_; }
  ExampleStore& store() { return store_; }
  const ExampleStore& store() const { return store_; }

  bool planted() const { return !trees_.empty(); }
  const Version& newest() const { return publication_.newest(); }
  // The number that the next publication will have.
  std::uint64_t next() const { return newest().number + 1; }

  // The threshold for the next label: epsilon, or a tenth of the standard deviation of those before it.
  double epsilon() const;
  // That of each staged label.
  std::pmr::vector<double> thresholds(Slot first, std::size_t n,
                                      std::pmr::memory_resource* memory) const;
  // Staged labels count among those seen, and rows among the last arrivals.
  void count_labels(Slot first, std::size_t n);
  // The staged examples, from this slot on, are sketched if sketches pay; so are those before them if they have no
  // sketches, or others would be better.
  void sketch(Slot staged, std::size_t n_threads);
  // Of examples that had arrived when sketches were last due, before `seen` had; 0: they are not.
  static std::uint64_t sketches_due(std::uint64_t seen) {
    std::uint64_t due = seen < first_sketches ? 0 : first_sketches;
    while (due > 0 && seen / 8 >= due) due *= 8;
    return due;
  }
  // The staged examples are stored until trees are planted with them.
  void await(Slot first);
  // The staged examples that some tree kept, or that joined the reservoir, become stored ones; see TreeSet. `lazily`: see GraphIndex.
  void close_block(Slot first, bool lazily = false);
  // A graph gets the links of the trees that there are now.
  void relink() { graph_.relink(trees_.all()); }
  void compact_links() { graph_.compact(trees_.all()); }

  void publish();
  void rollback();
  // What publish() would make the newest version, but for its number.
  Version preview() const;
  // Publishes what `change` did, or takes it back if that throws.
  template <class Change>
  void commit(Change&& change) {
    try {
      change();
      publish();
    } catch (...) {
      rollback();
      throw;
    }
  }
  // Likewise what a call of many queries gains by: the sketches that a forest opened by mmap has not yet.
  void prepare_sketches(std::size_t n_threads);
  // Makes and publishes what a graph search needs, unless a learner does it with its next block.
  void prepare_search();

  // See forking.hpp.
  bool try_pause();
  void resume();
  void resume_in_child();

 private:
  static constexpr std::uint64_t first_sketches = 2048;

  void fill(Version& version, Adaptation adaptation) const;

  const Setup& setup_;
  ExampleStore& store_;
  GraphIndex& graph_;
  Publication& publication_;
  QueryCache& query_cache_;
  std::mutex learning_;        // held by a learning call, whole
  ChangeMutex block_;          // held while anything is changed; free between two blocks
  std::mutex publishing_;      // held while a version is published
  bool is_abandoned_ = false;  // by a learning call that is not in this process
  Progress progress_;
  std::uint64_t sketches_made_ = 0;  // when they were due, or found not to pay
  TreeSet trees_;                    // none while the first n_T examples are awaited
};

}  // namespace boundary_forest
