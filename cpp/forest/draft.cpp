#include "forest/draft.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "distance/projection.hpp"

namespace boundary_forest {

Draft::Draft(const Setup& setup, Adaptation adaptation, ExampleStore& store, GraphIndex& graph,
             Publication& publication, QueryCache& query_cache)
    : setup_(setup),
      store_(store),
      graph_(graph),
      publication_(publication),
      query_cache_(query_cache),
      progress_{0, 0, Spread(setup.params.label_length), std::move(adaptation)},
      trees_(setup.params.n_held(), setup.params.first_tree) {
  publish();
}

LearningLock Draft::begin() {
  LearningLock lock{std::unique_lock(learning_), std::unique_lock(block_)};
  if (std::exchange(is_abandoned_, false)) rollback();
  return lock;
}

double Draft::epsilon() const {
  return setup_.params.auto_epsilon ? progress_.spread.epsilon() : setup_.params.epsilon;
}

std::pmr::vector<double> Draft::thresholds(Slot first, std::size_t n,
                                           std::pmr::memory_resource* memory) const {
  std::pmr::vector<double> epsilon(n, setup_.params.epsilon, memory);
  if (!setup_.params.auto_epsilon) return epsilon;
  Spread spread(progress_.spread, memory);
  for (std::size_t i = 0; i < n; ++i) {
    epsilon[i] = spread.epsilon();
    spread.add(store_.label(first + static_cast<Slot>(i)));
  }
  return epsilon;
}

void Draft::count_labels(Slot first, std::size_t n) {
  Window& window = progress_.adaptation.window;
  Ids id = store_.ids().blank(1);
  const std::size_t D = setup_.params.n_features;
  const Params& params = setup_.params;
  const bool mixes = params.mixes() || params.mixes_streams();
  std::vector<double> row(mixes ? D : 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = first + static_cast<Slot>(i);
    const double* label = store_.label(slot);
    if (window.is_kept()) {
      store_.ids().get(slot, id, 0);
      window.add(store_.row(slot), label, id);
    }
    if (setup_.votes())
      progress_.n_classes = std::max(progress_.n_classes, static_cast<std::uint32_t>(*label) + 1);
    else
      progress_.spread.add(label);
    if (setup_.params.counts_classes())
      count_class(*label, progress_.adaptation.votes.class_counts);
    if (!mixes) continue;
    to_doubles({store_.row(slot), store_.element_type()}, D, row.data());
    if (params.mixes())
      progress_.adaptation.mixture.add_row(row, label, setup_.votes());
    else
      progress_.adaptation.stream.learn(store_.arrival(slot), row, {label, params.label_length},
                                        setup_.votes());
  }
}

// A coder is made of the first rows, and of those at eight times as many, and so on: data may change, and what was
// made of few rows serves many less well.
void Draft::sketch(Slot staged, std::size_t n_threads) {
  if (!setup_.has_sketches() || !planted()) return;
  const std::uint64_t due = sketches_due(progress_.seen);
  if (due != sketches_made_) {
    store_.sketch_by(Projection::from(store_, staged));
    sketches_made_ = due;
  }
  store_.extend_sketches(n_threads);
}

void Draft::await(Slot first) {
  for (Slot slot = first; slot < store_.size(); ++slot) store_.hold(slot);
  Reservoir& reservoir = progress_.adaptation.reservoir;
  reservoir.settle(first, reservoir.staged(first), next(), store_);
}

void Draft::close_block(Slot first, bool lazily) {
  Reservoir& reservoir = progress_.adaptation.reservoir;
  std::vector<Slot> joined = reservoir.staged(first);
  trees_.settle_examples(first, next(), store_, joined);
  reservoir.settle(first, joined, next(), store_);
  graph_.extend(trees_.all(), lazily);
}

// Memory is reserved before anything is published; what cannot be recycled for want of memory is recycled
// by the next publication.
void Draft::publish() {
  const std::lock_guard publishing(publishing_);
  trees_.reserve_to_commit();
  store_.reserve_to_commit();
  // Not before there are trees: a damaged file may name any number of them.
  if (planted()) query_cache_.reserve(setup_.row_bytes(), setup_.params.n_held());
  Adaptation adaptation = progress_.adaptation;
  const Counts cost = trees_.take_cost();
  const std::uint64_t number = newest().number;
  publication_.publish(
      trees_.size(), [&](Version& version) { fill(version, std::move(adaptation)); }, cost);
  store_.commit(number);
  const std::uint64_t oldest_read = publication_.oldest_read();
  trees_.commit(number, oldest_read);
  graph_.commit(number, oldest_read);
  try {
    store_.recycle_before(oldest_read);
  } catch (const std::bad_alloc&) {
  }
}

// Needs no memory if version.trees has capacity for all trees.
void Draft::fill(Version& version, Adaptation adaptation) const {
  version.seen = progress_.seen;
  version.stored = store_.n_living() - store_.n_marked();
  version.slots = store_.size();
  version.sketches = store_.sketches();
  version.graph = graph_.draft();
  version.n_classes = progress_.n_classes;
  version.spread = progress_.spread;
  version.adaptation = std::move(adaptation);
  version.planted = planted();
  trees_.list(version.trees);
}

Version Draft::preview() const {
  Version version;
  fill(version, progress_.adaptation);
  return version;
}

// Needs no memory.
void Draft::rollback() {
  const Version& version = newest();
  trees_.rollback(version.trees, version.number);
  store_.rollback();
  sketches_made_ = 0;
  graph_.rollback(version.graph, version);
  progress_.seen = version.seen;
  progress_.n_classes = version.n_classes;
  progress_.spread = version.spread;
  progress_.adaptation = version.adaptation;
  try {
    publish();  // the same state again, so that what was taken back can be recycled
  } catch (const std::bad_alloc&) {
  }
}

void Draft::prepare_search() {
  while (graph_.is_late()) {
    const std::unique_lock learning(learning_, std::try_to_lock);
    if (!learning) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const std::unique_lock block(block_);
    if (std::exchange(is_abandoned_, false)) rollback();
    if (!graph_.is_late()) return;
    commit([&] { graph_.prepare(); });
  }
}

void Draft::prepare_sketches(std::size_t n_threads) {
  if (!setup_.has_sketches()) return;
  const std::unique_lock learning(learning_, std::try_to_lock);
  if (!learning) return;  // a learner makes them with its next block
  const std::unique_lock block(block_);
  if (std::exchange(is_abandoned_, false)) rollback();
  if (!planted() || sketches_made_ == sketches_due(progress_.seen)) return;
  commit([&] { sketch(store_.size(), n_threads); });
}

bool Draft::try_pause() {
  if (!block_.try_pause()) return false;
  if (publishing_.try_lock()) {
    if (publication_.try_pause()) return true;
    publishing_.unlock();
  }
  block_.resume();
  return false;
}

void Draft::resume() {
  publication_.resume();
  publishing_.unlock();
  block_.resume();
}

void Draft::resume_in_child() {
  publication_.resume_in_child();
  publishing_.unlock();
  block_.resume();
  is_abandoned_ = is_abandoned_ || !learning_.try_lock();
  if (is_abandoned_)
    new (&learning_) std::mutex;  // whoever holds it is not in this process
  else
    learning_.unlock();
}

}  // namespace boundary_forest
