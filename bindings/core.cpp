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
#include "conversions.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

using Labels = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// One published state of a forest, held as long as this lives.
class PySnapshot {
 public:
  explicit PySnapshot(std::shared_ptr<BoundaryForest> forest)
      : forest_(std::move(forest)),
        snapshot_(without_gil([&] { return std::make_unique<Snapshot>(*forest_); })) {}

  nb::dict state(bool with_positions) {
    return to_dict(without_gil([&] { return snapshot_->state(with_positions); }), forest_->params(),
                   with_positions);
  }

  nb::object positions(std::size_t begin, std::size_t end) {
    Examples examples = without_gil([&] { return snapshot_->examples(begin, end); });
    return positions_to_numpy(std::move(examples.positions), forest_->params().element_type,
                              forest_->params().n_features);
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs) {
    const RowsView rows = view_of(X, forest_->params());
    return to_tuple(without_gil([&] { return snapshot_->neighbors(rows, n, run_with(n_jobs)); }),
                    forest_->params());
  }

 private:
  std::shared_ptr<BoundaryForest> forest_;
  std::unique_ptr<Snapshot> snapshot_;  // ends before the forest
};

class Forest {
 public:
  Forest(std::uint32_t n_T, std::optional<std::uint32_t> k, std::size_t n_features,
         std::size_t label_length, nb::object label_metric, const std::string& estimator,
         std::optional<double> epsilon, const std::string& element_type, std::uint64_t seed,
         nb::object metric, double p, const std::string& ids)
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
    params.ids = by_name<IdKind>(
        ids, {{"none", IdKind::none}, {"int64", IdKind::integer}, {"text", IdKind::text}});
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

  void learn(const Array2d& X, const Labels& y, std::size_t n_jobs, const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      forest->learn(rows, y.data(), run_with(n_jobs), learned, names);
    });
  }

  nb::object predict_then_learn(const Array2d& X, const Labels& y, std::size_t n_jobs,
                                const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    Table<double> answers;
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      answers = forest->predict_then_learn(rows, y.data(), run_with(n_jobs), learned, names);
    });
    return to_numpy(std::move(answers));
  }

  void learn_offline(const Array2d& X, const Labels& y, std::size_t n_jobs, const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    without_gil(
        [&, forest = forest_] { forest->learn_offline(rows, y.data(), run_with(n_jobs), names); });
  }

  void check_ids(const nb::object& ids) {
    const Ids names = ids_from(ids);
    without_gil([&, forest = forest_] { forest->check_ids(names); });
  }

  nb::object apply(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(
        without_gil([&, forest = forest_] { return forest->apply(rows, run_with(n_jobs)); }));
  }

  nb::object estimate(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(
        without_gil([&, forest = forest_] { return forest->estimate(rows, run_with(n_jobs)); }));
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_tuple(
        without_gil([&, forest = forest_] { return forest->neighbors(rows, n, run_with(n_jobs)); }),
        forest_->params());
  }

  nb::tuple found(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    Answers answers =
        without_gil([&, forest = forest_] { return forest->found(rows, run_with(n_jobs)); });
    return nb::make_tuple(to_numpy(std::move(answers.found.places)),
                          to_numpy(std::move(answers.found.distances)),
                          to_tuple(std::move(answers.examples), forest_->params()));
  }

  nb::tuple paths(const Array2d& x) {
    const RowsView row = view(x);
    if (row.n != 1) throw std::invalid_argument("one row is explained at a time");
    Paths paths = without_gil([&, forest = forest_] { return forest->paths(row); });
    nb::list trees;
    for (Found& path : paths.trees) {
      const std::size_t n = path.places.columns;
      trees.append(nb::make_tuple(to_numpy(std::move(path.places.values), {n}),
                                  to_numpy(std::move(path.distances.values), {n})));
    }
    const std::size_t n = paths.weights.size();
    const std::size_t length = paths.estimate.size();
    return nb::make_tuple(trees, to_numpy(std::move(paths.weights), {n}),
                          to_numpy(std::move(paths.estimate), {1, length}),
                          to_tuple(std::move(paths.examples), forest_->params()));
  }

  PySnapshot snapshot() { return PySnapshot(forest_); }

  nb::tuple digest(const std::optional<Keys>& label_keys) {
    std::span<const std::uint64_t> keys;
    if (label_keys) keys = {label_keys->data(), label_keys->shape(0)};
    const Digest digest = without_gil([&, forest = forest_] { return forest->digest(keys); });
    std::vector<std::uint64_t> trees;
    for (const auto& of_tree : digest.trees)
      trees.insert(trees.end(), of_tree.begin(), of_tree.end());
    const std::size_t n = digest.trees.size();
    return nb::make_tuple(
        to_numpy(std::move(trees), {n, 2}),
        to_numpy(std::vector(digest.examples.begin(), digest.examples.end()), {2}));
  }

  std::uint64_t seen() { return forest_->seen(); }
  std::uint32_t n_classes() { return forest_->n_classes(); }
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
    bytes["ids"] = stats.id_bytes;
    bytes["total"] = stats.position_bytes + stats.example_bytes + stats.tree_bytes + stats.id_bytes;
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
    if (all.contains("tree_places"))
      state.tree_places = to_vector<std::uint32_t>(all["tree_places"]);
    if (all.contains("tree_generations"))
      state.tree_generations = to_vector<std::uint32_t>(all["tree_generations"]);
    state.node_examples = to_vector<std::uint32_t>(all["node_examples"]);
    state.node_parents = to_vector<NodeId>(all["node_parents"]);
    state.examples = {
        {}, to_vector<double>(all["labels"]), to_vector<Arrival>(all["arrivals"]), {}};
    if (all.contains("ids")) state.examples.ids = ids_from(all["ids"]);
    const SavedRows rows = rows_in(nb::cast<Array2d>(all["positions"]), positions);
    const nb::gil_scoped_release nogil;
    forest_->restore(state, rows);
  }

  // The stored rows get further features, all zero. A new engine takes this one's place, so calls
  // that are under way end on the one they began with; not while another thread learns.
  void widen(std::size_t n_features) {
    Params params = forest_->params();
    params.n_features = n_features;
    std::unique_ptr<Metric> d = metric_for(params);
    forest_ = without_gil([&, forest = forest_]() -> std::shared_ptr<BoundaryForest> {
      return forest->widened(n_features, std::move(d));
    });
  }

 private:
  std::shared_ptr<BoundaryForest> make_forest(const Params& params) const {
    params.validate();
    return std::make_shared<BoundaryForest>(params, metric_for(params));
  }

  std::unique_ptr<Metric> metric_for(const Params& params) const {
    const bool needs_non_negative = params.estimator != Estimator::nearest;
    return make_metric(metric_, p_, params.element_type, params.n_features, needs_non_negative);
  }

  RowsView view(const Array2d& X) const {
    if (is_inside(metric_) || is_inside(label_metric_))
      throw std::runtime_error("a metric must not call the forest that is calling it");
    return view_of(X, forest_->params());
  }

  Ids ids_to_learn(const nb::object& given, std::size_t n) const {
    Ids ids = ids_from(given);
    if (n > 0 && (ids.kind() != forest_->params().ids || (!given.is_none() && ids.size() != n)))
      throw std::invalid_argument("ids must be one a row, of the forest's kind, or None");
    return ids;
  }

  RowsView rows_to_learn(const Array2d& X, const Labels& y) const {
    const RowsView rows = view(X);
    if (rows.type != forest_->params().element_type)
      throw nb::type_error("rows to learn must have the forest's element type");
    if (y.shape(0) != rows.n || y.shape(1) != forest_->params().label_length)
      throw std::invalid_argument("y must have one row a row of X and label_length columns");
    return rows;
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
  m.def("metric_names", [] {
    nb::list names;
    for (const std::string& name : metric_names()) names.append(nb::str(name.c_str()));
    return names;
  });
  m.def("element_types", [] {
    nb::list names;
    for (const ElementType type : element_types) names.append(nb::str(name_of(type)));
    return names;
  });
  nb::class_<PySnapshot>(m, "Snapshot",
                         "One published state of a forest, held as long as this object lives.")
      .def("state", &PySnapshot::state, "with_positions"_a = true)
      .def("positions", &PySnapshot::positions, "begin"_a, "end"_a)
      .def("neighbors", &PySnapshot::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a);
  nb::class_<Forest>(m, "Forest", nb::type_slots(forest_slots),
                     "A forest of boundary trees; see cpp/include/boundary_forest.")
      .def(nb::init<std::uint32_t, std::optional<std::uint32_t>, std::size_t, std::size_t,
                    nb::object, const std::string&, std::optional<double>, const std::string&,
                    std::uint64_t, nb::object, double, const std::string&>(),
           nb::kw_only(), "n_estimators"_a, "max_children"_a.none(), "n_features"_a,
           "label_length"_a, "label_metric"_a, "estimator"_a, "epsilon"_a.none(), "element_type"_a,
           "seed"_a, "metric"_a, "p"_a, "ids"_a = "none")
      .def("learn", &Forest::learn, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none())
      .def("learn_offline", &Forest::learn_offline, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none())
      .def("predict_then_learn", &Forest::predict_then_learn, "X"_a, "y"_a, "n_jobs"_a,
           "ids"_a = nb::none())
      .def("check_ids", &Forest::check_ids, "ids"_a)
      .def("found", &Forest::found, "X"_a, "n_jobs"_a)
      .def("paths", &Forest::paths, "x"_a)
      .def("snapshot", &Forest::snapshot)
      .def("digest", &Forest::digest, "label_keys"_a.none())
      .def("widen", &Forest::widen, "n_features"_a)
      .def("restore", &Forest::restore, "state"_a, "positions"_a = "copied")
      .def_prop_ro("seen", &Forest::seen)
      .def_prop_ro("n_classes", &Forest::n_classes)
      .def_prop_ro("label_deviation", &Forest::label_deviation)
      .def("apply", &Forest::apply, "X"_a, "n_jobs"_a)
      .def("estimate", &Forest::estimate, "X"_a, "n_jobs"_a)
      .def("neighbors", &Forest::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a)
      .def("stats", &Forest::stats);
  bind_baselines(m);
}

}  // namespace boundary_forest
