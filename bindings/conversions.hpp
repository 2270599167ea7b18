// What goes in and out of a forest's bindings: rows, ids, examples and whole states, as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common.hpp"
#include "forest/boundary_forest.hpp"

namespace boundary_forest {

// Positions leave as an array of their own element type.
inline nb::object positions_to_numpy(std::vector<std::byte>&& bytes, ElementType type,
                                     std::size_t n_features) {
  return with_element_type(type, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t n = bytes.size() / sizeof(T);
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return to_numpy(std::move(values), {n / n_features, n_features});
  });
}

template <class T>
std::vector<T> to_vector(const nb::handle& array) {
  const auto values = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(array);
  return {values.data(), values.data() + values.size()};
}

// Ids are None, an array of int64, or a list of str.
inline Ids ids_from(const nb::handle& given) {
  Ids ids;
  if (given.is_none()) return ids;
  if (nb::isinstance<nb::list>(given))
    for (const nb::handle text : nb::borrow<nb::list>(given))
      ids.texts.push_back(nb::cast<std::string>(text));
  else
    ids.integers = to_vector<std::int64_t>(given);
  return ids;
}

// `shape` is that of an array of integers; text is one flat list.
inline nb::object ids_to_python(Ids&& ids, IdKind kind, std::initializer_list<std::size_t> shape) {
  switch (kind) {
    case IdKind::none:
      return nb::none();
    case IdKind::integer:
      return to_numpy(std::move(ids.integers), shape);
    case IdKind::text: {
      nb::list texts;
      for (const std::string& text : ids.texts) texts.append(nb::str(text.data(), text.size()));
      return texts;
    }
  }
  __builtin_unreachable();
}

inline nb::tuple to_tuple(Examples&& examples, const Params& params) {
  const std::size_t n = examples.arrivals.size();
  nb::object ids = ids_to_python(std::move(examples.ids), params.ids, {n});
  return nb::make_tuple(
      positions_to_numpy(std::move(examples.positions), params.element_type, params.n_features),
      to_numpy(std::move(examples.labels), {n, params.label_length}),
      to_numpy(std::move(examples.arrivals), {n}), ids);
}

inline nb::tuple to_tuple(TreeLeaves&& leaves, const Params& params) {
  const std::size_t rows = leaves.arrivals.rows;
  const std::size_t trees = leaves.arrivals.columns;
  return nb::make_tuple(
      to_numpy(std::move(leaves.arrivals)),
      to_numpy(std::move(leaves.labels.values), {rows, trees, params.label_length}),
      to_numpy(std::move(leaves.distances)), to_numpy(std::move(leaves.weights)));
}

// Arrivals, labels and distances alone.
inline nb::tuple unweighted(TreeLeaves&& leaves, const Params& params) {
  const std::size_t rows = leaves.arrivals.rows;
  const std::size_t trees = leaves.arrivals.columns;
  return nb::make_tuple(
      to_numpy(std::move(leaves.arrivals)),
      to_numpy(std::move(leaves.labels.values), {rows, trees, params.label_length}),
      to_numpy(std::move(leaves.distances)));
}

inline nb::tuple to_tuple(Neighbors&& found, const Params& params) {
  const std::initializer_list<std::size_t> shape = {found.arrivals.rows, found.arrivals.columns};
  nb::object ids = ids_to_python(std::move(found.ids), params.ids, shape);
  return nb::make_tuple(to_numpy(std::move(found.distances)), to_numpy(std::move(found.arrivals)),
                        ids);
}

inline nb::dict to_dict(BoundaryForest::State&& state, const Params& params, bool with_positions) {
  const std::size_t n_sums = state.spread.size();
  const std::size_t n_trees = state.tree_sizes.size();
  const std::size_t n_growing = state.tree_places.size();
  const std::size_t n_generations = state.tree_generations.size();
  const std::size_t n_nodes = state.node_examples.size();
  nb::dict all;
  all["seen"] = state.seen;
  all["n_classes"] = state.n_classes;
  all["spread"] = to_numpy(std::move(state.spread), {n_sums});
  all["counts"] = nb::make_tuple(state.learn.comparisons, state.learn.evaluations,
                                 state.query.comparisons, state.query.evaluations);
  all["tree_sizes"] = to_numpy(std::move(state.tree_sizes), {n_trees});
  all["tree_places"] = to_numpy(std::move(state.tree_places), {n_growing});
  all["tree_generations"] = to_numpy(std::move(state.tree_generations), {n_generations});
  all["node_examples"] = to_numpy(std::move(state.node_examples), {n_nodes});
  all["node_parents"] = to_numpy(std::move(state.node_parents), {n_nodes});
  nb::tuple examples = to_tuple(std::move(state.examples), params);
  if (with_positions) all["positions"] = examples[0];
  all["labels"] = examples[1];
  all["arrivals"] = examples[2];
  all["ids"] = examples[3];
  const std::size_t n_weights = state.log_weights.size() / params.n_features;
  const std::size_t n_weighted = state.tree_weights.size();
  const std::size_t n_errors = state.vote_errors.size();
  all["log_weights"] = to_numpy(std::move(state.log_weights), {n_weights, params.n_features});
  all["tree_weights"] = to_numpy(std::move(state.tree_weights), {n_weighted});
  nb::tuple window = to_tuple(std::move(state.window), params);
  all["window_positions"] = window[0];
  all["window_labels"] = window[1];
  all["window_arrivals"] = window[2];
  all["window_ids"] = window[3];
  const std::size_t n_members = state.reservoir.size();
  all["reservoir_arrivals"] = to_numpy(std::move(state.reservoir), {n_members});
  all["replays"] = state.replays;
  all["vote_errors"] = to_numpy(std::move(state.vote_errors), {n_errors});
  all["vote_power"] = state.vote_rule;
  const std::size_t n_losses = state.tree_losses.size();
  all["tree_losses"] = to_numpy(std::move(state.tree_losses), {n_losses});
  const std::size_t n_class_weights = state.class_weights.size();
  const std::size_t n_class_counts = state.class_counts.size();
  all["class_weights"] = to_numpy(std::move(state.class_weights), {n_class_weights});
  all["class_counts"] = to_numpy(std::move(state.class_counts), {n_class_counts});
  const auto put = [&](const char* name, auto&& values) {
    const std::size_t n = values.size();
    all[name] = to_numpy(std::move(values), {n});
  };
  put("mixture_weights", state.mixture.weights);
  put("mixture_trial", state.mixture.trial);
  put("class_order", state.mixture.classes);
  put("linear_map", state.mixture.linear_map);
  put("linear_sums", state.mixture.linear_sums);
  put("linear_model", state.mixture.linear_model);
  return all;
}

inline nb::tuple to_tuple(Paths::Recent recent) {
  const std::size_t n = recent.arrivals.size();
  return nb::make_tuple(
      to_numpy(std::move(recent.arrivals), {n}), to_numpy(std::move(recent.labels)),
      to_numpy(std::move(recent.distances), {n}), to_numpy(std::move(recent.weights), {n}));
}

inline RowsView view_of(const Array2d& X, const Params& params) {
  if (X.shape(1) != params.n_features)
    throw std::invalid_argument("X has " + std::to_string(X.shape(1)) + " features, expected " +
                                std::to_string(params.n_features));
  return {static_cast<const std::byte*>(X.data()), X.shape(0), element_type_of(X.dtype())};
}

inline Run run_with(std::size_t n_jobs) { return {n_jobs, between_blocks}; }

}  // namespace boundary_forest
