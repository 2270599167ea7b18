// fork() while other threads learn and query: the child gets every forest as it was published.
//
// Only the forking thread lives on in the child, so a lock that another one holds at that moment is
// never released there, and what it was changing stays half changed. Hence a fork waits until every
// learner is between two blocks and no reader is taking or returning a version; in the child, the
// learning calls that were under way are taken back and their locks renewed. Learners let a fork
// that waits go first: else it would hardly ever find all of them between two blocks.
//
// Whoever forks must call these around it. (The bindings let Python do that. It cannot be left to
// pthread_atfork, because a learner whose metric is a Python function needs the GIL to get to its
// block's end, and os.fork holds that.)
#pragma once

#include <mutex>

namespace boundary_forest {

// Held by a learner while it changes something, and by a fork.
class ChangeMutex {
 public:
  // By a learner. A fork that waits goes first, for a second at most; but not where this thread
  // holds another one, because the fork waits for that: a metric may itself use another forest.
  void lock();
  void unlock();

  // By a fork.
  bool try_pause() { return mutex_.try_lock(); }
  void resume() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class Forkable {
 public:
  // Keep others from changing anything, or return false if one is just doing so.
  virtual bool try_pause() = 0;
  virtual void resume() = 0;
  virtual void resume_in_child() = 0;

 protected:
  ~Forkable() = default;
};

// As long as it lives, forks know of its owner. It must be the owner's last member: a fork may pause
// whatever is known, so all of it must be there; and its end waits for a fork that has paused it.
class KnownToForks {
 public:
  explicit KnownToForks(Forkable& owner);
  ~KnownToForks();
  KnownToForks(const KnownToForks&) = delete;
  KnownToForks& operator=(const KnownToForks&) = delete;

 private:
  Forkable& owner_;
};

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace boundary_forest
