#include "concurrency/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

namespace boundary_forest::thread_pool {
namespace {

// One call of parallel_for. Its fields are guarded by Workers::mutex.
struct Job {
  const std::function<void(std::size_t)>& task;
  std::size_t n_tasks;
  std::size_t helpers_wanted;
  std::size_t next = 0;
  std::size_t running = 0;
  std::exception_ptr error = nullptr;

  bool open() const { return next < n_tasks; }
};

struct Workers {
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable done;
  std::list<Job*> jobs;  // those that still want helpers
  std::size_t n_threads = 0;

  // Takes tasks of the job until none is left; the lock is held on entry and on return.
  void take_part(Job& job, std::unique_lock<std::mutex>& lock) {
    while (job.open()) {
      const std::size_t i = job.next++;
      ++job.running;
      lock.unlock();
      std::exception_ptr error;
      try {
        job.task(i);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      --job.running;
      if (error) {
        if (!job.error) job.error = error;
        job.next = job.n_tasks;
      }
    }
  }

  void help() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return !jobs.empty(); });
      Job& job = *jobs.front();
      if (--job.helpers_wanted == 0) jobs.pop_front();
      ++job.running;  // so that the job is not over before this helper has let go of it
      take_part(job, lock);
      --job.running;
      done.notify_all();
    }
  }

  // Where no more threads can be had, fewer do the work.
  void start(std::size_t n_helpers) {
    try {
      for (; n_threads < n_helpers; ++n_threads) std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
    }
  }
};

// Never destroyed: threads may wait for work as the process ends. A fork finds the mutex free, and
// leaves the threads, which are not in the child, behind with their Workers.
Workers* workers = nullptr;
std::mutex making_workers;

void before_fork() {
  making_workers.lock();
  if (workers != nullptr) workers->mutex.lock();
}

void after_fork_in_parent() {
  if (workers != nullptr) workers->mutex.unlock();
  making_workers.unlock();
}

void after_fork_in_child() {
  workers = nullptr;
  making_workers.unlock();
}

Workers& all_workers() {
  const std::lock_guard lock(making_workers);
  static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(registered);
  if (workers == nullptr) workers = new Workers;
  return *workers;
}

}  // namespace

void run(std::size_t n_tasks, std::size_t n_threads, const std::function<void(std::size_t)>& task) {
  n_threads = std::min(n_threads, n_tasks);
  if (n_threads <= 1) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  Workers& all = all_workers();
  Job job{task, n_tasks, n_threads - 1};
  std::unique_lock lock(all.mutex);
  all.start(n_threads - 1);
  all.jobs.push_back(&job);
  all.work.notify_all();
  all.take_part(job, lock);
  all.jobs.remove(&job);
  all.done.wait(lock, [&] { return job.running == 0; });
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace boundary_forest::thread_pool
