// Learning, replacing and forgetting.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "forest.hpp"

namespace boundary_forest {

using namespace nb::literals;

void Forest::learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs, const nb::object& ids) {
  std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = rows_to_learn(*forest, X, y);
  const Ids names = ids_to_learn(*forest, ids, rows.n);
  saying_how_far(rows, [&](std::size_t& learned) {
    forest = rebuilt_if_due(std::move(forest), n_jobs);
    forest->learn(rows, y.data(), run_with(n_jobs), learned, names);
  });
}

template <auto method>
nb::object Forest::answer_then_learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                                     const nb::object& ids, const std::optional<RankArray>& ranks,
                                     bool with_leaves) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = rows_to_learn(*forest, X, y);
  const Ids names = ids_to_learn(*forest, ids, rows.n);
  Table<double> answers;
  TreeLeaves leaves;
  saying_how_far(rows, [&](std::size_t& learned) {
    answers = ((*forest).*method)(rows, y.data(), run_with(n_jobs), learned, names, ranks_in(ranks),
                                  with_leaves ? &leaves : nullptr);
  });
  if (!with_leaves) return to_numpy(std::move(answers));
  return nb::make_tuple(to_numpy(std::move(answers)),
                        to_tuple(std::move(leaves), forest->params()));
}

void Forest::learn_offline(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                           const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView rows = rows_to_learn(*forest, X, y);
  const Ids names = ids_to_learn(*forest, ids, rows.n);
  without_gil([&] { forest->learn_offline(rows, y.data(), run_with(n_jobs), names); });
}

void Forest::weigh_classes(const ClassWeightArray& weights) {
  std::vector<double> by_code(weights.data(), weights.data() + weights.shape(0));
  without_gil([&, forest = forest_] { forest->weigh_classes(std::move(by_code)); });
}

void Forest::check_ids(const nb::object& ids, bool may_be_known) {
  const Ids names = ids_from(ids);
  without_gil([&, forest = forest_] { forest->check_ids(names, may_be_known); });
}

void Forest::replace(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                     const nb::object& ids) {
  std::shared_ptr<BoundaryForest> forest = forest_;
  const RowsView all = rows_to_learn(*forest, X, y);
  Ids names = ids_to_learn(*forest, ids, all.n);
  saying_how_far(all, [&](std::size_t& learned) {
    forest = rebuilt_if_due(std::move(forest), n_jobs);
    const bool at_once = forest->may_fail();
    const std::shared_ptr<BoundaryForest> first = forest;
    for (std::size_t before = 0; before < all.n;) {
      std::size_t now = 0;
      const RowsView rows = all.slice(before, all.n - before, forest->params().n_features);
      const auto report = [&] { learned = at_once ? 0 : before + now; };
      std::optional<BoundaryForest::State> state;
      try {
        state = forest->replace(rows, y.data() + before * y.shape(1), run_with(n_jobs), now, names);
        report();
        if (state) forest = rebuilt(*forest, *state);
      } catch (...) {
        report();
        throw;
      }
      if (state && !at_once) become(forest);
      names.drop_first(now);
      before += now;
    }
    if (at_once && forest != first) become(forest);
    learned = all.n;
  });
}

std::vector<std::size_t> Forest::forget(const nb::object& ids, std::size_t n_jobs, bool erase) {
  const Ids names = ids_from(ids);
  return without_gil([&, forest = forest_]() mutable {
    forest = rebuilt_if_due(std::move(forest), n_jobs);
    Forgetting forgetting = forest->forget(names, run_with(n_jobs), erase);
    if (forgetting.rebuilt) become(rebuilt(*forest, *forgetting.rebuilt));
    return std::move(forgetting.unknown);
  });
}

nb::object Forest::classes_without(const nb::object& ids) {
  const Ids names = ids_from(ids);
  std::vector<std::uint32_t> codes =
      without_gil([&, forest = forest_] { return forest->classes_without(names); });
  const std::size_t n = codes.size();
  return to_numpy(std::move(codes), {n});
}

nb::tuple Forest::named(const nb::object& ids) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const Params& params = forest->params();
  const Ids names = ids_from(ids);
  if (names.size() > 0 && names.kind() != params.ids)
    throw std::invalid_argument("ids must be of the forest's kind");
  std::vector<std::uint8_t> is_known;
  Examples found = without_gil([&] { return forest->named(names, is_known); });
  return nb::make_tuple(
      to_numpy(std::move(is_known), {names.size()}),
      positions_to_numpy(std::move(found.positions), params.element_type, params.n_features));
}

void Forest::erase_forgotten(std::size_t n_jobs) {
  without_gil([&, forest = forest_] {
    if (forest->n_marked() > 0) become(rebuilt(*forest, forest->without_marked(run_with(n_jobs))));
  });
}

std::size_t Forest::n_forgotten() {
  return without_gil([&, forest = forest_] { return forest->n_marked(); });
}

void Forest::regrow(std::uint32_t place, const Keys& arrivals, bool answering) {
  const std::vector<Regrowth> trees = {
      {place, {arrivals.data(), arrivals.data() + arrivals.shape(0)}, answering}};
  without_gil([&, forest = forest_] { forest->regrow(trees, run_with(1)); });
}

void Forest::succeed(std::uint32_t place) {
  without_gil([&, forest = forest_] { forest->succeed({&place, 1}); });
}

void bind_learning(nb::class_<Forest>& forest) {
  forest
      .def("learn", &Forest::learn, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(),
           nb::sig("def learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None"),
           "Learn rows in order, block by block.")
      .def("predict_then_learn", &Forest::answer_then_learn<&BoundaryForest::predict_then_learn>,
           "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(), "ranks"_a = nb::none(),
           "with_ends"_a = false,
           nb::sig("def predict_then_learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None, ranks: "
                   "numpy.typing.NDArray[numpy.uint32] | None = None, with_ends: bool = False) -> "
                   "typing.Any"),
           "Learn rows in order, and return the prediction for each from just before; with the "
           "examples that the trees ended at: their arrivals, labels, distances and weights.")
      .def(
          "estimate_then_learn", &Forest::answer_then_learn<&BoundaryForest::estimate_then_learn>,
          "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(), "ranks"_a = nb::none(),
          "with_ends"_a = false,
          nb::sig("def estimate_then_learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                  "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                  "numpy.typing.NDArray[numpy.int64] | list[str] | None = None, ranks: "
                  "numpy.typing.NDArray[numpy.uint32] | None = None, with_ends: bool = False) -> "
                  "typing.Any"),
          "Learn rows in order, and return the estimate of each from just before; with ends as for "
          "predict_then_learn.")
      .def("learn_offline", &Forest::learn_offline, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(),
           nb::sig("def learn_offline(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None"),
           "Learn all rows at once, each tree in an order of its own.")
      .def("weigh_classes", &Forest::weigh_classes, "weights"_a,
           nb::sig("def weigh_classes(self, weights: numpy.typing.NDArray[numpy.float64]) -> None"),
           "Multiply the votes for each class by its weight, by code, from the next rows on that "
           "are "
           "learned; a class that is not listed has 1.")
      .def("check_ids", &Forest::check_ids, "ids"_a, "may_be_known"_a = false,
           nb::sig("def check_ids(self, ids: numpy.typing.NDArray[numpy.int64] | list[str], "
                   "may_be_known: bool = False) -> None"),
           "Raise ValueError if an id occurs twice or names a stored example.")
      .def("replace", &Forest::replace, "X"_a, "y"_a, "n_jobs"_a, "ids"_a,
           nb::sig("def replace(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str]) -> None"),
           "Learn rows in order, in place of the stored examples that have their ids.")
      .def("forget", &Forest::forget, "ids"_a, "n_jobs"_a, "erase"_a = false,
           nb::sig("def forget(self, ids: numpy.typing.NDArray[numpy.int64] | list[str], n_jobs: "
                   "int, erase: bool = False) -> list[int]"),
           "Forget the examples with these ids, or return the numbers of those not known; erase: "
           "and erase all that was forgotten.")
      .def("classes_without", &Forest::classes_without, "ids"_a,
           nb::sig(
               "def classes_without(self, ids: numpy.typing.NDArray[numpy.int64] | list[str]) -> "
               "numpy.typing.NDArray[numpy.uint32]"),
           "Return the codes of classes that stored or windowed examples other than these have.")
      .def("named", &Forest::named, "ids"_a,
           nb::sig("def named(self, ids: numpy.typing.NDArray[numpy.int64] | list[str]) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[typing.Any]]"),
           "Return whether a stored example has each of these ids, and the rows of those that do.")
      .def("erase_forgotten", &Forest::erase_forgotten, "n_jobs"_a,
           "Erase the examples that were forgotten and that searches of a graph still go by.")
      .def_prop_ro("n_forgotten", &Forest::n_forgotten, "How many these are.")
      .def("regrow", &Forest::regrow, "place"_a, "arrivals"_a, "answering"_a = true,
           nb::sig("def regrow(self, place: int, arrivals: numpy.typing.NDArray[numpy.uint64], "
                   "answering: bool = True) -> None"),
           "Grow a new tree at this place from stored examples, in this order.")
      .def("succeed", &Forest::succeed, "place"_a,
           "Let the tree that grows at this place take over from the one that answers there.");
}

}  // namespace boundary_forest
