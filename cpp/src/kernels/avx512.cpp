// The portable kernels, compiled for AVX-512 with its byte products (VNNI).
#include "codes.hpp"
#include "columns.hpp"
#include "lanes.hpp"

namespace boundary_forest::kernels {

InstructionSet avx512() { return {"avx512", kernel_for, code_kernels, column_kernels}; }

}  // namespace boundary_forest::kernels
