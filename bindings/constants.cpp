#include "constants.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <span>
#include <tuple>
#include <vector>

#include "adapt/adaptation.hpp"
#include "distance/feature_weights.hpp"
#include "distance/label_metric.hpp"
#include "distance/metric.hpp"
#include "forest/neighbor_search.hpp"
#include "vote/combine.hpp"
#include "vote/experts.hpp"
#include "vote/feature_map.hpp"
#include "vote/linear_model.hpp"
#include "vote/vote_rules.hpp"

namespace boundary_forest {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class Value, std::size_t n>
std::vector<std::string> names_in(const Named<Value> (&known)[n]) {
  std::vector<std::string> names;
  for (const auto& one : known) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> element_type_names() {
  std::vector<std::string> names;
  for (const ElementType type : element_types) names.emplace_back(name_of(type));
  return names;
}

std::vector<std::tuple<double, int, bool>> vote_rules_of(bool forgets) {
  const std::span<const VoteRule> rules =
      forgets ? std::span<const VoteRule>(stream_rules) : table_rules;
  std::vector<std::tuple<double, int, bool>> all;
  for (const auto& [power, skill, lasting] : rules)
    all.emplace_back(std::log2(vote_weight(4.0, power)) / 2.0, skill, lasting);  // that is 4^p
  return all;
}

}  // namespace

// Lists are functions, because the stub generator knows no types of what a tuple holds.
void bind_constants(nb::module_& m) {
  m.def("metric_names", &metric_names, "Return the names of the built-in metrics.");
  m.def("element_types", &element_type_names,
        "Return the names of the types that positions may be stored as.");
  m.def(
      "label_metrics", [] { return names_in(label_metrics); },
      "Return the names of the built-in metrics of labels.");
  m.def(
      "vote_weights", [] { return names_in(vote_weights); },
      "Return the names of how trees' answers may be weighed.");
  m.def(
      "id_kinds", [] { return names_in(id_kinds); },
      "Return the names of what ids may be: none, integers, text.");
  m.def(
      "searches", [] { return names_in(searches); },
      "Return the names of the searches for neighbours: the paper's, and by the graph.");
  m.def("vote_rules", &vote_rules_of, "forgets"_a,
        "Return the rules by which votes may be weighed, by number: the power p of 1 / d^p, how "
        "much recent skill counts, and whether only trees that last have a vote.");

  m.def(
      "experts",
      [](bool forgets) {
        std::vector<std::string> names;
        if (forgets)
          for (const StreamExpert& expert : stream_experts) names.emplace_back(expert.name);
        else
          for (const Expert& expert : experts) names.push_back(name_of(expert));
        return names;
      },
      "forgets"_a = false,
      "Return the names of the experts that weights='mixture' mixes, by number.");

  m.attr("N_ESTIMATORS") = Params{}.n_T;  // by default
  m.attr("MAX_CHILDREN") = Params{}.k;    // by default
  m.attr("BEAM") = Search{}.beam;         // by default
  m.attr("MOST_TREES") = Params::most_trees;
  m.attr("FEWEST_CHILDREN") = Params::fewest_children;
  m.attr("MOST_CHILDREN") = unlimited - 1;
  m.attr("MOST_STORED") = nothing - 1;
  m.attr("SHORTEST_LIFETIME") = Params::shortest_lifetime;
  m.attr("LONGEST_LIFETIME") = Params::longest_lifetime;
  m.attr("LEAST_WEIGHT") = least_weight;
  m.attr("LARGEST_WEIGHT") = largest_weight;
  m.attr("LEAST_CLASS_WEIGHT") = ClassWeights::least;
  m.attr("LARGEST_CLASS_WEIGHT") = ClassWeights::largest;

  m.attr("N_STREAM_MODELS") = n_models;
  m.attr("MOST_LINEAR_FEATURES") = LinearModel::most_features;
  m.attr("MOST_LINEAR_OUTPUTS") = LinearModel::most_outputs;
  m.attr("MOST_KNOTS") = FeatureMap::most_knots;
  m.attr("MOST_TERMS") = Terms::most;
  m.attr("FIRST_DECISION") = Schedule::first_doubling;
  m.attr("PERIOD") = Schedule::period;
  m.attr("GROWING_STEPS") = Schedule::growing_steps;

  m.attr("MOST_SEEN") = most_arrivals;
  m.attr("LONGEST_WINDOW") = Window::capacity;
  m.attr("MOST_MEMBERS") = Reservoir::most_members;
  m.attr("LOG_WEIGHTS_PER_OCTAVE") = per_octave;
  m.attr("LARGE_LABEL") = Spread::large;
  m.attr("NO_RANK") = no_rank;
}

}  // namespace boundary_forest
