#include "distributed/partial_forest.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace boundary_forest {

TreeLeaves PartialForest::leaves(const RowsView& rows, const Run& run) {
  Reading reading(parts_.publication);
  return parts_.queries.leaves(reading, rows, run);
}

TreeLeaves PartialForest::leaves_then_learn(const RowsView& rows, const double* labels,
                                            const Run& run, std::size_t& learned, const Ids& ids) {
  return parts_.learner.leaves_then_learn({rows, labels, ids}, run, learned);
}

// A part that has no trees yet has all that is stored anywhere. An engine that is no part is a shard: it
// searches its own examples as neighbors() and within() do, however few there are.
Candidates PartialForest::candidates(const RowsView& rows, std::size_t n, double radius,
                                     const Search& search, const Run& run) {
  parts_.draft.prepare_search();
  PlannedSearch planned(parts_, search);
  const bool is_part = parts_.setup.params.is_part();
  planned.plan.compared_only = is_part && planned.reading.version.planted;
  if (!is_part && std::isinf(radius)) n = std::min(n, planned.plan.n_allowed);
  return parts_.search.candidates(planned.plan, rows, n, radius, run, planned.reading.cost);
}

Closest closest(std::span<const std::span<const std::uint64_t>> ends,
                std::span<const double> reduced, std::span<const Arrival> arrivals, std::size_t n) {
  const std::size_t rows = ends.empty() ? 0 : ends[0].size();
  std::uint64_t total = 0;
  for (const auto& of_part : ends) {
    if (of_part.size() != rows || !std::ranges::is_sorted(of_part))
      throw std::invalid_argument("parts must have the same rows, whose ends ascend");
    if (rows > 0) total += of_part.back();
  }
  if (total != reduced.size() || total != arrivals.size())
    throw std::invalid_argument("each candidate needs a reduced distance and an arrival number");
  struct Candidate {
    std::uint64_t number;
    double reduced;
  };
  Closest out;
  std::vector<Candidate> found;
  for (std::size_t row = 0; row < rows; ++row) {
    found.clear();
    std::uint64_t first = 0;  // of the part
    for (const auto& of_part : ends) {
      for (std::uint64_t i = row == 0 ? 0 : of_part[row - 1]; i < of_part[row]; ++i)
        found.push_back({first + i, reduced[first + i]});
      first += of_part.back();
    }
    rank_once(found, [&](const Candidate& one) { return arrivals[one.number]; });
    if (found.size() > n) found.resize(n);
    for (const Candidate& one : found) out.numbers.push_back(one.number);
    out.row_ends.push_back(out.numbers.size());
  }
  return out;
}

Examples PartialForest::examples(std::span<const Arrival> arrivals) {
  const LearningLock lock = parts_.draft.begin();
  const ExampleStore& store = parts_.draft.store();
  return examples_at(store, slots_of(store, arrivals));
}

std::vector<std::uint32_t> PartialForest::places_to_grow() {
  const LearningLock lock = parts_.draft.begin();
  return parts_.learner.replacement().places_to_grow(growing_step());
}

void PartialForest::grow(const RowsView& rows, const double* labels,
                         std::span<const Arrival> arrivals, const Ids& ids, const Run& run) {
  Draft& draft = parts_.draft;
  const LearningLock lock = draft.begin();
  const Arrival step = growing_step();
  if (!parts_.setup.params.is_part() || !draft.planted() || step == 0)
    throw std::logic_error("no tree of a part is to be grown now");
  if (rows.n != arrivals.size() || (rows.n > 0 && ids.kind() != parts_.setup.params.ids))
    throw std::invalid_argument("examples from other engines need arrivals and ids");
  draft.commit([&] {
    const Slot staged = draft.store().stage(rows.data, labels, arrivals, ids);
    draft.sketch(staged, parts_.setup.n_threads(run));
    parts_.learner.replacement().grow_successors(step, run, staged);
  });
  draft.store().shrink();
}

std::optional<PartialForest::Oldest> PartialForest::oldest() {
  const LearningLock lock = parts_.draft.begin();
  const auto oldest = parts_.learner.replacement().oldest_tree();
  if (!oldest) return std::nullopt;
  const LearnerTree& tree = parts_.draft.trees().all()[oldest->i];
  return Oldest{oldest->arrival, tree.answering, tree.tree->place()};
}

void PartialForest::cut(std::uint32_t place, bool answering, const Run& run) {
  Draft& draft = parts_.draft;
  const LearningLock lock = draft.begin();
  const std::size_t i = draft.trees().find(place, answering);
  if (i == draft.trees().size())
    throw std::invalid_argument("no tree stands at place " + std::to_string(place));
  draft.commit([&] { parts_.learner.replacement().cut(i, run); });
}

}  // namespace boundary_forest
