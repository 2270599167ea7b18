#include "forest/training.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/memory.hpp"
#include "base/rng.hpp"
#include "tree/block_descent.hpp"

namespace boundary_forest {

// Tree i takes example i as its root and the other n_T - 1 in its own random order. (Some may have been
// forgotten: then the root is the first of that order.)
void Training::BFInitialization(const Run& run) {
  const Params& params = setup_.params;
  const ExampleStore& store = draft_.store();
  std::vector<Slot> slots;
  std::vector<std::uint32_t> row_of(params.n_T, nothing);  // of each arrival
  for (const auto& [arrival, slot] : stored_by_arrival(store)) {
    row_of[arrival] = static_cast<std::uint32_t>(slots.size());
    slots.push_back(slot);
  }
  const QueryRows examples(store, slots);
  const double epsilon = draft_.epsilon();
  for (std::uint32_t i = 0; i < params.n_held(); ++i)
    draft_.trees().add(
        grower_.make_tree(params.first_tree + i, 0, draft_.progress().adaptation.settings));
  const std::span<LearnerTree> trees = draft_.trees().all();
  parallel_for(trees.size(), setup_.n_learning_threads(run), [&](std::size_t t) {
    BoundaryTree& tree = *trees[t].tree;
    const std::uint32_t i = tree.place();
    std::vector<std::uint32_t> order = shuffled(params.n_T, params.seed, i);
    std::erase_if(order, [&](std::uint32_t y) { return row_of[y] == nothing; });
    const std::uint32_t root = row_of[i] == nothing ? order[0] : i;
    tree.plant(slots[row_of[root]]);
    std::uint64_t seen = 1;
    for (const std::uint32_t y : order)
      if (y != root && params.learns(i, y))
        tree.BTTrain(examples, row_of[y], seen++, epsilon, trees[t].cost);
  });
  draft_.close_block(store.size());
  for (const Slot slot : slots) draft_.store().let_go(slot, draft_.next());  // held while it waited
}

void Training::BFTrain(Slot first, std::size_t n, std::span<const Slot> replayed, const Run& run,
                       Leaf* v) {
  StackMemory memory;
  std::pmr::vector<double> epsilon = draft_.thresholds(first, n, &memory);
  std::pmr::vector<Slot> slots(&memory);
  for (std::size_t y = 0; y < replayed.size(); ++y) {
    // What is forgotten is passed over; the arrival stands there for it.
    const Slot slot = first + static_cast<Slot>(y);
    slots.insert(slots.end(), {slot, replayed[y] == nothing ? slot : replayed[y]});
    epsilon.insert(epsilon.begin() + static_cast<std::ptrdiff_t>(2 * y), epsilon[2 * y]);
  }
  const QueryRows examples = replayed.empty() ? QueryRows(draft_.store(), first, n, &memory)
                                              : QueryRows(draft_.store(), slots, &memory);
  const std::span<LearnerTree> trees = draft_.trees().all();
  const BlockPrefilters prefilters(
      examples, setup_.plain, trees, [](const LearnerTree& one) { return one.tree.get(); },
      draft_.store().sketches(), setup_.n_threads(run),
      draft_.progress().adaptation.settings->d.get());
  std::vector<DescentEnd> cached;
  if (n == 1)
    cached = query_cache_.recall(draft_.newest().number,
                                 {examples.position(0).data, setup_.row_bytes()});
  const TrainingBlock block{examples, epsilon, replayed, prefilters, v, cached};
  const std::size_t n_threads = setup_.n_learning_threads(run);
  if (setup_.params.forgets())
    return draft_.trees().for_each_place(n_threads, [&](std::size_t i, TreeSet::PlaceTrees& place) {
      train_place(place, block, i);
    });
  parallel_for(trees.size(), n_threads,
               [&](std::size_t i) { train(trees[i], block, 0, static_cast<std::uint32_t>(n), i); });
}

// One tree, on arrivals begin to end of the block. It is the i-th of those that are held here.
//
// What is replayed is stored again only where another label stands at another position: a tree that ends at
// the example itself, or at one that cannot be told from it, gains nothing.
void Training::train(LearnerTree& trained, const TrainingBlock& block, std::uint32_t begin,
                     std::uint32_t end, std::size_t i) const {
  const Params& params = setup_.params;
  const std::size_t n_T = params.n_held();
  const Arrival arrived = draft_.progress().seen;
  BoundaryTree& tree = *trained.tree;
  const bool answers = block.v != nullptr && trained.answering;
  const std::uint32_t pace = block.pace();
  const auto takes = [&](std::size_t row) {
    return block.is_replayed(row) ? block.replayed[row / pace] != nothing
                                  : params.learns(tree.place(), arrived + row / pace);
  };
  const auto learns = [&](std::size_t row, const Leaf& at) {
    return takes(row) && (!block.is_replayed(row) || at.reduced != 0.0);
  };
  const Prefilter* prefilter = block.prefilters.of(tree);
  const bool is_cached = !block.cached.empty() && trained.answering && begin == 0;
  if (prefilter != nullptr && !is_cached &&
      (end - begin >= BlockDescent::worth_it || prefilter->sketches() != nullptr)) {
    std::vector<std::uint32_t> some;
    std::span<const std::uint32_t> rows =
        block.prefilters.all_rows().subspan(pace * begin, pace * (end - begin));
    if (!answers ? params.max_samples < 1.0 : pace > 1) {  // others need not descend
      std::copy_if(rows.begin(), rows.end(), std::back_inserter(some), [&](std::uint32_t row) {
        return takes(row) || (answers && !block.is_replayed(row));
      });
      rows = some;
    }
    BlockDescent descent(block.examples, *prefilter);
    using Pace = BlockDescent::Clock::Pace;
    descent.train(tree, rows, {arrived, pace == 1 ? Pace::block : Pace::every_other},
                  block.epsilon.data(), trained.cost, learns);
    for (std::size_t j = 0; answers && j < rows.size(); ++j)
      if (!block.is_replayed(rows[j])) block.v[rows[j] / pace * n_T + i] = descent.endings()[j].at;
    return;
  }
  for (std::uint32_t row = pace * begin; row < pace * end; ++row) {
    const std::uint32_t y = row / pace;
    const bool is_answered = answers && !block.is_replayed(row);
    if (!is_answered && !takes(row)) continue;
    if (trained.answering && !block.cached.empty() && row == 0) {
      const DescentEnd& cached = block.cached[i];
      if (takes(row)) tree.learn(block.examples.slot(row), cached.node, block.epsilon[row]);
      if (is_answered) block.v[i] = cached.at;
      trained.cost.comparisons += cached.compared;
      continue;
    }
    const std::uint64_t seen = arrived + y + (block.is_replayed(row) ? 1 : 0);
    const auto [v_min, at] = tree.BTQuery({block.examples, row, seen, tree.size()}, trained.cost);
    if (learns(row, at)) tree.learn(block.examples.slot(row), v_min, block.epsilon[row]);
    if (is_answered) block.v[y * n_T + i] = at;
  }
}

// The trees of one place: from succession to succession, with the next successor from its birth on.
void Training::train_place(TreeSet::PlaceTrees& place, const TrainingBlock& block,
                           std::size_t i) const {
  const Draft::Progress& progress = draft_.progress();
  const Arrival seen = progress.seen;
  const std::uint32_t at = place.answering.tree->place();
  const auto n = static_cast<std::uint32_t>(block.examples.size() / block.pace());
  for (std::uint32_t begin = 0, end = 0; begin < n; begin = end) {
    const Arrival succession = lifetimes_.succession_after(at, seen + begin);
    end = static_cast<std::uint32_t>(std::min<Arrival>(n, succession - seen));
    train(place.answering, block, begin, end, i);
    if (!place.growing.tree) {
      Arrival a = std::clamp(lifetimes_.birth(at, succession), seen + begin, seen + end);
      while (a < seen + end && !setup_.params.learns(at, a)) ++a;
      begin = static_cast<std::uint32_t>(a - seen);
      if (begin < end) {  // its root
        place.growing = grower_.make_tree(at, place.answering.tree->generation() + 1,
                                          progress.adaptation.settings);
        place.growing.answering = false;
        place.growing.tree->plant(block.examples.slot(block.pace() * begin++));
      }
    }
    if (place.growing.tree) {
      if (begin < end) train(place.growing, block, begin, end, i);
      if (seen + end == succession) place.succeed();
    }
  }
}

}  // namespace boundary_forest
