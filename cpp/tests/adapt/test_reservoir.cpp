// A sample of all arrivals that holds stored examples, whatever the blocks.
#include <algorithm>
#include <numeric>
#include <vector>

#include "adapt/reservoir.hpp"
#include "tests/check.hpp"

using namespace boundary_forest;

namespace {

Params params_with(std::uint32_t max_stored) {
  Params params;
  params.n_T = 2;
  params.n_features = 1;
  params.label_length = 1;
  params.seed = 7;
  params.has_learned_weights = true;
  params.max_stored = max_stored;
  return params;
}

// A store that keeps the members of a reservoir alone.
struct Sampled {
  explicit Sampled(const Params& params)
      : store(ElementType::float64, 1, 1), reservoir(params), window(sizeof(double), 1) {}

  // Rows whose label is a class for each `per_class` arrivals.
  std::vector<Slot> learn(std::size_t n, Arrival per_class) {
    std::vector<double> rows(n), labels(n);
    std::iota(rows.begin(), rows.end(), static_cast<double>(seen));
    for (std::size_t i = 0; i < n; ++i) {
      labels[i] = static_cast<double>((seen + i) / per_class);
      window.add(reinterpret_cast<const std::byte*>(&rows[i]), &labels[i]);
    }
    const Slot first =
        store.stage(reinterpret_cast<const std::byte*>(rows.data()), labels.data(), n, seen);
    std::vector<Slot> replayed = reservoir.add(seen, first, n);
    std::vector<Slot> joined = reservoir.staged(first);
    std::vector<char> kept(n, 0);
    std::vector<Slot> where(n, nothing);
    for (const Slot slot : joined) kept[slot - first] = 1;
    store.settle(first, kept, where);
    for (Slot& slot : joined) slot = where[slot - first];
    reservoir.settle(first, joined, ++published, store);
    store.reserve_to_commit();
    store.commit(published);
    store.recycle_before(published + 1);
    seen += n;
    reservoir.decide(seen, window, store);
    return replayed;
  }

  std::vector<Arrival> arrivals() const {
    std::vector<Arrival> found;
    for (const Reservoir::Member& member : reservoir.members()) {
      if (member.slot != nothing) CHECK_EQ(store.arrival(member.slot), member.arrival);
      found.push_back(member.arrival);
    }
    return found;
  }

  ExampleStore store;
  Reservoir reservoir;
  Window window;
  Arrival seen = 0;
  std::uint64_t published = 0;
};

}  // namespace

CASE("a reservoir has the arrivals of least hash, in whatever blocks they come") {
  const Params params = params_with(200);
  std::vector<Arrival> expected(1500);
  std::iota(expected.begin(), expected.end(), 0);
  const auto key = [&](Arrival a) { return hash64(params.seed, a); };
  std::sort(expected.begin(), expected.end(),
            [&](Arrival a, Arrival b) { return key(a) < key(b); });
  expected.resize(50);
  for (const std::size_t n : {1, 7, 64, 500, 1500}) {
    Sampled sampled(params);
    while (sampled.seen < 1500) sampled.learn(std::min<std::size_t>(n, 1500 - sampled.seen), 1500);
    CHECK(sampled.arrivals() == expected);
    CHECK_EQ(sampled.store.n_living(), Slot{50});
  }
}

CASE("members are replayed while rows come sorted by class, and no longer") {
  Sampled sampled(params_with(0));
  for (int i = 0; i < 8; ++i) CHECK(sampled.learn(64, 512).empty());  // one class
  CHECK(sampled.learn(64, 512).empty());                              // the next one begins
  for (int i = 0; i < 16; ++i) sampled.learn(64, 512);
  CHECK(sampled.reservoir.replays());
  CHECK_EQ(sampled.learn(64, 512).size(), std::size_t{64});
  while (sampled.seen < 8192) sampled.learn(64, 8192);
  CHECK(!sampled.reservoir.replays());
}

CASE("a member that is forgotten leaves an empty place, and copies stay as they were") {
  Sampled sampled(params_with(200));
  sampled.learn(300, 300);
  const Reservoir before = sampled.reservoir;
  const std::vector<Arrival> arrivals = sampled.arrivals();
  std::vector<char> forgotten(sampled.store.size(), 0);
  const Slot slot = before.members()[3].slot;
  forgotten[slot] = 1;
  sampled.reservoir.erase(forgotten, sampled.published + 1, sampled.store);
  CHECK_EQ(before.members()[3].slot, slot);
  CHECK(sampled.reservoir.members()[3].slot == nothing);
  CHECK(!sampled.store.is_alive(slot));
  CHECK(sampled.arrivals() == arrivals);
  CHECK_EQ(sampled.store.n_living(), Slot{49});
}

int main() { return check::run_all(); }
