// An engine that holds a part of the trees, and what it does at the arrivals at which all trees, or all
// examples that are stored anywhere, must be known. Which arrivals these are, forest_driver.hpp tells;
// until then each part learns for itself, and in between it publishes as any engine does.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "forest/boundary_forest.hpp"

namespace boundary_forest {

Examples BoundaryForest::examples(std::span<const Arrival> arrivals) {
  const LearningLock learning = begin_learning();
  return examples_at(slots_of(arrivals));
}

std::vector<std::uint32_t> BoundaryForest::places_to_grow() {
  const LearningLock learning = begin_learning();
  const Arrival step = schedule_.growing_step(progress_.seen);
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < params_.n_held() && planted() && step > 0; ++i)
    if (is_to_grow(*trees_[i].tree, step)) places.push_back(trees_[i].tree->place());
  return places;
}

// Examples that settle here count as if they had always been here, so that a version which a query reads
// meanwhile might seem to have them.
void BoundaryForest::grow_part(const RowsView& rows, const double* labels,
                               std::span<const Arrival> arrivals, const Ids& ids, const Run& run) {
  const LearningLock learning = begin_learning();
  const Arrival step = schedule_.growing_step(progress_.seen);
  if (!params_.is_part() || !planted() || step == 0)
    throw std::logic_error("no tree of a part is to be grown now");
  if (rows.n != arrivals.size() || (rows.n > 0 && ids.kind() != params_.ids))
    throw std::invalid_argument("examples from other engines need arrivals and ids");
  try {
    const Slot staged = store_.stage(rows.data, labels, arrivals, ids);
    grow_successors(step, run, staged);
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  store_.shrink();
}

std::optional<BoundaryForest::Oldest> BoundaryForest::oldest() {
  const LearningLock learning = begin_learning();
  const auto [i, arrival] = oldest_tree();
  if (i == trees_.size()) return std::nullopt;
  return Oldest{arrival, trees_[i].answering, trees_[i].tree->place()};
}

void BoundaryForest::cut(std::uint32_t place, bool answering, const Run& run) {
  const LearningLock learning = begin_learning();
  const auto at = std::find_if(trees_.begin(), trees_.end(), [&](const LearnerTree& grown) {
    return grown.tree->place() == place && grown.answering == answering;
  });
  if (at == trees_.end())
    throw std::invalid_argument("no tree stands at place " + std::to_string(place));
  try {
    replace(static_cast<std::size_t>(at - trees_.begin()), newer_half(*at->tree), run);
    publish();
  } catch (...) {
    rollback();
    throw;
  }
}

}  // namespace boundary_forest
