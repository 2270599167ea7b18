// Sketches never put rows farther apart than they are, whatever the rows; and every instruction set makes the same.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "distance/kernels/kernel.hpp"
#include "distance/projection.hpp"
#include "tests/check.hpp"

using namespace boundary_forest;

namespace {

constexpr std::size_t D = 203;

// Rows that vary less and less from feature to feature.
std::vector<float> rows_of(std::size_t n, unsigned seed, double offset) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<float> rows(n * D);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<float>(offset + normal(random) / static_cast<double>(1 + i % D));
  return rows;
}

std::shared_ptr<const Projection> projection_of(const std::vector<float>& rows) {
  ExampleStore store(ElementType::float32, D, 0);
  const Slot staged =
      store.stage(reinterpret_cast<const std::byte*>(rows.data()), nullptr, rows.size() / D, 0);
  return Projection::from(store, staged);
}

std::vector<Sketch> sketches_of(const Projection& projection, const std::vector<float>& rows) {
  std::vector<Sketch> sketches(rows.size() / D);
  for (std::size_t i = 0; i < sketches.size(); ++i) {
    const Position row{reinterpret_cast<const std::byte*>(&rows[i * D]), ElementType::float32};
    Sketch* out = &sketches[i];
    projection.encode(&row, 1, &out);
  }
  return sketches;
}

}  // namespace

CASE("sketches are never farther apart than their rows, less the errors") {
  for (const double offset : {0.0, 1e4}) {
    const std::vector<float> sample = rows_of(600, 1, offset);
    const auto projection = projection_of(sample);
    CHECK(projection != nullptr);
    if (projection == nullptr) continue;
    // Rows near each other, far outside of the range of bytes, outside of the directions, equal, and huge.
    std::vector<float> rows = rows_of(120, 2, offset);
    std::mt19937_64 random(3);
    for (std::size_t i = 0; i < 120; ++i)
      for (std::size_t f = 0; f < D; ++f) {
        float& x = rows[i * D + f];
        if (i % 6 == 1) x = rows[(i - 1) * D + f] * (f == i ? 1.0001F : 1.0F);
        if (i % 6 == 2) x *= 50.0F;
        if (i % 6 == 3) x += f > D / 2 ? static_cast<float>(random() % 100) : 0.0F;
        if (i % 6 == 4) x = f == i ? 1e7F : x;
        if (i % 60 == 5) x *= 1e17F;
      }
    const std::vector<Sketch> sketches = sketches_of(*projection, rows);
    for (std::size_t a = 0; a < 120; ++a)
      for (std::size_t b = 0; b < a; ++b) {
        long double square = 0.0L;
        for (std::size_t f = 0; f < D; ++f) {
          const long double apart = static_cast<long double>(rows[a * D + f]) - rows[b * D + f];
          square += apart * apart;
        }
        double codes = 0.0;
        for (std::size_t c = 0; c < Sketch::n_codes; ++c) {
          const double apart = sketches[a].codes[c] - sketches[b].codes[c];
          codes += apart * apart;
        }
        const double bound =
            (std::sqrt(codes) - sketches[a].error - sketches[b].error) * projection->step();
        CHECK(!(bound > static_cast<double>(std::sqrt(square)) * (1 + 1e-6)));
      }
  }
}

CASE("every instruction set projects alike") {
  const std::vector<float> rows = rows_of(11, 4, 0.5);
  constexpr std::size_t n_panels = 2;
  const std::vector<float> some = rows_of(kernels::panel_width * n_panels, 5, 0.0);
  std::vector<float> expected;
  for (const kernels::InstructionSet& set : kernels::instruction_sets()) {
    std::vector<float> out(11 * kernels::panel_width * n_panels);
    set.project(rows.data(), 11, D, some.data(), n_panels, out.data());
    if (expected.empty()) expected = out;
    CHECK(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)) == 0);
  }
}

CASE("rows without principal directions are not sketched") {
  std::mt19937_64 random(6);
  std::vector<float> rows(600 * D);
  for (float& x : rows) x = static_cast<float>(random() % 1000);
  CHECK(projection_of(rows) == nullptr);
}

int main() { return check::run_all(); }
