#include "callable_metric.hpp"

#include <nanobind/ndarray.h>

namespace boundary_forest {
namespace {

namespace nb = nanobind;

// The callable metrics that this thread is inside of, the innermost first.
struct Inside {
  explicit Inside(const Metric* metric) : metric(metric), outer(innermost) { innermost = this; }
  ~Inside() { innermost = outer; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  const Metric* metric;
  const Inside* outer;
  static thread_local const Inside* innermost;
};
thread_local const Inside* Inside::innermost = nullptr;

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
    const nb::gil_scoped_acquire gil;
    const Inside inside(this);
    const nb::object x = as_array(query);
    for (std::size_t j = 0; j < n; ++j) {
      out[j] = checked_distance(call(x, as_array({rows[j], stored_})), needs_non_negative_);
    }
  }

  bool may_fail() const override { return true; }
  bool single_threaded() const override { return true; }

 private:
  // What the callable raised becomes the cause of an error that names the metric; an interrupt
  // stays what it is.
  double call(const nb::object& x, const nb::object& y) const {
    nb::object result;
    try {
      result = function_(x, y);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
      nb::raise_from(error, PyExc_ValueError, "the metric raised %s",
                     nb::repr(error.value()).c_str());
    }
    const double value = PyFloat_AsDouble(result.ptr());
    if (value == -1.0 && PyErr_Occurred()) {
      nb::python_error error;
      nb::raise_from(error, PyExc_TypeError, "the metric must return a number, but returned %s",
                     nb::repr(result).c_str());
    }
    return value;
  }

  // A copy, so that a callable may keep what it was given.
  nb::object as_array(const Position& row) const {
    auto* values = new double[n_features_];
    const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    to_doubles(row, n_features_, values);
    return nb::cast(
        nb::ndarray<nb::numpy, const double, nb::ndim<1>>(values, {n_features_}, owner));
  }

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

bool is_inside(const Metric* metric) {
  const Inside* at = Inside::innermost;
  while (at != nullptr && at->metric != metric) at = at->outer;
  return at != nullptr;
}

}  // namespace boundary_forest
