// The largest allocation that a process makes in between, told by the address sanitizer: for tests
// in Python, which load this as a library.
#include <atomic>
#include <cstddef>

// As in sanitizer/allocator_interface.h, which GCC does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {

std::atomic<bool> watching{false};
std::atomic<std::size_t> largest{0};

void allocated(const volatile void*, std::size_t size) {
  if (!watching) return;
  std::size_t before = largest;
  while (size > before && !largest.compare_exchange_weak(before, size)) {
  }
}

void freed(const volatile void*) {}

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed);

}  // namespace

extern "C" void begin_watching() {
  largest = 0;
  watching = true;
}

extern "C" std::size_t end_watching() {
  watching = false;
  return largest;
}
