#include "boundary_forest/thread_pool.hpp"

#include <unistd.h>

#include <algorithm>

namespace boundary_forest {

// One call of parallel_for. Its fields are guarded by Workers::mutex.
struct ThreadPool::Job {
  const std::function<void(std::size_t)>& task;
  std::size_t n_tasks;
  std::size_t helpers_wanted;
  std::size_t next = 0;
  std::size_t running = 0;
  std::exception_ptr error = nullptr;

  bool open() const { return next < n_tasks; }
};

struct ThreadPool::Workers {
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable done;
  std::list<Job*> jobs;  // those that still want helpers
  std::vector<std::thread> threads;
  bool stopping = false;

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
      work.wait(lock, [&] { return stopping || !jobs.empty(); });
      if (stopping) return;
      Job& job = *jobs.front();
      if (--job.helpers_wanted == 0) jobs.pop_front();
      ++job.running;  // so that the job is not over before this helper has let go of it
      take_part(job, lock);
      --job.running;
      done.notify_all();
    }
  }
};

ThreadPool::ThreadPool() = default;

ThreadPool::~ThreadPool() {
  if (!workers_) return;
  if (process_ != static_cast<long>(getpid())) {
    static_cast<void>(workers_.release());  // a forked child: the threads are not here to be joined
    return;
  }
  {
    const std::lock_guard lock(workers_->mutex);
    workers_->stopping = true;
  }
  workers_->work.notify_all();
  for (std::thread& thread : workers_->threads) thread.join();
}

ThreadPool::Workers& ThreadPool::workers(std::size_t n_helpers) {
  const std::lock_guard start(start_mutex_);
  const long here = static_cast<long>(getpid());
  if (workers_ && process_ != here) static_cast<void>(workers_.release());
  if (!workers_) workers_ = std::make_unique<Workers>();
  process_ = here;
  Workers& all = *workers_;
  const std::lock_guard lock(all.mutex);
  while (all.threads.size() < n_helpers) all.threads.emplace_back([&all] { all.help(); });
  return all;
}

void ThreadPool::run(std::size_t n_tasks, std::size_t n_threads,
                     const std::function<void(std::size_t)>& task) {
  n_threads = std::min(n_threads, n_tasks);
  if (n_threads <= 1) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  Workers& all = workers(n_threads - 1);
  Job job{task, n_tasks, n_threads - 1};
  std::unique_lock lock(all.mutex);
  all.jobs.push_back(&job);
  all.work.notify_all();
  all.take_part(job, lock);
  all.jobs.remove(&job);
  all.done.wait(lock, [&] { return job.running == 0; });
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace boundary_forest
