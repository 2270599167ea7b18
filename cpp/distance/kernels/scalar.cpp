// The portable kernels for the baseline of the target, with no instruction set chosen.
#include "distance/kernels/codes.hpp"
#include "distance/kernels/columns.hpp"
#include "distance/kernels/formulas.hpp"
#include "distance/kernels/products.hpp"
#include "distance/kernels/projection.hpp"

namespace boundary_forest::kernels {

InstructionSet scalar() {
  return {"scalar", kernel_for, code_kernels, column_kernels, project, add_outer_products};
}

}  // namespace boundary_forest::kernels
