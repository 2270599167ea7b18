// States: what is saved and restored, hashes, counts; and one state that is held.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "forest.hpp"

namespace boundary_forest {

using namespace nb::literals;

// One published state of a forest, held as long as this lives.
class PySnapshot {
 public:
  PySnapshot(std::shared_ptr<BoundaryForest> forest, bool searched)
      : forest_(std::move(forest)),
        snapshot_(without_gil([&] { return std::make_unique<Snapshot>(*forest_, searched); })) {}
  ~PySnapshot() {
    never_with_gil([&] { snapshot_.reset(); });
  }
  PySnapshot(PySnapshot&&) = default;

  nb::dict state(bool with_positions) {
    return to_dict(without_gil([&] { return snapshot_->state(with_positions); }), forest_->params(),
                   with_positions);
  }

  nb::object positions(std::size_t begin, std::size_t end) {
    Examples examples = without_gil([&] { return snapshot_->examples(begin, end); });
    return positions_to_numpy(std::move(examples.positions), forest_->params().element_type,
                              forest_->params().n_features);
  }

  std::size_t size() const { return snapshot_->size(); }

  nb::object arrivals(std::size_t begin, std::size_t end) {
    std::vector<Arrival> arrivals =
        without_gil([&] { return snapshot_->examples(begin, end, false).arrivals; });
    return to_numpy(std::move(arrivals), {end - begin});
  }

  nb::object ids(std::size_t begin, std::size_t end) {
    Ids ids = without_gil([&] { return snapshot_->examples(begin, end, false).ids; });
    return ids_to_python(std::move(ids), forest_->params().ids, {end - begin});
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs, std::size_t beam,
                      std::optional<bool> exact) {
    const RowsView rows = view_of(X, forest_->params());
    const Search search{.exact = exact.value_or(false), .cheapest = !exact, .beam = beam};
    return to_tuple(
        without_gil([&] { return snapshot_->neighbors(rows, n, search, run_with(n_jobs)); }),
        forest_->params());
  }

 private:
  std::shared_ptr<BoundaryForest> forest_;
  std::unique_ptr<Snapshot> snapshot_;  // ends before the forest
};

PySnapshot Forest::snapshot(bool searched) { return PySnapshot(forest_, searched); }

nb::object Forest::digest(const std::optional<Keys>& label_keys,
                          const std::optional<nb::dict>& kept,
                          std::optional<std::size_t> n_features) {
  std::span<const std::uint64_t> keys;
  if (label_keys) keys = {label_keys->data(), label_keys->shape(0)};
  VoteState votes;
  if (kept) {
    votes.rule = nb::cast<std::uint8_t>((*kept)["vote_power"]);
    votes.errors = to_vector<double>((*kept)["vote_errors"]);
    votes.losses = to_vector<double>((*kept)["tree_losses"]);
    votes.class_counts = to_vector<double>((*kept)["class_counts"]);
  }
  const std::optional<Digest> found = without_gil(
      [&, forest = forest_] { return forest->digest(keys, kept ? &votes : nullptr, n_features); });
  if (!found) return nb::none();
  const Digest& digest = *found;
  std::vector<std::uint64_t> trees;
  for (const auto& of_tree : digest.trees)
    trees.insert(trees.end(), of_tree.begin(), of_tree.end());
  const std::size_t n = digest.trees.size();
  return nb::make_tuple(
      to_numpy(std::move(trees), {n, 2}),
      to_numpy(std::vector(digest.examples.begin(), digest.examples.end()), {2}),
      to_numpy(std::vector(digest.adaptation.begin(), digest.adaptation.end()), {2}), digest.seen);
}

nb::tuple Forest::features() {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  Features features = without_gil([&] { return forest->features(); });
  if (!weights_.empty()) features.weights = weights_;
  if (features.weights.empty()) features.weights.assign(forest->params().n_features, 1.0);
  const std::size_t n = features.weights.size();
  return nb::make_tuple(to_numpy(std::move(features.weights), {n}),
                        to_numpy(std::move(features.variances), {n}));
}

double Forest::label_deviation() {
  return without_gil([&, forest = forest_] { return forest->label_deviation(); });
}

nb::dict Forest::stats() {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  const Stats stats = without_gil([&] { return forest->stats(); });
  nb::dict comparisons, evaluations, bytes, all;
  comparisons["learn"] = stats.learn.comparisons;
  comparisons["query"] = stats.query.comparisons;
  evaluations["learn"] = stats.learn.evaluations;
  evaluations["query"] = stats.query.evaluations;
  bytes["positions"] = stats.position_bytes;
  bytes["examples"] = stats.example_bytes;
  bytes["trees"] = stats.tree_bytes;
  bytes["ids"] = stats.id_bytes;
  bytes["window"] = stats.window_bytes;
  bytes["reservoir"] = stats.reservoir_bytes;
  bytes["mixture"] = stats.mixture_bytes;
  bytes["links"] = stats.link_bytes;
  bytes["codes"] = stats.code_bytes;
  bytes["sketches"] = stats.sketch_bytes;
  bytes["total"] = stats.position_bytes + stats.example_bytes + stats.tree_bytes + stats.id_bytes +
                   stats.window_bytes + stats.reservoir_bytes + stats.mixture_bytes +
                   stats.link_bytes + stats.code_bytes + stats.sketch_bytes;
  nb::list nodes;
  for (const NodeId n : stats.nodes) nodes.append(n);
  all["examples_seen"] = stats.seen;
  all["examples_stored"] = stats.stored;
  all["nodes_per_tree"] = nodes;
  all["comparisons"] = comparisons;
  all["evaluations"] = evaluations;
  all["bytes"] = bytes;
  all["instruction_set"] = instruction_set();
  if (forest->params().forgets()) {
    nb::dict turnover;
    turnover["generations"] = nb::cast(stats.turnover.generations);
    turnover["ages"] = nb::cast(stats.turnover.ages);
    turnover["losses"] = nb::cast(stats.turnover.losses);
    turnover["rule"] = stats.turnover.rule;
    all["turnover"] = turnover;
  }
  return all;
}

void Forest::restore(const nb::dict& all, const std::string& positions) {
  const std::shared_ptr<BoundaryForest> forest = forest_;
  BoundaryForest::State state;
  state.seen = nb::cast<std::uint64_t>(all["seen"]);
  state.n_classes = nb::cast<std::uint32_t>(all["n_classes"]);
  state.spread = to_vector<double>(all["spread"]);
  const auto counts = nb::cast<nb::tuple>(all["counts"]);
  if (counts.size() != 4) throw std::invalid_argument("counts must be four numbers");
  state.learn = {nb::cast<std::uint64_t>(counts[0]), nb::cast<std::uint64_t>(counts[1])};
  state.query = {nb::cast<std::uint64_t>(counts[2]), nb::cast<std::uint64_t>(counts[3])};
  state.tree_sizes = to_vector<NodeId>(all["tree_sizes"]);
  state.tree_places = to_vector<std::uint32_t>(all["tree_places"]);
  state.tree_generations = to_vector<std::uint32_t>(all["tree_generations"]);
  state.node_examples = to_vector<std::uint32_t>(all["node_examples"]);
  state.node_parents = to_vector<NodeId>(all["node_parents"]);
  state.log_weights = to_vector<LogWeight>(all["log_weights"]);
  state.tree_weights = to_vector<std::uint32_t>(all["tree_weights"]);
  state.window = {bytes_of(*forest, nb::cast<Array2d>(all["window_positions"])),
                  to_vector<double>(all["window_labels"]),
                  to_vector<Arrival>(all["window_arrivals"]), ids_from(all["window_ids"])};
  state.reservoir = to_vector<Arrival>(all["reservoir_arrivals"]);
  state.replays = nb::cast<bool>(all["replays"]);
  state.vote_errors = to_vector<double>(all["vote_errors"]);
  state.vote_rule = nb::cast<std::uint32_t>(all["vote_power"]);
  state.tree_losses = to_vector<double>(all["tree_losses"]);
  state.class_weights = to_vector<double>(all["class_weights"]);
  state.class_counts = to_vector<double>(all["class_counts"]);
  state.mixture = {.weights = to_vector<double>(all["mixture_weights"]),
                   .trial = to_vector<double>(all["mixture_trial"]),
                   .classes = to_vector<std::uint32_t>(all["class_order"]),
                   .linear_map = to_vector<double>(all["linear_map"]),
                   .linear_sums = to_vector<double>(all["linear_sums"]),
                   .linear_model = to_vector<double>(all["linear_model"])};
  state.examples = {{},
                    to_vector<double>(all["labels"]),
                    to_vector<Arrival>(all["arrivals"]),
                    ids_from(all["ids"])};
  const SavedRows rows = rows_in(*forest, nb::cast<Array2d>(all["positions"]), positions);
  without_gil([&] { forest->restore(state, rows); });
}

Forest Forest::widened(std::size_t n_features) const {
  Forest wider = *this;
  Params params = forest_->params();
  params.n_features = n_features;
  std::unique_ptr<Metric> d = metric_for(params);
  wider.forest_ = without_gil(
      [&, forest = forest_] { return shared(forest->widened(n_features, std::move(d))); });
  return wider;
}

std::vector<std::byte> Forest::bytes_of(const BoundaryForest& forest, const Array2d& array) {
  if (element_type_of(array.dtype()) != forest.params().element_type)
    throw nb::type_error("positions must have the forest's element type");
  const auto* data = static_cast<const std::byte*>(array.data());
  return {data, data + array.nbytes()};
}

SavedRows Forest::rows_in(const BoundaryForest& forest, const Array2d& array,
                          const std::string& how) {
  enum class How { copied, kept, mapped };
  constexpr Named<How> ways[] = {
      {"copied", How::copied}, {"kept", How::kept}, {"mapped", How::mapped}};
  const How chosen = by_name(how, ways);
  if (element_type_of(array.dtype()) != forest.params().element_type)
    throw nb::type_error("positions must have the forest's element type");
  if (array.shape(1) != forest.params().n_features)
    throw std::invalid_argument("positions has the wrong number of features");
  SavedRows rows{.data = static_cast<const std::byte*>(array.data()),
                 .bytes = array.nbytes(),
                 .in_file = chosen == How::mapped};
  if (chosen != How::copied)  // the last who lets go may be a thread that has released the GIL
    rows.owner = std::shared_ptr<const void>(new Array2d(array), [](const void* p) {
      if (is_ending()) return;  // to unmap a file gives the GIL away
      const TakenGil gil;
      delete static_cast<const Array2d*>(p);
    });
  return rows;
}

void bind_states(nb::module_& m, nb::class_<Forest>& forest) {
  nb::class_<PySnapshot>(m, "Snapshot",
                         "One published state of a forest, held as long as this object lives.")
      .def("state", &PySnapshot::state, "with_positions"_a = true,
           nb::sig("def state(self, with_positions: bool = True) -> dict[str, typing.Any]"),
           "Return the state as arrays, examples by arrival.")
      .def("positions", &PySnapshot::positions, "begin"_a, "end"_a,
           nb::sig("def positions(self, begin: int, end: int) -> numpy.typing.NDArray[typing.Any]"),
           "Return the rows of examples begin to end, by arrival.")
      .def("arrivals", &PySnapshot::arrivals, "begin"_a, "end"_a,
           nb::sig("def arrivals(self, begin: int, end: int) -> "
                   "numpy.typing.NDArray[numpy.uint64]"),
           "Return the arrival numbers of examples begin to end.")
      .def("ids", &PySnapshot::ids, "begin"_a, "end"_a,
           nb::sig("def ids(self, begin: int, end: int) -> "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None"),
           "Return the ids of examples begin to end, or None if they have none.")
      .def_prop_ro("size", &PySnapshot::size, "Examples that are stored.")
      .def("neighbors", &PySnapshot::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a,
           "beam"_a = Search{}.beam, "exact"_a = nb::none(),
           nb::sig("def neighbors(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int, "
                   "n_jobs: int, beam: int = ..., exact: bool | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None]"),
           "Return what Forest.neighbors returns, of this state.");
  forest
      .def("snapshot", &Forest::snapshot, "searched"_a = false,
           "Return the newest published state, and hold it; searched: to ask for neighbors.")
      .def(
          "digest", &Forest::digest, "label_keys"_a.none(), "votes"_a = nb::none(),
          "n_features"_a = nb::none(),
          nb::sig("def digest(self, label_keys: numpy.typing.NDArray[numpy.uint64] | None, votes: "
                  "dict[str, typing.Any] | None = None, n_features: int | None = None) -> "
                  "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64], "
                  "numpy.typing.NDArray[numpy.uint64], int] | None"),
          "Return a hash for each tree, a sum of hashes over the stored examples, a hash of what "
          "the forest decides for itself, and the number of examples seen; None if there are more "
          "classes than keys. votes: how they are weighed, if a driver knows. n_features: how many "
          "features are no columns to spare, if not all.")
      .def("features", &Forest::features,
           nb::sig("def features(self) -> tuple[numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Return the features' weights, and their variances.")
      .def_prop_ro("label_deviation", &Forest::label_deviation,
                   "The standard deviation of the labels seen.")
      .def("stats", &Forest::stats, nb::sig("def stats(self) -> dict[str, typing.Any]"),
           "Return counts, costs and bytes.")
      .def("restore", &Forest::restore, "state"_a, "positions"_a = "copied",
           nb::sig("def restore(self, state: dict[str, typing.Any], positions: str = 'copied') -> "
                   "None"),
           "Put a state into an empty forest; its positions are 'copied', 'kept' or 'mapped'.")
      .def("widened", &Forest::widened, "n_features"_a,
           "Return a forest that has learned the same, whose rows have further features, all zero.")
      .def_prop_ro("seen", &Forest::seen, "Examples that have arrived.")
      .def_prop_ro("n_classes", &Forest::n_classes, "1 + the largest class code that was learned.");
}

}  // namespace boundary_forest
