// The portable kernels, compiled for AVX-512 with its byte products (VNNI).
#include "distance/kernels/codes.hpp"
#include "distance/kernels/columns.hpp"
#include "distance/kernels/formulas.hpp"
#include "distance/kernels/products.hpp"
#include "distance/kernels/projection.hpp"

namespace boundary_forest::kernels {

InstructionSet avx512() {
  return {"avx512",
          kernel_for,
          code_kernels,
          column_kernels,
          project,
          add_outer_products,
          /*has_byte_products=*/true};
}

}  // namespace boundary_forest::kernels
