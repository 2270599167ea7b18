// How a forest is made, and what all its methods need.
#include "forest.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "callables.hpp"

namespace boundary_forest {

using namespace nb::literals;

Forest::Forest(std::uint32_t n_T, std::optional<std::uint32_t> k, std::size_t n_features,
               std::size_t label_length, nb::object label_metric, const std::string& estimator,
               std::optional<double> epsilon, const std::string& element_type, std::uint64_t seed,
               nb::object metric, double p, const std::string& ids, double max_samples,
               const std::string& votes, const nb::object& feature_weights,
               std::vector<std::uint32_t> lifetimes, std::uint32_t max_stored,
               const std::string& search,
               std::optional<std::pair<std::uint32_t, std::uint32_t>> trees, bool balanced)
    : metric_(std::move(metric)), label_metric_(std::move(label_metric)), p_(p) {
  Params params;
  params.n_T = n_T;
  params.k = k.value_or(unlimited);
  params.n_features = n_features;
  params.label_length = label_length;
  params.label_metric = LabelMetric::function;
  if (nb::isinstance<nb::str>(label_metric_))
    params.label_metric = by_name(nb::cast<std::string>(label_metric_), label_metrics);
  else
    params.label_function = make_label_function(label_metric_, label_length);
  params.estimator = by_name(estimator, estimators);
  params.epsilon = epsilon.value_or(0.0);
  params.auto_epsilon = !epsilon.has_value();
  params.element_type = element_type_of(element_type);
  params.seed = seed;
  params.ids = by_name(ids, id_kinds);
  params.max_samples = max_samples;
  params.vote_weights = by_name(votes, vote_weights);
  params.has_balanced_votes = balanced;
  params.lifetimes = std::move(lifetimes);
  params.max_stored = max_stored;
  if (trees) std::tie(params.first_tree, params.end_tree) = *trees;
  params.has_graph = by_name(search, searches);
  params.has_learned_weights = nb::isinstance<nb::str>(feature_weights);  // "learned"
  if (!params.has_learned_weights && !feature_weights.is_none())
    weights_ = to_vector<double>(feature_weights);
  forest_ = make_forest(params);
}

std::shared_ptr<BoundaryForest> Forest::make_forest(const Params& params) const {
  params.validate();
  std::unique_ptr<Metric> d = metric_for(params);
  return without_gil(
      [&] { return shared(std::make_unique<BoundaryForest>(params, std::move(d))); });
}

std::shared_ptr<BoundaryForest> Forest::shared(std::unique_ptr<BoundaryForest> forest) {
  return {forest.release(), [](BoundaryForest* last) { never_with_gil([&] { delete last; }); }};
}

std::unique_ptr<Metric> Forest::metric_for(const Params& params) const {
  if (!weights_.empty()) {
    if (weights_.size() != params.n_features)
      throw std::invalid_argument("feature_weights must have one number per feature (" +
                                  std::to_string(params.n_features) + "), got " +
                                  std::to_string(weights_.size()));
    return make_weighted_metric(weights_, params.element_type);
  }
  const bool needs_non_negative = params.estimator != Estimator::nearest;
  return make_metric(metric_, p_, params.element_type, params.n_features, needs_non_negative);
}

RowsView Forest::view(const BoundaryForest& forest, const Array2d& X) const {
  if (is_inside(metric_) || is_inside(label_metric_))
    throw std::runtime_error("metric must not call the forest that is calling it");
  return view_of(X, forest.params());
}

Ids Forest::ids_to_learn(const BoundaryForest& forest, const nb::object& given, std::size_t n) {
  Ids ids = ids_from(given);
  if (n > 0 && (ids.kind() != forest.params().ids || (!given.is_none() && ids.size() != n)))
    throw std::invalid_argument("ids must be None, or one per row of the forest's kind");
  return ids;
}

RowsView Forest::rows_to_learn(const BoundaryForest& forest, const Array2d& X,
                               const Labels2d& y) const {
  const RowsView rows = view(forest, X);
  if (rows.type != forest.params().element_type)
    throw nb::type_error("rows to learn must have the forest's element type");
  if (y.shape(0) != rows.n || y.shape(1) != forest.params().label_length)
    throw std::invalid_argument("y must have one row per row of X and label_length columns");
  return rows;
}

std::shared_ptr<BoundaryForest> Forest::rebuilt(const BoundaryForest& forest,
                                                const BoundaryForest::State& state) const {
  std::unique_ptr<Metric> d;
  {
    const TakenGil gil;
    d = metric_for(forest.params());
  }
  return shared(forest.rebuilt(state, std::move(d)));
}

void Forest::become(std::shared_ptr<BoundaryForest> forest) {
  const TakenGil gil;
  forest_.swap(forest);
}

std::shared_ptr<BoundaryForest> Forest::rebuilt_if_due(std::shared_ptr<BoundaryForest> forest,
                                                       std::size_t n_jobs) {
  if (!forest->needs_rebuild()) return forest;
  forest = rebuilt(*forest, forest->without_marked(run_with(n_jobs)));
  become(forest);
  return forest;
}

namespace {

PyType_Slot forest_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(Forest::traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(Forest::clear)},
                              {0, nullptr}};

}  // namespace

void bind_forest(nb::module_& m) {
  nb::class_<Forest> forest(m, "Forest", nb::type_slots(forest_slots),
                            "A forest of boundary trees; see cpp/forest.");
  forest.def(
      nb::init<std::uint32_t, std::optional<std::uint32_t>, std::size_t, std::size_t, nb::object,
               const std::string&, std::optional<double>, const std::string&, std::uint64_t,
               nb::object, double, const std::string&, double, const std::string&,
               const nb::object&, std::vector<std::uint32_t>, std::uint32_t, const std::string&,
               std::optional<std::pair<std::uint32_t, std::uint32_t>>, bool>(),
      nb::kw_only(), "n_estimators"_a, "max_children"_a.none(), "n_features"_a, "label_length"_a,
      "label_metric"_a, "estimator"_a, "epsilon"_a.none(), "element_type"_a, "seed"_a, "metric"_a,
      "p"_a, "ids"_a = "none", "max_samples"_a = 1.0, "vote_weights"_a = "distance",
      "feature_weights"_a = nb::none(), "lifetimes"_a = nb::list(), "max_stored"_a = 0,
      "search"_a = "paper", "trees"_a = nb::none(), "balanced"_a = false,
      nb::sig("def __init__(self, *, n_estimators: int, max_children: int | None, "
              "n_features: int, label_length: int, label_metric: str | "
              "collections.abc.Callable[..., float], estimator: str, epsilon: float | None, "
              "element_type: str, seed: int, metric: str | int | "
              "collections.abc.Callable[..., float], p: float, ids: str = 'none', "
              "max_samples: float = 1.0, vote_weights: str = 'distance', feature_weights: "
              "numpy.typing.NDArray[numpy.float64] | str | None = None, lifetimes: "
              "collections.abc.Sequence[int] = [], max_stored: int = 0, search: str = 'paper', "
              "trees: tuple[int, int] | None = None, balanced: bool = False) -> None"));
  bind_states(m, forest);
  bind_learning(forest);
  bind_asking(forest);
  bind_parts(m, forest);
}

}  // namespace boundary_forest
