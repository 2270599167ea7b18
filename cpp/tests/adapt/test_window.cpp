// The last arrivals as a value that shares its memory, and the logarithms that weights are made of.
#include <cmath>
#include <cstring>
#include <vector>

#include "adapt/window.hpp"
#include "distance/feature_weights.hpp"
#include "tests/check.hpp"

using namespace boundary_forest;

namespace {

void add(Window& window, double value) {
  std::byte row[sizeof value];
  std::memcpy(row, &value, sizeof value);
  window.add(row, &value);
}

void check_holds(const Window& window, Arrival begin, Arrival end, double added = 0.0) {
  CHECK_EQ(window.begin(), begin);
  CHECK_EQ(window.end(), end);
  for (Arrival a = window.begin(); a < window.end(); ++a) {
    double value = 0.0;
    std::memcpy(&value, window.row(a), sizeof value);
    CHECK_EQ(value, static_cast<double>(a) + added);
    CHECK_EQ(*window.label(a), static_cast<double>(a) + added);
  }
}

}  // namespace

CASE("a window has the last arrivals, wherever it begins, in bounded memory") {
  for (const Arrival first : {0, 1, 255, 256, 257, 5000}) {
    Window window(sizeof(double), 1);
    window.begin_at(first);
    for (Arrival a = first; a < first + 9000; ++a) {
      add(window, static_cast<double>(a));
      CHECK(window.bytes() <= (Window::capacity + 2 * 256) * 2 * sizeof(double));
      const Arrival oldest = a < 4000 ? 0 : a - 3999;
      if (a % 997 == 0) check_holds(window, std::max(first, oldest), a + 1);
    }
    check_holds(window, first + 5000, first + 9000);
  }
}

CASE("a copy stays as it was, and what is taken back is overwritten") {
  Window window(sizeof(double), 1);
  for (Arrival a = 0; a < 4100; ++a) add(window, static_cast<double>(a));
  const Window published = window;
  for (int attempt = 0; attempt < 3; ++attempt) {
    window = published;
    for (Arrival a = 4100; a < 4100 + 700; ++a) add(window, static_cast<double>(a) + attempt - 2);
    check_holds(published, 100, 4100);
  }
  check_holds(window, 800, 4800);
}

CASE("a logarithm is the nearest to the weight, over all doubles") {
  for (LogWeight u = -most_log_weight; u <= most_log_weight; ++u) {
    CHECK_EQ(log_weight_of(weight_of(u)), u);
    CHECK(weight_of(u) < weight_of(u + 1));
    CHECK_EQ(weight_of(u + per_octave), 2.0 * weight_of(u));
    const double middle = std::sqrt(weight_of(u)) * std::sqrt(weight_of(u + 1));
    CHECK_EQ(log_weight_of(middle * (1.0 - 1e-14)), u);
    CHECK_EQ(log_weight_of(middle * (1.0 + 1e-14)), u + 1);
  }
  CHECK_EQ(log_weight_of(5e-324), -1074 * per_octave);
  CHECK_EQ(log_weight_of(1.7976931348623157e308), 1024 * per_octave);
}

CASE("a constant feature gets the least weight") {
  CHECK_EQ(least_log_weight(LogWeights{}), 0);
  CHECK_EQ(least_log_weight(LogWeights{3, -7, 0}), -7);
  CHECK(is_plain(LogWeights{0, 0}) && !is_plain(LogWeights{0, 1}));
}

int main() { return check::run_all(); }
