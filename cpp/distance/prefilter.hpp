// Many queries against one node's children at once: which children are the closest to which query. The
// batch side of Metric; BlockDescent (block_descent.hpp) is what uses it.
//
// A prefilter leaves a child out only when its distance is strictly greater than another's; among those that
// are equally close, nearest.hpp decides (promise 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "distance/metric.hpp"
#include "store/query_rows.hpp"

namespace boundary_forest {

class DistanceCache;

class Prefilter {
 public:
  static constexpr std::size_t most_rows = 64;  // in one call

  // One thread's memory, kept between calls.
  struct Workspace {
    std::vector<std::byte> rows;
    DistanceCache* known = nullptr;  // of a row that is alone in its block
  };

  // Stored rows, and where they are.
  struct Rows {
    std::span<const std::byte* const> data;
    const Slot* slots;

    std::size_t size() const { return data.size(); }
  };

  virtual ~Prefilter() = default;

  // What it compares instead of rows, or null. Then a single query is worth a call, too.
  virtual const RowSketches* sketches() const { return nullptr; }

  // `queries` are numbers of the block's rows. bounds[i] is the reduced distance that a row must not
  // exceed to matter to the i-th of them, and becomes the least of the rows' if that is not greater.
  // closest[i] becomes the rows at that distance, as bits; 0 if none matters. Returns how many
  // distances were computed.
  virtual std::size_t filter(std::span<const std::uint32_t> queries, const Rows& rows,
                             std::span<double> bounds, Workspace& workspace,
                             std::span<std::uint64_t> closest) const = 0;

 protected:
  // Row j is at this distance: what it makes of the bound, and of the rows that are closest.
  static void consider(std::uint32_t j, double reduced, double& bound, std::uint64_t& closest) {
    if (reduced > bound) return;
    if (reduced < bound) closest = 0;
    bound = reduced;
    closest |= std::uint64_t{1} << j;
  }
};

// For any metric: every distance is computed.
class PlainPrefilter : public Prefilter {
 public:
  PlainPrefilter(const Metric& d, const QueryRows& block) : d_(d), block_(block) {}

  std::size_t filter(std::span<const std::uint32_t> queries, const Rows& rows,
                     std::span<double> bounds, Workspace& workspace,
                     std::span<std::uint64_t> closest) const override;

 private:
  const Metric& d_;
  const QueryRows& block_;
};

}  // namespace boundary_forest
