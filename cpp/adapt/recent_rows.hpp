// The rows that arrived last, and which of them are nearest to a query: what some experts of a stream answer
// from. Exhaustive, so that a row counts as soon as it has arrived.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "adapt/window.hpp"
#include "base/memory.hpp"
#include "base/types.hpp"
#include "distance/metric.hpp"

namespace boundary_forest {

class RecentRows {
 public:
  static constexpr std::size_t most_neighbours = 15;

  // Of the last `longest` arrivals of the window, without those that were erased. The window must outlive this;
  // it may get further rows.
  RecentRows(const Window& window, std::size_t longest) : window_(window), longest_(longest) {}

  // The k nearest of the last n arrivals, the nearest first; of equals, the latest. At most most_neighbours.
  // Valid until the next call.
  std::span<const Arrival> nearest(const Position& query, const Metric& d, std::size_t n,
                                   std::size_t k) {
    collect();
    const Arrival first = window_.end() - std::min<Arrival>(window_.end(), n);
    const auto begin = static_cast<std::size_t>(
        std::lower_bound(arrivals_.begin(), arrivals_.end(), first) - arrivals_.begin());
    const std::size_t n_rows = arrivals_.size() - begin;
    distances_.resize(n_rows);
    if (n_rows > 0) d.distances(query, rows_.data() + begin, n_rows, distances_.data());
    std::array<double, most_neighbours> least;
    std::size_t n_found = 0;
    for (std::size_t i = n_rows; i-- > 0;) {
      const double distance = distances_[i];
      if (n_found == k && !(distance < least[k - 1])) continue;
      std::size_t at = n_found < k ? n_found++ : k - 1;
      for (; at > 0 && distance < least[at - 1]; --at) {
        least[at] = least[at - 1];
        found_[at] = found_[at - 1];
      }
      least[at] = distance;
      found_[at] = arrivals_[begin + i];
    }
    return std::span(found_).first(n_found);
  }

  const double* label(Arrival a) const { return window_.label(a); }

 private:
  // What has arrived since the last time.
  void collect() {
    if (rows_.size() >= 2 * longest_) {
      const auto n = static_cast<std::ptrdiff_t>(rows_.size() - longest_);
      rows_.erase(rows_.begin(), rows_.begin() + n);
      arrivals_.erase(arrivals_.begin(), arrivals_.begin() + n);
    }
    const Arrival end = window_.end();
    const Arrival first = std::max(end - std::min<Arrival>(end, longest_), collected_);
    reserve_more(rows_, end - first);
    reserve_more(arrivals_, end - first);
    window_.for_each_from(first, [&](Arrival a, const std::byte* row) {
      arrivals_.push_back(a);
      rows_.push_back(row);
    });
    collected_ = end;
  }

  const Window& window_;
  const std::size_t longest_;
  Arrival collected_ = 0;               // the end of what follows
  std::vector<Arrival> arrivals_;       // ascending
  std::vector<const std::byte*> rows_;  // of each
  std::vector<double> distances_;
  std::array<Arrival, most_neighbours> found_{};
};

}  // namespace boundary_forest
