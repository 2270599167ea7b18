// The experts whose answers weights="mixture" mixes, beyond the paper. All but the two models over all rows
// answer from the examples that the trees end at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace boundary_forest {

struct Expert {
  enum class Kind : std::uint8_t {
    mean,     // of the trees' labels
    shepard,  // the same weighted by 1 / distance ** power; examples at distance 0 decide alone
    ridge,    // a linear fit to these examples with such weights (local_fit.hpp)
    scored_ridge,  // the same with the quadratic model's answers as further features
    linear,        // a linear fit to all rows (linear_model.hpp)
    quadratic,     // the same with products of features
  };
  Kind kind;
  std::uint8_t power = 0;
  double penalty = 0.0;  // of a ridge, times the mean variance of the features
};

// In the order in which they are compared. The first answers before the first decision. Those of one kind and
// power stand together, because they share most of their work.
inline constexpr Expert experts[] = {
    {Expert::Kind::shepard, 1},
    {Expert::Kind::shepard, 2},
    {Expert::Kind::mean},
    {Expert::Kind::ridge, 0, 3.0},
    {Expert::Kind::ridge, 0, 0.3},
    {Expert::Kind::ridge, 0, 0.03},
    {Expert::Kind::scored_ridge, 1, 0.3},
    {Expert::Kind::scored_ridge, 2, 0.3},
    {Expert::Kind::scored_ridge, 4, 0.3},
    {Expert::Kind::linear},
    {Expert::Kind::quadratic},
};
inline constexpr std::size_t n_experts = sizeof experts / sizeof *experts;
inline constexpr std::size_t n_local = n_experts - 2;  // the others are the models over all rows
inline constexpr std::size_t linear_expert = n_local;
inline constexpr std::size_t quadratic_expert = n_local + 1;
// Of the labels' range, beyond which no local expert goes, and no model over all rows.
inline constexpr double local_slack = 0.25;
inline constexpr double linear_slack = 1.0;
inline constexpr std::size_t most_active = 4;  // experts that may have a weight

// Whether it needs the models over all rows.
constexpr bool needs_models(std::size_t expert) {
  return expert >= n_local || experts[expert].kind == Expert::Kind::scored_ridge;
}

std::string name_of(const Expert& expert);

}  // namespace boundary_forest
