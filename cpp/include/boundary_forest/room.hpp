// Room made in advance: whoever changes something in several steps asks for all memory before the
// first of them, so that nothing can fail half-way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace boundary_forest {

// `n` elements can be added without asking for memory; room grows by doubling.
template <class T>
void make_room(std::vector<T>& in, std::size_t n) {
  if (in.capacity() - in.size() < n)
    in.reserve(std::max({2 * in.capacity(), in.size() + n, std::size_t{8}}));
}

}  // namespace boundary_forest
