// The portable kernels, compiled for AVX-512 with its byte products (VNNI).
#include "codes.hpp"
#include "lanes.hpp"
#include "tiles.hpp"

namespace boundary_forest::kernels {

InstructionSet avx512() { return {"avx512", kernel_for, code_kernels, compare_tile}; }

}  // namespace boundary_forest::kernels
