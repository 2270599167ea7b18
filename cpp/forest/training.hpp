// ALGORITHM 2 of the paper, the learning side: BFInitialization and BFTrain.
//
// Each tree learns apart from the others, so trees are spread over threads. In a forest that forgets
// (lifetimes.hpp), trees answer for a time and are then succeeded. A place sees to its own trees within a
// block, as it depends on no other place; so blocks need not end where trees do, and many generations of
// short-lived trees may come and go within one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "adapt/lifetimes.hpp"
#include "forest/draft.hpp"
#include "forest/grower.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

class Training {
 public:
  Training(const Setup& setup, const Lifetimes& lifetimes, const Grower& grower,
           QueryCache& query_cache, Draft& draft)
      : setup_(setup),
        lifetimes_(lifetimes),
        grower_(grower),
        query_cache_(query_cache),
        draft_(draft) {}

  void BFInitialization(const Run& run);
  // The n staged examples from `first` on, in order of arrival. Where v is not null, v[y * n_T + i]
  // becomes what tree i would have answered to example y, also if it does not learn it. After
  // example y all trees learn the stored example replayed[y] again, if there is one.
  void BFTrain(Slot first, std::size_t n, std::span<const Slot> replayed, const Run& run, Leaf* v);

 private:
  // Examples that are learned together, and where the trees' answers go; null: nowhere. With replayed ones,
  // every other row is what is learned again after the arrival before it.
  struct TrainingBlock {
    const QueryRows& examples;
    std::span<const double> epsilon;  // of each row
    std::span<const Slot> replayed;
    const BlockPrefilters& prefilters;
    Leaf* v;
    std::span<const DescentEnd> cached = {};  // of a single row, if it was queried just before

    std::uint32_t pace() const { return replayed.empty() ? 1 : 2; }  // rows for each arrival
    bool is_replayed(std::size_t row) const { return !replayed.empty() && row % 2 == 1; }
  };

  void train(LearnerTree& tree, const TrainingBlock& block, std::uint32_t begin, std::uint32_t end,
             std::size_t i) const;
  void train_place(TreeSet::PlaceTrees& place, const TrainingBlock& block, std::size_t i) const;

  const Setup& setup_;
  const Lifetimes& lifetimes_;
  const Grower& grower_;
  QueryCache& query_cache_;
  Draft& draft_;
};

}  // namespace boundary_forest
