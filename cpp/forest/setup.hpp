// What never changes in the life of a forest, and how one of its calls is run.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/types.hpp"
#include "tree/block_descent.hpp"
#include "tree/boundary_tree.hpp"

namespace boundary_forest {

// On how many threads a call is run, and what happens between blocks. `between_blocks` may throw to end
// the call; what was published by then stays.
struct Run {
  std::size_t n_jobs = 1;
  std::function<void()> between_blocks = [] {};
};

struct Setup {
  const Params params;
  const std::shared_ptr<const TreeSettings> settings;  // of the first trees
  const bool plain = plain_path();

  Setup(const Params& params, std::unique_ptr<Metric> d)
      : params((params.validate(), params)),
        settings(std::make_shared<TreeSettings>(TreeSettings{std::move(d)})) {
    if (settings->d->may_be_negative() && params.estimator != Estimator::nearest)
      throw std::invalid_argument(
          "metric='inner_product' may be negative, but votes and means need distances >= 0: use it "
          "for retrieval, or use metric='cosine'");
  }

  const Metric& d() const { return *settings->d; }
  bool votes() const { return params.estimator == Estimator::shepard_vote; }
  // A function of the user's may throw; a learning call is then taken back whole.
  bool may_fail() const { return d().may_fail() || params.label_function; }
  std::size_t n_threads(const Run& run) const { return d().single_threaded() ? 1 : run.n_jobs; }
  // Where labels are compared, too.
  std::size_t n_learning_threads(const Run& run) const {
    return params.label_function ? 1 : n_threads(run);
  }
  bool has_sketches() const { return !plain && !params.has_learned_weights && d().has_sketches(); }
  std::size_t row_bytes() const { return params.n_features * size_of(params.element_type); }
  // What the trees find for a block's rows is kept until it is answered: at most 64 MB, or a row.
  std::size_t answered_block_rows() const {
    return std::max<std::size_t>(1, (std::size_t{64} << 20) / sizeof(Leaf) / params.n_held());
  }
};

}  // namespace boundary_forest
