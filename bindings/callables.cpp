#include "callables.hpp"

#include <nanobind/ndarray.h>

#include <cmath>

#include "interpreter.hpp"

namespace boundary_forest {
namespace {

namespace nb = nanobind;

// The callables that this thread is inside of, the innermost first.
struct Inside {
  explicit Inside(nb::handle function) : function(function), outer(innermost) { innermost = this; }
  ~Inside() { innermost = outer; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  nb::handle function;
  const Inside* outer;
  static thread_local const Inside* innermost;
};
thread_local const Inside* Inside::innermost = nullptr;

// A copy, so that a callable may keep what it was given.
nb::object as_array(const Position& row, std::size_t n) {
  auto* values = new double[n];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  to_doubles(row, n, values);
  return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(values, {n}, owner));
}

// What the callable raised becomes the cause of an error that names it; an interrupt stays what it
// is.
double call(nb::handle function, const char* name, const nb::object& x, const nb::object& y) {
  const Inside inside(function);
  nb::object result;
  try {
    result = or_sleep([&] { return function(x, y); });
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    nb::raise_from(error, PyExc_ValueError, "the %s raised %s", name,
                   nb::repr(error.value()).c_str());
  }
  const double value = PyFloat_AsDouble(result.ptr());
  if (value == -1.0 && PyErr_Occurred()) {
    nb::python_error error;
    nb::raise_from(error, PyExc_TypeError, "the %s must return a number, but returned %s", name,
                   nb::repr(result).c_str());
  }
  return value;
}

class CallableMetric final : public Metric {
 public:
  CallableMetric(nb::handle function, ElementType stored, std::size_t n_features,
                 bool needs_non_negative)
      : function_(function),
        stored_(stored),
        n_features_(n_features),
        needs_non_negative_(needs_non_negative) {}

  void distances(const Position& query, const std::byte* const* rows, std::size_t n,
                 double* out) const override {
    check_not_ending();
    const TakenGil gil;
    const nb::object x = as_array(query, n_features_);
    for (std::size_t j = 0; j < n; ++j) {
      const nb::object y = as_array({rows[j], stored_}, n_features_);
      out[j] = checked_distance(call(function_, "metric", x, y), needs_non_negative_);
    }
  }

  bool may_fail() const override { return true; }
  bool single_threaded() const override { return true; }

 private:
  nb::handle function_;  // the forest's Python object owns it
  ElementType stored_;
  std::size_t n_features_;
  bool needs_non_negative_;
};

}  // namespace

std::unique_ptr<Metric> make_callable_metric(nb::handle function, ElementType stored,
                                             std::size_t n_features, bool needs_non_negative) {
  return std::make_unique<CallableMetric>(function, stored, n_features, needs_non_negative);
}

LabelFunction make_label_function(nb::handle function, std::size_t length) {
  return [function, length](const double* a, const double* b) {
    check_not_ending();
    const TakenGil gil;
    const auto label = [&](const double* values) {
      return as_array({reinterpret_cast<const std::byte*>(values), ElementType::float64}, length);
    };
    const double value = call(function, "label_metric", label(a), label(b));
    if (std::isnan(value)) throw std::domain_error("the label_metric returned NaN");
    return value;
  };
}

bool is_inside(nb::handle function) {
  const Inside* at = Inside::innermost;
  while (at != nullptr && !at->function.is(function)) at = at->outer;
  return at != nullptr;
}

}  // namespace boundary_forest
