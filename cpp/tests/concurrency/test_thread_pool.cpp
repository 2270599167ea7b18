// The pool of threads (thread_pool.hpp): every task once, errors reach the caller, callers share it,
// and a forked child has one of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "concurrency/thread_pool.hpp"
#include "tests/check.hpp"

using boundary_forest::parallel_for;

namespace {

// Runs n tasks and tells how often each ran.
std::vector<int> runs_of(std::size_t n_tasks, std::size_t n_threads) {
  std::vector<std::atomic<int>> runs(n_tasks);
  parallel_for(n_tasks, n_threads, [&](std::size_t i) { ++runs[i]; });
  return {runs.begin(), runs.end()};
}

bool each_once(const std::vector<int>& runs) {
  for (const int n : runs)
    if (n != 1) return false;
  return true;
}

}  // namespace

CASE("every task runs exactly once, on any number of threads") {
  for (const std::size_t n_tasks : {0U, 1U, 2U, 3U, 50U, 1000U})
    for (const std::size_t n_threads : {1U, 2U, 3U, 8U, 20U})
      CHECK(each_once(runs_of(n_tasks, n_threads)));
}

CASE("one thread is a plain loop: in order, on the caller") {
  std::vector<std::size_t> order;
  const auto caller = std::this_thread::get_id();
  parallel_for(100, 1, [&](std::size_t i) {
    CHECK(std::this_thread::get_id() == caller);
    order.push_back(i);
  });
  for (std::size_t i = 0; i < 100; ++i) CHECK_EQ(order[i], i);
}

CASE("no more threads work on a call than it asked for") {
  runs_of(100, 8);  // the pool now has seven threads
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_for(200, 3, [&](std::size_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  CHECK(threads.size() <= 3);
}

CASE("threads really work side by side") {
  // Each of two tasks waits for the other, which a single thread could never end.
  std::atomic<int> arrived{0};
  parallel_for(2, 2, [&](std::size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  CHECK_EQ(arrived.load(), 2);
}

CASE("an exception reaches the caller once the tasks that had begun have ended") {
  for (const std::size_t n_threads : {1U, 2U, 8U}) {
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
    CHECK_THROWS(parallel_for(100, n_threads,
                              [&](std::size_t i) {
                                ++begun;
                                if (i == 3) {
                                  ++ended;
                                  throw std::domain_error("three");
                                }
                                std::this_thread::yield();
                                ++ended;
                              }),
                 std::domain_error);
    CHECK_EQ(begun.load(), ended.load());
    if (n_threads == 1) CHECK_EQ(begun.load(), 4);  // what had not begun is left out
    CHECK(each_once(runs_of(50, n_threads)));       // and the pool goes on working
  }
}

CASE("of many exceptions one is thrown and the others are dropped") {
  for (int round = 0; round < 50; ++round)
    CHECK_THROWS(parallel_for(20, 8, [](std::size_t) { throw std::runtime_error("each"); }),
                 std::runtime_error);
}

CASE("several callers may share the pool, and an error of one does not reach another") {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 100; ++round) {
        if (caller == 0)
          CHECK_THROWS(parallel_for(10, 3, [](std::size_t) { throw std::logic_error("mine"); }),
                       std::logic_error);
        else
          CHECK(each_once(runs_of(1 + static_cast<std::size_t>(round) % 40, 4)));
      }
    });
  for (std::thread& caller : callers) caller.join();
}

CASE("a forked child gets threads of its own") {
#ifdef CHECK_THREAD_SANITIZER
  SKIP("ThreadSanitizer ends a child of a process with threads when it starts threads itself");
#else
  CHECK(each_once(runs_of(100, 4)));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a deadlock ends the child, not the test run
    std::atomic<int> arrived{0};
    parallel_for(2, 2, [&](std::size_t) {  // needs a second thread that is alive
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    _exit(each_once(runs_of(100, 4)) ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(each_once(runs_of(100, 4)));  // the parent's are untouched
#endif
}

int main() { return check::run_all(); }
