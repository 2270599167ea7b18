#include "distance/projection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/rng.hpp"
#include "distance/kernels/kernel.hpp"
#include "distance/metric.hpp"

namespace boundary_forest {
namespace {

using kernels::panel_width;

// Sums of squares of rows that are longer than this could overflow in float32; they are not coded. Nor are rows
// anywhere if the sample is shorter than its inverse.
constexpr double longest = 1e12;

// How much of |y| the float32 sum for one direction of length 1 may be off, with blocks of sum_block features.
double rounding(std::size_t n_features) {
  const double terms =
      static_cast<double>(kernels::sum_block + n_features / kernels::sum_block + 4);
  return 1.01 * terms * 0x1p-24;
}

void centre(const Position& row, const std::vector<float>& c, float* out) {
  with_element_type(row.type, [&](auto zero) {
    using T = decltype(zero);
    using Difference = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto* x = reinterpret_cast<const T*>(row.data);
    for (std::size_t f = 0; f < c.size(); ++f)
      out[f] = static_cast<float>(static_cast<Difference>(x[f]) - static_cast<Difference>(c[f]));
  });
}

double squared_length(const float* y, std::size_t n) {
  double sums[8] = {};
  std::size_t f = 0;
  for (; f + 8 <= n; f += 8)
    for (std::size_t l = 0; l < 8; ++l) sums[l] += static_cast<double>(y[f + l]) * y[f + l];
  for (; f < n; ++f) sums[0] += static_cast<double>(y[f]) * y[f];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Columns of a row-major n x width matrix, as the kernel wants them.
std::vector<float> in_panels(const std::vector<float>& columns, std::size_t n, std::size_t width) {
  std::vector<float> panels(n * width);
  for (std::size_t p = 0; p < width / panel_width; ++p)
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(&columns[i * width + p * panel_width], panel_width,
                  &panels[(p * n + i) * panel_width]);
  return panels;
}

// rows (n x inner) times columns (inner x width).
std::vector<float> product(const std::vector<float>& rows, std::size_t n,
                           const std::vector<float>& columns, std::size_t inner,
                           std::size_t width) {
  std::vector<float> out(n * width);
  const std::vector<float> panels = in_panels(columns, inner, width);
  kernels::instruction_set().project(rows.data(), n, inner, panels.data(), width / panel_width,
                                     out.data());
  return out;
}

// The first k of the columns of an n x width matrix become orthonormal, or zero where they depend on those before
// (Gram-Schmidt, twice).
void make_orthonormal(std::vector<float>& columns, std::size_t n, std::size_t width,
                      std::size_t k) {
  std::vector<std::vector<float>> q(k, std::vector<float>(n));
  const auto dot = [n](const std::vector<float>& a, const std::vector<float>& b) {
    double sums[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (std::size_t l = 0; l < 8; ++l) sums[l] += static_cast<double>(a[i + l]) * b[i + l];
    for (; i < n; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  };
  for (std::size_t c = 0; c < k; ++c) {
    for (std::size_t i = 0; i < n; ++i) q[c][i] = columns[i * width + c];
    double length = std::sqrt(dot(q[c], q[c]));
    const double before = length;
    for (int round = 0; round < 2; ++round) {
      for (std::size_t b = 0; b < c; ++b) {
        const auto along = static_cast<float>(dot(q[b], q[c]));
        for (std::size_t i = 0; i < n; ++i) q[c][i] -= along * q[b][i];
      }
      length = std::sqrt(dot(q[c], q[c]));
    }
    const bool depends = !(length > 1e-4 * before);
    const auto factor = static_cast<float>(1.0 / length);
    for (std::size_t i = 0; i < n; ++i) {
      q[c][i] = depends ? 0.0F : q[c][i] * factor;
      columns[i * width + c] = q[c][i];
    }
  }
}

// The signs of a Hadamard matrix of order q + 1, for a prime q = 3 mod 4 (Paley).
std::vector<float> hadamard(std::size_t q) {
  std::vector<char> is_square(q, 0);
  for (std::size_t i = 1; i < q; ++i) is_square[i * i % q] = 1;
  const std::size_t n = q + 1;
  std::vector<float> h(n * n, 1.0F);
  for (std::size_t i = 1; i < n; ++i) {
    h[i * n] = -1.0F;
    for (std::size_t j = 1; j < n; ++j)
      if (i != j) h[i * n + j] = is_square[(j + q - i) % q] ? 1.0F : -1.0F;
  }
  return h;
}

}  // namespace

std::shared_ptr<const Projection> Projection::from(const ExampleStore& store, Slot staged) {
  constexpr std::size_t most_rows = 2048;
  const std::size_t D = store.n_features();
  std::vector<Slot> living;
  for (Slot slot = 0; slot < store.size(); ++slot)
    if (slot >= staged || store.is_alive(slot)) living.push_back(slot);
  const std::size_t n = std::min(most_rows, living.size());
  if (n < 256) return nullptr;
  std::vector<const std::byte*> rows(n);
  for (std::size_t i = 0; i < n; ++i) rows[i] = store.row(living[i * living.size() / n]);

  std::shared_ptr<Projection> made(new Projection(D));
  std::vector<double> sums(D, 0.0);
  std::vector<double> x(D);
  for (const std::byte* row : rows) {
    to_doubles({row, store.element_type()}, D, x.data());
    for (std::size_t f = 0; f < D; ++f) sums[f] += x[f];
  }
  for (std::size_t f = 0; f < D; ++f) {
    const double mean = sums[f] / static_cast<double>(n);
    if (!(std::abs(mean) < longest)) return nullptr;
    made->centre_[f] = static_cast<float>(mean);
  }
  std::vector<float> sample(n * D);
  double largest = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    centre({rows[i], store.element_type()}, made->centre_, &sample[i * D]);
    const double square = squared_length(&sample[i * D], D);
    if (!(square < longest * longest)) return nullptr;
    largest = std::max(largest, square);
  }
  if (!(largest > 1.0 / (longest * longest))) return nullptr;
  if (!made->choose_directions(sample, n)) return nullptr;
  made->choose_step(sample, n);
  if (!made->pays(sample, n)) return nullptr;
  return made;
}

// Orthogonal iteration, of a fixed number of steps.
bool Projection::choose_directions(const std::vector<float>& sample, std::size_t n) {
  constexpr int n_iterations = 3;
  const std::size_t D = n_features_;
  std::vector<float> transposed(D * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t f = 0; f < D; ++f) transposed[f * n + i] = sample[i * D + f];
  std::vector<float> directions(D * width, 0.0F);
  for (std::size_t f = 0; f < D; ++f)
    for (std::size_t j = 0; j < n_directions; ++j)
      directions[f * width + j] = static_cast<float>(hash64(f, j) >> 40) * 0x1p-23F - 1.0F;
  make_orthonormal(directions, D, width, n_directions);
  for (int step = 0; step < n_iterations; ++step) {
    directions = product(transposed, D, product(sample, n, directions, D, width), n, width);
    make_orthonormal(directions, D, width, n_directions);
  }

  // Rotated among themselves.
  const std::vector<float> signs = hadamard(n_directions - 1);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(n_directions)));
  std::vector<float> rotation(width * width, 0.0F);
  for (std::size_t i = 0; i < n_directions; ++i)
    for (std::size_t j = 0; j < n_directions; ++j)
      rotation[i * width + j] = scale * signs[i * n_directions + j];
  directions = product(directions, D, rotation, width, width);
  panels_ = in_panels(directions, D, width);

  // |M|_2^2 = |MM'|_2, and that is at most the largest sum of a row of |MM'|.
  std::vector<std::vector<double>> m(n_directions, std::vector<double>(D));
  for (std::size_t f = 0; f < D; ++f)
    for (std::size_t j = 0; j < n_directions; ++j) m[j][f] = directions[f * width + j];
  std::vector<double> row_sums(n_directions, 0.0);
  for (std::size_t i = 0; i < n_directions; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double dot[4] = {};
      std::size_t f = 0;
      for (; f + 4 <= D; f += 4)
        for (std::size_t l = 0; l < 4; ++l) dot[l] += m[i][f + l] * m[j][f + l];
      for (; f < D; ++f) dot[0] += m[i][f] * m[j][f];
      const double sum = std::abs((dot[0] + dot[1]) + (dot[2] + dot[3]));
      row_sums[i] += sum;
      if (i != j) row_sums[j] += sum;
    }
  const double largest = *std::max_element(row_sums.begin(), row_sums.end());
  norm_ = std::sqrt(std::max(1.0, largest)) * (1.0 + 1e-9);  // more than these sums round
  return std::isfinite(norm_) && norm_ < 1.1;
}

// Bytes reach as far as 3.5 standard deviations to both sides; what is beyond is cut off.
void Projection::choose_step(const std::vector<float>& sample, std::size_t n) {
  std::vector<float> projected(n * width);
  kernels::instruction_set().project(sample.data(), n, n_features_, panels_.data(), n_panels,
                                     projected.data());
  double sum = 0.0;
  double residuals = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double inside = squared_length(&projected[i * width], n_directions);
    const double square = squared_length(&sample[i * n_features_], n_features_);
    sum += inside;
    residuals += std::sqrt(std::max(0.0, square - inside / (norm_ * norm_)));
  }
  const double deviation = std::sqrt(sum / static_cast<double>(n * n_directions));
  scale_ = static_cast<float>(255.0 / (7.0 * std::max(deviation, 1.0 / (longest * 0x1p20))));
  step_ = 1.0 / (norm_ * static_cast<double>(scale_));
  residual_ = residuals / static_cast<double>(n);
}

// Whether most of the rows of a group can be told to be farther from a query than the closest one. Rows of the
// sample stand for both; those that a tree compares are closer to each other, and then a little more is left.
bool Projection::pays(const std::vector<float>& sample, std::size_t n) const {
  constexpr double most_left = 0.4;
  constexpr std::size_t n_queries = 64;
  constexpr std::size_t group = 48;
  std::vector<float> projected(n * width);
  kernels::instruction_set().project(sample.data(), n, n_features_, panels_.data(), n_panels,
                                     projected.data());
  std::vector<Sketch> sketches(n);
  for (std::size_t i = 0; i < n; ++i)
    encode_centred(&sample[i * n_features_], &projected[i * width], sketches[i]);
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n_queries; ++i) {
    const std::size_t query = i * n / n_queries;
    double closest = INFINITY;
    std::array<double, group> bounds{};
    for (std::size_t j = 0; j < group; ++j) {
      const std::size_t row = (query + 1 + hash64(i, j) % (n - 1)) % n;
      double square = 0.0;
      for (std::size_t f = 0; f < n_features_; ++f) {
        const double apart =
            static_cast<double>(sample[query * n_features_ + f]) - sample[row * n_features_ + f];
        square += apart * apart;
      }
      closest = std::min(closest, std::sqrt(square));
      double codes = 0.0;
      for (std::size_t c = 0; c < Sketch::n_codes; ++c) {
        const double apart = sketches[query].codes[c] - sketches[row].codes[c];
        codes += apart * apart;
      }
      bounds[j] = (std::sqrt(codes) - sketches[query].error - sketches[row].error) * step_;
    }
    n_left += static_cast<std::size_t>(std::count_if(
        bounds.begin(), bounds.end(), [&](double bound) { return bound <= closest; }));
  }
  return static_cast<double>(n_left) <= most_left * static_cast<double>(n_queries * group);
}

void Projection::encode(const Position* rows, std::size_t n, Sketch* const* sketches) const {
  std::vector<float> y(n * n_features_);
  std::vector<float> projected(n * width);
  for (std::size_t i = 0; i < n; ++i) centre(rows[i], centre_, &y[i * n_features_]);
  kernels::instruction_set().project(y.data(), n, n_features_, panels_.data(), n_panels,
                                     projected.data());
  for (std::size_t i = 0; i < n; ++i)
    encode_centred(&y[i * n_features_], &projected[i * width], *sketches[i]);
}

// Let y' be the row less the centre, y that in float32, M the directions, u = My and u^ what the kernel computed.
// The sketch is of z = (u / norm, rho(y)) / step, and has c = round(clip(z^)) with z^ = (u^ / norm, rho^) / step.
// What c is off, in steps, is the sum of
//   - what y is off from y': 2^-24 |y'|, as the difference is rounded once (twice for float64), below 2^-23 |y|;
//   - what u^ is off: g |y| for each direction (see rounding), for all of them g sqrt(K) |y| =: e |y|;
//   - what rho^ is off: |u^|^2 / norm^2 is off by at most (2 + e) e |y|^2, so rho^2 by d = 3 e |y|^2, with what doubles
//     round; then |rho^ - rho| = |rho^^2 - rho^2| / (rho^ + rho) is at most d / rho^, and at most sqrt(d);
//   - what rounding to bytes took from clip(z^), which is measured. Clipping brings no two points farther apart.
// Where squares underflow, sums are off by less than 2^-130, and a step is above 2^-70. Values inside the range of
// bytes are computed in float32 to 2^-15 steps, which the last term covers.
void Projection::encode_centred(const float* y, const float* projected, Sketch& sketch) const {
  sketch = {};
  const double square = squared_length(y, n_features_);
  if (!(square < longest * longest * 1e6)) {  // or NaN
    sketch.error = INFINITY;
    return;
  }
  constexpr std::size_t K = n_directions;
  float inside[width];
  float rests = 0.0F;
  const auto clip = [](float z) { return z < 0.0F ? 0.0F : z > 255.0F ? 255.0F : z; };
  for (std::size_t j = 0; j < width; ++j) inside[j] = clip(projected[j] * scale_ + 128.0F);
  float rest[16] = {};
  for (std::size_t j = 0; j < width; j += 16)
    for (std::size_t l = 0; l < 16; ++l) {
      const auto code = static_cast<std::int32_t>(inside[j + l] + 0.5F);
      const float off = inside[j + l] - static_cast<float>(code);
      rest[l] += off * off;
      sketch.codes[j + l] = static_cast<std::uint8_t>(code > 255 ? 255 : code);
    }
  for (const float one : rest) rests += one;
  for (std::size_t j = K; j < width; ++j) sketch.codes[j] = 0;

  const double length = std::sqrt(square);
  const double e = rounding(n_features_) * std::sqrt(static_cast<double>(K));
  const double outside = square - squared_length(projected, K) / (norm_ * norm_);
  const double residual = std::sqrt(std::max(0.0, outside));
  const double d = 3.0 * e * square;
  const float z = clip(static_cast<float>((residual - residual_) / step_ + 128.0));
  const auto code = static_cast<std::int32_t>(z + 0.5F);
  rests += (z - static_cast<float>(code)) * (z - static_cast<float>(code));
  sketch.codes[K] = static_cast<std::uint8_t>(code > 255 ? 255 : code);

  const double off = length * (e + 0x1p-23) + d / std::max({residual, std::sqrt(d), 1e-300});
  sketch.error = std::sqrt(rests) * 1.001F + static_cast<float>(off / step_ * 1.001) + 1e-3F;
  for (const std::uint8_t c : sketch.codes)
    sketch.term += std::int32_t{c} * (std::int32_t{c} - 256);
}

}  // namespace boundary_forest
