#include "forest/grower.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/rng.hpp"
#include "concurrency/thread_pool.hpp"
#include "tree/block_descent.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

std::vector<std::pair<Arrival, Slot>> stored_by_arrival(const ExampleStore& store, Slot staged) {
  std::vector<std::pair<Arrival, Slot>> stored;
  stored.reserve(store.n_living());
  for (Slot slot = 0; slot < store.size(); ++slot)
    if (slot >= staged || store.is_alive(slot)) stored.emplace_back(store.arrival(slot), slot);
  std::sort(stored.begin(), stored.end());
  return stored;
}

std::vector<Slot> slots_of(const ExampleStore& store, std::span<const Arrival> arrivals) {
  const std::vector<std::pair<Arrival, Slot>> stored = stored_by_arrival(store);
  std::vector<Slot> slots;
  slots.reserve(arrivals.size());
  for (const Arrival arrival : arrivals) {
    const auto at = std::lower_bound(stored.begin(), stored.end(), std::pair(arrival, Slot{0}));
    if (at == stored.end() || at->first != arrival)
      throw std::invalid_argument("example " + std::to_string(arrival) + " is not stored");
    slots.push_back(at->second);
  }
  return slots;
}

std::size_t Grower::block_rows(std::uint64_t seen) {
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(seen / 8, 256, 4096));
}

LearnerTree Grower::make_tree(std::uint32_t place, std::uint32_t generation,
                              std::shared_ptr<const TreeSettings> settings) const {
  LearnerTree made;
  made.tree =
      std::make_unique<BoundaryTree>(place, generation, setup_.params, std::move(settings), store_);
  return made;
}

void Grower::grow(std::span<LearnerTree> trees, const QueryRows& examples, double epsilon,
                  const Run& run, const std::function<Shown(std::size_t i)>& shown) const {
  const BlockPrefilters prefilters(
      examples, setup_.plain, trees, [](const LearnerTree& one) { return one.tree.get(); },
      store_.sketches(), setup_.n_threads(run));
  parallel_for(trees.size(), setup_.n_learning_threads(run), [&](std::size_t i) {
    grow_tree(trees[i], examples, shown(i), epsilon, prefilters.of(*trees[i].tree), run);
  });
}

void Grower::grow_tree(LearnerTree& grown, const QueryRows& examples, const Shown& shown,
                       double epsilon, const Prefilter* prefilter, const Run& run) const {
  BoundaryTree& tree = *grown.tree;
  const std::span<const std::uint32_t> order = shown.order;
  const std::vector<double> epsilons(prefilter != nullptr ? examples.size() : 0, epsilon);
  std::size_t seen = 0;
  if (tree.size() == 0) tree.plant(examples.slot(order[seen++]));
  while (seen < order.size()) {
    const std::size_t n =
        std::min(order.size() - seen, block_rows(std::max<std::size_t>(seen, 2 * tree.size())));
    const std::span<const std::uint32_t> block = order.subspan(seen, n);
    if (prefilter != nullptr)
      BlockDescent(examples, *prefilter)
          .train(
              tree, block, {seen, BlockDescent::Clock::Pace::rows}, epsilons.data(), grown.cost,
              [](std::size_t, const Leaf&) { return true; }, shown.start);
    else
      for (std::size_t j = 0; j < n; ++j)
        tree.BTTrain(examples, block[j], seen + j, epsilon, grown.cost, shown.start);
    seen += n;
    run.between_blocks();
  }
}

std::vector<std::uint32_t> Grower::own_order(const BoundaryTree& tree, std::span<const Slot> slots,
                                             std::span<const std::uint32_t> shown) const {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
  keyed.reserve(shown.size());
  for (const std::uint32_t j : shown)
    keyed.emplace_back(
        hash64(setup_.params.seed, tree.place(), tree.generation(), store_.arrival(slots[j])), j);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::uint32_t> order;
  order.reserve(keyed.size());
  for (const auto& [key, j] : keyed) order.push_back(j);
  return order;
}

}  // namespace boundary_forest
