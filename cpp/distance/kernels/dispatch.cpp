// The choice of an instruction set, made once, at first use.
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "distance/kernels/kernel.hpp"

#ifdef BOUNDARY_FOREST_X86
#include <cpuid.h>
#endif

namespace boundary_forest::kernels {

#ifdef BOUNDARY_FOREST_X86
namespace {

// Not every compiler knows its name in __builtin_cpu_supports.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1U) != 0;
}

}  // namespace
#endif

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets = {scalar()};
#ifdef BOUNDARY_FOREST_X86
  // Every processor with AVX2 has F16C, but a virtual machine may hide it.
  if (!has_f16c()) return sets;
  if (__builtin_cpu_supports("avx2")) sets.push_back(avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni"))
    sets.push_back(avx512());
#endif
  return sets;
}

namespace {

InstructionSet choose() {
  const std::vector<InstructionSet> sets = instruction_sets();
  const char* wanted = std::getenv("BOUNDARY_FOREST_ISA");
  if (wanted == nullptr || *wanted == '\0') return sets.back();
  std::string names;
  for (const InstructionSet& set : sets) {
    if (set.name == wanted) return set;
    names += (names.empty() ? "" : ", ") + set.name;
  }
  throw std::invalid_argument("BOUNDARY_FOREST_ISA must be one of " + names +
                              " on this processor, got '" + std::string(wanted) + "'");
}

}  // namespace

const InstructionSet& instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

}  // namespace boundary_forest::kernels
