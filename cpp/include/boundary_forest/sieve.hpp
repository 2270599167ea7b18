// Many queries against one node's children at once: which children may be the closest to which
// query. The batch side of Metric; BlockDescent (block_descent.hpp) is what uses it.
//
// A sieve may leave a child out only when its distance is strictly greater than another's, so the
// minimum that nearest.hpp takes over what is left is the minimum over all (promise 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "boundary_forest/metric.hpp"
#include "boundary_forest/query_rows.hpp"

namespace boundary_forest {

// Row `row` of a group is at the exact reduced distance `reduced` from its query number `query`.
struct Candidate {
  std::uint32_t query;
  std::uint32_t row;
  double reduced;
};

class Sieve {
 public:
  static constexpr std::size_t most_rows = 64;  // in one call

  // One thread's memory, kept between calls.
  struct Workspace {
    std::vector<std::byte> rows;
  };

  virtual ~Sieve() = default;

  // `queries` are numbers of the block's rows. bounds[i] is the reduced distance that a row must not
  // exceed to matter to the i-th of them, and becomes the least found. `found` gains, in any order,
  // at least all rows at that distance. Returns how many distances were computed.
  virtual std::size_t sift(std::span<const std::uint32_t> queries,
                           std::span<const std::byte* const> rows, std::span<double> bounds,
                           Workspace& workspace, std::vector<Candidate>& found) const = 0;
};

// For any metric: every distance is computed.
class PlainSieve : public Sieve {
 public:
  PlainSieve(const Metric& d, const QueryRows& block) : d_(d), block_(block) {}

  std::size_t sift(std::span<const std::uint32_t> queries, std::span<const std::byte* const> rows,
                   std::span<double> bounds, Workspace& workspace,
                   std::vector<Candidate>& found) const override;

 private:
  const Metric& d_;
  const QueryRows& block_;
};

}  // namespace boundary_forest
