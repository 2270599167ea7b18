// Memory for what one call needs for a moment: on the stack while it is little, as for one row, and
// from the heap beyond that.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace boundary_forest {

class StackMemory : public std::pmr::monotonic_buffer_resource {
 public:
  StackMemory() : std::pmr::monotonic_buffer_resource(buffer_, sizeof buffer_) {}

 private:
  std::byte buffer_[8192];
};

}  // namespace boundary_forest
