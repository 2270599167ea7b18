// fork() while other threads learn and query: the child gets every forest as it was published.
//
// Only the forking thread lives on in the child, so a lock that another one holds at that moment is
// never released there, and what it was changing stays half changed. Hence a fork waits until every
// learner is between two blocks and no reader is taking or returning a version; in the child, the
// learning calls that were under way are taken back and their locks renewed.
//
// Whoever forks must call these around it. (The bindings let Python do that. It cannot be left to
// pthread_atfork, because a learner whose metric is a Python function needs the GIL to get to its
// block's end, and os.fork holds that.)
#pragma once

namespace boundary_forest {

class Forkable {
 public:
  Forkable();           // known to before_fork() from now on
  virtual ~Forkable();  // and no longer
  Forkable(const Forkable&) = delete;
  Forkable& operator=(const Forkable&) = delete;

 private:
  friend void before_fork();
  friend void after_fork_in_parent();
  friend void after_fork_in_child();

  // Keep others from changing anything, or return false if one is just doing so.
  virtual bool try_pause() = 0;
  virtual void resume() = 0;
  virtual void resume_in_child() = 0;
};

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace boundary_forest
