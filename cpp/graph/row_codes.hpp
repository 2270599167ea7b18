// Stored rows once more, as bytes: what a graph search compares, at a quarter of the memory traffic of
// float32. The rows that it has found are ranked by their own distances.
//
// A feature is coded as the byte nearest to (x - mean) / step + 127.5, with its own mean and one step
// for all: eight times the largest standard deviation over 255. Values beyond are cut off. Where a metric compares
// directions, rows are divided by their lengths first. The coding
// is a function of the first 2^j, 5/4, 6/4 or 7/4 of 2^j slots, whichever of these counts was reached
// last, so that neither threads, nor cuts of the stream, nor saving can matter; at each count all rows
// are coded again, in a new object. There is none where rows do not differ or have no finite
// variance: then the search compares the rows themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/chunked_array.hpp"
#include "base/types.hpp"
#include "distance/metric.hpp"
#include "store/example_store.hpp"

namespace boundary_forest {

class RowCodes {
 public:
  // The largest of the counts above that is at most n, for n > 0.
  static Slot count_for(Slot n);

  // The reduced distance between codes that differ by 1 in every feature.
  static double one_step(const Metric& code_metric, std::size_t n_features);

  // From the first `count` rows; null if there is nothing to code by. No row is coded yet.
  static std::shared_ptr<RowCodes> from(const ExampleStore& store, bool of_directions, Slot count);

  Slot count() const { return count_; }

  // Codes the rows of all slots up to n.
  void extend(const ExampleStore& store, Slot n);

  ChunkedArray<std::uint8_t>::Places rows() const { return codes_.places(); }
  // A query in the same coding.
  void encode(const Position& query, std::uint8_t* codes) const;

  // See ChunkedArray.
  void settle(std::uint64_t number) { codes_.settle(number); }
  void recycle_before(std::uint64_t oldest_read) { codes_.recycle_before(oldest_read); }
  // Takes back the codes of the slots from n on, which were never published.
  void truncate(Slot n) { size_ = std::min(size_, n); }

  // May be called by any thread.
  std::size_t bytes() const { return codes_.bytes(); }

 private:
  RowCodes(std::size_t n_features, bool of_directions, Slot count);

  bool of_directions_;  // rows are divided by their lengths
  Slot count_;
  Slot size_ = 0;
  std::vector<double> scales_;  // of each feature: 1 / step
  std::vector<double> lows_;    // what is subtracted after that
  ChunkedArray<std::uint8_t> codes_;
};

}  // namespace boundary_forest
