#include "driver.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "common.hpp"
#include "conversions.hpp"
#include "distributed/forest_driver.hpp"

namespace boundary_forest {

using namespace nb::literals;

namespace {

using Labels3d = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

class Driver {
 public:
  Driver(std::uint32_t n_T, std::size_t label_length, const std::string& estimator,
         const std::string& votes, bool learns_weights, std::vector<std::uint32_t> lifetimes,
         std::uint32_t max_stored, bool balanced)
      : driver_(params_of(n_T, label_length, estimator, votes, learns_weights, std::move(lifetimes),
                          max_stored, balanced)) {}

  std::uint64_t block_end(std::uint64_t stored) const { return driver_.block_end(stored); }
  bool wants_leaves() const { return driver_.wants_leaves(); }
  std::uint64_t growing_step() const { return driver_.growing_step(); }
  bool is_full(std::uint64_t stored, std::size_t n_cut) const {
    return driver_.is_full(stored, n_cut);
  }
  std::uint64_t seen() const { return driver_.seen(); }
  std::uint32_t n_classes() const { return driver_.n_classes(); }
  bool is_planted() const { return driver_.is_planted(); }
  double label_deviation() const { return driver_.label_deviation(); }

  void learn(const Labels2d& labels) { driver_.learn(view(labels), labels.shape(0), {}, {}); }

  void learn_offline(const Labels2d& labels) {
    driver_.learn_offline(view(labels), labels.shape(0));
  }

  // The answers, and the weights of all trees in each.
  nb::tuple hear(const Labels2d& labels, const Labels3d& said, const Labels2d& distances,
                 bool asked, bool shares, const std::optional<RankArray>& ranks) {
    const ForestDriver::LeavesView leaves = view(said, distances);
    Question question(*this, leaves.rows, shares, ranks);
    driver_.learn(view(labels), labels.shape(0), leaves,
                  asked ? question.request : ForestDriver::VoteRequest{});
    return question.answers();
  }

  nb::tuple answer(const Labels3d& said, const Labels2d& distances, bool shares,
                   const std::optional<RankArray>& ranks) const {
    const ForestDriver::LeavesView leaves = view(said, distances);
    Question question(*this, leaves.rows, shares, ranks);
    driver_.answer(leaves, question.request);
    return question.answers();
  }

  void weigh_classes(const ClassWeightArray& weights) {
    driver_.weigh_classes({weights.data(), weights.data() + weights.shape(0)});
  }

  nb::dict state() const {
    nb::dict all;
    const VoteState& votes = driver_.votes();
    std::vector<double> sums = driver_.spread().sums();
    const std::size_t n_sums = sums.size();
    all["seen"] = driver_.seen();
    all["n_classes"] = driver_.n_classes();
    all["planted"] = driver_.is_planted();
    all["spread"] = to_numpy(std::move(sums), {n_sums});
    all["vote_power"] = votes.rule;
    all["vote_errors"] = to_numpy(std::vector(votes.errors), {votes.errors.size()});
    all["tree_losses"] = to_numpy(std::vector(votes.losses), {votes.losses.size()});
    all["class_weights"] = to_numpy(std::vector(votes.class_weights), {votes.class_weights.size()});
    all["class_counts"] = to_numpy(std::vector(votes.class_counts), {votes.class_counts.size()});
    return all;
  }

  void restore(const nb::dict& all) {
    driver_.restore({.seen = nb::cast<std::uint64_t>(all["seen"]),
                     .n_classes = nb::cast<std::uint32_t>(all["n_classes"]),
                     .planted = nb::cast<bool>(all["planted"]),
                     .spread = to_vector<double>(all["spread"]),
                     .rule = nb::cast<std::uint32_t>(all["vote_power"]),
                     .errors = to_vector<double>(all["vote_errors"]),
                     .losses = to_vector<double>(all["tree_losses"]),
                     .class_weights = to_vector<double>(all["class_weights"]),
                     .class_counts = to_vector<double>(all["class_counts"])});
  }

 private:
  // Where answers go, which live as long as this.
  struct Question {
    Question(const Driver& driver, std::size_t rows, bool shares,
             const std::optional<RankArray>& given)
        : ranks(ranks_in(given)) {
      const Params& params = driver.driver_.params();
      const bool classes = params.estimator == Estimator::shepard_vote;
      std::size_t length = params.label_length;
      if (shares && classes) length = n_ranked(ranks, driver.driver_.n_classes());
      out = {rows, length};
      weights = {rows, params.n_T};
      request = {&out, shares && classes, ranks, &weights};
    }

    nb::tuple answers() {
      return nb::make_tuple(to_numpy(std::move(out)), to_numpy(std::move(weights)));
    }

    Ranks ranks;
    Table<double> out;
    Table<double> weights;
    ForestDriver::VoteRequest request;
  };

  static Params params_of(std::uint32_t n_T, std::size_t label_length, const std::string& estimator,
                          const std::string& votes, bool learns_weights,
                          std::vector<std::uint32_t> lifetimes, std::uint32_t max_stored,
                          bool balanced) {
    Params params;
    params.has_balanced_votes = balanced;
    params.n_T = n_T;
    params.n_features = 1;  // which makes no difference here
    params.label_length = label_length;
    params.estimator = by_name(estimator, estimators);
    params.vote_weights = by_name(votes, vote_weights);
    params.has_learned_weights = learns_weights;
    params.lifetimes = std::move(lifetimes);
    params.max_stored = max_stored;
    return params;
  }

  std::span<const double> view(const Labels2d& labels) const {
    if (labels.shape(1) != driver_.params().label_length)
      throw std::invalid_argument("labels must have label_length columns");
    return {labels.data(), labels.size()};
  }

  ForestDriver::LeavesView view(const Labels3d& said, const Labels2d& distances) const {
    const Params& params = driver_.params();
    if (said.shape(0) != distances.shape(0) || said.shape(1) != params.n_T ||
        said.shape(2) != params.label_length || distances.shape(1) != params.n_T)
      throw std::invalid_argument("the ends of all trees must be given, for each row");
    return {said.shape(0), said.data(), distances.data()};
  }

  ForestDriver driver_;
};

}  // namespace

void bind_driver(nb::module_& m) {
  nb::class_<Driver>(m, "Driver",
                     "What is decided for engines that hold parts of the trees; see "
                     "cpp/distributed/forest_driver.hpp.")
      .def(nb::init<std::uint32_t, std::size_t, const std::string&, const std::string&, bool,
                    std::vector<std::uint32_t>, std::uint32_t, bool>(),
           nb::kw_only(), "n_estimators"_a, "label_length"_a, "estimator"_a, "vote_weights"_a,
           "learns_weights"_a, "lifetimes"_a, "max_stored"_a, "balanced"_a = false,
           nb::sig(
               "def __init__(self, *, n_estimators: int, label_length: int, estimator: str, "
               "vote_weights: str, learns_weights: bool, lifetimes: "
               "collections.abc.Sequence[int], max_stored: int, balanced: bool = False) -> None"))
      .def("block_end", &Driver::block_end, "stored"_a,
           "Return how many may have arrived before the engines must stop.")
      .def_prop_ro("wants_ends", &Driver::wants_leaves,
                   "Whether ends must be known for the rows up to there.")
      .def_prop_ro("growing_step", &Driver::growing_step,
                   "The step of growing successors that is due now; 0 for none.")
      .def("is_full", &Driver::is_full, "stored"_a, "n_cut"_a,
           "Return whether a tree must be cut now, after n_cut others.")
      .def("learn", &Driver::learn, "labels"_a,
           nb::sig("def learn(self, labels: numpy.typing.NDArray[numpy.float64]) -> None"),
           "Take note of rows that the engines have learned.")
      .def("learn_offline", &Driver::learn_offline, "labels"_a,
           nb::sig("def learn_offline(self, labels: numpy.typing.NDArray[numpy.float64]) -> None"),
           "Take note of rows that they have learned offline.")
      .def("hear", &Driver::hear, "labels"_a, "said"_a, "distances"_a, "asked"_a, "shares"_a,
           "ranks"_a = nb::none(),
           nb::sig(
               "def hear(self, labels: numpy.typing.NDArray[numpy.float64], said: "
               "numpy.typing.NDArray[numpy.float64], distances: "
               "numpy.typing.NDArray[numpy.float64], asked: bool, shares: bool, ranks: "
               "numpy.typing.NDArray[numpy.uint32] | None = None) -> "
               "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]"),
           "Take note of rows and of what the trees said of them before; return the answers and "
           "the trees' weights, if they are asked for.")
      .def("answer", &Driver::answer, "said"_a, "distances"_a, "shares"_a, "ranks"_a = nb::none(),
           nb::sig(
               "def answer(self, said: numpy.typing.NDArray[numpy.float64], distances: "
               "numpy.typing.NDArray[numpy.float64], shares: bool, ranks: "
               "numpy.typing.NDArray[numpy.uint32] | None = None) -> "
               "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]"),
           "Return the answers made of all trees' ends, and the trees' weights.")
      .def("weigh_classes", &Driver::weigh_classes, "weights"_a,
           nb::sig("def weigh_classes(self, weights: numpy.typing.NDArray[numpy.float64]) -> None"),
           "Multiply the votes for each class by its weight, by code.")
      .def("state", &Driver::state, nb::sig("def state(self) -> dict[str, typing.Any]"),
           "Return all that was decided.")
      .def("restore", &Driver::restore, "state"_a,
           nb::sig("def restore(self, state: dict[str, typing.Any]) -> None"),
           "Put back what state() returned.")
      .def_prop_ro("seen", &Driver::seen, "Examples that have arrived.")
      .def_prop_ro("n_classes", &Driver::n_classes, "1 + the largest class code that was learned.")
      .def_prop_ro("is_planted", &Driver::is_planted, "Whether there are trees.")
      .def_prop_ro("label_deviation", &Driver::label_deviation,
                   "The standard deviation of the labels seen.");
}

}  // namespace boundary_forest
