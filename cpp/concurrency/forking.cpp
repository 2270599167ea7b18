#include "concurrency/forking.hpp"

#include <atomic>
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

std::atomic<int> n_waiting_forks{0};
thread_local int n_held = 0;  // ChangeMutexes, by this thread

constexpr auto longest_wait = std::chrono::seconds(1);

void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

}  // namespace

void ChangeMutex::lock() {
  if (n_held == 0 && n_waiting_forks > 0) {
    const auto end = std::chrono::steady_clock::now() + longest_wait;
    while (n_waiting_forks > 0 && std::chrono::steady_clock::now() < end) wait_a_little();
  }
  mutex_.lock();
  ++n_held;
}

void ChangeMutex::unlock() {
  --n_held;
  mutex_.unlock();
}

KnownToForks::KnownToForks(Forkable& owner) : owner_(owner) {
  const std::lock_guard lock(registry().mutex);
  registry().all.insert(&owner_);
}

KnownToForks::~KnownToForks() {
  const std::lock_guard lock(registry().mutex);
  registry().all.erase(&owner_);
}

// All are paused or none is while this waits: a learner's metric may itself use another forest.
void before_fork() {
  Registry& known = registry();
  ++n_waiting_forks;
  for (;;) {
    known.mutex.lock();
    for (Forkable* one : known.all) {
      if (!one->try_pause()) break;
      known.paused.push_back(one);
    }
    if (known.paused.size() == known.all.size()) break;
    for (Forkable* one : known.paused) one->resume();
    known.paused.clear();
    known.mutex.unlock();
    wait_a_little();
  }
  --n_waiting_forks;
}

void after_fork_in_parent() {
  for (Forkable* one : registry().paused) one->resume();
  registry().paused.clear();
  registry().mutex.unlock();
}

void after_fork_in_child() {
  n_waiting_forks = 0;  // whoever else waits is not in this process
  for (Forkable* one : registry().paused) one->resume_in_child();
  registry().paused.clear();
  registry().mutex.unlock();
}

}  // namespace boundary_forest
