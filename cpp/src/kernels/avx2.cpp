// The portable kernels, compiled for AVX2.
#include "codes.hpp"
#include "columns.hpp"
#include "lanes.hpp"

namespace boundary_forest::kernels {

InstructionSet avx2() { return {"avx2", kernel_for, code_kernels, column_kernels}; }

}  // namespace boundary_forest::kernels
