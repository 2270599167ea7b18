// Allocations that fail on request. It replaces the operators of a program, so that one file of a test
// includes it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

namespace failing {

constexpr long never = 1L << 60;
inline std::atomic<long> countdown{never};  // allocations until one fails
inline std::atomic<bool> for_good{false};   // and all after it

inline void* allocated(std::size_t size) {
  const long left = countdown.fetch_sub(1);
  if (left == 0 || (left < 0 && for_good)) throw std::bad_alloc();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace failing

void* operator new(std::size_t size) { return failing::allocated(size); }
void* operator new[](std::size_t size) { return failing::allocated(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // std::stable_sort's
  try {
    return failing::allocated(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace failing {

// Whether the call ran out of memory at its n-th allocation; from there on if `for_good`.
inline bool fails_at(long n, bool from_there_on, const std::function<void()>& call) {
  for_good = from_there_on;
  countdown = n;
  bool failed = false;
  try {
    call();
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  countdown = never;
  return failed;
}

}  // namespace failing
