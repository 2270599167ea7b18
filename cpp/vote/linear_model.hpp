// Two models over all rows, from one set of sums that every row is added to: ridge regressions on standardised
// terms. The terms of the linear model are the features; the quadratic one has products of two features in
// addition, as far as there is room. Both are solved at decisions; between them the solutions stay.
//
// The models of a stream are linear alone, and their rows count for less the older they are. Nothing is
// multiplied for that: every row counts for more than the one before.
//
// Features are taken relative to an origin: the first row, then the mean, to which it is moved before each
// solution, so that large offsets do not cancel and squares tell something else than the features. Outputs are
// the numbers of a label, or the classes, in order of their first row. Rows wait, to be added 32 at a time:
// so a version, which is a copy of this, shares the sums with its neighbours.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace boundary_forest {

// The terms of D features u. Products are those of every `step`-th one: by i, u_i to u_(i + step - 1) and then the
// products u_i u_j with j <= i, up to `most_products`. So further features only append terms, and it does not
// matter when they come.
struct Terms {
  static constexpr std::size_t most = 300;  // unless there are more features, or further ones come

  std::size_t n_features = 0;
  std::size_t most_products = 0;
  std::size_t step = 1;

  static std::size_t all_products(std::size_t D) { return D * (D + 1) / 2; }
  // With as many products as there is room for next to D features.
  static Terms as_fit(std::size_t D, std::size_t step);

  std::size_t n_products() const {
    return std::min(all_products(n_features / step), most_products);
  }
  std::size_t size() const { return n_features + n_products(); }
  // The place of feature i.
  std::size_t feature(std::size_t i) const {
    return i + std::min(all_products(i / step), most_products);
  }
  void expand(const double* features, double* out) const;
  // visit(place of the product, places of its two features)
  template <class Visit>
  void for_products(Visit&& visit) const {
    std::size_t left = n_products();
    for (std::size_t i = 0; left > 0; i += step)
      for (std::size_t j = 0; j <= i && left > 0; j += step, --left)
        visit(feature(i) + step + j / step, feature(i), feature(j));
  }
};

// What is added up.
struct LinearSums {
  std::vector<double> origin;        // D
  std::vector<double> label_origin;  // the first label; zeros for classes: one for each output
  std::vector<double> sums;          // of terms: T
  std::vector<double> products;      // of terms j and k <= j: T (T + 1) / 2
  std::vector<double> label_sums;    // outputs
  std::vector<double> cross;         // outputs x T
};

// A solution. Coefficients beyond the features are 0 in the linear model, and not kept.
struct LinearFit {
  std::vector<double> intercepts;    // outputs
  std::vector<double> coefficients;  // outputs x terms

  std::size_t n_terms() const {
    return intercepts.empty() ? 0 : coefficients.size() / intercepts.size();
  }
};

struct LinearModel {
  static constexpr std::size_t most_features = 200;  // beyond, there is no model
  static constexpr std::size_t most_outputs = 100;   // nor from then on
  static constexpr double term_penalty = 0.02;       // in addition with products, times the terms
  static constexpr double least_digits = 1e-9;  // a smaller share of the squares is rounding alone
  static constexpr std::size_t most_waiting = 32;
  static constexpr double least_unit = 0.5;
  static constexpr double most_unit = 0x1p32;  // then all that is added up is divided by it

  struct Fits {
    LinearFit linear;
    LinearFit quadratic;
  };

  // How it is made, which is not state.
  struct Kind {
    double penalty = 0.003;  // times the rows
    double growth = 1.0;     // how much more a row counts than the one before
    bool has_products = true;
  };

  Kind kind;
  bool votes = false;  // labels are classes
  double n = 0.0;      // rows, as often as they count
  double unit = 1.0;   // how often the last one counts
  Terms terms;
  std::shared_ptr<const LinearSums> sums;  // none: no row has come, or there is no model
  std::shared_ptr<const Fits> fits;        // none: they were never solved
  // Rows that are not in the sums yet, relative to the origin, how often they count, and their labels (numbers,
  // or an output).
  std::vector<double> waiting;
  std::vector<double> waiting_counts;
  std::vector<double> waiting_labels;
  bool is_current =
      false;  // no row has come since they were solved; not state: solving again is the same

  bool is_kept() const { return sums != nullptr; }
  bool is_solved() const { return fits != nullptr; }
  std::size_t n_outputs() const { return is_kept() ? sums->label_sums.size() : 0; }
  std::size_t n_solved() const { return is_solved() ? fits->linear.intercepts.size() : 0; }
  // Features that were not the same in all rows.
  std::size_t n_varied() const;
  std::size_t bytes() const;

  // The first row; `step` is that of the terms.
  void begin(std::span<const double> row, std::span<const double> label, bool votes,
             std::size_t step = 1);
  // Further outputs. If they are too many, no row is added from then on, and the next solution is none.
  void add_outputs(std::size_t n_outputs);
  bool is_stopped() const { return is_kept() && n == 0.0; }
  // A row whose label is this, or the class with this output; `sign` is -1 for one that is taken out.
  void add_label(std::span<const double> row, const double* label, double sign);
  void add_class(std::span<const double> row, std::size_t output, double sign);

  // Moves the origin to the mean of all rows, so that nothing is left of a row that was taken out. Answers
  // stay as they are.
  void recentre();
  // Further features, which were 0 in all rows; if they are too many, there is no model any more.
  void widen(std::size_t n_features);

  // A row that is not known any more, as far as it makes those before count for less.
  void pass_row();

  // With products, around the mean of all rows.
  void solve();
  // The answers for each output that was there when they were solved.
  void answer(std::span<const double> row, std::vector<double>& linear) const;
  void answer(std::span<const double> row, std::vector<double>& linear,
              std::vector<double>& quadratic) const;
  // The terms of a row.
  void expand(std::span<const double> row, double* out) const;
  // The quadratic model's answer for one output, given the terms.
  double score(const double* terms, std::size_t output) const;

  // The sums with the rows that wait.
  LinearSums all_sums() const;

 private:
  void add_row(std::span<const double> row, std::span<const double> label, double sign);
  void add_waiting(LinearSums& to, double sign) const;
  void settle(double sign = 1.0);
};

}  // namespace boundary_forest
