// What a forest that holds a part of the trees does for the driver of all parts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "distributed/partial_forest.hpp"
#include "forest.hpp"

namespace boundary_forest {

using namespace nb::literals;

nb::tuple Forest::leaves(const Array2d& X, std::size_t n_jobs) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  TreeLeaves leaves =
      without_gil([&] { return PartialForest(*forest).leaves(rows, run_with(n_jobs)); });
  return unweighted(std::move(leaves), forest->params());
}

nb::tuple Forest::leaves_then_learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                                    const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = rows_to_learn(*forest, X, y);
  const Ids names = ids_to_learn(*forest, ids, rows.n);
  TreeLeaves leaves;
  saying_how_far(rows, [&](std::size_t& learned) {
    leaves =
        PartialForest(*forest).leaves_then_learn(rows, y.data(), run_with(n_jobs), learned, names);
  });
  return unweighted(std::move(leaves), forest->params());
}

constexpr auto all = std::numeric_limits<std::size_t>::max();

nb::tuple Forest::candidates(const Array2d& X, std::optional<std::size_t> n,
                             std::optional<double> radius, std::size_t n_jobs, std::size_t beam,
                             std::optional<bool> exact, const std::optional<Mask>& mask,
                             const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = view(*forest, X);
  const PySearch how(beam, exact, mask, ids);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Candidates found = without_gil([&] {
    return PartialForest(*forest).candidates(rows, n.value_or(all), radius.value_or(infinity),
                                             how.search, run_with(n_jobs));
  });
  const std::size_t m = found.arrivals.size();
  return nb::make_tuple(
      to_numpy(std::move(found.row_ends), {rows.n}), to_numpy(std::move(found.reduced), {m}),
      to_numpy(std::move(found.distances), {m}), to_numpy(std::move(found.arrivals), {m}),
      ids_to_python(std::move(found.ids), forest->params().ids, {m}));
}

namespace {

nb::tuple closest_of(const std::vector<Keys>& ends, const Distances& reduced, const Keys& arrivals,
                     std::optional<std::size_t> n) {
  std::vector<std::span<const std::uint64_t>> of_parts;
  for (const Keys& of_part : ends) of_parts.emplace_back(of_part.data(), of_part.shape(0));
  Closest found = without_gil([&] {
    return closest(of_parts, {reduced.data(), reduced.shape(0)},
                   {arrivals.data(), arrivals.shape(0)}, n.value_or(all));
  });
  const std::size_t rows = found.row_ends.size();
  const std::size_t m = found.numbers.size();
  return nb::make_tuple(to_numpy(std::move(found.row_ends), {rows}),
                        to_numpy(std::move(found.numbers), {m}));
}

}  // namespace

nb::tuple Forest::examples(const Keys& arrivals) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const std::span wanted(arrivals.data(), arrivals.shape(0));
  return to_tuple(without_gil([&] { return PartialForest(*forest).examples(wanted); }),
                  forest->params());
}

std::vector<std::uint32_t> Forest::places_to_grow() {
  return without_gil([forest = forest_] { return PartialForest(*forest).places_to_grow(); });
}

void Forest::grow(const Array2d& X, const Labels2d& y, const Keys& arrivals, std::size_t n_jobs,
                  const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = rows_to_learn(*forest, X, y);
  const Ids names = ids_to_learn(*forest, ids, rows.n);
  const std::span numbers(arrivals.data(), arrivals.shape(0));
  without_gil(
      [&] { PartialForest(*forest).grow(rows, y.data(), numbers, names, run_with(n_jobs)); });
}

nb::object Forest::oldest() {
  const auto found = without_gil([forest = forest_] { return PartialForest(*forest).oldest(); });
  if (!found) return nb::none();
  return nb::make_tuple(found->arrival, found->answering, found->place);
}

void Forest::cut(std::uint32_t place, bool answering, std::size_t n_jobs) {
  without_gil(
      [&, forest = forest_] { PartialForest(*forest).cut(place, answering, run_with(n_jobs)); });
}

bool Forest::is_planted() {
  return without_gil([forest = forest_] { return PartialForest(*forest).is_planted(); });
}

void bind_parts(nb::module_& m, nb::class_<Forest>& forest) {
  m.def("closest", &closest_of, "ends"_a, "reduced"_a, "arrivals"_a, "n_neighbors"_a.none(),
        nb::sig("def closest(ends: collections.abc.Sequence[numpy.typing.NDArray[numpy.uint64]], "
                "reduced: numpy.typing.NDArray[numpy.float64], arrivals: "
                "numpy.typing.NDArray[numpy.uint64], n_neighbors: int | None) -> "
                "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]"),
        "Rank the candidates of several forests, which stand one after the other; ends are those "
        "of each. Return where each row's end, and numbers of the closest, each example once.");
  forest
      .def("ends", &Forest::leaves, "X"_a, "n_jobs"_a,
           nb::sig("def ends(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Return arrivals, labels and distances of the examples that the trees end at.")
      .def("ends_then_learn", &Forest::leaves_then_learn, "X"_a, "y"_a, "n_jobs"_a,
           "ids"_a = nb::none(),
           nb::sig("def ends_then_learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Learn rows in order, and return the same for each from just before.")
      .def("candidates", &Forest::candidates, "X"_a, "n_neighbors"_a.none(), "radius"_a.none(),
           "n_jobs"_a, "beam"_a = 100, "exact"_a = nb::none(), "mask"_a = nb::none(),
           "ids"_a = nb::none(),
           nb::sig("def candidates(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int | "
                   "None, radius: float | None, n_jobs: int, beam: int = 100, exact: bool | None = "
                   "None, "
                   "mask: "
                   "numpy.typing.NDArray[numpy.uint8] | None = None, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None]"),
           "Return what these trees have to say to a search: where each row's end, reduced "
           "distances, distances, arrival numbers and ids.")
      .def("examples", &Forest::examples, "arrivals"_a,
           nb::sig("def examples(self, arrivals: numpy.typing.NDArray[numpy.uint64]) -> "
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any]"),
           "Return positions, labels, arrivals and ids of stored examples.")
      .def("places_to_grow", &Forest::places_to_grow,
           "Return the places whose trees are to be rebuilt from all that is stored.")
      .def("grow", &Forest::grow, "X"_a, "y"_a, "arrivals"_a, "n_jobs"_a, "ids"_a = nb::none(),
           nb::sig("def grow(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], arrivals: "
                   "numpy.typing.NDArray[numpy.uint64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None"),
           "Grow them, given the examples that are stored elsewhere.")
      .def("oldest", &Forest::oldest, nb::sig("def oldest(self) -> tuple[int, bool, int] | None"),
           "Return the oldest arrival, and of the tree that has it whether it answers, and its "
           "place.")
      .def("cut", &Forest::cut, "place"_a, "answering"_a, "n_jobs"_a,
           "Rebuild this tree from the newer half of its own examples.")
      .def_prop_ro("is_planted", &Forest::is_planted, "Whether there are trees.");
}

}  // namespace boundary_forest
