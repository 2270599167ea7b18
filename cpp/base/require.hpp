// A check of a state that nothing is believed of before, from a file, a copy or a pickle.
#pragma once

#include <stdexcept>
#include <string>

namespace boundary_forest {

inline void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument("inconsistent state: " + std::string(what));
}

}  // namespace boundary_forest
