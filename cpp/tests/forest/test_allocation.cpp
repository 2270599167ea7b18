// One row at a time: nothing is allocated but the answer and what is kept.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/check.hpp"
#include "tests/streams.hpp"

namespace {

std::atomic<std::size_t> n_allocations{0};

void* allocated(std::size_t size) {
  ++n_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocated(size); }
void* operator new[](std::size_t size) { return allocated(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

using namespace streams;

CASE("asking for one row allocates the answer and nothing else") {
  for (const Task task : {Task::classes, Task::numbers}) {
    const Stream stream = cube(params_for(task, 50, 50, 20), 400, 3);
    const auto forest = forest_for(stream.params);
    learn(*forest, stream, 0, stream.n);
    const Run run;
    for (std::size_t row = 0; row < stream.n; ++row) {
      const RowsView one = stream.rows(row, 1);
      const std::size_t before = n_allocations;
      const auto answer = row % 2 == 0 ? forest->estimate(one, run) : forest->predict(one, run);
      CHECK_EQ(n_allocations - before, std::size_t{1});
    }
  }
}

CASE("learning one row that no tree keeps allocates nothing but, rarely, a chunk") {
  const Stream stream = cube(params_for(Task::classes, 50, 50, 20), 400, 3);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, stream.n);
  const Run run;
  std::size_t n_calls = 0;
  for (std::size_t row = 0; row < stream.n; ++row) {
    const RowsView one = stream.rows(row, 1);
    std::size_t learned = 0;
    forest->learn(one, stream.labels_from(row), run, learned);  // once more: now each tree knows it
    const std::size_t before = n_allocations;
    forest->learn(one, stream.labels_from(row), run, learned);
    n_calls += n_allocations > before;
  }
  CHECK(n_calls <= 4);
}

CASE("answering and learning a row that no tree keeps allocates the answer and, rarely, a chunk") {
  const Stream stream = cube(params_for(Task::classes, 50, 50, 20), 400, 3);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, stream.n);
  const Run run;
  std::size_t n_calls = 0;
  for (std::size_t row = 0; row < stream.n; ++row) {
    const RowsView one = stream.rows(row, 1);
    std::size_t learned = 0;
    forest->learn(one, stream.labels_from(row), run, learned);
    const std::size_t before = n_allocations;
    forest->predict_then_learn(one, stream.labels_from(row), run, learned);
    n_calls += n_allocations > before + 1;
  }
  CHECK(n_calls <= 4);
}

int main() { return check::run_all(); }
