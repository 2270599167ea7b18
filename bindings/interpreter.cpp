#include "interpreter.hpp"

#include <atomic>
#include <exception>

#include "concurrency/forking.hpp"

namespace boundary_forest {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// The GIL guards is_exiting where it is set, and where it is asked before the GIL is released.
std::atomic<bool> is_exiting{false};
std::atomic<int> n_without_gil{0};
std::atomic<unsigned long> main_thread{0};

constexpr auto longest_wait = std::chrono::seconds(30);

bool on_main_thread() { return PyThread_get_thread_ident() == main_thread; }

void wait_for_calls() {
  is_exiting = true;
  // What other threads hold is never freed, so nanobind would find it leaked.
  if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) > 1)
    nb::set_leak_warnings(false);
  PyThreadState* const state = PyEval_SaveThread();
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (n_without_gil > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  PyEval_RestoreThread(state);
}

}  // namespace

ReleasedGil::ReleasedGil() {
  if (is_exiting) return;
  ++n_without_gil;
  state_ = PyEval_SaveThread();
}

ReleasedGil::~ReleasedGil() {
  if (state_ == nullptr) return;
  or_sleep([&] { PyEval_RestoreThread(state_); });
  --n_without_gil;
}

bool is_ending() { return is_exiting && !on_main_thread(); }

void between_blocks() {
  check_not_ending();
  if (!on_main_thread()) return;  // Python handles signals on the main thread alone
  const TakenGil gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void set_up_interpreter() {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Exiting&) {
      PyErr_SetNone(PyExc_SystemExit);
    }
  });
  const nb::object thread = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(thread.attr("ident"));
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(wait_for_calls));
  const nb::module_ os = nb::module_::import_("os");
  if (!nb::hasattr(os, "register_at_fork")) return;
  os.attr("register_at_fork")("before"_a = nb::cpp_function([] { without_gil(before_fork); }),
                              "after_in_parent"_a = nb::cpp_function(after_fork_in_parent),
                              "after_in_child"_a = nb::cpp_function([] {
                                after_fork_in_child();
                                n_without_gil = 0;
                                main_thread = PyThread_get_thread_ident();
                              }));
}

}  // namespace boundary_forest
