// The Python extension _core: checks arrays, releases the GIL, decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "boundary_forest/boundary_forest.hpp"
#include "callable_metric.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace boundary_forest {
namespace {

using Array2d = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Enum>
Enum by_name(const std::string& name, std::initializer_list<std::pair<const char*, Enum>> known) {
  for (const auto& [text, value] : known)
    if (name == text) return value;
  throw std::invalid_argument("unknown name '" + name + "'");
}

ElementType element_type_of(const nb::dlpack::dtype& dtype) {
  if (dtype == nb::dtype<std::uint8_t>()) return ElementType::uint8;
  if (dtype == nb::dtype<float>()) return ElementType::float32;
  if (dtype == nb::dtype<double>()) return ElementType::float64;
  throw nb::type_error("rows must be uint8, float32 or float64");
}

template <class T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

template <class T>
nb::object to_numpy(Table<T>&& table) {
  return to_numpy(std::move(table.values), {table.rows, table.columns});
}

// Positions leave as an array of their own element type.
nb::object positions_to_numpy(std::vector<std::byte>&& bytes, ElementType type,
                              std::size_t n_features) {
  return with_element_type(type, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t n = bytes.size() / sizeof(T);
    std::vector<T> values(n);
    if (n > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return to_numpy(std::move(values), {n / n_features, n_features});
  });
}

template <class F>
auto without_gil(F&& f) {
  const nb::gil_scoped_release nogil;
  return f();
}

class Forest {
 public:
  Forest(std::uint32_t n_T, std::optional<std::uint32_t> k, std::size_t n_features,
         std::size_t label_length, const std::string& label_rule, const std::string& estimator,
         std::optional<double> epsilon, const std::string& element_type, std::uint64_t seed,
         nb::object metric, double p) {
    Params params;
    params.n_T = n_T;
    params.k = k.value_or(unlimited);
    params.n_features = n_features;
    params.label_length = label_length;
    params.label_rule =
        by_name<LabelRule>(label_rule, {{"classes_differ", LabelRule::classes_differ},
                                        {"difference", LabelRule::difference},
                                        {"always", LabelRule::always}});
    params.estimator = by_name<Estimator>(estimator, {{"shepard_vote", Estimator::shepard_vote},
                                                      {"shepard_mean", Estimator::shepard_mean},
                                                      {"nearest", Estimator::nearest}});
    params.epsilon = epsilon.value_or(0.0);
    params.auto_epsilon = !epsilon.has_value();
    params.element_type = by_name<ElementType>(element_type, {{"uint8", ElementType::uint8},
                                                              {"float32", ElementType::float32},
                                                              {"float64", ElementType::float64}});
    params.seed = seed;
    params.validate();
    forest_ = std::make_unique<BoundaryForest>(params, metric_from(metric, p, params));
    metric_ = std::move(metric);
  }

  // A callable metric may refer to the forest it serves; the garbage collector is shown the way.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Forest>(self)->metric_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<Forest>(self)->metric_.reset();
    return 0;
  }

  void learn(const Array2d& X, const Labels& y, std::size_t n_jobs) {
    const RowsView rows = view(X);
    if (rows.type != forest_->params().element_type)
      throw nb::type_error("rows to learn must have the forest's element type");
    check_labels(X, y);
    std::size_t learned = 0;
    try {
      const nb::gil_scoped_release nogil;
      forest_->learn(rows, y.data(), run(n_jobs), learned);
    } catch (nb::python_error& error) {
      if (learned > 0)
        error.value().attr("add_note")(
            nb::str("{} of {} rows were learned before this, and are kept")
                .format(learned, rows.n));
      throw;
    }
  }

  void learn_offline(const Array2d& X, const Labels& y, std::size_t n_jobs) {
    const RowsView rows = view(X);
    check_labels(X, y);
    const nb::gil_scoped_release nogil;
    forest_->learn_offline(rows, y.data(), run(n_jobs));
  }

  nb::object apply(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(without_gil([&] { return forest_->apply(rows, run(n_jobs)); }));
  }

  nb::object estimate(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(without_gil([&] { return forest_->estimate(rows, run(n_jobs)); }));
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs) {
    const RowsView rows = view(X);
    Neighbors found = without_gil([&] { return forest_->neighbors(rows, n, run(n_jobs)); });
    return nb::make_tuple(to_numpy(std::move(found.distances)),
                          to_numpy(std::move(found.arrivals)));
  }

  nb::dict stats() {
    const Stats stats = forest_->stats();
    nb::dict comparisons, evaluations, bytes, all;
    comparisons["learn"] = stats.learn.comparisons;
    comparisons["query"] = stats.query.comparisons;
    evaluations["learn"] = stats.learn.evaluations;
    evaluations["query"] = stats.query.evaluations;
    bytes["positions"] = stats.position_bytes;
    bytes["examples"] = stats.example_bytes;
    bytes["trees"] = stats.tree_bytes;
    bytes["total"] = stats.position_bytes + stats.example_bytes + stats.tree_bytes;
    nb::list nodes;
    for (const NodeId n : stats.nodes) nodes.append(n);
    all["examples_seen"] = stats.seen;
    all["examples_stored"] = stats.stored;
    all["nodes_per_tree"] = nodes;
    all["comparisons"] = comparisons;
    all["evaluations"] = evaluations;
    all["bytes"] = bytes;
    all["instruction_set"] = instruction_set();
    return all;
  }

  nb::dict state() {
    BoundaryForest::State state = without_gil([&] { return forest_->state(); });
    const Params& params = forest_->params();
    nb::list trees;
    for (auto& tree : state.trees) {
      const std::size_t n = tree.examples.size();
      trees.append(nb::make_tuple(to_numpy(std::move(tree.examples), {n}),
                                  to_numpy(std::move(tree.parents), {n})));
    }
    const std::size_t n = state.arrivals.size();
    nb::dict all;
    all["trees"] = trees;
    all["positions"] =
        positions_to_numpy(std::move(state.positions), params.element_type, params.n_features);
    all["labels"] = to_numpy(std::move(state.labels), {n, params.label_length});
    all["arrivals"] = to_numpy(std::move(state.arrivals), {n});
    return all;
  }

 private:
  static std::unique_ptr<Metric> metric_from(const nb::object& metric, double p,
                                             const Params& params) {
    const bool needs_non_negative = params.estimator != Estimator::nearest;
    if (nb::isinstance<nb::str>(metric))
      return make_metric(nb::cast<std::string>(metric), p, params.element_type, params.n_features);
    if (nb::isinstance<nb::int_>(metric))
      return make_metric(reinterpret_cast<DistanceFunction>(nb::cast<std::uintptr_t>(metric)),
                         params.element_type, params.n_features, needs_non_negative);
    return make_callable_metric(metric, params.element_type, params.n_features, needs_non_negative);
  }

  RowsView view(const Array2d& X) const {
    if (is_inside(&forest_->metric()))
      throw std::runtime_error("a metric must not call the forest that is calling it");
    if (X.shape(1) != forest_->params().n_features)
      throw std::invalid_argument("X has " + std::to_string(X.shape(1)) + " features, expected " +
                                  std::to_string(forest_->params().n_features));
    return {static_cast<const std::byte*>(X.data()), X.shape(0), element_type_of(X.dtype())};
  }

  void check_labels(const Array2d& X, const Labels& y) const {
    if (y.shape(0) != X.shape(0) || y.shape(1) != forest_->params().label_length)
      throw std::invalid_argument("labels must have one row a row of X and label_length columns");
  }

  // Ctrl-C between blocks ends the call.
  static Run run(std::size_t n_jobs) {
    return {n_jobs, [] {
              const nb::gil_scoped_acquire gil;
              if (PyErr_CheckSignals() != 0) throw nb::python_error();
            }};
  }

  std::unique_ptr<BoundaryForest> forest_;
  nb::object metric_;
};

}  // namespace

PyType_Slot forest_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(Forest::traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(Forest::clear)},
                              {0, nullptr}};

NB_MODULE(_core, m) {
  m.doc() = "The compiled Boundary Forest engine.";
  m.def("instruction_set", &instruction_set, "The instruction set in use: 'scalar' or 'avx2'.");
  nb::class_<Forest>(m, "Forest", nb::type_slots(forest_slots),
                     "A forest of boundary trees; see cpp/include/boundary_forest.")
      .def(nb::init<std::uint32_t, std::optional<std::uint32_t>, std::size_t, std::size_t,
                    const std::string&, const std::string&, std::optional<double>,
                    const std::string&, std::uint64_t, nb::object, double>(),
           nb::kw_only(), "n_estimators"_a, "max_children"_a.none(), "n_features"_a,
           "label_length"_a, "label_rule"_a, "estimator"_a, "epsilon"_a.none(), "element_type"_a,
           "seed"_a, "metric"_a, "p"_a)
      .def("learn", &Forest::learn, "X"_a, "y"_a, "n_jobs"_a)
      .def("learn_offline", &Forest::learn_offline, "X"_a, "y"_a, "n_jobs"_a)
      .def("apply", &Forest::apply, "X"_a, "n_jobs"_a)
      .def("estimate", &Forest::estimate, "X"_a, "n_jobs"_a)
      .def("neighbors", &Forest::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a)
      .def("stats", &Forest::stats)
      .def("state", &Forest::state);
}

}  // namespace boundary_forest
