// The Python extension _core: checks arrays, releases the GIL, decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "baselines.hpp"
#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/checksum.hpp"
#include "callables.hpp"
#include "common.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

using Labels = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Slots = nb::ndarray<const Slot, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

template <class T>
std::vector<T> to_vector(const nb::handle& array) {
  const auto values = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(array);
  return {values.data(), values.data() + values.size()};
}

class Forest {
 public:
  Forest(std::uint32_t n_T, std::optional<std::uint32_t> k, std::size_t n_features,
         std::size_t label_length, nb::object label_metric, const std::string& estimator,
         std::optional<double> epsilon, const std::string& element_type, std::uint64_t seed,
         nb::object metric, double p)
      : metric_(std::move(metric)), label_metric_(std::move(label_metric)), p_(p) {
    Params params;
    params.n_T = n_T;
    params.k = k.value_or(unlimited);
    params.n_features = n_features;
    params.label_length = label_length;
    params.label_metric = LabelMetric::function;
    if (nb::isinstance<nb::str>(label_metric_))
      params.label_metric = by_name<LabelMetric>(nb::cast<std::string>(label_metric_),
                                                 {{"discrete", LabelMetric::discrete},
                                                  {"euclidean", LabelMetric::euclidean},
                                                  {"manhattan", LabelMetric::manhattan},
                                                  {"chebyshev", LabelMetric::chebyshev},
                                                  {"always", LabelMetric::always}});
    else
      params.label_function = make_label_function(label_metric_, label_length);
    params.estimator = by_name<Estimator>(estimator, {{"shepard_vote", Estimator::shepard_vote},
                                                      {"shepard_mean", Estimator::shepard_mean},
                                                      {"nearest", Estimator::nearest}});
    params.epsilon = epsilon.value_or(0.0);
    params.auto_epsilon = !epsilon.has_value();
    params.element_type = element_type_of(element_type);
    params.seed = seed;
    forest_ = make_forest(params);
  }

  // A callable metric may refer to the forest it serves; the garbage collector is shown the way.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(nb::inst_ptr<Forest>(self)->metric_.ptr());
    Py_VISIT(nb::inst_ptr<Forest>(self)->label_metric_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<Forest>(self)->metric_.reset();
    nb::inst_ptr<Forest>(self)->label_metric_.reset();
    return 0;
  }

  void learn(const Array2d& X, const Labels& y, std::size_t n_jobs) {
    const RowsView rows = rows_to_learn(X, y);
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      forest->learn(rows, y.data(), run(n_jobs), learned);
    });
  }

  nb::object predict_then_learn(const Array2d& X, const Labels& y, std::size_t n_jobs) {
    const RowsView rows = rows_to_learn(X, y);
    Table<double> answers;
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      answers = forest->predict_then_learn(rows, y.data(), run(n_jobs), learned);
    });
    return to_numpy(std::move(answers));
  }

  void learn_offline(const Array2d& X, const Labels& y, std::size_t n_jobs) {
    const RowsView rows = rows_to_learn(X, y);
    without_gil([&, forest = forest_] { forest->learn_offline(rows, y.data(), run(n_jobs)); });
  }

  nb::object apply(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(
        without_gil([&, forest = forest_] { return forest->apply(rows, run(n_jobs)); }));
  }

  nb::object estimate(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(
        without_gil([&, forest = forest_] { return forest->estimate(rows, run(n_jobs)); }));
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs) {
    const RowsView rows = view(X);
    Neighbors found =
        without_gil([&, forest = forest_] { return forest->neighbors(rows, n, run(n_jobs)); });
    return nb::make_tuple(to_numpy(std::move(found.distances)),
                          to_numpy(std::move(found.arrivals)));
  }

  nb::tuple found(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_tuple(
        without_gil([&, forest = forest_] { return forest->found(rows, run(n_jobs)); }));
  }

  nb::tuple paths(const Array2d& x) {
    const RowsView row = view(x);
    if (row.n != 1) throw std::invalid_argument("one row is explained at a time");
    Paths paths = without_gil([&, forest = forest_] { return forest->paths(row); });
    nb::list trees;
    for (Found& path : paths.trees) trees.append(to_tuple(std::move(path)));
    const std::size_t n = paths.weights.size();
    const std::size_t length = paths.estimate.size();
    return nb::make_tuple(trees, to_numpy(std::move(paths.weights), {n}),
                          to_numpy(std::move(paths.estimate), {1, length}));
  }

  nb::tuple examples(const Slots& slots) {
    const std::span<const Slot> wanted(slots.data(), slots.shape(0));
    Examples found = without_gil([&, forest = forest_] { return forest->examples(wanted); });
    return to_tuple(std::move(found));
  }

  std::uint64_t seen() { return forest_->seen(); }
  double label_deviation() { return forest_->label_deviation(); }

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

  nb::dict state(bool with_positions) {
    BoundaryForest::State state =
        without_gil([&, forest = forest_] { return forest->state(with_positions); });
    const std::size_t n_sums = state.spread.size();
    const std::size_t n_trees = state.tree_sizes.size();
    const std::size_t n_nodes = state.node_examples.size();
    nb::dict all;
    all["seen"] = state.seen;
    all["n_classes"] = state.n_classes;
    all["spread"] = to_numpy(std::move(state.spread), {n_sums});
    all["counts"] = nb::make_tuple(state.learn.comparisons, state.learn.evaluations,
                                   state.query.comparisons, state.query.evaluations);
    all["tree_sizes"] = to_numpy(std::move(state.tree_sizes), {n_trees});
    all["node_examples"] = to_numpy(std::move(state.node_examples), {n_nodes});
    all["node_parents"] = to_numpy(std::move(state.node_parents), {n_nodes});
    nb::tuple examples = to_tuple(std::move(state.examples));
    if (with_positions) all["positions"] = examples[0];
    all["labels"] = examples[1];
    all["arrivals"] = examples[2];
    return all;
  }

  // A view of stored rows from slot `first` on, as many as lie side by side.
  nb::object rows_from(Slot first) {
    const std::span<const std::byte> rows = forest_->rows_from(first);
    const std::size_t n_features = forest_->params().n_features;
    const nb::capsule owner(new std::shared_ptr<BoundaryForest>(forest_), [](void* p) noexcept {
      delete static_cast<std::shared_ptr<BoundaryForest>*>(p);
    });
    return with_element_type(forest_->params().element_type, [&](auto zero) {
      using T = decltype(zero);
      const std::size_t n = rows.size() / sizeof(T) / n_features;
      return nb::cast(nb::ndarray<nb::numpy, const T>(rows.data(), {n, n_features}, owner));
    });
  }

  // The positions' array is "copied"; or it is "kept", and must not be written any more; or it is
  // kept and "mapped" from a file, so that it does not count as memory.
  void restore(const nb::dict& all, const std::string& positions) {
    BoundaryForest::State state;
    state.seen = nb::cast<std::uint64_t>(all["seen"]);
    state.n_classes = nb::cast<std::uint32_t>(all["n_classes"]);
    state.spread = to_vector<double>(all["spread"]);
    const auto counts = nb::cast<nb::tuple>(all["counts"]);
    if (counts.size() != 4) throw std::invalid_argument("counts must be four numbers");
    state.learn = {nb::cast<std::uint64_t>(counts[0]), nb::cast<std::uint64_t>(counts[1])};
    state.query = {nb::cast<std::uint64_t>(counts[2]), nb::cast<std::uint64_t>(counts[3])};
    state.tree_sizes = to_vector<NodeId>(all["tree_sizes"]);
    state.node_examples = to_vector<Slot>(all["node_examples"]);
    state.node_parents = to_vector<NodeId>(all["node_parents"]);
    state.examples = {{}, to_vector<double>(all["labels"]), to_vector<Arrival>(all["arrivals"])};
    const SavedRows rows = rows_in(nb::cast<Array2d>(all["positions"]), positions);
    const nb::gil_scoped_release nogil;
    forest_->restore(state, rows);
  }

  // The stored rows get further features, all zero. A new engine takes this one's place, so calls
  // that are under way end on the one they began with; not while another thread learns.
  void widen(std::size_t n_features) {
    BoundaryForest::State state = without_gil([&, forest = forest_] { return forest->state(); });
    Params params = forest_->params();
    const std::size_t before = params.n_features * size_of(params.element_type);
    const std::size_t after = n_features * size_of(params.element_type);
    if (after < before) throw std::invalid_argument("a forest cannot become narrower");
    const std::size_t n = state.examples.arrivals.size();
    std::vector<std::byte> positions(n * after);
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(state.examples.positions.data() + i * before, before,
                  positions.data() + i * after);
    state.examples.positions = std::move(positions);
    params.n_features = n_features;
    std::shared_ptr<BoundaryForest> wider = make_forest(params);
    without_gil([&] { wider->restore(state); });
    forest_ = std::move(wider);
  }

 private:
  std::shared_ptr<BoundaryForest> make_forest(const Params& params) const {
    params.validate();
    const bool needs_non_negative = params.estimator != Estimator::nearest;
    return std::make_shared<BoundaryForest>(
        params,
        make_metric(metric_, p_, params.element_type, params.n_features, needs_non_negative));
  }

  RowsView view(const Array2d& X) const {
    if (is_inside(metric_) || is_inside(label_metric_))
      throw std::runtime_error("a metric must not call the forest that is calling it");
    if (X.shape(1) != forest_->params().n_features)
      throw std::invalid_argument("X has " + std::to_string(X.shape(1)) + " features, expected " +
                                  std::to_string(forest_->params().n_features));
    return {static_cast<const std::byte*>(X.data()), X.shape(0), element_type_of(X.dtype())};
  }

  RowsView rows_to_learn(const Array2d& X, const Labels& y) const {
    const RowsView rows = view(X);
    if (rows.type != forest_->params().element_type)
      throw nb::type_error("rows to learn must have the forest's element type");
    if (y.shape(0) != rows.n || y.shape(1) != forest_->params().label_length)
      throw std::invalid_argument("y must have one row a row of X and label_length columns");
    return rows;
  }

  nb::tuple to_tuple(Found&& found) const {
    return nb::make_tuple(to_numpy(std::move(found.slots)), to_numpy(std::move(found.distances)));
  }

  nb::tuple to_tuple(Examples&& examples) const {
    const Params& params = forest_->params();
    const std::size_t n = examples.arrivals.size();
    return nb::make_tuple(
        positions_to_numpy(std::move(examples.positions), params.element_type, params.n_features),
        to_numpy(std::move(examples.labels), {n, params.label_length}),
        to_numpy(std::move(examples.arrivals), {n}));
  }

  SavedRows rows_in(const Array2d& array, const std::string& how) const {
    enum class How { copied, kept, mapped };
    const How chosen =
        by_name<How>(how, {{"copied", How::copied}, {"kept", How::kept}, {"mapped", How::mapped}});
    if (element_type_of(array.dtype()) != forest_->params().element_type)
      throw nb::type_error("positions must have the forest's element type");
    if (array.shape(1) != forest_->params().n_features)
      throw std::invalid_argument("positions has another number of features");
    SavedRows rows{.data = static_cast<const std::byte*>(array.data()),
                   .bytes = array.nbytes(),
                   .in_file = chosen == How::mapped};
    if (chosen != How::copied)  // the last who lets go may be a thread that has released the GIL
      rows.owner = std::shared_ptr<const void>(new Array2d(array), [](const void* p) {
        const nb::gil_scoped_acquire gil;
        delete static_cast<const Array2d*>(p);
      });
    return rows;
  }

  // Ctrl-C between blocks ends the call.
  static Run run(std::size_t n_jobs) { return {n_jobs, check_signals}; }

  nb::object metric_;        // a name, an address or a callable
  nb::object label_metric_;  // a name or a callable
  double p_;
  std::shared_ptr<BoundaryForest> forest_;
};

}  // namespace

PyType_Slot forest_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(Forest::traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(Forest::clear)},
                              {0, nullptr}};

NB_MODULE(_core, m) {
  m.doc() = "The compiled Boundary Forest engine.";
  m.def("instruction_set", &instruction_set, "The instruction set in use: 'scalar' or 'avx2'.");
  m.def("has_fast_crc32", &has_fast_crc32);
  m.def(
      "crc32",
      [](const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& data,
         std::uint32_t crc) {
        const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
        return without_gil([&] { return crc32(std::span(bytes, data.size()), crc); });
      },
      "data"_a, "crc"_a, "zlib's checksum.");
  nb::class_<Forest>(m, "Forest", nb::type_slots(forest_slots),
                     "A forest of boundary trees; see cpp/include/boundary_forest.")
      .def(nb::init<std::uint32_t, std::optional<std::uint32_t>, std::size_t, std::size_t,
                    nb::object, const std::string&, std::optional<double>, const std::string&,
                    std::uint64_t, nb::object, double>(),
           nb::kw_only(), "n_estimators"_a, "max_children"_a.none(), "n_features"_a,
           "label_length"_a, "label_metric"_a, "estimator"_a, "epsilon"_a.none(), "element_type"_a,
           "seed"_a, "metric"_a, "p"_a)
      .def("learn", &Forest::learn, "X"_a, "y"_a, "n_jobs"_a)
      .def("learn_offline", &Forest::learn_offline, "X"_a, "y"_a, "n_jobs"_a)
      .def("predict_then_learn", &Forest::predict_then_learn, "X"_a, "y"_a, "n_jobs"_a)
      .def("found", &Forest::found, "X"_a, "n_jobs"_a)
      .def("paths", &Forest::paths, "x"_a)
      .def("examples", &Forest::examples, "slots"_a)
      .def("widen", &Forest::widen, "n_features"_a)
      .def("rows_from", &Forest::rows_from, "first"_a)
      .def("restore", &Forest::restore, "state"_a, "positions"_a = "copied")
      .def_prop_ro("seen", &Forest::seen)
      .def_prop_ro("label_deviation", &Forest::label_deviation)
      .def("apply", &Forest::apply, "X"_a, "n_jobs"_a)
      .def("estimate", &Forest::estimate, "X"_a, "n_jobs"_a)
      .def("neighbors", &Forest::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a)
      .def("stats", &Forest::stats)
      .def("state", &Forest::state, "with_positions"_a = true);
  bind_baselines(m);
}

}  // namespace boundary_forest
