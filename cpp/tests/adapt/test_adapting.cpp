// Decisions about weights and votes: the same on either path, when a call is interrupted in the middle
// of one, and to readers meanwhile.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

struct Interrupt {};

Stream stream_of(Task task, ElementType type = ElementType::float32,
                 VoteWeights votes = VoteWeights::automatic) {
  Params params = params_for(task, 4, 20, 6, type);
  params.max_samples = 0.5;
  params.vote_weights = votes;
  params.has_learned_weights = true;
  return grid(params, 600, 11);
}

const std::vector<std::uint64_t> keys = {1, 2, 3, 4};

bool same(BoundaryForest& a, BoundaryForest& b) {
  const Digest one = *a.digest(keys);
  const Digest other = *b.digest(keys);
  return one.trees == other.trees && one.examples == other.examples &&
         one.adaptation == other.adaptation;
}

}  // namespace

CASE("rows that go through trees together lead to the same decisions") {
  for (const Task task : {Task::classes, Task::numbers})
    for (const ElementType type : element_types) {
      const bool mixes = type == ElementType::uint8 || type == ElementType::float64;
      const Stream stream =
          stream_of(task, type, mixes ? VoteWeights::mixture : VoteWeights::automatic);
      const auto block = forest_for(stream.params);
      learn(*block, stream, 0, stream.n);
      setenv("BOUNDARY_FOREST_PATH", "plain", 1);
      const auto plain = forest_for(stream.params);
      unsetenv("BOUNDARY_FOREST_PATH");
      learn_in_calls(*plain, stream, {1, 7, 130});
      CHECK(!block->state().tree_generations.empty());  // some weights were learned
      CHECK(same(*block, *plain));
    }
}

void check_interrupts(const Stream& stream) {
  const auto whole = forest_for(stream.params);
  learn(*whole, stream, 0, stream.n);
  bool interrupted = true;
  for (int k = 1; interrupted; ++k) {
    const auto forest = forest_for(stream.params);
    std::size_t learned = 0;
    int left = k;
    interrupted = false;
    try {
      forest->learn(stream.rows(), stream.labels_from(0),
                    Run{1,
                        [&] {
                          if (--left == 0) throw Interrupt{};
                        }},
                    learned);
    } catch (const Interrupt&) {
      interrupted = true;
    }
    CHECK_EQ(forest->seen(), learned);
    const auto prefix = forest_for(stream.params);
    if (learned > 0) learn(*prefix, stream, 0, learned);
    CHECK(same(*forest, *prefix));
    if (learned < stream.n) learn(*forest, stream, learned, stream.n - learned);
    CHECK(same(*forest, *whole));
  }
}

CASE("an interrupt in the middle of a decision takes its block back, and no more") {
  for (const VoteWeights votes : {VoteWeights::automatic, VoteWeights::mixture})
    check_interrupts(stream_of(Task::classes, ElementType::float32, votes));
}

CASE("readers during decisions see one state") {
  const Stream stream = stream_of(Task::numbers, ElementType::float32, VoteWeights::mixture);
  const auto forest = forest_for(stream.params);
  learn(*forest, stream, 0, 10);
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!done) {
        const BoundaryForest::State state = forest->state();
        const auto restored = forest_for(stream.params);
        restored->restore(state);  // believes nothing
        CHECK_EQ(restored->seen(), state.seen);
        CHECK_EQ(forest->features().variances.size(), stream.params.n_features);
      }
    });
  for (std::size_t begin = 10; begin < stream.n; begin += 10) learn(*forest, stream, begin, 10);
  done = true;
  for (std::thread& reader : readers) reader.join();
}

int main() { return check::run_all(); }
