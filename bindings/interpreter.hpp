// How calls get along with the interpreter: the GIL, Ctrl-C, exit and fork.
//
// At exit, Python ends any other thread that wants the GIL back, by unwinding it through whatever it
// is in, which C++ does not survive. So an atexit handler waits until every call has returned, which
// those on other threads do at their next block. Calls that begin later keep the GIL, and call no Python
// function, because that might give it away. A function that does not return within the handler's
// patience is never returned from: its thread sleeps until the process ends.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace boundary_forest {

// Thrown between blocks and before functions, on a thread other than the main one, when the interpreter
// exits; Python sees SystemExit, which ends a thread without a word.
struct Exiting {};

// Calls f, in which Python may end this thread.
template <class F>
auto or_sleep(F&& f) {
#ifdef __GLIBCXX__  // elsewhere, ending a thread does not unwind it
  try {
    return f();
  } catch (const abi::__forced_unwind&) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return f();
#endif
}

// Takes the GIL as long as it lives.
class TakenGil {
 public:
  TakenGil() : state_(or_sleep(PyGILState_Ensure)) {}
  ~TakenGil() { PyGILState_Release(state_); }
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Whether the interpreter exits, and this is another thread than the main one.
bool is_ending();

// What comes before a Python function is called.
inline void check_not_ending() {
  if (is_ending()) throw Exiting{};
}

// Releases the GIL as long as it lives.
class ReleasedGil {
 public:
  ReleasedGil();
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

// A fork holds the engine's locks while Python runs the handlers of others, and those give the GIL
// to other threads. So nothing that waits for such a lock may hold the GIL: no call but those that
// say so, and neither the beginning nor the end of a forest or a snapshot.
template <class F>
auto without_gil(F&& f) {
  const ReleasedGil nogil;
  return f();
}

// Whether this thread has the GIL. The stable ABI has no PyGILState_Check; from Python 3.12 on, a thread
// without the GIL has no dictionary.
inline bool has_gil() {
#ifdef Py_LIMITED_API
  return PyThreadState_GetDict() != nullptr;
#else
  return PyGILState_Check() == 1;
#endif
}

// As without_gil, for whoever may or may not have the GIL, such as a destructor.
template <class F>
void never_with_gil(F&& f) {
  if (!has_gil()) return f();
  without_gil(f);
}

// What a long call does between blocks: Ctrl-C ends it on the main thread, exit on the others.
void between_blocks();

// Called once, when the module is made.
void set_up_interpreter();

}  // namespace boundary_forest
