// The portable kernels for the baseline of the target, with no instruction set chosen.
#include "codes.hpp"
#include "columns.hpp"
#include "lanes.hpp"

namespace boundary_forest::kernels {

InstructionSet scalar() { return {"scalar", kernel_for, code_kernels, column_kernels}; }

}  // namespace boundary_forest::kernels
