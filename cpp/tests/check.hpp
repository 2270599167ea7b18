// A test harness of one screen: cases register themselves by name, checks may fail on any thread.
//
//   CASE("names read as claims") { CHECK_EQ(1 + 1, 2); }
//   int main() { return check::run_all(); }
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* name;
  void (*run)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Register {
  Register(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

inline std::mutex mutex;
inline int failures = 0;  // of the case that runs; guarded by mutex

// Only the first few are printed: a broken loop would repeat itself.
inline void failed(const char* file, int line, const std::string& what) {
  const std::lock_guard lock(mutex);
  if (++failures <= 5) std::printf("    %s:%d: %s\n", file, line, what.c_str());
}

template <class A, class B>
void equal(const char* file, int line, const char* expressions, const A& a, const B& b) {
  if (a == b) return;
  std::ostringstream what;
  what.precision(17);
  what << expressions << ": " << a << " != " << b;
  failed(file, line, what.str());
}

inline int run_all() {
  int n_passed = 0;
  int n_failed = 0;
  for (const Case& one : cases()) {
    failures = 0;
    const auto start = std::chrono::steady_clock::now();
    try {
      one.run();
    } catch (const std::exception& error) {
      failed(one.name, 0, std::string("threw ") + error.what());
    }
    ++(failures == 0 ? n_passed : n_failed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%s %6.2f s  %s\n", failures == 0 ? "passed" : "FAILED", took.count(), one.name);
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed == 0 && n_passed > 0 ? 0 : 1;
}

}  // namespace check

#define CHECK_JOIN2(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN2(a, b)

#define CASE(name)                                                                                 \
  static void CHECK_JOIN(case_, __LINE__)();                                                       \
  static const check::Register CHECK_JOIN(register_, __LINE__)(name, CHECK_JOIN(case_, __LINE__)); \
  static void CHECK_JOIN(case_, __LINE__)()

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) check::failed(__FILE__, __LINE__, #condition); \
  } while (false)

// With the circumstances, which are put into words only when it fails.
#define CHECK_IN(circumstances, condition)                                                  \
  do {                                                                                      \
    if (!(condition)) check::failed(__FILE__, __LINE__, #condition ": " + (circumstances)); \
  } while (false)

#define CHECK_EQ(a, b) check::equal(__FILE__, __LINE__, #a " == " #b, (a), (b))

#define CHECK_THROWS(expression, Exception)                                                   \
  do {                                                                                        \
    bool thrown = false;                                                                      \
    try {                                                                                     \
      expression;                                                                             \
    } catch (const Exception&) {                                                              \
      thrown = true;                                                                          \
    }                                                                                         \
    if (!thrown) check::failed(__FILE__, __LINE__, #expression " did not throw " #Exception); \
  } while (false)

// TreeLeaves a case that cannot run here, saying why.
#define SKIP(why)                          \
  do {                                     \
    std::printf("    skipped: %s\n", why); \
    return;                                \
  } while (false)

// Sanitizers cost time and memory: some tests then run smaller.
#if defined(__SANITIZE_THREAD__)
#define CHECK_THREAD_SANITIZER 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHECK_ADDRESS_SANITIZER 1
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHECK_THREAD_SANITIZER 1
#endif
#if __has_feature(address_sanitizer)
#define CHECK_ADDRESS_SANITIZER 1
#endif
#endif
