#include "callable_metric.hpp"

#include <nanobind/ndarray.h>

namespace boundary_forest {
namespace {

namespace nb = nanobind;

thread_local int depth = 0;

struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
};

class CallableMetric final : public Metric {
 public:
  CallableMetric(nb::object function, ElementType stored, std::size_t n_features,
                 bool needs_non_negative)
      : function_(std::move(function)),
        stored_(stored),
        n_features_(n_features),
        needs_non_negative_(needs_non_negative) {}

  ~CallableMetric() override {
    const nb::gil_scoped_acquire gil;
    function_.reset();
  }

  void distances(const Position& query, const std::byte* const* rows, std::size_t n,
                 double* out) const override {
    const nb::gil_scoped_acquire gil;
    const Inside inside;
    const nb::object x = as_array(query);
    for (std::size_t j = 0; j < n; ++j) {
      const nb::object result = function_(x, as_array({rows[j], stored_}));
      const double value = PyFloat_AsDouble(result.ptr());
      if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
      out[j] = checked_distance(value, needs_non_negative_);
    }
  }

  bool may_fail() const override { return true; }
  bool single_threaded() const override { return true; }

 private:
  // A copy, so that a callable may keep what it was given.
  nb::object as_array(const Position& row) const {
    auto* values = new double[n_features_];
    const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    to_doubles(row, n_features_, values);
    return nb::cast(
        nb::ndarray<nb::numpy, const double, nb::ndim<1>>(values, {n_features_}, owner));
  }

  nb::object function_;
  ElementType stored_;
  std::size_t n_features_;
  bool needs_non_negative_;
};

}  // namespace

std::unique_ptr<Metric> make_callable_metric(nb::object function, ElementType stored,
                                             std::size_t n_features, bool needs_non_negative) {
  return std::make_unique<CallableMetric>(std::move(function), stored, n_features,
                                          needs_non_negative);
}

bool inside_callable_metric() { return depth > 0; }

}  // namespace boundary_forest
