// Identifiers, element types and the parameters of a forest.
//
// Invariants: a node is an index into its tree's arrays, an example an index into the one store
// that all trees share; both are 32 bits wide, which is what keeps a node within 20 bytes (promise
// 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/half.hpp"
#include "base/rng.hpp"

namespace boundary_forest {

using NodeId = std::uint32_t;   // a node within its tree, in order of creation; 0 is the root
using Slot = std::uint32_t;     // a stored example
using Arrival = std::uint64_t;  // how many examples had arrived before this one

inline constexpr std::uint32_t nothing = 0xFFFFFFFFU;       // no node, no slot, no list
inline constexpr std::uint32_t unlimited = 0xFFFFFFFFU;     // k = infinity
inline constexpr Arrival most_arrivals = Arrival{1} << 53;  // numbers that a double has exactly

enum class ElementType : std::uint8_t { uint8, int8, float16, float32, float64 };

// The one table of element types: what a new one needs to say. A switch over ElementType has no
// default, so that the compiler names the places that a new type must also reach.
template <class T>
struct ElementTraits;

template <>
struct ElementTraits<std::uint8_t> {
  static constexpr ElementType type = ElementType::uint8;
  static constexpr const char* name = "uint8";
  static constexpr double least = 0.0;  // values beyond these do not fit
  static constexpr double largest = 255.0;
};

template <>
struct ElementTraits<std::int8_t> {
  static constexpr ElementType type = ElementType::int8;
  static constexpr const char* name = "int8";
  static constexpr double least = -128.0;
  static constexpr double largest = 127.0;
};

template <>
struct ElementTraits<Half> {
  static constexpr ElementType type = ElementType::float16;
  static constexpr const char* name = "float16";
  static constexpr double least = -65504.0;
  static constexpr double largest = 65504.0;
};

template <>
struct ElementTraits<float> {
  static constexpr ElementType type = ElementType::float32;
  static constexpr const char* name = "float32";
  static constexpr double least = -3.4028234663852886e38;
  static constexpr double largest = 3.4028234663852886e38;
};

template <>
struct ElementTraits<double> {
  static constexpr ElementType type = ElementType::float64;
  static constexpr const char* name = "float64";
  static constexpr double least = -1.7976931348623157e308;
  static constexpr double largest = 1.7976931348623157e308;
};

inline constexpr ElementType element_types[] = {ElementType::uint8, ElementType::int8,
                                                ElementType::float16, ElementType::float32,
                                                ElementType::float64};

// Calls f with a value of the C++ type that `type` names.
template <class F>
constexpr decltype(auto) with_element_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::uint8:
      return f(std::uint8_t{});
    case ElementType::int8:
      return f(std::int8_t{});
    case ElementType::float16:
      return f(Half{});
    case ElementType::float32:
      return f(float{});
    case ElementType::float64:
      return f(double{});
  }
  __builtin_unreachable();
}

constexpr std::size_t size_of(ElementType type) {
  return with_element_type(type, [](auto zero) { return sizeof zero; });
}

constexpr const char* name_of(ElementType type) {
  return with_element_type(type, [](auto zero) { return ElementTraits<decltype(zero)>::name; });
}

// Rows of these types save memory, and are compared as the float32 that have their values.
constexpr bool is_short_for_float32(ElementType type) {
  return type == ElementType::int8 || type == ElementType::float16;
}

// Whether a T holds `value` exactly.
template <class T>
constexpr bool holds_exactly(double value) {
  using Traits = ElementTraits<T>;
  // Beyond the range the cast would be undefined.
  return value >= Traits::least && value <= Traits::largest &&
         static_cast<double>(static_cast<T>(value)) == value;
}

// What examples are named by, if the user names them.
enum class IdKind : std::uint8_t { none, integer, text };

// d_c: BTTrain keeps an example if d_c(c(y), c(v_min)) > epsilon.
enum class LabelMetric : std::uint8_t {
  discrete,   // 0 if the labels are the same, else 1: classification
  euclidean,  // regression
  manhattan,
  chebyshev,
  always,    // infinity: retrieval, every example is kept
  function,  // Params::label_function
};

// A user's d_c on two label vectors. It may throw, and it runs on the thread that learns.
using LabelFunction = std::function<double(const double* a, const double* b)>;

// E: how the n_T locally closest examples become an answer.
enum class Estimator : std::uint8_t { shepard_vote, shepard_mean, nearest };

// How a tree's answer is weighed by its distance d: by 1 / d as in the paper, equally, or by
// whichever of 1 / d^p was best lately (combine.hpp); or what several experts make of all of them, mixed
// (mixture.hpp).
enum class VoteWeights : std::uint8_t { distance, uniform, automatic, mixture };

// p of 1 / d^p.
enum class VotePower : std::uint8_t { one, zero, half, two };

struct Params {
  static constexpr std::uint32_t most_trees = 1'000'000;
  static constexpr std::uint32_t fewest_children = 2;  // that a node may have at most
  static constexpr std::uint32_t shortest_lifetime = 2;
  static constexpr std::uint32_t longest_lifetime = 1'000'000'000;

  std::uint32_t n_T = 50;        // trees
  std::uint32_t k = 50;          // most children a node may have; `unlimited` for none
  std::size_t n_features = 0;    // length of a position
  std::size_t label_length = 0;  // length of a label vector; 1 for a class code, 0 for retrieval
  LabelMetric label_metric = LabelMetric::discrete;
  LabelFunction label_function;  // of LabelMetric::function
  Estimator estimator = Estimator::shepard_vote;
  VoteWeights vote_weights = VoteWeights::distance;
  bool has_balanced_votes = false;  // those for a class count as 1 / its examples (combine.hpp)
  double epsilon = 0.0;             // threshold of d_c
  bool auto_epsilon = false;        // epsilon follows the targets' spread, see label_metric.hpp
  ElementType element_type = ElementType::float64;
  IdKind ids = IdKind::none;
  std::uint64_t seed = 0;
  double max_samples = 1.0;          // the fraction of the arrivals that each tree learns
  bool has_learned_weights = false;  // features have weights that are learned (weight_learning.hpp)
  // Of the trees at all n_T places: for how many arrivals each answers, 0 for no end (lifetimes.hpp).
  // None: no tree is replaced, as in the paper.
  std::vector<std::uint32_t> lifetimes = {};
  std::uint32_t max_stored = 0;  // the most examples that are stored at a time; 0: no limit
  bool has_graph = false;        // the trees' edges are kept as links to be searched (links.hpp)
  // The trees that are held here, of the n_T that there are in all: [first_tree, end_tree). Several
  // engines that learn the same stream then make up one forest.
  std::uint32_t first_tree = 0;
  std::uint32_t end_tree = 0;  // 0: n_T

  // Tree `place` learns arrival a.
  bool learns(std::uint32_t place, Arrival a) const {
    return max_samples == 1.0 ||
           static_cast<double>(hash64(seed, place, a) >> 11) * 0x1p-53 < max_samples;
  }

  bool forgets() const { return !lifetimes.empty(); }
  bool is_lasting(std::uint32_t place) const { return !forgets() || lifetimes[place] == 0; }

  // Whether a sample of all arrivals is kept (reservoir.hpp): like the last arrivals, and for classes alone.
  bool has_reservoir() const { return has_learned_weights && estimator == Estimator::shepard_vote; }

  // Whether other engines hold the other trees: then what all trees decide together is not decided here
  // (forest_driver.hpp).
  bool is_part() const { return end_tree != 0; }
  std::uint32_t n_held() const { return (end_tree == 0 ? n_T : end_tree) - first_tree; }

  // Whether rules for votes are tried here; and, in a forest that forgets, at every arrival.
  bool tries_votes() const {
    return (vote_weights == VoteWeights::automatic || mixes_streams()) && !is_part();
  }
  bool judges_votes() const { return tries_votes() && forgets(); }
  // Whether experts are mixed here: by decisions (mixture.hpp), or after every arrival (stream_mixture.hpp).
  bool mixes() const { return vote_weights == VoteWeights::mixture && !is_part() && !forgets(); }
  bool mixes_streams() const {
    return vote_weights == VoteWeights::mixture && !is_part() && forgets();
  }
  // Whether the last arrivals are kept, whether or not a tree has them.
  bool has_window() const { return has_learned_weights || mixes() || mixes_streams(); }
  // Whether the examples of each class are counted here.
  bool counts_classes() const { return has_balanced_votes && !is_part(); }

  void validate() const {
    if (n_T < 1 || n_T > most_trees)
      throw std::invalid_argument("n_estimators must be between 1 and " +
                                  std::to_string(most_trees) + ", got " + std::to_string(n_T));
    if (end_tree > n_T || first_tree >= (end_tree == 0 ? n_T : end_tree))
      throw std::invalid_argument("an engine holds trees a to b of n_estimators, got " +
                                  std::to_string(first_tree) + " to " + std::to_string(end_tree));
    if (k < fewest_children)
      throw std::invalid_argument("max_children must be at least " +
                                  std::to_string(fewest_children) + ", or None for no limit, got " +
                                  std::to_string(k));
    if (n_features < 1) throw std::invalid_argument("X must have at least one feature");
    if (estimator == Estimator::shepard_vote && label_length != 1)
      throw std::invalid_argument("a class label is one code, got a vector of " +
                                  std::to_string(label_length));
    if (estimator == Estimator::shepard_mean && label_length < 1)
      throw std::invalid_argument("a Shepard mean needs labels of at least one number");
    if (has_balanced_votes && estimator != Estimator::shepard_vote)
      throw std::invalid_argument("class_weight='balanced' requires classes");
    if (vote_weights == VoteWeights::mixture && estimator == Estimator::nearest)
      throw std::invalid_argument("weights='mixture' requires classes or means of labels");
    if (!(max_samples > 0.0 && max_samples <= 1.0))
      throw std::invalid_argument("max_samples must be above 0 and at most 1, got " +
                                  std::to_string(max_samples));
    if (has_learned_weights && label_length < 1)
      throw std::invalid_argument("feature_weights='learned' requires labels");
    if (forgets() && lifetimes.size() != n_T)
      throw std::invalid_argument("forgetting must have a lifetime for each of the " +
                                  std::to_string(n_T) + " trees, got " +
                                  std::to_string(lifetimes.size()));
    for (const std::uint32_t lifetime : lifetimes)
      if (lifetime != 0 && (lifetime < shortest_lifetime || lifetime > longest_lifetime))
        throw std::invalid_argument(
            "a lifetime must be between " + std::to_string(shortest_lifetime) + " and " +
            std::to_string(longest_lifetime) + ", got " + std::to_string(lifetime));
    if (max_stored > 0 && max_stored / 4 < n_T)
      throw std::invalid_argument("max_stored must be at least " + std::to_string(4ULL * n_T) +
                                  " (4 for each of " + std::to_string(n_T) + " trees), got " +
                                  std::to_string(max_stored) +
                                  ": store more examples, or use fewer trees");
    if (has_graph && (label_metric != LabelMetric::always || max_samples < 1.0 || forgets() ||
                      max_stored > 0 || n_held() != n_T))
      throw std::invalid_argument(
          "search='graph' requires trees that store every example: use it for retrieval");
    if (!(epsilon >= 0.0))
      throw std::invalid_argument("epsilon must be a number >= 0, got " + std::to_string(epsilon));
  }
};

// A position and the type of its elements: the store's own; for a query that this cannot hold exactly,
// float32 or float64 (store/query_rows.hpp).
struct Position {
  const std::byte* data;
  ElementType type;
};

// What a piece of work cost. Comparisons are the paper's unit: what the plain algorithm makes, 1
// for the root plus the children of every node visited. Evaluations are the distances really
// computed.
struct Counts {
  std::uint64_t comparisons = 0;
  std::uint64_t evaluations = 0;

  Counts& operator+=(const Counts& other) {
    comparisons += other.comparisons;
    evaluations += other.evaluations;
    return *this;
  }
};

}  // namespace boundary_forest
