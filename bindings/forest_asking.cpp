// Questions: predictions, neighbours, and where descents end.
#include <nanobind/stl/optional.h>

#include "forest.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

constexpr const char* neighbors_signature =
    "def neighbors(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int, n_jobs: int, beam: "
    "int = ..., exact: bool | None = None, mask: numpy.typing.NDArray[numpy.uint8] | None = None, "
    "ids: "
    "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
    "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], "
    "numpy.typing.NDArray[numpy.int64] | list[str] | None]";

}  // namespace

nb::object Forest::apply(const Array2d& X, std::size_t n_jobs) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  return to_numpy(without_gil([&] { return forest->apply(rows, run_with(n_jobs)); }));
}

template <auto method>
nb::object Forest::answer(const Array2d& X, std::size_t n_jobs,
                          const std::optional<RankArray>& ranks) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  std::optional<Table<double>> answers =
      without_gil([&] { return ((*forest).*method)(rows, run_with(n_jobs), ranks_in(ranks)); });
  return answers ? to_numpy(std::move(*answers)) : nb::none();
}

nb::tuple Forest::neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs, std::size_t beam,
                            std::optional<bool> exact, const std::optional<Mask>& mask,
                            const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  const PySearch how(beam, exact, mask, ids);
  return to_tuple(
      without_gil([&] { return forest->neighbors(rows, n, how.search, run_with(n_jobs)); }),
      forest->params());
}

nb::tuple Forest::within(const Array2d& X, double radius, std::size_t n_jobs, std::size_t beam,
                         std::optional<bool> exact, const std::optional<Mask>& mask,
                         const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  const PySearch how(beam, exact, mask, ids);
  Within found =
      without_gil([&] { return forest->within(rows, radius, how.search, run_with(n_jobs)); });
  const std::size_t n = found.distances.size();
  return nb::make_tuple(to_numpy(std::move(found.row_ends), {rows.n}),
                        to_numpy(std::move(found.distances), {n}),
                        to_numpy(std::move(found.arrivals), {n}),
                        ids_to_python(std::move(found.ids), forest->params().ids, {n}));
}

nb::tuple Forest::found(const Array2d& X, std::size_t n_jobs) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  FoundExamples answers = without_gil([&] { return forest->found(rows, run_with(n_jobs)); });
  return nb::make_tuple(to_numpy(std::move(answers.found.places)),
                        to_numpy(std::move(answers.found.distances)),
                        to_tuple(std::move(answers.examples), forest->params()));
}

nb::tuple Forest::paths(const Array2d& x) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView row = view(*forest, x);
  if (row.n != 1) throw std::invalid_argument("one row is explained at a time");
  Paths paths = without_gil([&] { return forest->paths(row); });
  nb::list trees;
  for (Found& path : paths.trees) {
    const std::size_t n = path.places.columns;
    trees.append(nb::make_tuple(to_numpy(std::move(path.places.values), {n}),
                                to_numpy(std::move(path.distances.values), {n})));
  }
  const std::size_t n = paths.weights.size();
  return nb::make_tuple(
      trees, to_numpy(std::move(paths.weights), {n}), to_numpy(std::move(paths.estimate)),
      to_tuple(std::move(paths.examples), forest->params()), to_tuple(std::move(paths.recent)));
}

void bind_asking(nb::class_<Forest>& forest) {
  forest
      .def("apply", &Forest::apply, "X"_a, "n_jobs"_a,
           nb::sig("def apply(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int) -> "
                   "numpy.typing.NDArray[numpy.uint64]"),
           "Return the arrival number of the example that each tree ends at.")
      .def("predict", &Forest::answer<&BoundaryForest::predict>, "X"_a, "n_jobs"_a,
           "ranks"_a = nb::none(),
           nb::sig("def predict(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int, ranks: "
                   "numpy.typing.NDArray[numpy.uint32] | None = None) -> typing.Any"),
           "Return the label vector that E makes of the examples that the trees end at; None if a "
           "class has no rank yet.")
      .def("estimate", &Forest::answer<&BoundaryForest::estimate>, "X"_a, "n_jobs"_a,
           "ranks"_a = nb::none(),
           nb::sig("def estimate(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int, ranks: "
                   "numpy.typing.NDArray[numpy.uint32] | None = None) -> typing.Any"),
           "Return the same, but in a vote each class's share, by rank.")
      .def(
          "neighbors", &Forest::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a,
          "beam"_a = Search{}.beam, "exact"_a = nb::none(), "mask"_a = nb::none(),
          "ids"_a = nb::none(), nb::sig(neighbors_signature),
          "Return distances, arrival numbers and ids, of the examples that a mask over arrivals or "
          "a list of ids allows.")
      .def("within", &Forest::within, "X"_a, "radius"_a, "n_jobs"_a, "beam"_a = Search{}.beam,
           "exact"_a = nb::none(), "mask"_a = nb::none(), "ids"_a = nb::none(),
           nb::sig("def within(self, X: numpy.typing.NDArray[typing.Any], radius: float, n_jobs: "
                   "int, beam: int = ..., exact: bool | None = None, mask: "
                   "numpy.typing.NDArray[numpy.uint8] | None = None, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.int64] | "
                   "list[str] | None]"),
           "Return where each row's end, and distances, arrival numbers and ids within a radius.")
      .def("found", &Forest::found, "X"_a, "n_jobs"_a,
           nb::sig("def found(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint32], numpy.typing.NDArray[numpy.float64], "
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any]]"),
           "Return the examples that the trees end at: numbers, distances, and the examples' "
           "positions, labels, arrivals and ids.")
      .def("paths", &Forest::paths, "x"_a,
           nb::sig("def paths(self, x: numpy.typing.NDArray[typing.Any]) -> "
                   "tuple[list[tuple[numpy.typing.NDArray[numpy.uint32], "
                   "numpy.typing.NDArray[numpy.float64]]], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64], "
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any], "
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any]]"),
           "Return each tree's path, the trees' weights, the estimate, the examples met, and the "
           "recent rows that experts answer from: arrivals, labels, distances and weights.");
}

}  // namespace boundary_forest
