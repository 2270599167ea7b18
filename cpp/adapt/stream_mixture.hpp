// weights="mixture" of a forest that forgets, beyond the paper: experts that look back over different spans,
// mixed with weights that follow after every arrival.
//
// An expert's weight falls exponentially with its recent loss: the decayed sum of the squared errors that it
// made on rows before these were learned, relative to the least such sum. There are three rates of decay, and
// the mixture of the rate whose own answers lost least lately is the answer. At most four experts have a
// weight. Probabilities are sharpened as those of tables (calibration.hpp), by losses that decay as well.
//
// Everything follows from one arrival after the other, so that batches cannot matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "adapt/recent_rows.hpp"
#include "adapt/window.hpp"
#include "base/types.hpp"
#include "distance/label_metric.hpp"
#include "distance/metric.hpp"
#include "store/example_store.hpp"
#include "vote/calibration.hpp"
#include "vote/combine.hpp"
#include "vote/linear_model.hpp"
#include "vote/local_fit.hpp"
#include "vote/mixture.hpp"

namespace boundary_forest {

struct StreamExpert {
  enum class Kind : std::uint8_t {
    trees,    // what the forest answers with weights="auto"
    nearest,  // the mean label of the k nearest of the last n rows
    linear,   // a linear fit to all rows, which count for less the older they are
    ridge,    // experts.hpp: a linear fit to the examples that the trees end at
  };
  Kind kind;
  const char* name;
  std::size_t n = 0;         // rows; of a linear one, which of the models
  std::size_t k = 0;         // neighbours
  bool is_weighted = false;  // distances with the learned weights of features
};

// The first answers before any row was judged.
inline constexpr StreamExpert stream_experts[] = {
    {StreamExpert::Kind::trees, "trees"},
    {StreamExpert::Kind::nearest, "nearest(5 of 64 rows)", 64, 5, false},
    {StreamExpert::Kind::nearest, "nearest(15 of 1000 rows)", 1000, 15, true},
    {StreamExpert::Kind::linear, "linear(decay=0.99)", 0},
    {StreamExpert::Kind::linear, "linear(decay=0.999)", 1},
    {StreamExpert::Kind::linear, "linear(decay=0.9999)", 2},
    {StreamExpert::Kind::ridge, "ridge(power=1, penalty=0.3)"},
};
inline constexpr std::size_t n_stream_experts = std::size(stream_experts);
inline constexpr Expert stream_ridge = {Expert::Kind::ridge, 1, 0.3};
inline constexpr std::size_t longest_recent = 1000;  // rows that an expert answers from

using StreamWeights = std::array<double, n_stream_experts>;

// The linear models, whose rows count for less the older they are.
struct StreamModel {
  LinearModel::Kind kind;
  Arrival longest_period;  // between two solutions
};
inline constexpr StreamModel stream_models[] = {
    {{.penalty = 0.03, .growth = 1.0 / 0.99, .has_products = false}, 4},
    {{.penalty = 0.003, .growth = 1.0 / 0.999, .has_products = false}, 32},
    {{.penalty = 0.003, .growth = 1.0 / 0.9999, .has_products = false}, 256},
};
inline constexpr std::size_t n_models = std::size(stream_models);

// How much of the error on the row before is added to an answer: where errors persist, as on series, this
// tells more than any expert. The first unless another one loses less.
inline constexpr double corrections[] = {0.0, 0.05, 0.1, 0.2, 0.3, 0.4};
inline constexpr std::size_t n_corrections = std::size(corrections);

inline constexpr double loss_decays[] = {0.9, 0.99, 0.998};
inline constexpr std::size_t n_rates = std::size(loss_decays);

struct ColumnError {
  std::uint32_t column;
  double error;
};

// What is known after so many arrivals, as it is saved.
struct StreamMixture {
  ClassOrder classes;
  std::array<LinearModel, n_models> models;
  // Decayed sums. None of these if nothing is mixed.
  std::vector<double> n_judged;     // by rate: rows
  std::vector<double> losses;       // rates x experts
  std::vector<double> rate_losses;  // by rate: of its mixture, all at one rate of decay
  // Rows come sorted by class (reservoir.hpp): then the trees alone answer, because what is right about the latest
  // rows says nothing of other classes.
  bool is_sorted = false;
  std::vector<double> correction_losses;
  std::vector<double> sharpness_losses;  // in bits; none for labels that are no classes
  // The last label less the mixture's answer to its row: the classes by place, or outputs, where it is not 0.
  std::vector<ColumnError> last_error;

  bool is_mixed() const { return !n_judged.empty(); }
  bool has(std::size_t expert) const {
    return stream_experts[expert].kind != StreamExpert::Kind::linear ||
           models[stream_experts[expert].n].is_solved();
  }

  // The rate in use, and the weights of experts by it; they sum to 1.
  std::size_t rate() const;
  StreamWeights weights(std::size_t rate, bool votes) const;
  double correction() const;
  std::uint8_t sharpness() const;

  // Arrival number a, which is judged already.
  void learn(Arrival a, std::span<const double> row, std::span<const double> label, bool votes);
  // After rows of the window were erased: models of what it still has, so that nothing is left of others.
  void learn_again(const Window& window, ElementType type, std::size_t n_features,
                   std::size_t label_length, bool votes);
  void widen(std::size_t n_features) {
    for (LinearModel& model : models) model.widen(n_features);
  }
  std::size_t bytes() const;

 private:
  void add_row(std::span<const double> row, std::span<const double> label, bool votes);
  void solve(Arrival seen);
};

void begin_stream_mixture(const Params& params, StreamMixture& mixture);

// One row at a time; what is computed for a row lasts until the next. The work for it depends on the classes that
// its experts name, not on all classes: what has a number for each class is 0 elsewhere.
class StreamRow {
 public:
  // `plain` is the distance without learned weights, `learned` the one with them.
  StreamRow(const ExampleStore& store, const Metric& plain, const Metric& learned,
            const Window& window, const StreamMixture& mixture, bool votes)
      : store_(store),
        plain_(plain),
        learned_(learned),
        mixture_(mixture),
        votes_(votes),
        recent_(window, longest_recent),
        fit_(store, learned.scales()) {}

  // The trees end at v. Returns where their answer must be put, if it is a label; shares of classes are put by
  // `put_share`.
  std::span<double> begin(const Position& query, std::span<const Leaf> v);
  void put_share(std::uint32_t code, double share);

  void label(std::span<double> out);
  // Without `all`, classes whose share is the least, and not the winner's, may be left out.
  std::span<const Vote> probabilities(Ranks ranks, const ClassWeights& classes, bool all);

  // What each tree's example is multiplied by in the answer, given its share in that of the trees; and what
  // the recent rows are that experts answer from, with their shares. The linear models have the rest.
  void tree_weights(std::span<double> shares);
  struct RecentShare {
    Arrival arrival;
    double share;
  };
  std::vector<RecentShare> recent_shares();

  // Adds the losses of all experts at arrival number a to those of `mixture`, which is what this refers to; the
  // spread is that of the labels before. An expert without weight answers only now and then; in between, its
  // loss differs from that of the trees as it did on average.
  void judge(Arrival a, const double* label, const Spread& before, StreamMixture& mixture);

 private:
  void name(std::uint32_t column);
  std::uint32_t named(std::uint32_t code);  // its column
  std::span<const double> answer(std::size_t k);
  void answer_nearest(const StreamExpert& expert, std::span<double> out);
  void answer_linear(const LinearModel& model, std::span<double> out);
  void answer_ridge(std::span<double> out);
  std::span<const Arrival> neighbours(const StreamExpert& expert);
  void begin_fit();
  void put_shares(std::span<double> out);
  void put_clipped(double slack, std::span<double> out);
  void mix(const StreamWeights& weights);
  void correct(double part);
  void answer_now();
  void judge_correction(const double* label, std::uint32_t place, StreamMixture& mixture);
  double loss(std::span<const double> answer, const double* label, std::uint32_t place) const;
  void judge_sharpness(std::uint32_t place, StreamMixture& mixture);

  const ExampleStore& store_;
  const Metric& plain_;
  const Metric& learned_;
  const StreamMixture& mixture_;
  const bool votes_;
  RecentRows recent_;
  LocalFit fit_;
  Position query_{};
  std::span<const Leaf> v_;
  // Columns are classes by place, or outputs.
  std::vector<std::uint32_t> named_;  // in order
  std::vector<bool> is_named_;
  std::array<std::vector<double>, n_stream_experts> answers_;
  std::array<bool, n_stream_experts> is_answered_{};
  bool fit_is_begun_ = false;
  std::vector<double> sums_;  // of one expert, for a moment
  std::vector<double> mixed_;
  std::vector<double> uncorrected_;
  std::vector<double> row_;
  std::vector<double> linear_;  // the answer of one model
  std::array<double, n_rates> rate_losses_{};
  std::vector<double> units_;  // 1 / variance of each output
  std::vector<Vote> shares_;
};

}  // namespace boundary_forest
