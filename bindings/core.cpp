// The Python extension _core: checks arrays, releases the GIL, decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string>

#include "base/checksum.hpp"
#include "common.hpp"
#include "constants.hpp"
#include "driver.hpp"
#include "forest.hpp"

namespace boundary_forest {

using namespace nb::literals;

NB_MODULE(_core, m) {
  m.doc() = "The compiled Boundary Forest engine.";
  set_up_interpreter();
  m.def("instruction_set", &instruction_set,
        "Return the instruction set in use: 'scalar', 'avx2' or 'avx512'.");
  m.def("has_fast_crc32", &has_fast_crc32,
        "Return whether the processor's carry-less multiplication computes checksums.");
  m.def(
      "crc32",
      [](const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& data,
         std::uint32_t crc) {
        const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
        return without_gil([&] { return crc32(std::span(bytes, data.size()), crc); });
      },
      nb::sig("def crc32(data: numpy.typing.NDArray[numpy.uint8] | memoryview, crc: int) -> int"),
      "data"_a, "crc"_a, "Return zlib's checksum of data that follow others of checksum crc.");
  bind_constants(m);
  bind_forest(m);
  bind_driver(m);
}

}  // namespace boundary_forest
