// The choice of an instruction set, made once, at first use.
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "kernel.hpp"

namespace boundary_forest::kernels {
namespace {

// Those that this processor can run, the best last.
std::vector<InstructionSet> available() {
  std::vector<InstructionSet> sets = {{"scalar", scalar_kernel}};
#ifdef BOUNDARY_FOREST_AVX2
  if (__builtin_cpu_supports("avx2")) sets.push_back({"avx2", avx2_kernel});
#endif
  return sets;
}

InstructionSet choose() {
  const std::vector<InstructionSet> sets = available();
  const char* wanted = std::getenv("BOUNDARY_FOREST_ISA");
  if (wanted == nullptr || *wanted == '\0') return sets.back();
  std::string names;
  for (const InstructionSet& set : sets) {
    if (set.name == wanted) return set;
    names += (names.empty() ? "" : ", ") + set.name;
  }
  throw std::invalid_argument("BOUNDARY_FOREST_ISA is '" + std::string(wanted) +
                              "'; this processor can run: " + names);
}

}  // namespace

const InstructionSet& instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

}  // namespace boundary_forest::kernels
