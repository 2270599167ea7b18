// The portable kernels, compiled for AVX2.
#include "distance/kernels/codes.hpp"
#include "distance/kernels/columns.hpp"
#include "distance/kernels/formulas.hpp"
#include "distance/kernels/products.hpp"
#include "distance/kernels/projection.hpp"

namespace boundary_forest::kernels {

InstructionSet avx2() {
  return {"avx2", kernel_for, code_kernels, column_kernels, project, add_outer_products};
}

}  // namespace boundary_forest::kernels
