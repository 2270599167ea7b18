#include "graph/row_codes.hpp"

#include <bit>
#include <cmath>

#include "distance/kernels/kernel.hpp"

namespace boundary_forest {
namespace {

// So that a row begins at a line of cache, or lies within one. (Without that GloVe's take 100 bytes, not 128, and
// searches 1.3 times as long.)
std::size_t stride_of(std::size_t n_features) {
  if (n_features <= cache_line) return std::bit_ceil(n_features);
  return (n_features + cache_line - 1) / cache_line * cache_line;
}

// The row as doubles; of length 1, if it has a length, where only directions are compared.
void read(const Position& row, bool has_unit_length, std::vector<double>& x) {
  to_doubles(row, x.size(), x.data());
  if (!has_unit_length) return;
  double square = 0.0;
  for (const double value : x) square += value * value;
  if (!(square > 0.0 && std::isfinite(square))) return;
  const double length = std::sqrt(square);
  for (double& value : x) value /= length;
}

// Chunks of 2 to 4 MB.
unsigned chunk_log2(std::size_t stride) {
  unsigned log2 = 0;
  while ((stride << log2) < large_page) ++log2;
  return log2;
}

}  // namespace

RowCodes::RowCodes(std::size_t n_features, bool of_directions, Slot count)
    : of_directions_(of_directions),
      count_(count),
      scales_(n_features),
      lows_(n_features),
      codes_(chunk_log2(stride_of(n_features)), stride_of(n_features), 0) {}

Slot RowCodes::count_for(Slot n) {
  const int unit = std::max(static_cast<int>(std::bit_width(n)) - 3, 0);
  return n >> unit << unit;
}

double RowCodes::one_step(const Metric& code_metric, std::size_t n_features) {
  const std::vector<std::byte> zeros(n_features, std::byte{0});
  const std::vector<std::byte> ones(n_features, std::byte{1});
  const std::byte* row = ones.data();
  double reduced = 0.0;
  code_metric.distances({zeros.data(), ElementType::uint8}, &row, 1, &reduced);
  return reduced;
}

std::shared_ptr<RowCodes> RowCodes::from(const ExampleStore& store, bool of_directions,
                                         Slot count) {
  const std::size_t D = store.n_features();
  std::vector<double> x(D);
  std::vector<double> means(D, 0.0);
  std::vector<double> squares(D, 0.0);
  const auto n = static_cast<double>(count);
  for (Slot slot = 0; slot < count; ++slot) {
    read({store.row(slot), store.element_type()}, of_directions, x);
    for (std::size_t f = 0; f < D; ++f) means[f] += x[f];
  }
  for (double& mean : means) mean /= n;
  for (Slot slot = 0; slot < count; ++slot) {
    read({store.row(slot), store.element_type()}, of_directions, x);
    for (std::size_t f = 0; f < D; ++f) squares[f] += (x[f] - means[f]) * (x[f] - means[f]);
  }
  double largest = 0.0;
  for (const double square : squares)
    largest = std::max(largest, std::isnan(square) ? INFINITY : square);
  const double step = 8.0 * std::sqrt(largest / n) / 255.0;
  const double scale = 1.0 / step;
  if (!(step > 0.0) || !std::isfinite(step) || !std::isfinite(scale)) return nullptr;
  std::shared_ptr<RowCodes> codes(new RowCodes(D, of_directions, count));
  for (std::size_t f = 0; f < D; ++f) {
    codes->scales_[f] = scale;
    codes->lows_[f] = means[f] * scale - 127.5;
    if (!std::isfinite(codes->lows_[f])) return nullptr;
  }
  return codes;
}

void RowCodes::encode(const Position& query, std::uint8_t* codes) const {
  const kernels::Coding coding{1.0, 0.0, scales_.data(), lows_.data()};
  const auto encode = kernels::instruction_set().codes.encode;
  if (!of_directions_) {
    encode(query.data, query.type, scales_.size(), coding, codes);
    return;
  }
  std::vector<double> x(scales_.size());
  read(query, of_directions_, x);
  encode(reinterpret_cast<const std::byte*>(x.data()), ElementType::float64, x.size(), coding,
         codes);
}

void RowCodes::extend(const ExampleStore& store, Slot n) {
  codes_.grow_to(n);
  for (; size_ < n; ++size_) encode({store.row(size_), store.element_type()}, codes_.at(size_));
}

}  // namespace boundary_forest
