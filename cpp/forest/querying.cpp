// Algorithm 2, the querying side: BFQuery and the answers made of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/memory.hpp"
#include "forest/boundary_forest.hpp"
#include "forest/query_blocks.hpp"
#include "tree/block_descent.hpp"
#include "tree/block_prefilters.hpp"
#include "tree/cached_descent.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

// v[row * n_T + i] becomes the locally closest example of tree i, of the n_T that are held here.
void BoundaryForest::BFQuery(const QueryRows& queries, const Version& version, Leaf* v,
                             const Run& run, Counts& cost) {
  const std::size_t n_T = params_.n_held();
  if (!version.planted) {
    for (std::size_t row = 0; row < queries.size(); ++row)
      std::fill_n(v + row * n_T, n_T,
                  nearest_buffered(
                      queries, row, version.slots, version.seen,
                      [&](Slot slot) { return store_.is_in(version, slot); }, cost));
    return;
  }
  StackMemory memory;
  std::pmr::vector<Counts> costs(n_T, &memory);
  const bool alone = queries.size() == 1 && queries.position(0).type == params_.element_type;
  std::pmr::vector<DescentEnd> descents(alone && !may_fail() ? n_T : 0, &memory);
  const std::span<const TreeVersion> answering(version.trees.data(), n_T);
  const BlockPrefilters prefilters(queries, plain_, answering,
                                   [](const TreeVersion& of) { return of.tree; });
  const bool remembers = queries.size() == 1 && threads(run) == 1 && !plain_ && !may_fail() &&
                         store_.row_bytes() >= CachedDescent::worth_it;
  std::unique_ptr<Scratch> scratch = remembers ? scratch_.take() : nullptr;
  std::optional<CachedDescent> cached;
  if (remembers) cached.emplace(scratch->known);
  parallel_for(n_T, threads(run), [&](std::size_t i) {
    const BoundaryTree& tree = *answering[i].tree;
    const NodeId n_nodes = answering[i].n_nodes;
    if (const Prefilter* prefilter = prefilters.of(tree)) {
      BlockDescent block(queries, *prefilter);
      block.descend(tree, prefilters.all_rows(), {version.seen, BlockDescent::Clock::Pace::none},
                    n_nodes, costs[i]);
      for (std::size_t row = 0; row < queries.size(); ++row)
        v[row * n_T + i] = block.endings()[row].at;
      return;
    }
    for (std::size_t row = 0; row < queries.size(); ++row) {
      const Query query{queries, row, version.seen, n_nodes};
      const auto [node, at] =
          cached ? (*cached)(tree, query, costs[i]) : tree.BTQuery(query, costs[i]);
      v[row * n_T + i] = at;
      if (!descents.empty())
        descents[i] = {node, static_cast<std::uint32_t>(costs[i].comparisons), at};
    }
  });
  if (scratch) scratch_.give_back(std::move(scratch));
  for (const Counts& of_tree : costs) cost += of_tree;
  if (!descents.empty()) query_cache_.remember(version.number, bytes_of(queries, 0), descents);
}

std::span<const std::byte> BoundaryForest::bytes_of(const QueryRows& rows, std::size_t i) const {
  return {rows.position(i).data, params_.n_features * size_of(params_.element_type)};
}

// Before the n_T-th example there are no trees: the exact nearest of those that have arrived, ties
// by the first tree's priorities. is_there(slot) tells for the slots below `end`.
Leaf BoundaryForest::nearest_buffered(const QueryRows& queries, std::size_t i, Slot end,
                                      std::uint64_t seen, const std::function<bool(Slot)>& is_there,
                                      Counts& cost) const {
  Nearest closest(BoundaryTree::tie_hash(params_, 0), store_, {queries, i, seen, 0});
  for (Slot slot = 0; slot < end; ++slot) {
    if (!is_there(slot)) continue;
    Leaf candidate{slot, 0.0};
    const std::byte* row = store_.row(slot);
    settings_->d->distances(queries.position(i), &row, 1, &candidate.reduced);
    closest.consider(slot, candidate);
    cost += {1, 1};
  }
  if (closest.node() == nothing) throw std::logic_error("the forest has not learned anything yet");
  return closest.at();
}

// f(row, v) for each row and what the trees found for it.
template <class F>
void BoundaryForest::for_each_answer(const RowsView& rows, const Run& run, Reading& reading,
                                     F&& f) {
  const std::size_t n_T = params_.n_held();
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, query_block_rows()) * n_T, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, reading.version, v.data(), run, reading.cost);
    for (std::size_t row = 0; row < queries.size(); ++row)
      f(begin + row, std::span<const Leaf>(v).subspan(row * n_T, n_T));
  });
}

Table<Arrival> BoundaryForest::apply(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  const std::size_t n_T = params_.n_held();
  Table<Arrival> out{rows.n, n_T, std::vector<Arrival>(rows.n * n_T)};
  for_each_answer(rows, run, reading, [&](std::size_t row, std::span<const Leaf> v) {
    for (std::size_t i = 0; i < n_T; ++i) out.values[row * n_T + i] = store_.arrival(v[i].example);
  });
  return out;
}

TreeLeaves BoundaryForest::leaves(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  TreeLeaves out = blank_leaves(rows.n, /*with_weights=*/false);
  for_each_answer(rows, run, reading, [&](std::size_t row, std::span<const Leaf> v) {
    put_leaves(out, Ballot{}, row, v);
  });
  return out;
}

TreeLeaves BoundaryForest::blank_leaves(std::size_t n, bool with_weights) const {
  const std::size_t n_T = params_.n_held();
  return {.arrivals = {n, n_T},
          .labels = {n, n_T * params_.label_length},
          .distances = {n, n_T},
          .weights = {n, with_weights ? n_T : 0}};
}

std::optional<Table<double>> BoundaryForest::predict(const RowsView& rows, const Run& run,
                                                     Ranks ranks) {
  return answers(rows, run, {.ranks = ranks});
}

std::optional<Table<double>> BoundaryForest::estimate(const RowsView& rows, const Run& run,
                                                      Ranks ranks) {
  return answers(rows, run, {.shares = votes(), .ranks = ranks});
}

std::optional<Table<double>> BoundaryForest::answers(const RowsView& rows, const Run& run,
                                                     AnswerRequest asked) {
  Reading reading(publication_);
  const std::size_t n_classes = reading.version.n_classes;
  if (!asked.ranks.empty() && asked.ranks.size() < n_classes) return std::nullopt;
  std::size_t length = params_.label_length;
  if (asked.shares) length = std::max(n_classes, asked.ranks.size());
  Table<double> out{rows.n, length};
  asked.out = &out;
  std::vector<double> factors;
  const Ballot ballot = ballot_of(reading.version.adaptation.votes, params_, factors);
  for_each_answer(rows, run, reading,
                  [&](std::size_t row, std::span<const Leaf> v) { answer(asked, ballot, row, v); });
  return out;
}

void BoundaryForest::answer(const AnswerRequest& asked, const Ballot& ballot, std::size_t row,
                            std::span<const Leaf> v) const {
  if (asked.leaves != nullptr) put_leaves(*asked.leaves, ballot, row, v);
  if (asked.out == nullptr) return;
  const std::span<double> out = asked.out->row(row);
  if (!votes()) return E_label(v, ballot, out);
  StackMemory memory;
  const std::pmr::vector<Vote> votes = E_vote(v, ballot, &memory);
  if (asked.shares)
    for (const Vote& vote : votes) out[rank_of(vote.code, asked.ranks)] = vote.share;
  else
    out[0] = winner(votes, asked.ranks).code;
}

void BoundaryForest::put_leaves(TreeLeaves& leaves, const Ballot& ballot, std::size_t row,
                                std::span<const Leaf> v) const {
  StackMemory memory;
  std::ranges::copy(distances(v, &memory), leaves.distances.row(row).begin());
  if (leaves.weights.columns > 0)
    std::ranges::copy(shares(v, ballot, &memory), leaves.weights.row(row).begin());
  auto arrival = leaves.arrivals.row(row).begin();
  auto label = leaves.labels.row(row).begin();
  for (const Leaf& v_i : v) {
    *arrival++ = store_.arrival(v_i.example);
    label = std::copy_n(store_.label(v_i.example), params_.label_length, label);
  }
}

std::pmr::vector<double> BoundaryForest::distances(std::span<const Leaf> v,
                                                   std::pmr::memory_resource* memory) const {
  std::pmr::vector<double> d(v.size(), memory);
  for (std::size_t i = 0; i < v.size(); ++i) d[i] = settings_->d->distance(v[i].reduced);
  return d;
}

std::pmr::vector<const double*> BoundaryForest::labels(std::span<const Leaf> v,
                                                       std::pmr::memory_resource* memory) const {
  std::pmr::vector<const double*> labels(v.size(), memory);
  for (std::size_t i = 0; i < v.size(); ++i) labels[i] = store_.label(v[i].example);
  return labels;
}

std::pmr::vector<Vote> BoundaryForest::E_vote(std::span<const Leaf> v, const Ballot& ballot,
                                              std::pmr::memory_resource* memory) const {
  std::pmr::vector<double> weights = distances(v, memory);
  const double sum = shepard_weights(weights, ballot);
  return shepard_vote(labels(v, memory), weights, sum, memory);
}

std::pmr::vector<double> BoundaryForest::shares(std::span<const Leaf> v, const Ballot& ballot,
                                                std::pmr::memory_resource* memory) const {
  std::pmr::vector<double> weights = distances(v, memory);
  if (params_.estimator == Estimator::nearest) {  // the closest is put at 0, and decides alone
    const Slot closest = nearest(v, store_).example;
    for (std::size_t i = 0; i < v.size(); ++i)
      weights[i] = static_cast<double>(v[i].example != closest);
  }
  const double sum = shepard_weights(weights, ballot);
  for (double& weight : weights) weight /= sum;
  return weights;
}

void BoundaryForest::E_label(std::span<const Leaf> v, const Ballot& ballot,
                             std::span<double> out) const {
  if (params_.estimator == Estimator::nearest) {
    std::copy_n(store_.label(nearest(v, store_).example), out.size(), out.begin());
    return;
  }
  StackMemory memory;
  std::pmr::vector<double> weights = distances(v, &memory);
  const double sum = shepard_weights(weights, ballot);
  shepard_mean(labels(v, &memory), weights, sum, out);
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

Answers BoundaryForest::found(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  const std::size_t n_T = params_.n_held();
  std::vector<Slot> slots;
  slots.reserve(rows.n * n_T);
  Answers out{{{rows.n, n_T, {}}, {rows.n, n_T, std::vector<double>(rows.n * n_T)}}, {}};
  for_each_answer(rows, run, reading, [&](std::size_t row, std::span<const Leaf> v) {
    for (std::size_t i = 0; i < n_T; ++i) {
      slots.push_back(v[i].example);
      out.found.distances.values[row * n_T + i] = settings_->d->distance(v[i].reduced);
    }
  });
  out.examples = examples_at(distinct(slots, store_, out.found.places.values));
  return out;
}

Paths BoundaryForest::paths(const RowsView& row) {
  Reading reading(publication_);
  const Version& version = reading.version;
  const std::size_t n_T = params_.n_held();
  const QueryRows query(row, store_);
  Paths out;
  std::vector<Leaf> v(n_T);
  if (!version.planted) BFQuery(query, version, v.data(), Run{}, reading.cost);
  std::vector<Slot> met;
  for (std::size_t t = 0; t < n_T; ++t) {
    const std::size_t begin = met.size();
    const Metric& d = *(version.planted ? version.trees[t].tree->settings() : settings_)->d;
    if (version.planted) {
      const auto& [tree, n_nodes, generation, answering] = version.trees[t];
      NodeId w = 0;
      std::tie(w, v[t]) = tree->BTQuery({query, 0, version.seen, n_nodes}, reading.cost);
      for (; w != nothing; w = tree->parent(w)) met.push_back(tree->example(w));
      std::reverse(met.begin() + static_cast<std::ptrdiff_t>(begin), met.end());
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
  out.examples = examples_at(distinct(met, store_, numbers));
  auto number = numbers.begin();
  for (Found& path : out.trees) {
    const auto end = number + static_cast<std::ptrdiff_t>(path.places.columns);
    path.places.values.assign(std::exchange(number, end), end);
  }
  std::vector<double> factors;
  const Ballot ballot = ballot_of(version.adaptation.votes, params_, factors);
  StackMemory memory;
  const std::pmr::vector<double> weights = shares(v, ballot, &memory);
  out.weights.assign(weights.begin(), weights.end());
  if (!votes()) {
    out.estimate = {1, params_.label_length};
    E_label(v, ballot, out.estimate.row(0));
    return out;
  }
  out.estimate.columns = 2;
  for (const Vote& vote : E_vote(v, ballot, std::pmr::get_default_resource())) {
    out.estimate.values.insert(out.estimate.values.end(),
                               {static_cast<double>(vote.code), vote.share});
    ++out.estimate.rows;
  }
  return out;
}

}  // namespace boundary_forest
