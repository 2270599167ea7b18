// Algorithm 2, the learning side: BFInitialization, BFTrain, and the blocks around them.
#include <algorithm>

#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/rng.hpp"

namespace boundary_forest {

BoundaryForest::BoundaryForest(const Params& params, std::unique_ptr<Metric> d)
    : params_((params.validate(), params)),
      d_(std::move(d)),
      store_(params.element_type, params.n_features, params.label_length),
      publication_(params.n_T),
      tree_costs_(params.n_T) {
  if (d_->may_be_negative() && params_.estimator != Estimator::nearest)
    throw std::invalid_argument(
        "metric 'inner_product' may be negative, and a Shepard vote or mean needs distances >= 0; "
        "use it for retrieval, or choose metric='cosine'");
  for (std::uint32_t i = 0; i < params_.n_T; ++i)
    trees_.push_back(std::make_unique<BoundaryTree>(i, params_, *d_, store_));
  progress_.spread = Spread(params.label_length);
  published_ = progress_;
}

template <class F>
void BoundaryForest::for_each_tree(const Run& run, F&& f) {
  pool_.parallel_for(trees_.size(), threads(run), [&](std::size_t i) { f(i, *trees_[i]); });
}

// Tree i takes example i as its root and the other n_T - 1 in its own random order.
void BoundaryForest::BFInitialization(const Run& run) {
  const auto n_T = params_.n_T;
  const QueryRows examples(store_, 0, n_T);
  const double epsilon = params_.auto_epsilon ? progress_.spread.epsilon() : params_.epsilon;
  for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
    tree.plant(static_cast<Slot>(i));
    std::uint64_t seen = 1;
    for (const Slot y : shuffled(n_T, params_.seed, i))
      if (y != i) tree.BTTrain(examples, y, y, seen++, epsilon, tree_costs_[i]);
  });
}

// The n staged examples from `first` on, in order of arrival.
void BoundaryForest::BFTrain(Slot first, std::size_t n, const Run& run) {
  const QueryRows examples(store_, first, n);
  const std::vector<double> epsilon = thresholds(first, n);
  for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
    for (std::size_t y = 0; y < n; ++y)
      tree.BTTrain(examples, y, first + static_cast<Slot>(y), progress_.seen + y, epsilon[y],
                   tree_costs_[i]);
  });
}

void BoundaryForest::learn_offline(const RowsView& rows, const double* labels, const Run& run) {
  const std::lock_guard learning(learning_);
  if (progress_.seen > 0) throw std::logic_error("offline learning needs an empty forest");
  try {
    const Slot first = store_.stage(rows.data, labels, rows.n, 0);
    static_cast<void>(thresholds(first, rows.n));
    const double epsilon = params_.auto_epsilon ? progress_.spread.epsilon() : params_.epsilon;
    const QueryRows examples(store_, first, rows.n);
    const std::vector<NodeId> nodes_before(params_.n_T, 0);
    for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
      std::uint64_t seen = 0;
      for (const Slot y : shuffled(static_cast<Slot>(rows.n), params_.seed, i)) {
        if (seen == 0)
          tree.plant(y);
        else
          tree.BTTrain(examples, y, y, seen, epsilon, tree_costs_[i]);
        ++seen;
        if (seen % block_rows == 0) run.between_blocks();
      }
    });
    progress_.seen = rows.n;
    close_block(first, nodes_before);
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  store_.shrink();
}

void BoundaryForest::learn(const RowsView& rows, const double* labels, const Run& run,
                           std::size_t& learned) {
  const std::lock_guard learning(learning_);
  learned = 0;
  try {
    for (std::size_t begin = 0; begin < rows.n;) {
      if (begin > 0) run.between_blocks();
      // The first n_T examples make a block of their own: with the last of them the trees begin.
      std::size_t n = std::min(rows.n - begin, block_rows);
      if (trees_[0]->size() == 0) n = std::min<std::size_t>(n, params_.n_T - progress_.seen);
      learn_block(rows.slice(begin, n, params_.n_features), labels + begin * params_.label_length,
                  run);
      begin += n;
      if (d_->may_fail() && begin < rows.n) continue;  // so that the whole call can be taken back
      publish();
      learned = begin;
    }
  } catch (...) {
    rollback();
    throw;
  }
  store_.shrink();
}

void BoundaryForest::learn_block(const RowsView& rows, const double* labels, const Run& run) {
  const Slot first = store_.stage(rows.data, labels, rows.n, progress_.seen);
  if (trees_[0]->size() == 0) {
    static_cast<void>(thresholds(first, rows.n));
    progress_.seen += rows.n;
    if (progress_.seen == params_.n_T) BFInitialization(run);
    return;
  }
  std::vector<NodeId> nodes_before;
  for (const auto& tree : trees_) nodes_before.push_back(tree->size());
  BFTrain(first, rows.n, run);
  progress_.seen += rows.n;
  close_block(first, nodes_before);
}

// Takes note of the staged labels, and gives the threshold that each meets: epsilon, or a tenth of
// the standard deviation of the labels before it.
std::vector<double> BoundaryForest::thresholds(Slot first, std::size_t n) {
  std::vector<double> epsilon(n, params_.epsilon);
  for (std::size_t i = 0; i < n; ++i) {
    const double* label = store_.label(first + static_cast<Slot>(i));
    if (params_.label_rule == LabelRule::classes_differ) {
      const auto code = static_cast<std::uint32_t>(*label);
      progress_.n_classes = std::max(progress_.n_classes, code + 1);
    } else if (params_.auto_epsilon) {
      epsilon[i] = progress_.spread.epsilon();
      progress_.spread.add(label);
    }
  }
  return epsilon;
}

// Drops the staged examples that no tree kept; the others close up, and nodes follow.
void BoundaryForest::close_block(Slot first, const std::vector<NodeId>& nodes_before) {
  std::vector<char> kept(store_.size() - first, 0);
  for (std::size_t i = 0; i < trees_.size(); ++i)
    for (NodeId v = nodes_before[i]; v < trees_[i]->size(); ++v)
      kept[trees_[i]->example(v) - first] = 1;
  std::vector<Slot> where;
  store_.keep_marked(first, kept, where);
  for (std::size_t i = 0; i < trees_.size(); ++i)
    for (NodeId v = nodes_before[i]; v < trees_[i]->size(); ++v)
      trees_[i]->set_example(v, where[trees_[i]->example(v) - first]);
}

void BoundaryForest::publish() {
  Counts cost;
  for (Counts& of_tree : tree_costs_) cost += std::exchange(of_tree, Counts{});
  const std::uint64_t number = publication_.newest().number;
  publication_.publish(
      [&](Prefix& prefix) {
        prefix.seen = progress_.seen;
        prefix.stored = store_.size();
        prefix.n_classes = progress_.n_classes;
        for (std::size_t i = 0; i < trees_.size(); ++i) prefix.nodes[i] = trees_[i]->size();
      },
      cost);
  published_ = progress_;
  const std::uint64_t oldest_read = publication_.oldest_read();
  for (const auto& tree : trees_) {
    tree->settle(number);
    tree->recycle_before(oldest_read);
  }
}

void BoundaryForest::rollback() {
  const Prefix& prefix = publication_.newest();
  for (std::size_t i = 0; i < trees_.size(); ++i)
    trees_[i]->rollback(prefix.nodes[i], prefix.number);
  store_.truncate(prefix.stored);
  store_.shrink();
  progress_ = published_;
  std::fill(tree_costs_.begin(), tree_costs_.end(), Counts{});
  publish();  // the same state again, so that what was taken back can be recycled
}

}  // namespace boundary_forest
