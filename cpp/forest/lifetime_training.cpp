// Trees that answer for a time and are then succeeded (lifetimes.hpp): learning for a forest that
// forgets. A place sees to its own trees within a block, as it depends on no other place; so blocks need
// not end where trees do, and many generations of short-lived trees may come and go within one.
#include <array>
#include <utility>

#include "forest/boundary_forest.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

struct BoundaryForest::Place {
  LearnerTree answering;
  LearnerTree growing = {};  // its successor, if it has a tree
  // Trees that have been succeeded and that examples count among their holders: those which were there
  // when the block began. Others are gone without a trace.
  std::array<LearnerTree, 2> outlived = {};
  std::size_t n_outlived = 0;

  void succeed() {
    LearnerTree old = std::exchange(answering, std::exchange(growing, {}));
    answering.answering = true;
    answering.cost += std::exchange(old.cost, Counts{});
    if (old.n_counted > 0) outlived[n_outlived++] = std::move(old);
  }
};

void BoundaryForest::train_places(const Block& block, const Run& run) {
  const std::size_t n_T = params_.n_held();
  std::vector<Place> places;
  places.reserve(n_T);
  replaced_.reserve(replaced_.size() + 2 * n_T);
  trees_.reserve(3 * n_T + replaced_.size());  // so that neither this nor taking back needs memory
  for (std::size_t i = 0; i < n_T; ++i) places.push_back({std::move(trees_[i])});
  for (std::size_t i = n_T; i < trees_.size(); ++i)
    places[trees_[i].tree->place() - params_.first_tree].growing = std::move(trees_[i]);
  const auto put_back = [&] {
    trees_.clear();
    for (Place& place : places) {
      trees_.push_back(std::move(place.answering));
      for (LearnerTree& old : place.outlived)
        if (old.tree) replaced_.push_back(std::move(old));
    }
    for (Place& place : places)
      if (place.growing.tree) trees_.push_back(std::move(place.growing));
  };
  try {
    const std::size_t n_threads = params_.label_function ? 1 : threads(run);
    parallel_for(n_T, n_threads, [&](std::size_t i) { train_place(places[i], block, i); });
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

void BoundaryForest::train_place(Place& place, const Block& block, std::size_t i) const {
  const std::uint32_t at = place.answering.tree->place();
  const auto n = static_cast<std::uint32_t>(block.examples.size());
  for (std::uint32_t begin = 0, end = 0; begin < n; begin = end) {
    const Arrival succession = lifetimes_.succession_after(at, progress_.seen + begin);
    end = static_cast<std::uint32_t>(std::min<Arrival>(n, succession - progress_.seen));
    train(place.answering, block, begin, end, i);
    if (!place.growing.tree) {
      Arrival a = std::clamp(lifetimes_.birth(at, succession), progress_.seen + begin,
                             progress_.seen + end);
      while (a < progress_.seen + end && !params_.learns(at, a)) ++a;
      begin = static_cast<std::uint32_t>(a - progress_.seen);
      if (begin < end) {  // its root
        place.growing =
            make_tree(at, place.answering.tree->generation() + 1, progress_.adaptation.settings);
        place.growing.answering = false;
        place.growing.tree->plant(block.examples.slot(begin++));
      }
    }
    if (place.growing.tree) {
      if (begin < end) train(place.growing, block, begin, end, i);
      if (progress_.seen + end == succession) place.succeed();
    }
  }
}

}  // namespace boundary_forest
