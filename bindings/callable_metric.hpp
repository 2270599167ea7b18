// A metric that is a Python callable: f(x, y) -> float, on two read-only float64 arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "boundary_forest/metric.hpp"

namespace boundary_forest {

std::unique_ptr<Metric> make_callable_metric(nanobind::object function, ElementType stored,
                                             std::size_t n_features, bool needs_non_negative);

// Is this thread inside a callable metric? Then the forest must not be entered again.
bool inside_callable_metric();

}  // namespace boundary_forest
