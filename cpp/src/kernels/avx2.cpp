// The portable kernels, compiled for AVX2.
#include "codes.hpp"
#include "lanes.hpp"
#include "tiles.hpp"

namespace boundary_forest::kernels {

InstructionSet avx2() { return {"avx2", kernel_for, code_kernels, compare_tile}; }

}  // namespace boundary_forest::kernels
