// The Python extension _core: checks arrays, releases the GIL, decides nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "baselines.hpp"
#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/checksum.hpp"
#include "callables.hpp"
#include "common.hpp"
#include "conversions.hpp"
#include "driver.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

using Labels = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RankArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Where classes stand, by code; none, and they stand by their codes.
Ranks ranks_in(const std::optional<RankArray>& given) {
  return given ? Ranks(given->data(), given->shape(0)) : Ranks();
}

// How neighbours are searched for, as Python says it; what it refers to lives as long as this.
struct PySearch {
  PySearch(std::size_t beam, bool exact, const std::optional<Mask>& mask, const nb::object& ids)
      : names(ids_from(ids)) {
    search.beam = beam;
    search.exact = exact;
    if (mask)
      search.allowed = {Allowed::By::arrivals, {mask->data(), mask->shape(0)}, nullptr};
    else if (!ids.is_none())
      search.allowed = {Allowed::By::ids, {}, &names};
  }

  Ids names;
  Search search;
};

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

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs, std::size_t beam,
                      bool exact) {
    const RowsView rows = view_of(X, forest_->params());
    const Search search{.exact = exact, .beam = beam};
    return to_tuple(
        without_gil([&] { return snapshot_->neighbors(rows, n, search, run_with(n_jobs)); }),
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
         nb::object metric, double p, const std::string& ids, double max_samples,
         const std::string& vote_weights, const nb::object& feature_weights,
         std::vector<std::uint32_t> lifetimes, std::uint32_t max_stored, const std::string& search,
         std::optional<std::pair<std::uint32_t, std::uint32_t>> trees)
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
    params.max_samples = max_samples;
    params.vote_weights = by_name<VoteWeights>(vote_weights, {{"distance", VoteWeights::distance},
                                                              {"uniform", VoteWeights::uniform},
                                                              {"auto", VoteWeights::automatic}});
    params.lifetimes = std::move(lifetimes);
    params.max_stored = max_stored;
    if (trees) std::tie(params.first_tree, params.end_tree) = *trees;
    params.has_graph = by_name<bool>(search, {{"paper", false}, {"graph", true}});
    params.has_learned_weights = nb::isinstance<nb::str>(feature_weights);  // "learned"
    if (!params.has_learned_weights && !feature_weights.is_none())
      weights_ = to_vector<double>(feature_weights);
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

  // predict_then_learn or estimate_then_learn
  template <auto method>
  nb::object answer_then_learn(const Array2d& X, const Labels& y, std::size_t n_jobs,
                               const nb::object& ids, const std::optional<RankArray>& ranks,
                               bool with_ends) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    Table<double> answers;
    Ends ends;
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      answers = ((*forest).*method)(rows, y.data(), run_with(n_jobs), learned, names,
                                    ranks_in(ranks), with_ends ? &ends : nullptr);
    });
    if (!with_ends) return to_numpy(std::move(answers));
    return nb::make_tuple(to_numpy(std::move(answers)),
                          to_tuple(std::move(ends), forest_->params()));
  }

  nb::tuple ends(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    Ends ends = without_gil([&, forest = forest_] { return forest->ends(rows, run_with(n_jobs)); });
    return unweighted(std::move(ends), forest_->params());
  }

  nb::tuple ends_then_learn(const Array2d& X, const Labels& y, std::size_t n_jobs,
                            const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    Ends ends;
    saying_how_far(rows, [&, forest = forest_](std::size_t& learned) {
      ends = forest->ends_then_learn(rows, y.data(), run_with(n_jobs), learned, names);
    });
    return unweighted(std::move(ends), forest_->params());
  }

  nb::tuple candidates(const Array2d& X, std::optional<std::size_t> n, std::optional<double> radius,
                       std::size_t n_jobs, bool exact, const std::optional<Mask>& mask,
                       const nb::object& ids) {
    const RowsView rows = view(X);
    const PySearch how(1, exact, mask, ids);
    constexpr auto all = std::numeric_limits<std::size_t>::max();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Candidates found = without_gil([&, forest = forest_] {
      return forest->candidates(rows, n.value_or(all), radius.value_or(infinity), how.search,
                                run_with(n_jobs));
    });
    const std::size_t m = found.arrivals.size();
    return nb::make_tuple(
        to_numpy(std::move(found.ends), {rows.n}), to_numpy(std::move(found.reduced), {m}),
        to_numpy(std::move(found.distances), {m}), to_numpy(std::move(found.arrivals), {m}),
        ids_to_python(std::move(found.ids), forest_->params().ids, {m}));
  }

  nb::tuple examples(const Keys& arrivals) {
    const std::span wanted(arrivals.data(), arrivals.shape(0));
    return to_tuple(without_gil([&, forest = forest_] { return forest->examples(wanted); }),
                    forest_->params());
  }

  std::vector<std::uint32_t> places_to_grow() {
    return without_gil([forest = forest_] { return forest->places_to_grow(); });
  }

  void grow(const Array2d& X, const Labels& y, const Keys& arrivals, std::size_t n_jobs,
            const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    const std::span numbers(arrivals.data(), arrivals.shape(0));
    without_gil([&, forest = forest_] {
      forest->grow_part(rows, y.data(), numbers, names, run_with(n_jobs));
    });
  }

  nb::object oldest() {
    const auto found = without_gil([forest = forest_] { return forest->oldest(); });
    if (!found) return nb::none();
    return nb::make_tuple(found->arrival, found->answering, found->place);
  }

  void cut(std::uint32_t place, bool answering, std::size_t n_jobs) {
    without_gil([&, forest = forest_] { forest->cut(place, answering, run_with(n_jobs)); });
  }

  bool is_planted() {
    return without_gil([forest = forest_] { return forest->is_planted(); });
  }

  void learn_offline(const Array2d& X, const Labels& y, std::size_t n_jobs, const nb::object& ids) {
    const RowsView rows = rows_to_learn(X, y);
    const Ids names = ids_to_learn(ids, rows.n);
    without_gil(
        [&, forest = forest_] { forest->learn_offline(rows, y.data(), run_with(n_jobs), names); });
  }

  void check_ids(const nb::object& ids, bool may_be_known) {
    const Ids names = ids_from(ids);
    without_gil([&, forest = forest_] { forest->check_ids(names, may_be_known); });
  }

  // Learns rows in place of those that have their ids. Whenever the examples that were replaced are as
  // many as the others, an engine without them takes this one's place, as in widen().
  void replace(const Array2d& X, const Labels& y, std::size_t n_jobs, const nb::object& ids) {
    const RowsView all = rows_to_learn(X, y);
    Ids names = ids_to_learn(ids, all.n);
    const std::size_t n_features = forest_->params().n_features;
    saying_how_far(all, [&](std::size_t& learned) {
      std::size_t before = 0;
      while (before < all.n) {
        std::size_t now = 0;
        const auto report = [&] { learned = before + now; };
        const RowsView rows = all.slice(before, all.n - before, n_features);
        try {
          forest()->replace(rows, y.data() + before * y.shape(1), run_with(n_jobs), now, names);
        } catch (...) {
          report();
          throw;
        }
        report();
        const auto done = static_cast<std::ptrdiff_t>(now);
        if (!names.texts.empty())
          names.texts.erase(names.texts.begin(), names.texts.begin() + done);
        if (!names.integers.empty())
          names.integers.erase(names.integers.begin(), names.integers.begin() + done);
        before += now;
        if (forest()->is_due_anew()) grow_anew(n_jobs);
      }
    });
  }

  // Without the GIL.
  void grow_anew(std::size_t n_jobs) {
    const std::shared_ptr<BoundaryForest> before = forest();
    std::unique_ptr<Metric> d;
    {
      const nb::gil_scoped_acquire gil;
      d = metric_for(before->params());
    }
    std::shared_ptr<BoundaryForest> anew =
        shared(before->grown_anew(std::move(d), run_with(n_jobs)));
    const nb::gil_scoped_acquire gil;
    forest_.swap(anew);
  }
  std::shared_ptr<BoundaryForest> forest() const {
    const nb::gil_scoped_acquire gil;
    return forest_;
  }

  // What was forgotten and is still walked by goes.
  void erase_forgotten(std::size_t n_jobs) {
    without_gil([&] {
      if (forest()->n_marked() > 0) grow_anew(n_jobs);
    });
  }
  std::size_t n_forgotten() {
    return without_gil([&, forest = forest_] { return forest->n_marked(); });
  }

  nb::object apply(const Array2d& X, std::size_t n_jobs) {
    const RowsView rows = view(X);
    return to_numpy(
        without_gil([&, forest = forest_] { return forest->apply(rows, run_with(n_jobs)); }));
  }

  // predict or estimate
  template <auto method>
  nb::object answer(const Array2d& X, std::size_t n_jobs, const std::optional<RankArray>& ranks) {
    const RowsView rows = view(X);
    std::optional<Table<double>> answers = without_gil([&, forest = forest_] {
      return ((*forest).*method)(rows, run_with(n_jobs), ranks_in(ranks));
    });
    return answers ? to_numpy(std::move(*answers)) : nb::none();
  }

  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs, std::size_t beam,
                      bool exact, const std::optional<Mask>& mask, const nb::object& ids) {
    const RowsView rows = view(X);
    const PySearch how(beam, exact, mask, ids);
    return to_tuple(without_gil([&, forest = forest_] {
                      return forest->neighbors(rows, n, how.search, run_with(n_jobs));
                    }),
                    forest_->params());
  }

  nb::tuple within(const Array2d& X, double radius, std::size_t n_jobs, std::size_t beam,
                   bool exact, const std::optional<Mask>& mask, const nb::object& ids) {
    const RowsView rows = view(X);
    const PySearch how(beam, exact, mask, ids);
    Within found = without_gil([&, forest = forest_] {
      return forest->within(rows, radius, how.search, run_with(n_jobs));
    });
    const std::size_t n = found.distances.size();
    return nb::make_tuple(to_numpy(std::move(found.ends), {rows.n}),
                          to_numpy(std::move(found.distances), {n}),
                          to_numpy(std::move(found.arrivals), {n}),
                          ids_to_python(std::move(found.ids), forest_->params().ids, {n}));
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
    return nb::make_tuple(trees, to_numpy(std::move(paths.weights), {n}),
                          to_numpy(std::move(paths.estimate)),
                          to_tuple(std::move(paths.examples), forest_->params()));
  }

  // The numbers of the ids that are not known; then nothing is forgotten.
  std::vector<std::size_t> forget(const nb::object& ids, std::size_t n_jobs) {
    const Ids names = ids_from(ids);
    return without_gil([&] {
      std::vector<std::size_t> unknown = forest()->forget(names, run_with(n_jobs));
      if (unknown.empty() && forest()->is_due_anew()) grow_anew(n_jobs);
      return unknown;
    });
  }

  void regrow(std::uint32_t place, const Keys& arrivals, bool answering) {
    const std::vector<Regrowth> trees = {
        {place, {arrivals.data(), arrivals.data() + arrivals.shape(0)}, answering}};
    without_gil([&, forest = forest_] { forest->regrow(trees, run_with(1)); });
  }

  void renew() {
    without_gil([forest = forest_] { forest->renew(); });
  }

  void succeed(std::uint32_t place) {
    without_gil([&, forest = forest_] { forest->succeed({&place, 1}); });
  }

  PySnapshot snapshot(bool searched) { return PySnapshot(forest_, searched); }

  nb::tuple digest(const std::optional<Keys>& label_keys, const std::optional<nb::dict>& kept) {
    std::span<const std::uint64_t> keys;
    if (label_keys) keys = {label_keys->data(), label_keys->shape(0)};
    Adaptation votes;
    if (kept) {
      votes.rule = nb::cast<std::uint8_t>((*kept)["vote_power"]);
      votes.errors = to_vector<double>((*kept)["vote_errors"]);
      votes.losses = to_vector<double>((*kept)["tree_losses"]);
    }
    const Digest digest = without_gil(
        [&, forest = forest_] { return forest->digest(keys, kept ? &votes : nullptr); });
    std::vector<std::uint64_t> trees;
    for (const auto& of_tree : digest.trees)
      trees.insert(trees.end(), of_tree.begin(), of_tree.end());
    const std::size_t n = digest.trees.size();
    return nb::make_tuple(
        to_numpy(std::move(trees), {n, 2}),
        to_numpy(std::vector(digest.examples.begin(), digest.examples.end()), {2}),
        to_numpy(std::vector(digest.adaptation.begin(), digest.adaptation.end()), {2}));
  }

  nb::tuple features() {
    BoundaryForest::Features features =
        without_gil([&, forest = forest_] { return forest->features(); });
    if (!weights_.empty()) features.weights = weights_;
    if (features.weights.empty()) features.weights.assign(forest_->params().n_features, 1.0);
    const std::size_t n = features.weights.size();
    return nb::make_tuple(to_numpy(std::move(features.weights), {n}),
                          to_numpy(std::move(features.variances), {n}));
  }

  std::uint64_t seen() const { return forest_->seen(); }
  std::uint32_t n_classes() const { return forest_->n_classes(); }
  double label_deviation() {
    return without_gil([&, forest = forest_] { return forest->label_deviation(); });
  }

  nb::dict stats() {
    const Stats stats = without_gil([&, forest = forest_] { return forest->stats(); });
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
    bytes["links"] = stats.link_bytes;
    bytes["codes"] = stats.code_bytes;
    bytes["total"] = stats.position_bytes + stats.example_bytes + stats.tree_bytes +
                     stats.id_bytes + stats.window_bytes + stats.link_bytes + stats.code_bytes;
    nb::list nodes;
    for (const NodeId n : stats.nodes) nodes.append(n);
    all["examples_seen"] = stats.seen;
    all["examples_stored"] = stats.stored;
    all["nodes_per_tree"] = nodes;
    all["comparisons"] = comparisons;
    all["evaluations"] = evaluations;
    all["bytes"] = bytes;
    all["instruction_set"] = instruction_set();
    if (forest_->params().forgets()) {
      nb::dict turnover;
      turnover["generations"] = nb::cast(stats.turnover.generations);
      turnover["ages"] = nb::cast(stats.turnover.ages);
      turnover["losses"] = nb::cast(stats.turnover.losses);
      turnover["rule"] = stats.turnover.rule;
      all["turnover"] = turnover;
    }
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
    if (all.contains("log_weights")) {
      state.log_weights = to_vector<LogWeight>(all["log_weights"]);
      state.tree_weights = to_vector<std::uint32_t>(all["tree_weights"]);
      state.window.positions = bytes_of(nb::cast<Array2d>(all["window_positions"]));
      state.window.labels = to_vector<double>(all["window_labels"]);
      state.window.arrivals = to_vector<Arrival>(all["window_arrivals"]);
      if (all.contains("window_ids") && !all["window_ids"].is_none())
        state.window.ids = ids_from(all["window_ids"]);
    }
    if (all.contains("vote_errors")) {
      state.vote_errors = to_vector<double>(all["vote_errors"]);
      state.vote_rule = nb::cast<std::uint32_t>(all["vote_power"]);
    }
    if (all.contains("renewed")) state.renewed = nb::cast<std::uint64_t>(all["renewed"]);
    if (all.contains("tree_losses")) state.tree_losses = to_vector<double>(all["tree_losses"]);
    state.examples = {
        {}, to_vector<double>(all["labels"]), to_vector<Arrival>(all["arrivals"]), {}};
    if (all.contains("ids")) state.examples.ids = ids_from(all["ids"]);
    const SavedRows rows = rows_in(nb::cast<Array2d>(all["positions"]), positions);
    without_gil([&, forest = forest_] { forest->restore(state, rows); });
  }

  // The stored rows get further features, all zero. A new engine takes this one's place, so calls
  // that are under way end on the one they began with; not while another thread learns.
  void widen(std::size_t n_features) {
    Params params = forest_->params();
    params.n_features = n_features;
    std::unique_ptr<Metric> d = metric_for(params);
    forest_ = without_gil(
        [&, forest = forest_] { return shared(forest->widened(n_features, std::move(d))); });
  }

 private:
  std::shared_ptr<BoundaryForest> make_forest(const Params& params) const {
    params.validate();
    std::unique_ptr<Metric> d = metric_for(params);
    return without_gil(
        [&] { return shared(std::make_unique<BoundaryForest>(params, std::move(d))); });
  }

  static std::shared_ptr<BoundaryForest> shared(std::unique_ptr<BoundaryForest> forest) {
    return {forest.release(), [](BoundaryForest* last) { never_with_gil([&] { delete last; }); }};
  }

  // The rows of an array of positions.
  std::vector<std::byte> bytes_of(const Array2d& array) const {
    if (element_type_of(array.dtype()) != forest_->params().element_type)
      throw nb::type_error("positions must have the forest's element type");
    const auto* data = static_cast<const std::byte*>(array.data());
    return {data, data + array.nbytes()};
  }

  std::unique_ptr<Metric> metric_for(const Params& params) const {
    if (!weights_.empty()) {
      if (weights_.size() != params.n_features)
        throw std::invalid_argument("feature_weights has " + std::to_string(weights_.size()) +
                                    " numbers, and X " + std::to_string(params.n_features) +
                                    " features");
      return make_weighted_metric(weights_, params.element_type);
    }
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
  std::vector<double> weights_;  // of the features, if they were given
  std::shared_ptr<BoundaryForest> forest_;
};

}  // namespace

PyType_Slot forest_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(Forest::traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(Forest::clear)},
                              {0, nullptr}};

constexpr const char* neighbors_signature =
    "def neighbors(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int, n_jobs: int, beam: "
    "int = 100, exact: bool = False, mask: numpy.typing.NDArray[numpy.uint8] | None = None, ids: "
    "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
    "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], "
    "numpy.typing.NDArray[numpy.int64] | list[str] | None]";

NB_MODULE(_core, m) {
  m.doc() = "The compiled Boundary Forest engine.";
  set_up_interpreter();
  m.def("instruction_set", &instruction_set,
        "Return the instruction set in use: 'scalar', 'avx2' or 'avx512'.");
  m.def("has_fast_crc32", &has_fast_crc32,
        "Return whether the processor's carry-less multiplication computes checksums.");
  m.def(
      "crc32",
      [](const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& data,
         std::uint32_t crc) {
        const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
        return without_gil([&] { return crc32(std::span(bytes, data.size()), crc); });
      },
      nb::sig("def crc32(data: numpy.typing.NDArray[numpy.uint8] | memoryview, crc: int) -> int"),
      "data"_a, "crc"_a, "Return zlib's checksum of data that follow others of checksum crc.");
  m.def("metric_names", &metric_names, "Return the names of the built-in metrics.");
  m.def(
      "element_types",
      [] {
        std::vector<std::string> names;
        for (const ElementType type : element_types) names.emplace_back(name_of(type));
        return names;
      },
      "Return the names of the types that positions may be stored as.");
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
      .def_prop_ro("size", &PySnapshot::size, "Examples that are stored.")
      .def("neighbors", &PySnapshot::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a, "beam"_a = 100,
           "exact"_a = false,
           nb::sig("def neighbors(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int, "
                   "n_jobs: int, beam: int = 100, exact: bool = False) -> "
                   "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None]"),
           "Return what Forest.neighbors returns, of this state.");
  nb::class_<Forest>(m, "Forest", nb::type_slots(forest_slots),
                     "A forest of boundary trees; see cpp/include/boundary_forest.")
      .def(
          nb::init<std::uint32_t, std::optional<std::uint32_t>, std::size_t, std::size_t,
                   nb::object, const std::string&, std::optional<double>, const std::string&,
                   std::uint64_t, nb::object, double, const std::string&, double,
                   const std::string&, const nb::object&, std::vector<std::uint32_t>, std::uint32_t,
                   const std::string&, std::optional<std::pair<std::uint32_t, std::uint32_t>>>(),
          nb::kw_only(), "n_estimators"_a, "max_children"_a.none(), "n_features"_a,
          "label_length"_a, "label_metric"_a, "estimator"_a, "epsilon"_a.none(), "element_type"_a,
          "seed"_a, "metric"_a, "p"_a, "ids"_a = "none", "max_samples"_a = 1.0,
          "vote_weights"_a = "distance", "feature_weights"_a = nb::none(),
          "lifetimes"_a = nb::list(), "max_stored"_a = 0, "search"_a = "paper",
          "trees"_a = nb::none(),
          nb::sig("def __init__(self, *, n_estimators: int, max_children: int | None, "
                  "n_features: int, label_length: int, label_metric: str | "
                  "collections.abc.Callable[..., float], estimator: str, epsilon: float | None, "
                  "element_type: str, seed: int, metric: str | int | "
                  "collections.abc.Callable[..., float], p: float, ids: str = 'none', "
                  "max_samples: float = 1.0, vote_weights: str = 'distance', feature_weights: "
                  "numpy.typing.NDArray[numpy.float64] | str | None = None, lifetimes: "
                  "collections.abc.Sequence[int] = [], max_stored: int = 0, search: str = 'paper', "
                  "trees: tuple[int, int] | None = None) -> None"))
      .def("learn", &Forest::learn, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(),
           nb::sig("def learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None"),
           "Learn rows in order, block by block.")
      .def("learn_offline", &Forest::learn_offline, "X"_a, "y"_a, "n_jobs"_a, "ids"_a = nb::none(),
           nb::sig("def learn_offline(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None"),
           "Learn all rows at once, each tree in an order of its own.")
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
      .def("replace", &Forest::replace, "X"_a, "y"_a, "n_jobs"_a, "ids"_a,
           nb::sig("def replace(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str]) -> None"),
           "Learn rows in order, in place of the stored examples that have their ids.")
      .def("check_ids", &Forest::check_ids, "ids"_a, "may_be_known"_a = false,
           nb::sig("def check_ids(self, ids: numpy.typing.NDArray[numpy.int64] | list[str], "
                   "may_be_known: bool = False) -> None"),
           "Raise ValueError if an id occurs twice or names a stored example.")
      .def("erase_forgotten", &Forest::erase_forgotten, "n_jobs"_a,
           "Erase the examples that were forgotten and that searches of a graph still go by.")
      .def_prop_ro("n_forgotten", &Forest::n_forgotten, "How many these are.")
      .def("forget", &Forest::forget, "ids"_a, "n_jobs"_a,
           nb::sig("def forget(self, ids: numpy.typing.NDArray[numpy.int64] | list[str], n_jobs: "
                   "int) -> list[int]"),
           "Forget the examples with these ids, or return the numbers of those not known.")
      .def("regrow", &Forest::regrow, "place"_a, "arrivals"_a, "answering"_a = true,
           nb::sig("def regrow(self, place: int, arrivals: numpy.typing.NDArray[numpy.uint64], "
                   "answering: bool = True) -> None"),
           "Grow a new tree at this place from stored examples, in this order.")
      .def("succeed", &Forest::succeed, "place"_a,
           "Let the tree that grows at this place take over from the one that answers there.")
      .def("renew", &Forest::renew,
           "Let the successors of trees that have a lifetime take over now, as far as they grow.")
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
          "neighbors", &Forest::neighbors, "X"_a, "n_neighbors"_a, "n_jobs"_a, "beam"_a = 100,
          "exact"_a = false, "mask"_a = nb::none(), "ids"_a = nb::none(),
          nb::sig(neighbors_signature),
          "Return distances, arrival numbers and ids, of the examples that a mask over arrivals or "
          "a list of ids allows.")
      .def("within", &Forest::within, "X"_a, "radius"_a, "n_jobs"_a, "beam"_a = 100,
           "exact"_a = false, "mask"_a = nb::none(), "ids"_a = nb::none(),
           nb::sig("def within(self, X: numpy.typing.NDArray[typing.Any], radius: float, n_jobs: "
                   "int, beam: int = 100, exact: bool = False, mask: "
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
                   "tuple[typing.Any, typing.Any, typing.Any, typing.Any]]"),
           "Return each tree's path, the trees' weights, the estimate, and the examples met.")
      .def("snapshot", &Forest::snapshot, "searched"_a = false,
           "Return the newest published state, and hold it; searched: to ask for neighbors.")
      .def("digest", &Forest::digest, "label_keys"_a.none(), "votes"_a = nb::none(),
           nb::sig("def digest(self, label_keys: numpy.typing.NDArray[numpy.uint64] | None, votes: "
                   "dict[str, typing.Any] | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64], "
                   "numpy.typing.NDArray[numpy.uint64]]"),
           "Return a hash for each tree, a sum of hashes over the stored examples, and a hash of "
           "what the forest decides for itself; votes: how they are weighed, if a driver knows.")
      .def("ends", &Forest::ends, "X"_a, "n_jobs"_a,
           nb::sig("def ends(self, X: numpy.typing.NDArray[typing.Any], n_jobs: int) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Return arrivals, labels and distances of the examples that the trees end at.")
      .def("ends_then_learn", &Forest::ends_then_learn, "X"_a, "y"_a, "n_jobs"_a,
           "ids"_a = nb::none(),
           nb::sig("def ends_then_learn(self, X: numpy.typing.NDArray[typing.Any], y: "
                   "numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: "
                   "numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Learn rows in order, and return the same for each from just before.")
      .def("candidates", &Forest::candidates, "X"_a, "n_neighbors"_a.none(), "radius"_a.none(),
           "n_jobs"_a, "exact"_a = false, "mask"_a = nb::none(), "ids"_a = nb::none(),
           nb::sig("def candidates(self, X: numpy.typing.NDArray[typing.Any], n_neighbors: int | "
                   "None, radius: float | None, n_jobs: int, exact: bool = False, mask: "
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
           "Return the places whose trees are to be grown anew from all that is stored.")
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
           "Grow this tree anew from the newer half of its own examples.")
      .def_prop_ro("is_planted", &Forest::is_planted, "Whether there are trees.")
      .def("features", &Forest::features,
           nb::sig("def features(self) -> tuple[numpy.typing.NDArray[numpy.float64], "
                   "numpy.typing.NDArray[numpy.float64]]"),
           "Return the features' weights, and their variances.")
      .def("widen", &Forest::widen, "n_features"_a,
           "Give the stored rows further features, all zero.")
      .def("restore", &Forest::restore, "state"_a, "positions"_a = "copied",
           nb::sig("def restore(self, state: dict[str, typing.Any], positions: str = 'copied') -> "
                   "None"),
           "Put a state into an empty forest; its positions are 'copied', 'kept' or 'mapped'.")
      .def("stats", &Forest::stats, nb::sig("def stats(self) -> dict[str, typing.Any]"),
           "Return counts, costs and bytes.")
      .def_prop_ro("seen", &Forest::seen, "Examples that have arrived.")
      .def_prop_ro("n_classes", &Forest::n_classes, "1 + the largest class code that was learned.")
      .def_prop_ro("label_deviation", &Forest::label_deviation,
                   "The standard deviation of the labels seen.");
  bind_driver(m);
  bind_baselines(m);
}

}  // namespace boundary_forest
