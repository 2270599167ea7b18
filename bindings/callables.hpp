// Metrics d and d_c that are Python callables: f(a, b) -> float, on two read-only float64 arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "distance/metric.hpp"

namespace boundary_forest {

// The caller keeps `function` alive.
std::unique_ptr<Metric> make_callable_metric(nanobind::handle function, ElementType stored,
                                             std::size_t n_features, bool needs_non_negative);

LabelFunction make_label_function(nanobind::handle function, std::size_t length);

// Is this thread inside this callable? Then the forest that it serves must not be entered again.
bool is_inside(nanobind::handle function);

}  // namespace boundary_forest
