// Algorithm 2, the learning side: BFInitialization, BFTrain, and the blocks around them.
#include <algorithm>

#include "base/memory.hpp"
#include "base/rng.hpp"
#include "forest/boundary_forest.hpp"
#include "forest/tree_answers.hpp"
#include "tree/block_descent.hpp"
#include "tree/block_prefilters.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

BoundaryForest::BoundaryForest(const Params& params, std::unique_ptr<Metric> d)
    : params_((params.validate(), params)),
      settings_(std::make_shared<TreeSettings>(TreeSettings{std::move(d)})),
      schedule_(params),
      lifetimes_(params),
      storage_limit_(params),
      plain_(plain_path()),
      store_(params.element_type, params.n_features, params.label_length, params.ids,
             params.has_graph && params.ids != IdKind::none),
      code_metric_(params.has_graph ? settings_->d->on_codes() : nullptr),
      one_step_(code_metric_ ? RowCodes::one_step(*code_metric_, params.n_features) : 0.0),
      publication_(params) {
  if (settings_->d->may_be_negative() && params_.estimator != Estimator::nearest)
    throw std::invalid_argument(
        "metric='inner_product' may be negative, but votes and means need distances >= 0: use it "
        "for retrieval, or use metric='cosine'");
  progress_.spread = Spread(params.label_length);
  Adaptation& adaptation = progress_.adaptation;
  adaptation.settings = settings_;
  if (params.has_learned_weights)
    adaptation.window = Window(store_.row_bytes(), params.label_length, params.ids);
  begin_votes(params, adaptation.votes);
  publish();
}

BoundaryForest::LearnerTree BoundaryForest::make_tree(
    std::uint32_t place, std::uint32_t generation,
    std::shared_ptr<const TreeSettings> settings) const {
  // Trees refer to the store to read rows and labels; they change nothing there.
  auto& store = const_cast<ExampleStore&>(store_);
  LearnerTree grown;
  grown.tree =
      std::make_unique<BoundaryTree>(place, generation, params_, std::move(settings), store);
  return grown;
}

void BoundaryForest::make_trees() {
  trees_.reserve(params_.n_held());
  for (std::uint32_t i = 0; i < params_.n_held(); ++i)
    trees_.push_back(make_tree(params_.first_tree + i, 0, progress_.adaptation.settings));
}

template <class F>
void BoundaryForest::for_each_tree(const Run& run, F&& f) {
  const std::size_t n_threads = params_.label_function ? 1 : threads(run);
  parallel_for(trees_.size(), n_threads, [&](std::size_t i) { f(i, trees_[i]); });
}

// Tree i takes example i as its root and the other n_T - 1 in its own random order. (Some may have been
// forgotten: then the root is the first of that order.)
void BoundaryForest::BFInitialization(const Run& run) {
  const auto n_T = params_.n_T;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> row_of(n_T, nothing);  // of each arrival
  for (const auto& [arrival, slot] : stored_by_arrival()) {
    row_of[arrival] = static_cast<std::uint32_t>(slots.size());
    slots.push_back(slot);
  }
  const QueryRows examples(store_, slots);
  const double epsilon = epsilon_now();
  make_trees();
  for_each_tree(run, [&](std::size_t, LearnerTree& grown) {
    const std::uint32_t i = grown.tree->place();
    std::vector<std::uint32_t> order = shuffled(n_T, params_.seed, i);
    std::erase_if(order, [&](std::uint32_t y) { return row_of[y] == nothing; });
    const std::uint32_t root = row_of[i] == nothing ? order[0] : i;
    grown.tree->plant(slots[row_of[root]]);
    std::uint64_t seen = 1;
    for (const std::uint32_t y : order)
      if (y != root && params_.learns(i, y))
        grown.tree->BTTrain(examples, row_of[y], seen++, epsilon, grown.cost);
  });
  close_block(store_.size());
  for (const Slot slot : slots)  // which was held while it waited
    store_.let_go(slot, publication_.newest().number + 1);
}

// The n staged examples from `first` on, in order of arrival. Where v is not null, v[y * n_T + i]
// becomes what tree i would have answered to example y, also if it does not learn it.
void BoundaryForest::BFTrain(Slot first, std::size_t n, const Run& run, Leaf* v) {
  StackMemory memory;
  const QueryRows examples(store_, first, n, &memory);
  const std::pmr::vector<double> epsilon = thresholds(first, n, &memory);
  const BlockPrefilters prefilters(
      examples, plain_, trees_, [](const LearnerTree& grown) { return &*grown.tree; },
      progress_.adaptation.settings->d.get());
  std::vector<DescentEnd> cached;
  if (n == 1) cached = query_cache_.recall(publication_.newest().number, bytes_of(examples, 0));
  const Block block{examples, epsilon, prefilters, v, cached};
  if (params_.forgets()) return train_places(block, run);
  for_each_tree(run, [&](std::size_t i, LearnerTree& grown) {
    train(grown, block, 0, static_cast<std::uint32_t>(n), i);
  });
}

// One tree, on rows begin to end of the block. It is the i-th of those that are held here.
void BoundaryForest::train(LearnerTree& grown, const Block& block, std::uint32_t begin,
                           std::uint32_t end, std::size_t i) const {
  const std::size_t n_T = params_.n_held();
  BoundaryTree& tree = *grown.tree;
  const bool asked = block.v != nullptr && grown.answering;
  const auto learns = [&](std::size_t y) {
    return params_.learns(tree.place(), progress_.seen + y);
  };
  const Prefilter* prefilter = block.prefilters.of(tree);
  if (prefilter != nullptr && end - begin >= BlockDescent::worth_it) {
    std::vector<std::uint32_t> some;
    std::span<const std::uint32_t> rows = block.prefilters.all_rows().subspan(begin, end - begin);
    if (!asked && params_.max_samples < 1.0) {  // what it does not learn need not descend
      std::copy_if(rows.begin(), rows.end(), std::back_inserter(some), learns);
      rows = some;
    }
    BlockDescent descent(block.examples, *prefilter);
    descent.train(tree, rows, {progress_.seen, BlockDescent::Clock::Pace::block},
                  block.epsilon.data(), grown.cost, learns);
    for (std::size_t j = 0; asked && j < rows.size(); ++j)
      block.v[rows[j] * n_T + i] = descent.endings()[j].at;
    return;
  }
  for (std::uint32_t y = begin; y < end; ++y) {
    const std::uint64_t seen = progress_.seen + y;
    if (!asked && !learns(y)) continue;
    if (grown.answering && !block.cached.empty()) {
      const DescentEnd& end = block.cached[i];
      if (learns(y)) tree.learn(block.examples.slot(y), end.node, block.epsilon[y]);
      if (asked) block.v[y * n_T + i] = end.at;
      grown.cost.comparisons += end.compared;
      continue;
    }
    const Leaf v_i = learns(y)
                         ? tree.BTTrain(block.examples, y, seen, block.epsilon[y], grown.cost)
                         : tree.BTQuery({block.examples, y, seen, tree.size()}, grown.cost).second;
    if (asked) block.v[y * n_T + i] = v_i;
  }
}

// A tree learns stored examples in the given order; if it is empty, the first becomes its root.
void BoundaryForest::grow(LearnerTree& grown, const QueryRows& examples,
                          std::span<const std::uint32_t> order, double epsilon,
                          const Prefilter* prefilter, const Run& run) const {
  BoundaryTree& tree = *grown.tree;
  const std::vector<double> epsilons(prefilter != nullptr ? examples.size() : 0, epsilon);
  std::size_t seen = 0;
  if (tree.size() == 0) tree.plant(examples.slot(order[seen++]));
  while (seen < order.size()) {
    const std::size_t n =
        std::min(order.size() - seen, block_rows(std::max<std::size_t>(seen, 2 * tree.size())));
    const std::span<const std::uint32_t> block = order.subspan(seen, n);
    if (prefilter != nullptr)
      BlockDescent(examples, *prefilter)
          .train(tree, block, {seen, BlockDescent::Clock::Pace::rows}, epsilons.data(), grown.cost,
                 [](std::size_t) { return true; });
    else
      for (std::size_t j = 0; j < n; ++j)
        tree.BTTrain(examples, block[j], seen + j, epsilon, grown.cost);
    seen += n;
    run.between_blocks();
  }
}

void BoundaryForest::learn_offline(const RowsView& rows, const double* labels, const Run& run,
                                   const Ids& ids) {
  const LearningLock learning = begin_learning();
  if (progress_.seen > 0) throw std::logic_error("offline learning needs an empty forest");
  try {
    const Slot first = store_.stage(rows.data, labels, rows.n, 0, ids);
    take_note_of(first, rows.n);
    progress_.seen = rows.n;
    if (params_.has_learned_weights) learn_weights(Window::capacity, run);
    const QueryRows examples(store_, first, rows.n);
    make_trees();
    const BlockPrefilters prefilters(examples, plain_, trees_,
                                     [](const LearnerTree& grown) { return &*grown.tree; });
    for_each_tree(run, [&](std::size_t, LearnerTree& grown) {
      const std::uint32_t place = grown.tree->place();
      std::vector<std::uint32_t> order =
          shuffled(static_cast<std::uint32_t>(rows.n), params_.seed, place);
      const std::uint32_t root = order[0];
      std::erase_if(order, [&](std::uint32_t y) { return !params_.learns(place, y); });
      if (order.empty()) order.push_back(root);
      grow(grown, examples, order, epsilon_now(), prefilters.of(*grown.tree), run);
    });
    close_block(first);
    while (params_.max_stored > 0 && !params_.is_part() && store_.n_living() > params_.max_stored &&
           cut_oldest(run)) {
    }
    publish();
  } catch (...) {
    rollback();
    throw;
  }
  store_.shrink();
}

void BoundaryForest::learn(const RowsView& rows, const double* labels, const Run& run,
                           std::size_t& learned, const Ids& ids) {
  LearningLock learning = begin_learning();
  learn_rows(learning, rows, labels, ids, run, learned, {});
}

void BoundaryForest::replace(const RowsView& rows, const double* labels, const Run& run,
                             std::size_t& learned, const Ids& ids) {
  LearningLock learning = begin_learning();
  if (!params_.has_graph || params_.ids == IdKind::none)
    throw std::logic_error("examples are replaced by their ids, in a forest that has a graph");
  learn_rows(learning, rows, labels, ids, run, learned, {.ranks = {}, .replaces = true});
}

Table<double> BoundaryForest::predict_then_learn(const RowsView& rows, const double* labels,
                                                 const Run& run, std::size_t& learned,
                                                 const Ids& ids, Ranks ranks, TreeLeaves* leaves) {
  return answers_then_learn(rows, labels, run, learned, ids, {.ranks = ranks, .leaves = leaves});
}

Table<double> BoundaryForest::estimate_then_learn(const RowsView& rows, const double* labels,
                                                  const Run& run, std::size_t& learned,
                                                  const Ids& ids, Ranks ranks, TreeLeaves* leaves) {
  return answers_then_learn(rows, labels, run, learned, ids,
                            {.shares = votes(), .ranks = ranks, .leaves = leaves});
}

TreeLeaves BoundaryForest::leaves_then_learn(const RowsView& rows, const double* labels,
                                             const Run& run, std::size_t& learned, const Ids& ids) {
  LearningLock learning = begin_learning();
  if (progress_.seen == 0) throw std::logic_error("the forest has not learned anything yet");
  TreeLeaves leaves = blank_leaves(rows.n, /*with_weights=*/false);
  learn_rows(learning, rows, labels, ids, run, learned, {.ranks = {}, .leaves = &leaves});
  return leaves;
}

Table<double> BoundaryForest::answers_then_learn(const RowsView& rows, const double* labels,
                                                 const Run& run, std::size_t& learned,
                                                 const Ids& ids, AnswerRequest asked) {
  LearningLock learning = begin_learning();
  if (progress_.seen == 0) throw std::logic_error("the forest has not learned anything yet");
  std::size_t n_classes = progress_.n_classes;
  for (std::size_t i = 0; votes() && i < rows.n; ++i)
    n_classes = std::max(n_classes, static_cast<std::size_t>(labels[i]) + 1);
  if (!asked.ranks.empty() && asked.ranks.size() < n_classes)
    throw std::logic_error("a class has no rank");
  std::size_t length = params_.label_length;
  if (asked.shares) length = std::max(n_classes, asked.ranks.size());
  Table<double> out{rows.n, length};
  asked.out = &out;
  if (asked.leaves != nullptr) *asked.leaves = blank_leaves(rows.n, /*with_weights=*/true);
  learn_rows(learning, rows, labels, ids, run, learned, asked);
  return out;
}

void BoundaryForest::learn_rows(LearningLock& learning, const RowsView& rows, const double* labels,
                                const Ids& ids, const Run& run, std::size_t& learned,
                                const AnswerRequest& asked) {
  learned = 0;
  if (ids.kind() != params_.ids && rows.n > 0)
    throw std::logic_error("either all batches have ids or none");
  try {
    for (std::size_t begin = 0; begin < rows.n;) {
      if (begin > 0) {
        learning.block.unlock();
        run.between_blocks();
        learning.block.lock();
      }
      // The first n_T examples make a block of their own: with the last of them the trees begin.
      std::size_t n = std::min<std::size_t>(
          {rows.n - begin, block_rows(progress_.seen),
           schedule_.block_end(progress_.seen) - progress_.seen,
           storage_limit_.block_end(progress_.seen, store_.n_living()) - progress_.seen});
      if (!planted()) n = std::min<std::size_t>(n, params_.n_T - progress_.seen);
      if (asked.any()) n = std::min(n, answered_block_rows());
      if (asked.replaces) {
        if (needs_rebuild()) break;
        n = std::min<std::size_t>(n, std::max<Slot>(1, store_.n_living() - 2 * store_.n_marked()));
      }
      learn_block(rows.slice(begin, n, params_.n_features), labels + begin * params_.label_length,
                  ids, begin, run, asked);
      begin += n;
      if (may_fail() && begin < rows.n) continue;  // so that the whole call can be taken back
      publish();
      learned = begin;
    }
  } catch (...) {
    if (!learning.block) learning.block.lock();
    rollback();
    throw;
  }
  store_.shrink();
}

void BoundaryForest::learn_block(const RowsView& rows, const double* labels, const Ids& ids,
                                 std::size_t begin, const Run& run, const AnswerRequest& asked) {
  const std::size_t n_T = params_.n_held();
  const bool planted = this->planted();
  if (asked.replaces) mark_known(ids, begin, rows.n);
  const Slot first = store_.stage(rows.data, labels, rows.n, progress_.seen, ids, begin);
  StackMemory memory;
  const bool trial = planted && schedule_.is_trial(progress_.seen);
  const bool judges = planted && schedule_.judges();
  std::pmr::vector<Leaf> v(asked.any() || trial || judges ? rows.n * n_T : 0, &memory);
  if (planted) {
    BFTrain(first, rows.n, run, v.empty() ? nullptr : v.data());
  } else if (!v.empty()) {
    const QueryRows queries(store_, first, rows.n, &memory);
    Counts cost;
    for (std::size_t y = 0; y < rows.n; ++y)
      std::fill_n(v.begin() + static_cast<std::ptrdiff_t>(y * n_T), n_T,
                  nearest_buffered(
                      queries, y, first + static_cast<Slot>(y), progress_.seen + y,
                      [&](Slot slot) { return slot >= first || store_.is_alive(slot); }, cost));
    if (params_.first_tree == 0) publication_.count_queries(cost);  // once for all parts
  }
  if (asked.any() || judges) answer_and_judge(asked, begin, first, v, judges);
  if (trial) try_votes(first, v);
  take_note_of(first, rows.n);
  progress_.seen += rows.n;
  if (planted) {
    close_block(first);
  } else {
    for (Slot slot = first; slot < store_.size(); ++slot) store_.hold(slot);
    if (progress_.seen == params_.n_T) BFInitialization(run);
  }
  if (this->planted()) decide(run);
  if (params_.is_part()) return;  // what follows needs all that is stored: see parts.cpp
  if (const Arrival step = schedule_.growing_step(progress_.seen); step > 0)
    grow_successors(step, run, store_.size());
  if (this->planted()) keep_within_limit(run);
}

// Row by row, as votes that are judged may be weighed otherwise after each.
void BoundaryForest::answer_and_judge(const AnswerRequest& asked, std::size_t begin, Slot first,
                                      std::span<const Leaf> v, bool judges) {
  const std::size_t n_T = params_.n_held();
  StackMemory memory;
  Spread before(progress_.spread, &memory);
  Adaptation& adaptation = progress_.adaptation;
  Ballots ballots(params_, adaptation.votes.losses, &memory);
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    const std::span<const Leaf> v_y = v.subspan(y * n_T, n_T);
    if (asked.any()) answer(asked, ballots.all()[adaptation.votes.rule], begin + y, v_y);
    if (!judges) continue;
    const double* label = store_.label(first + static_cast<Slot>(y));
    StackMemory memory_of_row;
    const RowAnswers said(*this, v_y, &memory_of_row);
    judge(progress_.seen + y, said.view(), label, before, params_, ballots, adaptation.votes);
    if (!votes()) before.add(label);
  }
}

// The threshold that each staged label meets: epsilon, or a tenth of the standard deviation of the
// labels before it.
std::pmr::vector<double> BoundaryForest::thresholds(Slot first, std::size_t n,
                                                    std::pmr::memory_resource* memory) const {
  std::pmr::vector<double> epsilon(n, params_.epsilon, memory);
  if (!params_.auto_epsilon) return epsilon;
  Spread spread(progress_.spread, memory);
  for (std::size_t i = 0; i < n; ++i) {
    epsilon[i] = spread.epsilon();
    spread.add(store_.label(first + static_cast<Slot>(i)));
  }
  return epsilon;
}

// The staged labels count among those seen, and rows among the last arrivals.
void BoundaryForest::take_note_of(Slot first, std::size_t n) {
  Window& window = progress_.adaptation.window;
  Ids id = store_.ids().blank(1);
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = first + static_cast<Slot>(i);
    const double* label = store_.label(slot);
    if (window.is_kept()) {
      store_.ids().get(slot, id, 0);
      window.add(store_.row(slot), label, id);
    }
    if (params_.estimator == Estimator::shepard_vote)
      progress_.n_classes = std::max(progress_.n_classes, static_cast<std::uint32_t>(*label) + 1);
    else
      progress_.spread.add(label);
  }
}

// The staged examples that some tree kept settle, and nodes follow; the others are dropped. New
// nodes hold their examples, and those of replaced trees no longer do.
void BoundaryForest::close_block(Slot first) {
  StackMemory memory;
  std::pmr::vector<char> kept(store_.size() - first, 0, &memory);
  const auto for_each_new_node = [&](auto&& f) {
    for (const LearnerTree& grown : trees_)
      for (NodeId v = grown.n_counted; v < grown.tree->size(); ++v) f(*grown.tree, v);
  };
  for_each_new_node([&](const BoundaryTree& tree, NodeId v) {
    if (tree.example(v) >= first) kept[tree.example(v) - first] = 1;
  });
  std::pmr::vector<Slot> where(kept.size(), nothing, &memory);
  store_.settle(first, kept, where);
  for_each_new_node([&](BoundaryTree& tree, NodeId v) {
    if (tree.example(v) >= first) tree.set_example(v, where[tree.example(v) - first]);
    store_.hold(tree.example(v));
  });
  for (LearnerTree& grown : trees_) grown.n_counted = grown.tree->size();
  const std::uint64_t next_publication = publication_.newest().number + 1;
  for (LearnerTree& grown : replaced_)
    while (grown.n_counted > 0)
      store_.let_go(grown.tree->example(--grown.n_counted), next_publication);
  if (params_.has_graph && planted()) extend_graph();
}

}  // namespace boundary_forest
