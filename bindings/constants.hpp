// What Python reads instead of repeating it: the engine's constants, and names of what it numbers.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/types.hpp"

namespace boundary_forest {

template <class Value>
struct Named {
  const char* name;
  Value value;
};

inline constexpr Named<LabelMetric> label_metrics[] = {{"euclidean", LabelMetric::euclidean},
                                                       {"manhattan", LabelMetric::manhattan},
                                                       {"chebyshev", LabelMetric::chebyshev},
                                                       {"discrete", LabelMetric::discrete},
                                                       {"always", LabelMetric::always}};
inline constexpr Named<Estimator> estimators[] = {{"shepard_vote", Estimator::shepard_vote},
                                                  {"shepard_mean", Estimator::shepard_mean},
                                                  {"nearest", Estimator::nearest}};
inline constexpr Named<VoteWeights> vote_weights[] = {{"distance", VoteWeights::distance},
                                                      {"uniform", VoteWeights::uniform},
                                                      {"auto", VoteWeights::automatic},
                                                      {"mixture", VoteWeights::mixture}};
inline constexpr Named<IdKind> id_kinds[] = {
    {"none", IdKind::none}, {"int64", IdKind::integer}, {"text", IdKind::text}};
inline constexpr Named<bool> searches[] = {{"paper", false}, {"graph", true}};  // has_graph

template <class Value, std::size_t n>
Value by_name(const std::string& name, const Named<Value> (&known)[n]) {
  for (const auto& [text, value] : known)
    if (name == text) return value;
  throw std::invalid_argument("unknown name '" + name + "'");
}

void bind_constants(nanobind::module_& m);

}  // namespace boundary_forest
