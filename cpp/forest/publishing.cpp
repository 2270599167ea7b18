// What learning calls begin and end with: the locks, and the one commit, publish(), or its opposite. What
// a fork waits for is here too.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "forest/boundary_forest.hpp"

namespace boundary_forest {

BoundaryForest::LearningLock BoundaryForest::begin_learning() {
  LearningLock learning{std::unique_lock(learning_), std::unique_lock(block_)};
  if (std::exchange(is_abandoned_, false)) rollback();
  return learning;
}

bool BoundaryForest::try_pause() {
  if (!block_.try_pause()) return false;
  if (publication_.try_pause()) return true;
  block_.resume();
  return false;
}

void BoundaryForest::resume() {
  publication_.resume();
  block_.resume();
}

void BoundaryForest::resume_in_child() {
  publication_.resume_in_child();
  block_.resume();
  is_abandoned_ = is_abandoned_ || !learning_.try_lock();
  if (is_abandoned_)
    new (&learning_) std::mutex;  // whoever holds it is not in this process
  else
    learning_.unlock();
}

// Memory is asked for before anything is published; what cannot be recycled for want of it is
// recycled by the next publication.
void BoundaryForest::publish() {
  reserve_more(retired_, replaced_.size());
  store_.reserve_to_commit();
  // Not before there are trees: a damaged file may name any number of them.
  if (planted())
    query_cache_.reserve(params_.n_features * size_of(params_.element_type), params_.n_held());
  Adaptation adaptation = progress_.adaptation;
  Counts cost;
  for (LearnerTree& grown : trees_) cost += std::exchange(grown.cost, Counts{});
  const std::uint64_t number = publication_.newest().number;
  publication_.publish(
      trees_.size(),
      [&](Version& version) {
        version.seen = progress_.seen;
        version.stored = store_.n_living() - store_.n_marked();
        version.codes = progress_.codes;
        version.search_radius = progress_.search_radius;
        version.slots = store_.size();
        version.n_classes = progress_.n_classes;
        version.spread = progress_.spread;
        version.adaptation = std::move(adaptation);
        version.planted = planted();
        version.trees.clear();
        for (const auto& [tree, answering, n_counted, cost] : trees_)
          version.trees.push_back({tree.get(), tree->size(), tree->generation(), answering});
      },
      cost);
  if (progress_.search_radius.count() > 0) search_is_late_ = false;
  store_.commit(number);
  for (LearnerTree& grown : replaced_) retired_.push_back({number, std::move(grown.tree)});
  replaced_.clear();
  const std::uint64_t oldest_read = publication_.oldest_read();
  for (const LearnerTree& grown : trees_) {
    grown.tree->settle(number);
    grown.tree->recycle_before(oldest_read);
  }
  links_.settle(number);
  links_.recycle_before(oldest_read);
  if (progress_.codes) {
    progress_.codes->settle(number);
    progress_.codes->recycle_before(oldest_read);
  }
  std::erase_if(retired_, [&](const Retired& tree) { return tree.number < oldest_read; });
  try {
    store_.recycle_before(oldest_read);
  } catch (const std::bad_alloc&) {
  }
}

// Needs no memory.
void BoundaryForest::rollback() {
  const Version& version = publication_.newest();
  // Replaced trees return to their places; trees that the version does not list go.
  std::move(replaced_.begin(), replaced_.end(), std::back_inserter(trees_));
  replaced_.clear();
  for (std::size_t i = 0; i < version.trees.size(); ++i) {
    const auto& [tree, n_nodes, generation, answering] = version.trees[i];
    const auto at =
        std::find_if(trees_.begin() + static_cast<std::ptrdiff_t>(i), trees_.end(),
                     [&](const LearnerTree& grown) { return grown.tree.get() == tree; });
    std::swap(trees_[i], *at);
    trees_[i].tree->rollback(n_nodes, version.number);
    trees_[i].answering = answering;
    trees_[i].n_counted = n_nodes;
    trees_[i].cost = {};
  }
  trees_.resize(version.trees.size());
  store_.rollback();
  links_.rollback(version.number);
  progress_.codes = version.codes;
  progress_.search_radius = version.search_radius;
  if (progress_.codes) progress_.codes->truncate(version.slots);
  progress_.seen = version.seen;
  progress_.n_classes = version.n_classes;
  progress_.spread = version.spread;
  progress_.adaptation = version.adaptation;
  try {
    publish();  // the same state again, so that what was taken back can be recycled
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace boundary_forest
