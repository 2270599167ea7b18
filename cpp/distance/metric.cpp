// The built-in metrics over the kernels, metrics that are a user's compiled function, and the prefilter for
// any metric.
#include "distance/metric.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory_resource>
#include <stdexcept>
#include <vector>

#include "base/memory.hpp"
#include "distance/code_prefilter.hpp"
#include "distance/column_prefilter.hpp"
#include "distance/kernels/kernel.hpp"
#include "distance/kernels/power.hpp"
#include "distance/projection.hpp"

namespace boundary_forest {
namespace {

using kernels::Formula;

// The metrics' names stand here and nowhere else; Python asks for them.
struct NamedFormula {
  const char* name;
  Formula formula;
};
constexpr NamedFormula formulas[] = {
    {"euclidean", Formula::euclidean}, {"manhattan", Formula::manhattan},
    {"chebyshev", Formula::chebyshev}, {"minkowski", Formula::minkowski},
    {"cosine", Formula::cosine},       {"hamming", Formula::hamming},
    {"canberra", Formula::canberra},   {"inner_product", Formula::inner_product},
};

class BuiltInMetric final : public Metric {
 public:
  // `scales` are the roots of the weights, if there are any.
  BuiltInMetric(Formula formula, double p, ElementType stored, std::size_t n_features,
                std::vector<double> scales = {})
      : formula_(formula),
        n_features_(n_features),
        stored_(stored),
        scales_(std::move(scales)),
        scales32_(scales_.begin(), scales_.end()),
        arguments_{p, scales32_.data(), scales_.data()} {
    const auto table = kernels::instruction_set().table;
    same_ = table(formula, stored, stored);
    single_ = table(formula, stored, is_short_for_float32(stored) ? ElementType::float32 : stored);
    wide_ = table(formula, stored, ElementType::float64);
  }

  void distances(const Position& query, const std::byte* const* rows, std::size_t n,
                 double* out) const override {
    const kernels::Kernel kernel = query.type == stored_                ? same_
                                   : query.type == ElementType::float64 ? wide_
                                                                        : single_;
    kernel(query.data, rows, n, n_features_, arguments_, out);
  }

  bool has_sketches() const override {
    // Where the processor has products of bytes, codes of all features are so fast that sketches take 1.15 x the time
    // of MNIST in batches. With AVX2 rows of bytes are compared as fast as their sketches are; on the portable kernels
    // sketches take .42 x the time.
    const kernels::InstructionSet& set = kernels::instruction_set();
    const bool is_byte = stored_ == ElementType::uint8;
    const bool pays = is_byte ? set.name == "scalar" && n_features_ >= Projection::least_of_bytes
                              : !set.has_byte_products && stored_ != ElementType::int8 &&
                                    n_features_ * size_of(stored_) >= Projection::least_bytes;
    return formula_ == Formula::euclidean && pays && n_features_ <= kernels::most_coded_features;
  }

  // One row of 784 bytes takes 1.15 x the time with sketches, as the portable kernels wait for memory then.
  bool has_sketches_for_few() const override {
    return has_sketches() && stored_ != ElementType::uint8;
  }

  std::unique_ptr<Prefilter> prefilter(const QueryRows& block,
                                       std::shared_ptr<const RowSketches> sketches,
                                       std::size_t n_threads) const override {
    if (sketches != nullptr && has_sketches())
      return std::make_unique<CodePrefilter>(*this, block, stored_, std::move(sketches), n_threads);
    const bool squares = formula_ == Formula::euclidean || formula_ == Formula::weighted_euclidean;
    const bool is_own_code = stored_ == ElementType::uint8 ||
                             (stored_ == ElementType::int8 && formula_ == Formula::euclidean);
    if (squares && !is_own_code && n_features_ <= ColumnPrefilter::most_features)
      return std::make_unique<ColumnPrefilter>(*this, block, stored_, scales32_, scales_);
    const bool pays =
        (is_own_code && scales_.empty()) || block.size() >= CodePrefilter::least_chosen_for;
    if (squares && pays && n_features_ <= kernels::most_coded_features)
      return std::make_unique<CodePrefilter>(*this, block, stored_, scales_);
    const bool is_byte = stored_ == ElementType::uint8 || stored_ == ElementType::int8;
    if (compares_directions() && !is_byte && block.size() >= CodePrefilter::least_chosen_for &&
        n_features_ > ColumnPrefilter::most_features && n_features_ <= kernels::most_coded_features)
      return std::make_unique<CodePrefilter>(*this, block, stored_, scales_);
    return Metric::prefilter(block, nullptr, n_threads);
  }

  bool compares_directions() const override { return formula_ == Formula::cosine; }

  std::unique_ptr<Metric> on_codes() const override {
    const bool is_kept = formula_ == Formula::euclidean || formula_ == Formula::manhattan ||
                         formula_ == Formula::chebyshev || formula_ == Formula::minkowski;
    if (stored_ == ElementType::uint8 || !(is_kept || compares_directions()) ||
        n_features_ > kernels::most_coded_features)
      return nullptr;
    return std::make_unique<BuiltInMetric>(compares_directions() ? Formula::euclidean : formula_,
                                           arguments_.p, ElementType::uint8, n_features_);
  }

  double distance(double reduced) const override {
    switch (formula_) {
      case Formula::euclidean:
      case Formula::weighted_euclidean:
        return std::sqrt(reduced);
      case Formula::minkowski:
        return kernels::root(reduced, arguments_.p);
      case Formula::hamming:
        return reduced / static_cast<double>(n_features_);
      case Formula::inner_product:
        return 1.0 + reduced;
      case Formula::manhattan:
      case Formula::chebyshev:
      case Formula::cosine:
      case Formula::canberra:
        return reduced;
    }
    __builtin_unreachable();
  }

  std::span<const double> scales() const override { return scales_; }

  bool may_be_negative() const override { return formula_ == Formula::inner_product; }

 private:
  Formula formula_;
  std::size_t n_features_;
  ElementType stored_;
  std::vector<double> scales_;
  std::vector<float> scales32_;
  kernels::Arguments arguments_;
  kernels::Kernel same_;    // for queries of the stored type
  kernels::Kernel single_;  // for those of float32, where rows are short for it
  kernels::Kernel wide_;    // for those of float64
};

class FunctionMetric final : public Metric {
 public:
  FunctionMetric(DistanceFunction function, ElementType stored, std::size_t n_features,
                 bool needs_non_negative)
      : function_(function),
        stored_(stored),
        n_features_(n_features),
        needs_non_negative_(needs_non_negative) {}

  void distances(const Position& query, const std::byte* const* rows, std::size_t n,
                 double* out) const override {
    StackMemory memory;
    std::pmr::vector<double> converted(&memory);
    const double* x = as_doubles(query, converted);
    std::pmr::vector<double> converted_row(&memory);
    for (std::size_t j = 0; j < n; ++j) {
      const double* y = as_doubles({rows[j], stored_}, converted_row);
      const double value = function_(x, y, static_cast<std::int64_t>(n_features_));
      out[j] = checked_distance(value, needs_non_negative_);
    }
  }

  bool may_fail() const override { return true; }

 private:
  // Rows of float64 are used where they are; others are converted.
  const double* as_doubles(const Position& row, std::pmr::vector<double>& converted) const {
    if (row.type == ElementType::float64) return reinterpret_cast<const double*>(row.data);
    converted.resize(n_features_);
    to_doubles(row, n_features_, converted.data());
    return converted.data();
  }

  DistanceFunction function_;
  ElementType stored_;
  std::size_t n_features_;
  bool needs_non_negative_;
};

}  // namespace

std::unique_ptr<Prefilter> Metric::prefilter(const QueryRows& block,
                                             std::shared_ptr<const RowSketches>,
                                             std::size_t) const {
  return std::make_unique<PlainPrefilter>(*this, block);
}

std::size_t PlainPrefilter::filter(std::span<const std::uint32_t> queries, const Rows& rows,
                                   std::span<double> bounds, Workspace&,
                                   std::span<std::uint64_t> closest) const {
  double reduced[most_rows];
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    d_.distances(block_.position(queries[i]), rows.data.data(), rows.size(), reduced);
    closest[i] = 0;
    for (std::uint32_t j = 0; j < rows.size(); ++j) consider(j, reduced[j], bounds[i], closest[i]);
  }
  return queries.size() * rows.size();
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const NamedFormula& named : formulas) names.emplace_back(named.name);
  return names;
}

std::unique_ptr<Metric> make_metric(const std::string& name, double p, ElementType stored,
                                    std::size_t n_features) {
  const auto* found = std::find_if(std::begin(formulas), std::end(formulas),
                                   [&](const NamedFormula& named) { return name == named.name; });
  if (found == std::end(formulas)) throw std::invalid_argument("unknown metric '" + name + "'");
  Formula formula = found->formula;
  if (formula == Formula::minkowski) {
    if (!(p >= 1.0) || std::isinf(p))
      throw std::invalid_argument("minkowski's p must be a finite number >= 1");
    if (p == 1.0) formula = Formula::manhattan;
    if (p == 2.0) formula = Formula::euclidean;
  }
  return std::make_unique<BuiltInMetric>(formula, p, stored, n_features);
}

std::unique_ptr<Metric> make_weighted_metric(std::span<const double> weights, ElementType stored) {
  std::vector<double> scales(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] == 0.0 || (weights[i] >= least_weight && weights[i] <= largest_weight)))
      throw std::invalid_argument("the weight of feature " + std::to_string(i) +
                                  " is neither 0 nor within bounds");
    scales[i] = std::sqrt(weights[i]);
    if (stored != ElementType::float64) scales[i] = static_cast<float>(scales[i]);
  }
  return std::make_unique<BuiltInMetric>(Formula::weighted_euclidean, 2.0, stored, weights.size(),
                                         std::move(scales));
}

std::unique_ptr<Metric> make_metric(DistanceFunction function, ElementType stored,
                                    std::size_t n_features, bool needs_non_negative) {
  return std::make_unique<FunctionMetric>(function, stored, n_features, needs_non_negative);
}

void to_doubles(const Position& row, std::size_t n, double* out) {
  with_element_type(row.type, [&](auto zero) {
    const auto* from = reinterpret_cast<const decltype(zero)*>(row.data);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(from[i]);
  });
}

double checked_distance(double value, bool needs_non_negative) {
  if (std::isnan(value))
    throw std::domain_error("the metric returned NaN, but a distance must be a number");
  if (needs_non_negative && value < 0.0)
    throw std::domain_error("the metric returned " + std::to_string(value) +
                            ", but votes and means need distances >= 0");
  return value;
}

std::string instruction_set() { return kernels::instruction_set().name; }

}  // namespace boundary_forest
