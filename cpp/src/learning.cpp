// Algorithm 2, the learning side: BFInitialization, BFTrain, and the blocks around them.
#include <algorithm>
#include <numeric>

#include "boundary_forest/block_descent.hpp"
#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/rng.hpp"
#include "boundary_forest/stack_memory.hpp"

namespace boundary_forest {

BoundaryForest::BoundaryForest(const Params& params, std::unique_ptr<Metric> d)
    : params_((params.validate(), params)),
      d_(std::move(d)),
      plain_(plain_path()),
      store_(params.element_type, params.n_features, params.label_length),
      publication_(params) {
  if (d_->may_be_negative() && params_.estimator != Estimator::nearest)
    throw std::invalid_argument(
        "metric 'inner_product' may be negative, and a Shepard vote or mean needs distances >= 0; "
        "use it for retrieval, or choose metric='cosine'");
  progress_.spread = Spread(params.label_length);
}

void BoundaryForest::make_trees() {
  tree_costs_.resize(params_.n_T);
  trees_.reserve(params_.n_T);
  for (std::uint32_t i = 0; i < params_.n_T; ++i)
    trees_.push_back(std::make_unique<BoundaryTree>(i, params_, *d_, store_));
}

template <class F>
void BoundaryForest::for_each_tree(const Run& run, F&& f) {
  const std::size_t n_threads = params_.label_function ? 1 : threads(run);
  pool_.parallel_for(trees_.size(), n_threads, [&](std::size_t i) { f(i, *trees_[i]); });
}

// Tree i takes example i as its root and the other n_T - 1 in its own random order.
void BoundaryForest::BFInitialization(const Run& run) {
  const auto n_T = params_.n_T;
  const QueryRows examples(store_, 0, n_T);
  const double epsilon = params_.auto_epsilon ? progress_.spread.epsilon() : params_.epsilon;
  make_trees();
  for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
    tree.plant(static_cast<Slot>(i));
    std::uint64_t seen = 1;
    for (const Slot y : shuffled(n_T, params_.seed, i))
      if (y != i) tree.BTTrain(examples, y, y, seen++, epsilon, tree_costs_[i]);
  });
}

// The n staged examples from `first` on, in order of arrival. Where v is not null, v[y * n_T + i]
// becomes what tree i would have answered to example y.
void BoundaryForest::BFTrain(Slot first, std::size_t n, const Run& run, Leaf* v) {
  StackMemory memory;
  const QueryRows examples(store_, first, n, &memory);
  const std::pmr::vector<double> epsilon = thresholds(first, n, &memory);
  const std::unique_ptr<Sieve> sieve = sieve_for(examples);
  if (sieve) {
    std::vector<std::uint32_t> rows(n);
    std::iota(rows.begin(), rows.end(), 0);
    for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
      BlockDescent block(examples, *sieve);
      block.train(tree, rows, first, progress_.seen, epsilon.data(), tree_costs_[i]);
      for (std::size_t y = 0; v != nullptr && y < n; ++y)
        v[y * params_.n_T + i] = block.endings()[y].at;
    });
    return;
  }
  for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
    for (std::size_t y = 0; y < n; ++y) {
      const Leaf v_i = tree.BTTrain(examples, y, first + static_cast<Slot>(y), progress_.seen + y,
                                    epsilon[y], tree_costs_[i]);
      if (v != nullptr) v[y * params_.n_T + i] = v_i;
    }
  });
}

// What compares many rows at once, or null where they go through the plain algorithm, one by one.
std::unique_ptr<Sieve> BoundaryForest::sieve_for(const QueryRows& rows) const {
  return plain_ || rows.size() < BlockDescent::worth_it ? nullptr : d_->sieve(rows);
}

void BoundaryForest::learn_offline(const RowsView& rows, const double* labels, const Run& run) {
  const std::lock_guard learning(learning_);
  if (progress_.seen > 0) throw std::logic_error("offline learning needs an empty forest");
  try {
    const Slot first = store_.stage(rows.data, labels, rows.n, 0);
    static_cast<void>(thresholds(first, rows.n, std::pmr::get_default_resource()));
    const double epsilon = params_.auto_epsilon ? progress_.spread.epsilon() : params_.epsilon;
    const QueryRows examples(store_, first, rows.n);
    const std::pmr::vector<NodeId> nodes_before(params_.n_T, 0);
    const std::unique_ptr<Sieve> sieve = sieve_for(examples);
    const std::vector<double> epsilons(sieve ? rows.n : 0, epsilon);
    make_trees();
    for_each_tree(run, [&](std::size_t i, BoundaryTree& tree) {
      const auto order = shuffled(static_cast<Slot>(rows.n), params_.seed, i);
      tree.plant(order[0]);
      for (std::size_t seen = 1; seen < rows.n;) {
        const std::size_t n = std::min(rows.n - seen, block_rows(seen));
        const std::span<const std::uint32_t> block = std::span(order).subspan(seen, n);
        if (sieve)
          BlockDescent(examples, *sieve)
              .train(tree, block, first, seen, epsilons.data(), tree_costs_[i]);
        else
          for (std::size_t j = 0; j < n; ++j)
            tree.BTTrain(examples, block[j], block[j], seen + j, epsilon, tree_costs_[i]);
        seen += n;
        run.between_blocks();
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
  learn_rows(rows, labels, run, learned, nullptr);
}

Table<double> BoundaryForest::predict_then_learn(const RowsView& rows, const double* labels,
                                                 const Run& run, std::size_t& learned) {
  const std::lock_guard learning(learning_);
  if (progress_.seen == 0) throw std::logic_error("the forest has not learned anything yet");
  std::size_t columns = params_.label_length;
  if (params_.estimator == Estimator::shepard_vote) {
    columns = progress_.n_classes;
    for (std::size_t i = 0; i < rows.n; ++i)
      columns = std::max(columns, static_cast<std::size_t>(labels[i]) + 1);
  }
  Table<double> answers{rows.n, columns, std::vector<double>(rows.n * columns)};
  learn_rows(rows, labels, run, learned, &answers);
  return answers;
}

void BoundaryForest::learn_rows(const RowsView& rows, const double* labels, const Run& run,
                                std::size_t& learned, Table<double>* answers) {
  learned = 0;
  try {
    for (std::size_t begin = 0; begin < rows.n;) {
      if (begin > 0) run.between_blocks();
      // The first n_T examples make a block of their own: with the last of them the trees begin.
      std::size_t n = std::min(rows.n - begin, block_rows(progress_.seen));
      if (!planted()) n = std::min<std::size_t>(n, params_.n_T - progress_.seen);
      std::span<double> block_answers;
      if (answers != nullptr)
        block_answers =
            std::span(answers->values).subspan(begin * answers->columns, n * answers->columns);
      learn_block(rows.slice(begin, n, params_.n_features), labels + begin * params_.label_length,
                  run, block_answers);
      begin += n;
      if (may_fail() && begin < rows.n) continue;  // so that the whole call can be taken back
      publish();
      learned = begin;
    }
  } catch (...) {
    rollback();
    throw;
  }
  store_.shrink();
}

void BoundaryForest::learn_block(const RowsView& rows, const double* labels, const Run& run,
                                 std::span<double> answers) {
  const std::size_t n_T = params_.n_T;
  const bool planted = this->planted();
  const Slot first = store_.stage(rows.data, labels, rows.n, progress_.seen);
  StackMemory memory;
  std::pmr::vector<NodeId> nodes_before(trees_.size(), &memory);
  for (std::size_t i = 0; i < trees_.size(); ++i) nodes_before[i] = trees_[i]->size();
  std::pmr::vector<Leaf> v(answers.empty() ? 0 : rows.n * n_T, &memory);
  if (planted) {
    BFTrain(first, rows.n, run, v.empty() ? nullptr : v.data());
  } else {
    static_cast<void>(thresholds(first, rows.n, &memory));
    const QueryRows queries(store_, first, rows.n, &memory);
    Counts asked;
    for (std::size_t y = 0; y * n_T < v.size(); ++y)
      std::fill_n(
          v.begin() + static_cast<std::ptrdiff_t>(y * n_T), n_T,
          nearest_buffered(queries, y, first + static_cast<Slot>(y), progress_.seen + y, asked));
    publication_.count_queries(asked);
  }
  progress_.seen += rows.n;
  for (std::size_t y = 0, columns = answers.size() / rows.n; y * n_T < v.size(); ++y)
    E(std::span<const Leaf>(v).subspan(y * n_T, n_T), answers.subspan(y * columns, columns));
  if (planted)
    close_block(first, nodes_before);
  else if (progress_.seen == n_T)
    BFInitialization(run);
}

// Takes note of the staged labels, and gives the threshold that each meets: epsilon, or a tenth of
// the standard deviation of the labels before it.
std::pmr::vector<double> BoundaryForest::thresholds(Slot first, std::size_t n,
                                                    std::pmr::memory_resource* memory) {
  std::pmr::vector<double> epsilon(n, params_.epsilon, memory);
  for (std::size_t i = 0; i < n; ++i) {
    const double* label = store_.label(first + static_cast<Slot>(i));
    if (params_.estimator == Estimator::shepard_vote) {
      const auto code = static_cast<std::uint32_t>(*label);
      progress_.n_classes = std::max(progress_.n_classes, code + 1);
    } else {
      if (params_.auto_epsilon) epsilon[i] = progress_.spread.epsilon();
      progress_.spread.add(label);
    }
  }
  return epsilon;
}

// Drops the staged examples that no tree kept; the others close up, and nodes follow.
void BoundaryForest::close_block(Slot first, std::span<const NodeId> nodes_before) {
  StackMemory memory;
  std::pmr::vector<char> kept(store_.size() - first, 0, &memory);
  for (std::size_t i = 0; i < trees_.size(); ++i)
    for (NodeId v = nodes_before[i]; v < trees_[i]->size(); ++v)
      kept[trees_[i]->example(v) - first] = 1;
  std::pmr::vector<Slot> where(kept.size(), nothing, &memory);
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
        prefix.spread = progress_.spread;
        for (std::size_t i = 0; i < trees_.size(); ++i) prefix.nodes[i] = trees_[i]->size();
      },
      cost);
  const std::uint64_t oldest_read = publication_.oldest_read();
  for (const auto& tree : trees_) {
    tree->settle(number);
    tree->recycle_before(oldest_read);
  }
}

void BoundaryForest::rollback() {
  const Prefix& prefix = publication_.newest();
  if (!prefix.planted()) trees_.clear();
  for (std::size_t i = 0; i < trees_.size(); ++i)
    trees_[i]->rollback(prefix.nodes[i], prefix.number);
  store_.truncate(prefix.stored);
  store_.shrink();
  progress_ = {prefix.seen, prefix.n_classes, prefix.spread};
  std::fill(tree_costs_.begin(), tree_costs_.end(), Counts{});
  publish();  // the same state again, so that what was taken back can be recycled
}

}  // namespace boundary_forest
