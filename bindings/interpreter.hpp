// How calls get along with the interpreter: the GIL, Ctrl-C, exit and fork.
//
// At exit, Python ends any other thread that wants the GIL back, by unwinding it through whatever it
// is in, which C++ does not survive. So an atexit handler waits until every call has returned, which
// those on other threads do at their next block; calls that begin later keep the GIL.
#pragma once

#include <nanobind/nanobind.h>

namespace boundary_forest {

// Thrown between blocks on a thread other than the main one when the interpreter exits; Python sees
// SystemExit, which ends a thread without a word.
struct Exiting {};

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

// The same for whoever may or may not have the GIL, such as a destructor.
template <class F>
void never_with_gil(F&& f) {
  if (PyGILState_Check() == 0) return f();
  without_gil(f);
}

// What a long call does between blocks: Ctrl-C ends it on the main thread, exit on the others.
void between_blocks();

// Called once, when the module is made.
void set_up_interpreter();

}  // namespace boundary_forest
