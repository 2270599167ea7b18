#include "forest/queries.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <tuple>
#include <utility>

#include "concurrency/thread_pool.hpp"
#include "forest/state.hpp"
#include "tree/block_descent.hpp"
#include "tree/block_prefilters.hpp"

namespace boundary_forest {

void Queries::BFQuery(const QueryRows& queries, const Version& version, Leaf* v, const Run& run,
                      Counts& cost) {
  const std::size_t n_T = setup_.params.n_held();
  if (!version.planted) {
    for (std::size_t row = 0; row < queries.size(); ++row)
      std::fill_n(v + row * n_T, n_T,
                  nearest_awaited(
                      setup_, *version.adaptation.settings->d, store_,
                      {queries, row, version.seen, 0}, version.slots,
                      [&](Slot slot) {
                        return store_.is_in(version, slot) && !store_.is_forgotten(version, slot);
                      },
                      cost));
    return;
  }
  StackMemory memory;
  std::pmr::vector<Counts> costs(n_T, &memory);
  const bool alone = queries.size() == 1 && !setup_.may_fail();
  const bool is_cached = alone && queries.position(0).type == setup_.params.element_type;
  std::pmr::vector<DescentEnd> descents(is_cached ? n_T : 0, &memory);
  const std::span<const TreeVersion> answering(version.trees.data(), n_T);
  const BlockPrefilters prefilters(
      queries, setup_.plain, answering, [](const TreeVersion& of) { return of.tree; },
      version.sketches, setup_.n_threads(run));
  const bool caches_distances = alone && setup_.n_threads(run) == 1 && !setup_.plain &&
                                store_.row_bytes() >= CachedDescent::worth_it;
  std::unique_ptr<DistanceCache> distances = caches_distances ? distance_caches_.take() : nullptr;
  // On one thread, a row that is alone goes through all trees by the same memory.
  std::optional<BlockDescent> shared;
  if (alone && setup_.n_threads(run) == 1)
    if (const Prefilter* prefilter = prefilters.of(*answering[0].tree)) {
      shared.emplace(queries, *prefilter);
      if (distances) shared->remember_in(*distances);
    }
  std::optional<CachedDescent> cached;
  if (distances && !shared) cached.emplace(*distances);
  parallel_for(n_T, setup_.n_threads(run), [&](std::size_t i) {
    const BoundaryTree& tree = *answering[i].tree;
    const NodeId n_nodes = answering[i].n_nodes;
    if (const Prefilter* prefilter = prefilters.of(tree)) {
      std::optional<BlockDescent> own;
      BlockDescent& block =
          shared && shared->is_by(*prefilter) ? *shared : own.emplace(queries, *prefilter);
      block.descend(tree, prefilters.all_rows(), {version.seen, BlockDescent::Clock::Pace::none},
                    n_nodes, costs[i]);
      for (std::size_t row = 0; row < queries.size(); ++row)
        v[row * n_T + i] = block.endings()[row].at;
      if (is_cached) {
        const BlockDescent::Ending& ending = block.endings()[0];
        descents[i] = {ending.node, static_cast<std::uint32_t>(ending.compared), ending.at};
      }
      return;
    }
    for (std::size_t row = 0; row < queries.size(); ++row) {
      const Query query{queries, row, version.seen, n_nodes};
      const auto [node, at] =
          cached ? (*cached)(tree, query, costs[i]) : tree.BTQuery(query, costs[i]);
      v[row * n_T + i] = at;
      if (is_cached) descents[i] = {node, static_cast<std::uint32_t>(costs[i].comparisons), at};
    }
  });
  if (distances) distance_caches_.give_back(std::move(distances));
  for (const Counts& of_tree : costs) cost += of_tree;
  if (is_cached)
    query_cache_.remember(version.number, {queries.position(0).data, setup_.row_bytes()}, descents);
  if (version.n_marked(setup_.params) == 0) return;
  parallel_for(n_T, setup_.n_threads(run), [&](std::size_t i) {
    for (std::size_t row = 0; row < queries.size(); ++row)
      if (Leaf& at = v[row * n_T + i]; store_.is_forgotten(version, at.example))
        at = closest_living(queries, row, version, i);
  });
}

// Of equals, the earlier arrival.
Leaf Queries::closest_living(const QueryRows& queries, std::size_t row, const Version& version,
                             std::size_t i) const {
  const auto is_closer = ranked_by(arrival_in(store_));
  Leaf closest{nothing, 0.0};
  const auto consider = [&](Slot slot, double reduced) {
    if (store_.is_forgotten(version, slot)) return;
    if (const Leaf leaf{slot, reduced}; closest.example == nothing || is_closer(leaf, closest))
      closest = leaf;
  };
  const TreeVersion& of = version.trees[i];
  Counts counted_already;
  of.tree->BTQuery({queries, row, version.seen, of.n_nodes}, counted_already, consider);
  if (closest.example != nothing) return closest;
  for (Slot slot = 0; slot < version.slots; ++slot) {
    const std::byte* example = store_.row(slot);
    double reduced = 0.0;
    of.tree->d().distances(queries.position(row), &example, 1, &reduced);
    consider(slot, reduced);
  }
  return closest;
}

std::size_t Queries::block_rows() const {
  return std::min(
      std::clamp<std::size_t>((std::size_t{16} << 20) / setup_.row_bytes(), 1024, 16384),
      setup_.answered_block_rows());
}

Leaf nearest_awaited(const Setup& setup, const Metric& d, const ExampleStore& store,
                     const Query& query, Slot end, const std::function<bool(Slot)>& is_there,
                     Counts& cost) {
  Nearest closest(BoundaryTree::tie_hash(setup.params, 0), store, query);
  for (Slot slot = 0; slot < end; ++slot) {
    if (!is_there(slot)) continue;
    Leaf candidate{slot, 0.0};
    const std::byte* row = store.row(slot);
    d.distances(query.y(), &row, 1, &candidate.reduced);
    closest.consider(slot, candidate);
    cost += {1, 1};
  }
  if (closest.node() == nothing) throw std::logic_error("the forest has not learned anything yet");
  return closest.at();
}

Table<Arrival> Queries::apply(Reading& reading, const RowsView& rows, const Run& run) {
  const std::size_t n_T = setup_.params.n_held();
  Table<Arrival> out{rows.n, n_T};
  for_each_row(rows, run, reading.version, reading.cost,
               [&](std::size_t row, const Position&, std::span<const Leaf> v) {
                 for (std::size_t i = 0; i < n_T; ++i)
                   out.values[row * n_T + i] = store_.arrival(v[i].example);
               });
  return out;
}

TreeLeaves Queries::leaves(Reading& reading, const RowsView& rows, const Run& run) {
  TreeLeaves out = answers_.blank_leaves(rows.n, /*with_weights=*/false);
  for_each_row(rows, run, reading.version, reading.cost,
               [&](std::size_t row, const Position& query, std::span<const Leaf> v) {
                 answers_.put_leaves(out, {}, row, query, v);
               });
  return out;
}

std::optional<Table<double>> Queries::answer(Reading& reading, const RowsView& rows, const Run& run,
                                             AnswerRequest request) {
  const std::size_t n_classes = reading.version.n_classes;
  if (!request.ranks.empty() && request.ranks.size() < n_classes) return std::nullopt;
  Table<double> out{rows.n, answers_.n_columns(request, n_classes)};
  request.out = &out;
  std::vector<double> factors;
  const Adaptation& adaptation = reading.version.adaptation;
  const Ballot ballot = ballot_of(adaptation.votes, setup_.params, factors);
  if (setup_.params.mixes() || setup_.params.mixes_streams()) {
    answer_by_mixture(reading, rows, run, request, ballot);
    return out;
  }
  for_each_row(rows, run, reading.version, reading.cost,
               [&](std::size_t row, const Position& query, std::span<const Leaf> v) {
                 answers_.put(request, {ballot}, row, query, v);
               });
  return out;
}

// Most of the work is done for single rows, so these are spread over threads.
void Queries::answer_by_mixture(Reading& reading, const RowsView& rows, const Run& run,
                                const AnswerRequest& request, const Ballot& ballot) {
  const std::size_t n_T = setup_.params.n_held();
  const std::size_t most_rows = std::min(rows.n, block_rows());
  const std::size_t n_tasks = std::min(setup_.n_threads(run), most_rows);
  const Adaptation& adaptation = reading.version.adaptation;
  std::vector<Leaf> v(most_rows * n_T);
  std::deque<MixedRow> mixed;  // they keep what they know of examples
  while (mixed.size() < n_tasks) mixed.emplace_back(setup_, store_, adaptation);
  for_each_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, reading.version, v.data(), run, reading.cost);
    const std::size_t n = queries.size();
    parallel_for(n_tasks, n_tasks, [&](std::size_t task) {
      const AnswerRule rule = mixed[task].rule(ballot);
      for (std::size_t row = task * n / n_tasks; row < (task + 1) * n / n_tasks; ++row)
        answers_.put(request, rule, begin + row, queries.position(row),
                     std::span(v).subspan(row * n_T, n_T));
    });
  });
}

namespace {

// The distinct slots among these, by arrival; and each one's number among them.
std::vector<Slot> distinct(std::span<const Slot> slots, const ExampleStore& store,
                           std::vector<std::uint32_t>& numbers) {
  std::vector<Slot> found(slots.begin(), slots.end());
  const auto earlier = [&](Slot a, Slot b) { return store.arrival(a) < store.arrival(b); };
  std::sort(found.begin(), found.end(), earlier);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (const Slot slot : slots) {
    const auto at = std::lower_bound(found.begin(), found.end(), slot, earlier);
    numbers.push_back(static_cast<std::uint32_t>(at - found.begin()));
  }
  return found;
}

}  // namespace

void Queries::put_recent(StreamRow& stream, const Adaptation& adaptation, const Position& query,
                         Paths::Recent& out) const {
  const Metric& d = *adaptation.settings->d;
  const std::size_t length = setup_.params.label_length;
  const std::vector<StreamRow::RecentShare> shares = stream.recent_shares();
  out.labels = {shares.size(), length};
  out.distances.resize(shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Arrival a = shares[i].arrival;
    const std::byte* row = adaptation.window.row(a);
    d.distances(query, &row, 1, &out.distances[i]);
    out.distances[i] = d.distance(out.distances[i]);
    std::copy_n(adaptation.window.label(a), length, out.labels.row(i).begin());
    out.arrivals.push_back(a);
    out.weights.push_back(shares[i].share);
  }
}

FoundExamples Queries::found(Reading& reading, const RowsView& rows, const Run& run) {
  const std::size_t n_T = setup_.params.n_held();
  std::vector<Slot> slots;
  slots.reserve(rows.n * n_T);
  FoundExamples out{{{rows.n, n_T, {}}, {rows.n, n_T, std::vector<double>(rows.n * n_T)}}, {}};
  for_each_row(rows, run, reading.version, reading.cost,
               [&](std::size_t row, const Position&, std::span<const Leaf> v) {
                 for (std::size_t i = 0; i < n_T; ++i) {
                   slots.push_back(v[i].example);
                   out.found.distances.values[row * n_T + i] = setup_.d().distance(v[i].reduced);
                 }
               });
  out.examples = examples_at(store_, distinct(slots, store_, out.found.places.values));
  return out;
}

Paths Queries::paths(Reading& reading, const RowsView& row) {
  const Version& version = reading.version;
  const std::size_t n_T = setup_.params.n_held();
  const QueryRows query(row, store_);
  Paths out;
  std::vector<Leaf> v(n_T);
  if (!version.planted) BFQuery(query, version, v.data(), Run{}, reading.cost);
  std::vector<Slot> met;
  for (std::size_t t = 0; t < n_T; ++t) {
    const std::size_t begin = met.size();
    const Metric& d =
        version.planted ? version.trees[t].tree->d() : *version.adaptation.settings->d;
    if (version.planted) {
      const auto& [tree, n_nodes, generation, answering] = version.trees[t];
      NodeId w = 0;
      v[t] = tree->leaf(0, query.position(0));
      reading.cost += {1, 1};
      do {
        if (!store_.is_forgotten(version, tree->example(w))) met.push_back(tree->example(w));
      } while (tree->step(w, v[t], {query, 0, version.seen, n_nodes}, reading.cost));
      if (store_.is_forgotten(version, v[t].example)) {  // the path ends at another one
        v[t] = closest_living(query, 0, version, t);
        met.erase(
            std::remove(met.begin() + static_cast<std::ptrdiff_t>(begin), met.end(), v[t].example),
            met.end());
        met.push_back(v[t].example);
      }
    } else {
      met.push_back(v[t].example);
    }
    std::vector<double> distances(met.size() - begin);
    for (std::size_t j = 0; j < distances.size(); ++j) {
      const std::byte* example = store_.row(met[begin + j]);
      d.distances(query.position(0), &example, 1, &distances[j]);
      distances[j] = d.distance(distances[j]);
    }
    const std::size_t length = distances.size();
    out.trees.push_back({{1, length, {}}, {1, length, std::move(distances)}});
  }
  std::vector<std::uint32_t> numbers;
  out.examples = examples_at(store_, distinct(met, store_, numbers));
  auto number = numbers.begin();
  for (Found& path : out.trees) {
    const auto end = number + static_cast<std::ptrdiff_t>(path.places.columns);
    path.places.values.assign(std::exchange(number, end), end);
  }
  std::vector<double> factors;
  MixedRow mixed(setup_, store_, version.adaptation);
  const AnswerRule rule = mixed.rule(ballot_of(version.adaptation.votes, setup_.params, factors));
  const Position& position = query.position(0);
  StackMemory memory;
  const std::pmr::vector<double> weights = answers_.shares(position, v, rule, &memory);
  out.weights.assign(weights.begin(), weights.end());
  if (rule.stream != nullptr) put_recent(*rule.stream, version.adaptation, position, out.recent);
  if (!setup_.votes()) {
    out.estimate = {1, setup_.params.label_length};
    answers_.E_label(position, v, rule, out.estimate.row(0));
    return out;
  }
  out.estimate.columns = 2;
  for (const Vote& vote :
       answers_.E_vote(position, v, rule, {}, std::pmr::get_default_resource())) {
    out.estimate.values.insert(out.estimate.values.end(),
                               {static_cast<double>(vote.code), vote.share});
    ++out.estimate.rows;
  }
  return out;
}

}  // namespace boundary_forest
