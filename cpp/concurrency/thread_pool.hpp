// One pool of threads for the process. Threads start when they are first needed, and again in a child
// process after fork(); they are never joined, so that the process can end while they wait.
//
// The caller works too, so n_threads = 1 is a plain loop. Any number of callers share the pool.
#pragma once

#include <cstddef>
#include <functional>

namespace boundary_forest {

namespace thread_pool {
void run(std::size_t n_tasks, std::size_t n_threads, const std::function<void(std::size_t)>& task);
}  // namespace thread_pool

// Runs task(0) .. task(n_tasks - 1) on at most n_threads threads and returns when all have ended.
// The first exception is thrown again here; tasks not yet begun are then left out.
template <class Task>
void parallel_for(std::size_t n_tasks, std::size_t n_threads, const Task& task) {
  thread_pool::run(n_tasks, n_threads, std::cref(task));  // by reference: copying would allocate
}

}  // namespace boundary_forest
