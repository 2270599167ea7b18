// The baselines' part of the Python extension _core.
#pragma once

#include <nanobind/nanobind.h>

namespace boundary_forest {

void bind_baselines(nanobind::module_& m);

}  // namespace boundary_forest
