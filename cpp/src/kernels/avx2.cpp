// The portable kernels, compiled for AVX2.
#include "lanes.hpp"

namespace boundary_forest::kernels {

Kernel avx2_kernel(Formula formula, ElementType stored, ElementType query) {
  return kernel_for(formula, stored, query);
}

}  // namespace boundary_forest::kernels
