#include "boundary_forest/forking.hpp"

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace boundary_forest {
namespace {

struct Registry {
  std::mutex mutex;
  std::set<Forkable*> all;
  std::vector<Forkable*> paused;
};

// Never destroyed: forests may outlive static objects.
Registry& registry() {
  static Registry* const only = new Registry;
  return *only;
}

}  // namespace

Forkable::Forkable() {
  const std::lock_guard lock(registry().mutex);
  registry().all.insert(this);
}

Forkable::~Forkable() {
  const std::lock_guard lock(registry().mutex);
  registry().all.erase(this);
}

// All are paused or none is while this waits: a learner's metric may itself use another forest.
void before_fork() {
  Registry& known = registry();
  for (;;) {
    known.mutex.lock();
    for (Forkable* one : known.all) {
      if (!one->try_pause()) break;
      known.paused.push_back(one);
    }
    if (known.paused.size() == known.all.size()) return;
    for (Forkable* one : known.paused) one->resume();
    known.paused.clear();
    known.mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void after_fork_in_parent() {
  for (Forkable* one : registry().paused) one->resume();
  registry().paused.clear();
  registry().mutex.unlock();
}

void after_fork_in_child() {
  for (Forkable* one : registry().paused) one->resume_in_child();
  registry().paused.clear();
  registry().mutex.unlock();
}

}  // namespace boundary_forest
