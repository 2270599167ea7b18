#include "forest/boundary_forest.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "forest/restoring.hpp"
#include "forest/state.hpp"

namespace boundary_forest {
namespace {

// From so many on, sketches that are missing pay for themselves within a call or a few.
constexpr std::size_t many_queries = 256;

}  // namespace

BoundaryForest::BoundaryForest(const Params& params, std::unique_ptr<Metric> d)
    : setup_(params, std::move(d)),
      decisions_(setup_.params, setup_.settings),
      store_(params.element_type, params.n_features, params.label_length, params.ids,
             params.has_graph && params.ids != IdKind::none),
      graph_(setup_.params, setup_.d(), store_),
      publication_(params),
      draft_(setup_, decisions_.first(setup_.row_bytes()), store_, graph_, publication_,
             query_cache_),
      learner_(setup_, decisions_, publication_, query_cache_, draft_),
      queries_(setup_, store_, query_cache_),
      search_(setup_, store_, graph_, queries_) {}

void BoundaryForest::learn(const RowsView& rows, const double* labels, const Run& run,
                           std::size_t& learned, const Ids& ids) {
  learner_.learn({rows, labels, ids}, run, learned);
}

std::optional<ForestState> BoundaryForest::replace(const RowsView& rows, const double* labels,
                                                   const Run& run, std::size_t& learned,
                                                   const Ids& ids) {
  if (!setup_.params.has_graph || setup_.params.ids == IdKind::none)
    throw std::logic_error("examples are replaced by their ids, in a forest that has a graph");
  return learner_.replace({rows, labels, ids}, run, learned);
}

Table<double> BoundaryForest::predict_then_learn(const RowsView& rows, const double* labels,
                                                 const Run& run, std::size_t& learned,
                                                 const Ids& ids, Ranks ranks, TreeLeaves* leaves) {
  return learner_.answer_then_learn({rows, labels, ids}, {.ranks = ranks, .leaves = leaves}, run,
                                    learned);
}

Table<double> BoundaryForest::estimate_then_learn(const RowsView& rows, const double* labels,
                                                  const Run& run, std::size_t& learned,
                                                  const Ids& ids, Ranks ranks, TreeLeaves* leaves) {
  return learner_.answer_then_learn({rows, labels, ids},
                                    {.shares = setup_.votes(), .ranks = ranks, .leaves = leaves},
                                    run, learned);
}

void BoundaryForest::learn_offline(const RowsView& rows, const double* labels, const Run& run,
                                   const Ids& ids) {
  learner_.learn_offline({rows, labels, ids}, run);
}

void BoundaryForest::weigh_classes(std::vector<double> weights) {
  const LearningLock lock = draft_.begin();
  draft_.progress().adaptation.votes.class_weights = std::move(weights);
}

void BoundaryForest::check_ids(const Ids& ids, bool may_be_known) {
  const LearningLock lock = draft_.begin();
  store_.ids().check_new(ids, may_be_known);
}

Examples BoundaryForest::named(const Ids& ids, std::vector<std::uint8_t>& is_known) {
  std::unique_lock lock = draft_.hold_newest();
  const Reading reading(publication_);
  std::vector<Slot> slots;
  is_known.assign(ids.size(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (const Slot slot = store_.ids().find(ids, i); slot != nothing) {
      is_known[i] = 1;
      slots.push_back(slot);
    }
  lock.unlock();
  return examples_at(store_, slots);
}

std::vector<std::uint32_t> BoundaryForest::classes_without(const Ids& ids) {
  return learner_.deletion().classes_without(ids);
}

Forgetting BoundaryForest::forget(const Ids& ids, const Run& run, bool erases) {
  return learner_.deletion().forget(ids, run, erases);
}

ForestState BoundaryForest::without_marked(const Run& run) {
  return learner_.deletion().without_marked(run);
}

std::size_t BoundaryForest::n_marked() {
  return Reading(publication_).version.n_marked(setup_.params);
}

bool BoundaryForest::needs_rebuild() {
  const Reading reading(publication_);
  const Slot n_marked = reading.version.n_marked(setup_.params);
  return is_rebuild_due(n_marked, n_marked + reading.version.stored);
}

std::unique_ptr<BoundaryForest> BoundaryForest::rebuilt(const State& state,
                                                        std::unique_ptr<Metric> d) const {
  auto rebuilt = std::make_unique<BoundaryForest>(setup_.params, std::move(d));
  rebuilt->restore(state);
  return rebuilt;
}

void BoundaryForest::regrow(std::span<const Regrowth> trees, const Run& run) {
  learner_.replacement().regrow(trees, run);
}

void BoundaryForest::succeed(std::span<const std::uint32_t> places) {
  learner_.replacement().succeed(places);
}

Table<Arrival> BoundaryForest::apply(const RowsView& rows, const Run& run) {
  if (rows.n >= many_queries) draft_.prepare_sketches(setup_.n_threads(run));
  Reading reading(publication_);
  return queries_.apply(reading, rows, run);
}

std::optional<Table<double>> BoundaryForest::predict(const RowsView& rows, const Run& run,
                                                     Ranks ranks) {
  if (rows.n >= many_queries) draft_.prepare_sketches(setup_.n_threads(run));
  Reading reading(publication_);
  return queries_.answer(reading, rows, run, {.ranks = ranks});
}

std::optional<Table<double>> BoundaryForest::estimate(const RowsView& rows, const Run& run,
                                                      Ranks ranks) {
  if (rows.n >= many_queries) draft_.prepare_sketches(setup_.n_threads(run));
  Reading reading(publication_);
  return queries_.answer(reading, rows, run, {.shares = setup_.votes(), .ranks = ranks});
}

FoundExamples BoundaryForest::found(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  return queries_.found(reading, rows, run);
}

Paths BoundaryForest::paths(const RowsView& row) {
  Reading reading(publication_);
  return queries_.paths(reading, row);
}

Neighbors BoundaryForest::neighbors(const RowsView& rows, std::size_t n, const Search& search,
                                    const Run& run) {
  draft_.prepare_search();
  PlannedSearch planned(parts(), search);
  return search_.neighbors(planned.plan, rows, n, run, planned.reading.cost);
}

Within BoundaryForest::within(const RowsView& rows, double radius, const Search& search,
                              const Run& run) {
  draft_.prepare_search();
  PlannedSearch planned(parts(), search);
  return search_.within(planned.plan, rows, radius, run, planned.reading.cost);
}

Features BoundaryForest::features() {
  return features_of(setup_.params, store_, Reading(publication_).version);
}

Stats BoundaryForest::stats() {
  const Reading reading(publication_);
  Stats stats = stats_of(setup_.params, store_, reading.version);
  stats.learn = publication_.learn_counts();
  stats.query = publication_.query_counts();
  return stats;
}

std::optional<Digest> BoundaryForest::digest(std::span<const std::uint64_t> label_keys,
                                             const VoteState* votes,
                                             std::optional<std::size_t> n_features) {
  Params params = setup_.params;
  params.n_features = std::min(params.n_features, n_features.value_or(params.n_features));
  return digest_of(params, store_, Reading(publication_).version, label_keys, votes);
}

double BoundaryForest::label_deviation() {
  return Reading(publication_).version.spread.deviation();
}

ForestState BoundaryForest::state(bool with_positions) {
  return Snapshot(*this).state(with_positions);
}

void BoundaryForest::restore(const State& state) {
  const std::vector<std::byte>& positions = state.examples.positions;
  restore(state, {.data = positions.data(), .bytes = positions.size()});
}

void BoundaryForest::restore(const State& state, const SavedRows& rows) {
  boundary_forest::restore(state, rows, setup_, decisions_, learner_.grower(), draft_);
  publication_.count_learning(state.learn);
  publication_.count_queries(state.query);
}

std::unique_ptr<BoundaryForest> BoundaryForest::widened(std::size_t n_features,
                                                        std::unique_ptr<Metric> d) {
  Params params = setup_.params;
  if (n_features < params.n_features)
    throw std::invalid_argument("a forest cannot become narrower");
  State state = this->state();
  widen(state, params, n_features);
  params.n_features = n_features;
  auto wider = std::make_unique<BoundaryForest>(params, std::move(d));
  wider->restore(state);
  return wider;
}

PlannedSearch::PlannedSearch(const ForestParts& forest, const Search& search)
    : lock_(search.allowed.by == Allowed::By::ids ? forest.draft.hold_newest()
                                                  : std::unique_lock<std::mutex>()),
      reading(forest.publication),
      plan(forest.search.plan(search, reading.version)) {
  if (lock_) lock_.unlock();
}

Snapshot::Snapshot(BoundaryForest& forest, bool searched)
    : forest_((searched ? forest.parts().draft.prepare_search() : void(), forest.parts())),
      reading_(forest_.publication, Publication::Reader::holder),
      living_(living(forest_.draft.store(), reading_.version)) {}

ForestState Snapshot::state(bool with_positions) const {
  const ExampleStore& store = forest_.draft.store();
  ForestState state = state_of(forest_.setup.params, store, reading_.version,
                               living(store, reading_.version, true), with_positions);
  state.learn = forest_.publication.learn_counts();
  state.query = forest_.publication.query_counts();
  return state;
}

Examples Snapshot::examples(std::size_t begin, std::size_t end, bool with_positions) const {
  if (begin > end || end > living_.size())
    throw std::invalid_argument("there are " + std::to_string(living_.size()) + " examples");
  return examples_at(forest_.draft.store(), std::span(living_).subspan(begin, end - begin),
                     with_positions);
}

Neighbors Snapshot::neighbors(const RowsView& rows, std::size_t n, const Search& search,
                              const Run& run) const {
  Counts cost;
  Neighbors found =
      forest_.search.neighbors(forest_.search.plan(search, reading_.version), rows, n, run, cost);
  forest_.publication.count_queries(cost);
  return found;
}

}  // namespace boundary_forest
