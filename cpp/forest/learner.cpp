#include "forest/learner.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/memory.hpp"
#include "base/rng.hpp"
#include "forest/queries.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

Learner::Learner(const Setup& setup, const Decisions& decisions, Publication& publication,
                 QueryCache& query_cache, Draft& draft)
    : setup_(setup),
      decisions_(decisions),
      publication_(publication),
      draft_(draft),
      answers_(setup, draft.store()),
      grower_(setup, draft.store()),
      training_(setup, decisions.lifetimes(), grower_, query_cache, draft),
      rebuilding_(setup, grower_, draft),
      replacement_(setup, decisions, grower_, rebuilding_, draft),
      deletion_(setup, rebuilding_, publication, draft) {}

void Learner::learn(const LearningRows& rows, const Run& run, std::size_t& learned) {
  LearningLock lock = draft_.begin();
  learn_blocks(lock, rows, {}, /*replaces=*/false, run, learned);
}

std::optional<ForestState> Learner::replace(const LearningRows& rows, const Run& run,
                                            std::size_t& learned) {
  LearningLock lock = draft_.begin();
  return learn_blocks(lock, rows, {}, /*replaces=*/true, run, learned);
}

void Learner::check_learned() const {
  if (draft_.progress().seen == 0)
    throw std::logic_error("the forest has not learned anything yet");
}

TreeLeaves Learner::leaves_then_learn(const LearningRows& rows, const Run& run,
                                      std::size_t& learned) {
  LearningLock lock = draft_.begin();
  check_learned();
  TreeLeaves leaves = answers_.blank_leaves(rows.rows.n, /*with_weights=*/false);
  learn_blocks(lock, rows, {.ranks = {}, .leaves = &leaves}, false, run, learned);
  return leaves;
}

Table<double> Learner::answer_then_learn(const LearningRows& rows, AnswerRequest request,
                                         const Run& run, std::size_t& learned) {
  LearningLock lock = draft_.begin();
  check_learned();
  std::size_t n_classes = draft_.progress().n_classes;
  for (std::size_t i = 0; setup_.votes() && i < rows.rows.n; ++i)
    n_classes = std::max(n_classes, static_cast<std::size_t>(rows.labels[i]) + 1);
  if (!request.ranks.empty() && request.ranks.size() < n_classes)
    throw std::logic_error("a class has no rank");
  Table<double> out{rows.rows.n, answers_.n_columns(request, n_classes)};
  request.out = &out;
  if (request.leaves != nullptr)
    *request.leaves = answers_.blank_leaves(rows.rows.n, /*with_weights=*/true);
  learn_blocks(lock, rows, request, false, run, learned);
  return out;
}

std::optional<ForestState> Learner::learn_blocks(LearningLock& lock, const LearningRows& rows,
                                                 const AnswerRequest& request, bool replaces,
                                                 const Run& run, std::size_t& learned) {
  learned = 0;
  const std::size_t n_rows = rows.rows.n;
  if (rows.ids.kind() != setup_.params.ids && n_rows > 0)
    throw std::logic_error("either all batches have ids or none");
  try {
    for (std::size_t begin = 0; begin < n_rows;) {
      if (begin > 0) {
        lock.block.unlock();
        run.between_blocks();
        lock.block.lock();
      }
      std::size_t n = block_rows(n_rows - begin, request.any());
      if (replaces) {
        n = std::min(n, deletion_.n_before_rebuilding());
        deletion_.mark_known(rows.ids, begin, n);
      }
      learn_block({rows, begin, n}, request, run);
      begin += n;
      const bool rebuilds = replaces && deletion_.must_rebuild();
      if (begin == n_rows && !rebuilds && 2 * n_rows >= draft_.store().size())
        draft_.compact_links();
      // Where it may fail, the whole call can be taken back.
      if (!setup_.may_fail() || (begin == n_rows && !rebuilds)) {
        draft_.publish();
        learned = begin;
      }
      if (!rebuilds) continue;
      ForestState state = deletion_.take_without_marked(run);
      learned = begin;
      return state;
    }
  } catch (...) {
    if (!lock.block) lock.block.lock();
    draft_.rollback();
    throw;
  }
  draft_.store().shrink();
  return std::nullopt;
}

// The first n_T examples make a block of their own: with the last of them the trees begin.
std::size_t Learner::block_rows(std::size_t n_left, bool answers) const {
  const std::uint64_t seen = draft_.progress().seen;
  std::size_t n =
      std::min<std::size_t>({n_left, Grower::block_rows(seen),
                             decisions_.block_end(seen, draft_.store().n_living()) - seen});
  if (!draft_.planted()) n = std::min<std::size_t>(n, setup_.params.n_T - seen);
  n = std::min<std::size_t>(n, replacement_.next_look(seen + n) - seen);
  return answers ? std::min(n, setup_.answered_block_rows()) : n;
}

void Learner::learn_block(const RowBlock& block, const AnswerRequest& request, const Run& run) {
  const Params& params = setup_.params;
  const std::size_t n = block.n;
  ExampleStore& store = draft_.store();
  Draft::Progress& progress = draft_.progress();
  const bool planted = draft_.planted();
  const RowsView rows = block.call.rows.slice(block.begin, n, params.n_features);
  const Slot first = store.stage(rows.data, block.call.labels + block.begin * params.label_length,
                                 n, progress.seen, block.call.ids, block.begin);
  draft_.sketch(first, setup_.n_threads(run));
  const std::vector<Slot> replayed = progress.adaptation.reservoir.add(progress.seen, first, n);
  StackMemory memory;
  const bool tries = planted && decisions_.schedule().is_trial(progress.seen);
  const bool judges = planted && params.judges_votes();
  std::pmr::vector<Leaf> v(request.any() || tries || judges ? n * params.n_held() : 0, &memory);
  if (planted)
    training_.BFTrain(first, n, replayed, run, v.empty() ? nullptr : v.data());
  else if (!v.empty())
    answer_awaited(first, n, v);
  const bool counts_each = !v.empty() && params.mixes_streams();
  if (request.any() || judges) answer_and_judge(request, block.begin, first, v);
  if (tries && params.mixes())
    judge_experts(first, v);
  else if (tries)
    try_votes(first, v);
  if (!counts_each) draft_.count_labels(first, n);
  progress.seen += n;
  if (planted)
    draft_.close_block(first);
  else
    draft_.await(first);
  decisions_.decide(progress.seen, progress.spread, draft_.trees().all(), store,
                    setup_.n_threads(run), progress.adaptation);
  if (!planted && progress.seen == params.n_T) training_.BFInitialization(run);
  if (draft_.planted()) replacement_.keep_shallow(run);
  if (params.is_part()) return;  // what follows needs all that is stored: see partial_forest.hpp
  if (const Arrival step = decisions_.schedule().growing_step(progress.seen); step > 0)
    replacement_.grow_successors(step, run, store.size());
  if (draft_.planted()) replacement_.keep_within_limit(run);
}

// What the trees will answer is what the nearest of the examples that are awaited says.
void Learner::answer_awaited(Slot first, std::size_t n, std::span<Leaf> v) {
  const std::size_t n_T = setup_.params.n_held();
  const ExampleStore& store = draft_.store();
  StackMemory memory;
  const QueryRows queries(store, first, n, &memory);
  Counts cost;
  for (std::size_t y = 0; y < n; ++y)
    std::ranges::fill(v.subspan(y * n_T, n_T),
                      nearest_awaited(
                          setup_, *draft_.progress().adaptation.settings->d, store,
                          {queries, y, draft_.progress().seen + y, 0}, first + static_cast<Slot>(y),
                          [&](Slot slot) { return slot >= first || store.is_alive(slot); }, cost));
  if (setup_.params.first_tree == 0) publication_.count_queries(cost);  // once for all parts
}

// Row by row, as votes that are judged or balanced may be weighed otherwise after each.
void Learner::answer_and_judge(const AnswerRequest& request, std::size_t begin, Slot first,
                               std::span<const Leaf> v) {
  const std::size_t n_T = setup_.params.n_held();
  const bool judges = draft_.planted() && setup_.params.judges_votes();
  StackMemory memory;
  Spread before(draft_.progress().spread, &memory);
  VoteState& votes = draft_.progress().adaptation.votes;
  Ballots ballots(setup_.params, votes.losses, &memory);
  std::pmr::vector<double> counts(votes.class_counts.begin(), votes.class_counts.end(), &memory);
  const Adaptation& adaptation = draft_.progress().adaptation;
  ClassOrder seen = adaptation.mixture.classes;
  const bool mixes_streams = setup_.params.mixes_streams();
  MixedRow mixed(setup_, draft_.store(), adaptation);
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    const std::span<const Leaf> v_y = v.subspan(y * n_T, n_T);
    AnswerRule rule = mixed.rule(ballots.all()[votes.rule]);
    rule.ballot.classes = {votes.class_weights, counts};
    rule.seen = &seen;
    const Slot slot = first + static_cast<Slot>(y);
    const double* label = draft_.store().label(slot);
    const Position position{draft_.store().row(slot), draft_.store().element_type()};
    if (request.any()) answers_.put(request, rule, begin + y, position, v_y);
    if (setup_.votes() && setup_.params.mixes()) seen.add(static_cast<std::uint32_t>(*label));
    if (setup_.params.counts_classes()) count_class(*label, counts);
    if (mixes_streams) {
      StreamRow& stream = *rule.stream;
      if (judges) {
        if (!request.any()) answers_.begin(stream, position, v_y, rule);
        stream.judge(draft_.progress().seen + y, label, draft_.progress().spread,
                     draft_.progress().adaptation.stream);
      }
      draft_.count_labels(slot, 1);
    }
    if (!judges) continue;
    StackMemory memory_of_row;
    const RowAnswers answers(setup_, draft_.store(), v_y, &memory_of_row);
    judge(draft_.progress().seen + y, answers.view(), label, before, setup_.params, ballots, votes);
    if (!setup_.votes()) before.add(label);
  }
}

// The answers of every rule to the staged examples from `first` on are compared with their labels.
void Learner::try_votes(Slot first, std::span<const Leaf> v) {
  const std::size_t n_T = setup_.params.n_held();
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    StackMemory memory;
    const RowAnswers answers(setup_, draft_.store(), v.subspan(y * n_T, n_T), &memory);
    try_rules(answers.view(), draft_.store().label(first + static_cast<Slot>(y)), setup_.params,
              draft_.progress().adaptation.votes);
  }
}

// The same for the experts of a mixture.
void Learner::judge_experts(Slot first, std::span<const Leaf> v) {
  const std::size_t n_T = setup_.params.n_held();
  const ExampleStore& store = draft_.store();
  Adaptation& adaptation = draft_.progress().adaptation;
  ClassOrder seen = adaptation.mixture.classes;
  RowMixture mixture(store, adaptation.settings->d->scales(), adaptation.mixture, setup_.votes());
  for (std::size_t y = 0; y * n_T < v.size(); ++y) {
    const Slot slot = first + static_cast<Slot>(y);
    mixture.begin({store.row(slot), store.element_type()}, v.subspan(y * n_T, n_T));
    mixture.judge(store.label(slot), seen, adaptation.mixture);
    if (setup_.votes()) seen.add(static_cast<std::uint32_t>(*store.label(slot)));
  }
}

void Learner::learn_offline(const LearningRows& rows, const Run& run) {
  const Params& params = setup_.params;
  const std::size_t n = rows.rows.n;
  const LearningLock lock = draft_.begin();
  Draft::Progress& progress = draft_.progress();
  if (progress.seen > 0) throw std::logic_error("offline learning needs an empty forest");
  draft_.commit([&] {
    const Slot first = draft_.store().stage(rows.rows.data, rows.labels, n, 0, rows.ids);
    draft_.count_labels(first, n);
    progress.adaptation.reservoir.add(0, first, n);
    progress.seen = n;
    if (params.has_learned_weights)
      decisions_.learn_weights(n, Window::capacity, {}, draft_.store(), setup_.n_threads(run),
                               progress.adaptation);
    for (std::uint32_t i = 0; i < params.n_held(); ++i)
      draft_.trees().add(grower_.make_tree(params.first_tree + i, 0, progress.adaptation.settings));
    const std::span<LearnerTree> trees = draft_.trees().all();
    draft_.sketch(first, setup_.n_threads(run));
    grower_.grow(trees, QueryRows(draft_.store(), first, n), draft_.epsilon(), run,
                 [&](std::size_t i) {
                   const std::uint32_t place = trees[i].tree->place();
                   std::vector<std::uint32_t> order =
                       shuffled(static_cast<std::uint32_t>(n), params.seed, place);
                   const std::uint32_t root = order[0];
                   std::erase_if(order, [&](std::uint32_t y) { return !params.learns(place, y); });
                   if (order.empty()) order.push_back(root);
                   return Grower::Shown{std::move(order)};
                 });
    draft_.close_block(first);
    if (!params.is_part()) replacement_.keep_below_max_stored(run);
  });
  draft_.store().shrink();
}

}  // namespace boundary_forest
