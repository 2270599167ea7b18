// A linear model over all rows of a stream, which count for less the older they are: ridge regression on
// standardised features, from decayed sums that every row is added to. The models of tables
// (linear_model.hpp) have products of features too, and share their sums between versions.
//
// Sums are taken relative to an origin, which is moved to the mean now and then, so that large offsets do not
// cancel. Outputs are the numbers of a label, or the classes, in order of their first row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vote/linear_model.hpp"

namespace boundary_forest {

// The sums and the solution, as they are saved.
struct AgingModel {
  double n = 0.0;                    // rows
  std::vector<double> origin;        // the first row: D
  std::vector<double> label_origin;  // and its label; zeros for classes: one for each output
  std::vector<double> sums;          // D
  std::vector<double> products;      // of features j and k <= j: D (D + 1) / 2
  std::vector<double> label_sums;    // outputs
  std::vector<double> cross;         // outputs x D
  std::vector<double> coefficients;  // outputs x D; none: it was never solved
  std::vector<double> intercepts;    // outputs

  bool is_kept() const { return !origin.empty(); }
  bool is_solved() const { return !intercepts.empty(); }
  std::size_t n_outputs() const { return label_sums.size(); }
  // That it holds.
  std::size_t n_numbers() const {
    return 1 + origin.size() + label_origin.size() + sums.size() + products.size() +
           label_sums.size() + cross.size() + coefficients.size() + intercepts.size();
  }

  // The first row.
  void begin(std::span<const double> row, std::span<const double> label);
  // Further outputs. If they are too many, no row is added from then on, and the next solution is none.
  void add_outputs(std::size_t n_outputs);
  bool is_stopped() const { return is_kept() && n == 0.0; }
  // A row whose label is this, or the class with this output; `sign` is -1 for one that is taken out.
  void add_label(std::span<const double> row, const double* label, double sign);
  void add_class(std::span<const double> row, std::size_t output, double sign);

  // Moves the origin to the mean of all rows, so that nothing is left of a row that was taken out.
  void recentre(bool votes);
  // Further features, which were 0 in all rows; if they are too many, there is no model any more.
  void widen(std::size_t n_features);

  // All rows so far count for less; what has all but vanished is 0.
  void decay(double factor);

  // `penalty` times the rows.
  void solve(double penalty);
  // The answer for each output that was there when it was solved.
  void answer(std::span<const double> row, std::vector<double>& out) const;

 private:
  void add_row(std::span<const double> row, double sign);
};

}  // namespace boundary_forest
