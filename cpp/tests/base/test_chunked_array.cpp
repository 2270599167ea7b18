// Arrays that grow by chunks (chunked_array.hpp): nothing moves, and only chunks that lie beyond
// the end are freed.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/chunked_array.hpp"
#include "tests/check.hpp"

using boundary_forest::ChunkedArray;

CASE("elements keep their address and value while the array grows") {
  ChunkedArray<std::uint64_t> array(3);
  std::vector<std::uint64_t*> addresses;
  for (std::size_t i = 0; i < 5000; ++i) {
    array.grow_to(i + 1);
    array[i] = 3 * i + 1;
    addresses.push_back(array.at(i));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    CHECK(array.at(i) == addresses[i]);
    CHECK_EQ(array[i], 3 * i + 1);
  }
}

CASE("adopted elements stay where they are, and growing never writes to them") {
  for (const std::size_t n : {1U, 7U, 8U, 9U, 40U, 1000U}) {
    std::vector<std::uint64_t> foreign(2 * n);
    for (std::size_t i = 0; i < foreign.size(); ++i) foreign[i] = 5 * i;
    const std::vector<std::uint64_t> before = foreign;
    ChunkedArray<std::uint64_t> array(3, 2);
    array.adopt(foreign.data(), n);
    CHECK_EQ(array.at(n - 1), foreign.data() + 2 * (n - 1));
    for (std::size_t i = n; i < 2 * n + 100; ++i) {
      array.grow_to(i + 1);
      array.at(i)[0] = array.at(i)[1] = i;
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < 2; ++j) CHECK_EQ(array.at(i)[j], 5 * (2 * i + j));
    for (std::size_t i = n; i < 2 * n + 100; ++i) CHECK_EQ(array.at(i)[1], i);
    array.shrink_to(n);
    CHECK_EQ(array.at(0)[1], 5U);
    CHECK(foreign == before);
  }
}

CASE("a reader may use what was adopted while the writer appends behind it") {
  constexpr std::size_t n = 13;  // the last chunk is not full
  std::vector<std::uint64_t> foreign(n);
  for (std::size_t i = 0; i < n; ++i) foreign[i] = 3 * i;
  for (int round = 0; round < 50; ++round) {
    ChunkedArray<std::uint64_t> array(3);
    array.adopt(foreign.data(), n);
    std::atomic<bool> done{false};
    std::thread reader([&] {
      std::uint64_t wrong = 0;
      do {
        for (std::size_t i = 0; i < n; ++i) wrong += array[i] != 3 * i;
      } while (!done);
      CHECK_EQ(wrong, 0U);
    });
    for (std::size_t i = n; i < 300; ++i) {
      array.grow_to(i + 1);
      array[i] = i;
    }
    done = true;
    reader.join();
  }
}

CASE("new elements are zero") {
  ChunkedArray<int> array(4, 3);
  array.grow_to(100);
  for (std::size_t i = 0; i < 100; ++i)
    for (std::size_t j = 0; j < 3; ++j) CHECK_EQ(array.at(i)[j], 0);
}

CASE("an element is as many values as its width says, none of them shared") {
  ChunkedArray<std::uint32_t> array(2, 7);
  array.grow_to(50);
  for (std::uint32_t i = 0; i < 50; ++i)
    for (std::uint32_t j = 0; j < 7; ++j) array.at(i)[j] = 100 * i + j;
  for (std::uint32_t i = 0; i < 50; ++i)
    for (std::uint32_t j = 0; j < 7; ++j) CHECK_EQ(array.at(i)[j], 100 * i + j);
}

CASE("memory grows by one chunk at a time, never by doubling") {
  ChunkedArray<std::uint64_t> array(6);
  for (std::size_t n = 1; n <= 100000; ++n) {
    array.grow_to(n);
    CHECK(array.capacity() >= n && array.capacity() < n + 64);
  }
  // Beyond the elements: a pointer a chunk, at most twice as many, and the directories before.
  CHECK(array.bytes() <= array.capacity() * 8 + 4 * 8 * (array.capacity() / 64));
}

CASE("shrinking frees all but one of the chunks beyond the end, and what remains is untouched") {
  ChunkedArray<std::uint64_t> array(3);
  array.grow_to(1000);
  for (std::size_t i = 0; i < 1000; ++i) array[i] = i;
  const std::size_t full = array.bytes();
  array.shrink_to(100);
  CHECK_EQ(array.capacity(), std::size_t{104 + 8});
  CHECK_EQ(array.bytes(), full - (1000 - 112) * 8);
  for (std::size_t i = 0; i < 100; ++i) CHECK_EQ(array[i], i);
  array.grow_to(1000);
  CHECK_EQ(array.bytes(), full);
  for (std::size_t i = 0; i < 100; ++i) CHECK_EQ(array[i], i);
  for (std::size_t i = 112; i < 1000; ++i) CHECK_EQ(array[i], std::uint64_t{0});
}

CASE("shrinking an array that has nothing to spare changes nothing") {
  ChunkedArray<int> array(3);
  array.shrink_to(0);
  CHECK_EQ(array.bytes(), std::size_t{0});
  array.grow_to(8);
  array.shrink_to(8);
  CHECK_EQ(array.capacity(), std::size_t{8});
}

CASE("a reader may use what was published to it while the writer appends and shrinks") {
  ChunkedArray<std::uint64_t> array(2);
  std::atomic<std::size_t> published{0};
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    for (bool last = false; !last;) {
      last = ended.load();
      const std::size_t n = published.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < n; ++i) CHECK_EQ(array[i], i + 1);
    }
  });
  for (std::size_t n = 0; n < 2000; n += 20) {
    array.grow_to(n + 60);
    for (std::size_t i = n; i < n + 60; ++i) array[i] = i + 1;
    array.shrink_to(n + 20);
    published.store(n + 20, std::memory_order_release);
  }
  ended = true;
  reader.join();
}

int main() { return check::run_all(); }
