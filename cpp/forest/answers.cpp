#include "forest/answers.hpp"

#include <algorithm>

#include "base/memory.hpp"

namespace boundary_forest {
namespace {

std::pmr::vector<double> distances_of(std::span<const Leaf> v, const Metric& d,
                                      std::pmr::memory_resource* memory) {
  std::pmr::vector<double> distances(v.size(), memory);
  for (std::size_t i = 0; i < v.size(); ++i) distances[i] = d.distance(v[i].reduced);
  return distances;
}

std::pmr::vector<const double*> labels_of(std::span<const Leaf> v, const ExampleStore& store,
                                          std::pmr::memory_resource* memory) {
  std::pmr::vector<const double*> labels(v.size(), memory);
  for (std::size_t i = 0; i < v.size(); ++i) labels[i] = store.label(v[i].example);
  return labels;
}

}  // namespace

RowAnswers::RowAnswers(const Setup& setup, const ExampleStore& store, std::span<const Leaf> v,
                       std::pmr::memory_resource* memory)
    : distances_(distances_of(v, setup.d(), memory)),
      labels_(labels_of(v, store, memory)),
      closest_(setup.params.estimator == Estimator::nearest
                   ? store.label(closest_answer(v, store).example)
                   : nullptr) {}

void Answers::put(const AnswerRequest& request, const AnswerRule& rule, std::size_t row,
                  const Position& query, std::span<const Leaf> v) const {
  if (request.leaves != nullptr) put_leaves(*request.leaves, rule, row, query, v);
  if (request.out == nullptr) return;
  const std::span<double> out = request.out->row(row);
  if (!setup_.votes()) return E_label(query, v, rule, out);
  StackMemory memory;
  const std::pmr::vector<Vote> votes =
      E_vote(query, v, rule, request.ranks, &memory, request.shares);
  if (request.shares)
    for (const Vote& vote : votes) out[rank_of(vote.code, request.ranks)] = vote.share;
  else
    out[0] = winner(votes, request.ranks).code;
}

void Answers::put_leaves(TreeLeaves& leaves, const AnswerRule& rule, std::size_t row,
                         const Position& query, std::span<const Leaf> v) const {
  StackMemory memory;
  std::ranges::copy(distances_of(v, setup_.d(), &memory), leaves.distances.row(row).begin());
  if (leaves.weights.columns > 0)
    std::ranges::copy(shares(query, v, rule, &memory), leaves.weights.row(row).begin());
  auto arrival = leaves.arrivals.row(row).begin();
  auto label = leaves.labels.row(row).begin();
  for (const Leaf& v_i : v) {
    *arrival++ = store_.arrival(v_i.example);
    label = std::copy_n(store_.label(v_i.example), setup_.params.label_length, label);
  }
}

TreeLeaves Answers::blank_leaves(std::size_t n, bool with_weights) const {
  const std::size_t n_T = setup_.params.n_held();
  return {.arrivals = {n, n_T},
          .labels = {n, n_T * setup_.params.label_length},
          .distances = {n, n_T},
          .weights = {n, with_weights ? n_T : 0}};
}

std::size_t Answers::n_columns(const AnswerRequest& request, std::size_t n_classes) const {
  return request.shares ? n_ranked(request.ranks, n_classes) : setup_.params.label_length;
}

std::pmr::vector<Vote> Answers::E_vote(const Position& query, std::span<const Leaf> v,
                                       const AnswerRule& rule, Ranks ranks, Memory* memory,
                                       bool all) const {
  const Ballot& ballot = rule.ballot;
  if (rule.mixture != nullptr) {
    rule.mixture->begin(query, v);
    const std::span<const Vote> votes =
        rule.mixture->probabilities(*rule.seen, ranks, ballot.classes);
    return {votes.begin(), votes.end(), memory};
  }
  if (rule.stream != nullptr) {
    begin(*rule.stream, query, v, rule);
    const std::span<const Vote> votes = rule.stream->probabilities(ranks, ballot.classes, all);
    return {votes.begin(), votes.end(), memory};
  }
  std::pmr::vector<double> weights = distances_of(v, setup_.d(), memory);
  const std::pmr::vector<const double*> labels = labels_of(v, store_, memory);
  const double sum =
      apply_class_weights(labels, ballot.classes, weights, shepard_weights(weights, ballot));
  return shepard_vote(labels, weights, sum, memory);
}

void Answers::E_label(const Position& query, std::span<const Leaf> v, const AnswerRule& rule,
                      std::span<double> out) const {
  if (rule.mixture != nullptr) {
    rule.mixture->begin(query, v);
    return rule.mixture->label(out);
  }
  if (rule.stream != nullptr) {
    begin(*rule.stream, query, v, rule);
    return rule.stream->label(out);
  }
  if (setup_.params.estimator == Estimator::nearest) {
    std::copy_n(store_.label(closest_answer(v, store_).example), out.size(), out.begin());
    return;
  }
  StackMemory memory;
  std::pmr::vector<double> weights = distances_of(v, setup_.d(), &memory);
  const double sum = shepard_weights(weights, rule.ballot);
  shepard_mean(labels_of(v, store_, &memory), weights, sum, out);
}

void Answers::begin(StreamRow& stream, const Position& query, std::span<const Leaf> v,
                    const AnswerRule& rule) const {
  const std::span<double> out = stream.begin(query, v);
  const AnswerRule of_trees{{rule.ballot.power, rule.ballot.factors, {}}};
  if (!setup_.votes()) return E_label(query, v, of_trees, out);
  StackMemory memory;
  for (const Vote& vote : E_vote(query, v, of_trees, {}, &memory))
    stream.put_share(vote.code, vote.share);
}

std::pmr::vector<double> Answers::shares(const Position& query, std::span<const Leaf> v,
                                         const AnswerRule& rule, Memory* memory) const {
  const Ballot& ballot = rule.ballot;
  std::pmr::vector<double> weights = distances_of(v, setup_.d(), memory);
  if (rule.mixture != nullptr) {
    rule.mixture->begin(query, v);
    rule.mixture->tree_weights(weights);
    return weights;
  }
  if (rule.stream != nullptr) {
    begin(*rule.stream, query, v, rule);
    const double total = shepard_weights(weights, ballot);
    for (double& weight : weights) weight /= total;
    rule.stream->tree_weights(weights);
    return weights;
  }
  if (setup_.params.estimator ==
      Estimator::nearest) {  // the closest is put at 0, and decides alone
    const Slot closest = closest_answer(v, store_).example;
    for (std::size_t i = 0; i < v.size(); ++i)
      weights[i] = static_cast<double>(v[i].example != closest);
  }
  double sum = shepard_weights(weights, ballot);
  if (setup_.votes())
    sum = apply_class_weights(labels_of(v, store_, memory), ballot.classes, weights, sum);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace boundary_forest
