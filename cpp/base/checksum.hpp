// CRC-32 as zlib has it, for the arrays of a model file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace boundary_forest {

// Whether this processor multiplies without carries; else zlib is as fast as anything here.
bool has_fast_crc32();

// The checksum of what had `crc` with `bytes` behind it; 0 for nothing.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc);

}  // namespace boundary_forest
