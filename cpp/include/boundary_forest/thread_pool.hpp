// A small thread pool. Threads start on first use, and again in a child process after fork().
//
// The caller works too, so n_threads = 1 is a plain loop. Several callers may share the pool.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace boundary_forest {

class ThreadPool {
 public:
  ThreadPool();
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Runs task(0) .. task(n_tasks - 1) on at most n_threads threads and returns when all have ended.
  // The first exception is thrown again here; tasks not yet begun are then left out.
  template <class Task>
  void parallel_for(std::size_t n_tasks, std::size_t n_threads, const Task& task) {
    run(n_tasks, n_threads, std::cref(task));  // by reference: copying it would allocate
  }

 private:
  void run(std::size_t n_tasks, std::size_t n_threads,
           const std::function<void(std::size_t)>& task);

  struct Job;
  struct Workers;

  Workers& workers(std::size_t n_helpers);

  std::mutex start_mutex_;
  std::unique_ptr<Workers> workers_;
  long process_ = 0;  // the process that the threads belong to
};

}  // namespace boundary_forest
