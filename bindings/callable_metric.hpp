// A metric that is a Python callable: f(x, y) -> float, on two read-only float64 arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "boundary_forest/metric.hpp"

namespace boundary_forest {

// The caller keeps `function` alive.
std::unique_ptr<Metric> make_callable_metric(nanobind::handle function, ElementType stored,
                                             std::size_t n_features, bool needs_non_negative);

// Is this thread inside this metric? Then the forest that it serves must not be entered again.
bool is_inside(const Metric* metric);

}  // namespace boundary_forest
