// The driver of a forest that is spread over several engines, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace boundary_forest {

void bind_driver(nanobind::module_& m);

}  // namespace boundary_forest
