// The portable kernels for the baseline of the target, with no instruction set chosen.
#include "lanes.hpp"

namespace boundary_forest::kernels {

Kernel scalar_kernel(Formula formula, ElementType stored, ElementType query) {
  return kernel_for(formula, stored, query);
}

}  // namespace boundary_forest::kernels
