// The Python extension _cover_tree: checks arrays, releases the GIL, decides nothing.
#include <mutex>

#include "common.hpp"
#include "cover_tree.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

// Calls from several threads run one after the other: a descent keeps its notes in the tree.
class CoverTree {
  // The lock is never waited for with the GIL, as its holder may be waiting for that; nor by the
  // metric that is at work under it.
  template <class F>
  auto locked(F&& f) {
    refuse_the_metric();
    const ReleasedGil nogil;
    const std::lock_guard lock(mutex_);
    return f();
  }

 public:
  CoverTree(double base, std::size_t n_features, const std::string& element_type, bool separated,
            bool tight, nb::object metric, double p)
      : metric_(std::move(metric)) {
    const baselines::CoverTreeParams params{base, n_features, element_type_of(element_type),
                                            separated, tight};
    params.validate();
    // Whether a distance may be negative is the tree's own affair, and so is the error.
    tree_ = std::make_unique<baselines::CoverTree>(
        params, make_metric(metric_, p, params.element_type, n_features, false));
  }

  // A callable metric may refer to the tree it serves.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<CoverTree>(self)->metric_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<CoverTree>(self)->metric_.reset();
    return 0;
  }

  void insert(const Array2d& X) {
    const RowsView rows = view(X);
    if (rows.type != tree_->params().element_type)
      throw nb::type_error("rows to insert must have the tree's element type");
    refuse_the_metric();
    saying_how_far(rows, [&](std::size_t& inserted) {
      const std::lock_guard lock(mutex_);
      tree_->insert(rows, between_blocks, inserted);
    });
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, double epsilon) {
    const RowsView rows = view(X);
    Neighbors found = locked([&] { return tree_->neighbors(rows, n, epsilon, between_blocks); });
    return nb::make_tuple(to_numpy(std::move(found.distances)),
                          to_numpy(std::move(found.arrivals)));
  }

  std::size_t size() {
    return locked([&] { return tree_->size(); });
  }

  nb::tuple comparisons() {
    const auto [learn, query] =
        locked([&] { return std::pair{tree_->learn_comparisons(), tree_->query_comparisons()}; });
    return nb::make_tuple(learn, query);
  }

  nb::tuple nodes() {
    auto [levels, parents] = locked([&] { return std::pair{tree_->levels(), tree_->parents()}; });
    const std::size_t n = levels.size();
    return nb::make_tuple(to_numpy(std::move(levels), {n}), to_numpy(std::move(parents), {n}));
  }

 private:
  void refuse_the_metric() const {
    if (is_inside(metric_))
      throw std::runtime_error("a metric must not call the tree that is calling it");
  }

  RowsView view(const Array2d& X) const {
    const std::size_t n_features = tree_->params().n_features;
    if (X.shape(1) != n_features)
      throw std::invalid_argument("X has " + std::to_string(X.shape(1)) + " features, expected " +
                                  std::to_string(n_features));
    return {static_cast<const std::byte*>(X.data()), X.shape(0), element_type_of(X.dtype())};
  }

  nb::object metric_;  // a name, an address or a callable
  std::mutex mutex_;
  std::unique_ptr<baselines::CoverTree> tree_;
};

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(CoverTree::traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(CoverTree::clear)},
                       {0, nullptr}};

}  // namespace

NB_MODULE(_cover_tree, m) {
  m.doc() = "The compiled cover tree.";
  set_up_interpreter();
  nb::class_<CoverTree>(m, "CoverTree", nb::type_slots(slots),
                        "A cover tree; see paper/cover_tree/cover_tree.hpp.")
      .def(nb::init<double, std::size_t, const std::string&, bool, bool, nb::object, double>(),
           nb::kw_only(), "base"_a, "n_features"_a, "element_type"_a, "separated"_a, "tight"_a,
           "metric"_a, "p"_a,
           nb::sig("def __init__(self, *, base: float, n_features: int, element_type: str, "
                   "separated: bool, tight: bool, metric: str | int | "
                   "collections.abc.Callable[..., float], p: float) -> None"))
      .def("insert", &CoverTree::insert, "X"_a,
           nb::sig("def insert(self, X: numpy.typing.NDArray[typing.Any]) -> None"),
           "Insert rows in order.")
      .def("neighbors", &CoverTree::neighbors, "X"_a, "n_neighbors"_a, "epsilon"_a,
           nb::sig("def neighbors(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int, "
                   "epsilon: float) -> tuple[numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.uint64]]"),
           "Return distances and arrival numbers, within a factor 1 + epsilon of the nearest.")
      .def_prop_ro("size", &CoverTree::size, "Rows inserted.")
      .def_prop_ro("comparisons", &CoverTree::comparisons,
                   nb::sig("def comparisons(self) -> tuple[int, int]"),
                   "Distances computed to insert, and to answer.")
      .def_prop_ro("nodes", &CoverTree::nodes,
                   nb::sig("def nodes(self) -> tuple[numpy.typing.NDArray[numpy.int32], "
                           "numpy.typing.NDArray[numpy.uint32]]"),
                   "Each node's level and parent, by arrival.");
}

}  // namespace boundary_forest
