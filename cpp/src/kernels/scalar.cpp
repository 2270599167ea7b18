// The portable kernels for the baseline of the target, with no instruction set chosen.
#include "codes.hpp"
#include "lanes.hpp"
#include "tiles.hpp"

namespace boundary_forest::kernels {

InstructionSet scalar() { return {"scalar", kernel_for, code_kernels, compare_tile}; }

}  // namespace boundary_forest::kernels
