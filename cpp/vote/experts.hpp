// The experts whose answers weights="mixture" mixes, beyond the paper. All but the linear model answer from
// the examples that the trees end at.
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
    linear,   // a linear fit to all rows (linear_model.hpp)
  };
  Kind kind;
  std::uint8_t power = 0;
  double penalty = 0.0;  // of a ridge, times the mean variance of the features
};

// In the order in which they are compared. The first answers before the first decision. Those of one power
// stand together, because they share most of their work.
inline constexpr Expert experts[] = {
    {Expert::Kind::shepard, 1},    {Expert::Kind::shepard, 2},    {Expert::Kind::mean},
    {Expert::Kind::ridge, 0, 3.0}, {Expert::Kind::ridge, 0, 0.3}, {Expert::Kind::ridge, 0, 0.03},
    {Expert::Kind::ridge, 1, 3.0}, {Expert::Kind::ridge, 1, 0.3}, {Expert::Kind::ridge, 1, 0.03},
    {Expert::Kind::ridge, 2, 3.0}, {Expert::Kind::ridge, 2, 0.3}, {Expert::Kind::ridge, 2, 0.03},
    {Expert::Kind::linear},
};
inline constexpr std::size_t n_experts = sizeof experts / sizeof *experts;
inline constexpr std::size_t linear_expert = n_experts - 1;
inline constexpr double local_slack =
    0.25;  // of the labels' range, beyond which no local expert goes
inline constexpr double linear_slack = 1.0;    // the same for a linear model
inline constexpr std::size_t most_active = 4;  // experts that may have a weight

std::string name_of(const Expert& expert);

}  // namespace boundary_forest
