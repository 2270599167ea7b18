// How stored examples are searched for, and what a search needs for a moment.
//
// There are three ways. By the paper: for one neighbour, the closest of the examples that the trees end
// at; for more, the closest of the distinct ones that the descents compared, or of all that are stored
// where those are fewer. By the graph, if the forest has one: best first, with a beam (graph_search.cpp).
// And exactly. Ties go to the earlier arrival.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "boundary_forest/beam.hpp"
#include "boundary_forest/ids.hpp"
#include "boundary_forest/nearest.hpp"
#include "boundary_forest/types.hpp"

namespace boundary_forest {

// What may be returned.
struct Allowed {
  enum class By : std::uint8_t { all, arrivals, ids } by = By::all;
  std::span<const std::uint8_t> arrivals;  // 0 or 1 for each; those beyond are not allowed
  const Ids* ids = nullptr;                // those that name nothing are passed over
};

struct Search {
  bool exact = false;      // else by the graph, or by the paper where there is none
  std::size_t beam = 100;  // of the graph: how many of the closest are kept while it is walked
  Allowed allowed = {};
};

// Which of the examples that a search finds are asked for.
struct Limit {
  std::size_t n = std::numeric_limits<std::size_t>::max();
  double farthest = std::numeric_limits<double>::infinity();  // a distance, not reduced
};

// The slots that a search has met: a bit each, so that they stay in the nearest cache. Those that were set
// are cleared one by one, as few are met of many.
class Visited {
 public:
  void reset(std::size_t n) {
    for (const Slot slot : met_) words_[slot / 64] = 0;
    met_.clear();
    if (words_.size() * 64 < n) words_.resize((n + n / 4) / 64 + 1, 0);
  }
  // Of the n slots slot_of(j) that are below `end`: those that are met for the first time.
  template <class SlotOf>
  std::span<const Slot> meet(std::size_t n, Slot end, SlotOf&& slot_of) {
    const std::size_t before = met_.size();
    met_.resize(before + n);
    Slot* const first = met_.data() + before;
    Slot* next = first;
    std::uint64_t* const words = words_.data();
    for (std::size_t j = 0; j < n; ++j) {
      const Slot slot = slot_of(j);
      if (slot >= end) continue;
      const std::uint64_t word = words[slot / 64];
      const std::uint64_t with = word | std::uint64_t{1} << (slot % 64);
      words[slot / 64] = with;
      *next = slot;
      next += word != with ? 1 : 0;  // no branch: about half of them are new
    }
    met_.resize(static_cast<std::size_t>(next - met_.data()));
    return {first, next};
  }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<Slot> met_;
};

// The distances of one query to stored rows, as far as they are remembered.
class KnownDistances {
 public:
  // Of another query: nothing is known.
  void begin() {
    if (entries_.empty()) entries_.resize(size);
    if (++query_ == 0) {
      std::fill(entries_.begin(), entries_.end(), Entry{});
      query_ = 1;
    }
  }
  bool find(Slot slot, double& reduced) const {
    const Entry& entry = entries_[place(slot)];
    if (entry.slot != slot || entry.query != query_) return false;
    reduced = entry.reduced;
    return true;
  }
  void put(Slot slot, double reduced) { entries_[place(slot)] = {query_, slot, reduced}; }

 private:
  static constexpr std::size_t size = 8192;  // 128 KB, which stay in the second cache

  struct Entry {
    std::uint32_t query = 0;
    Slot slot = nothing;
    double reduced = 0.0;
  };

  static std::size_t place(Slot slot) { return slot % size; }

  std::vector<Entry> entries_;
  std::uint32_t query_ = 0;  // which one: those before need not be cleared
};

// The memory of one thread that searches.
struct Scratch {
  Beam beam;
  Visited visited;
  std::vector<std::uint8_t> codes;  // of the query
  std::vector<const std::byte*> rows;
  std::vector<double> reduced;
  KnownDistances known;
};

// Scratch that is in nobody's hands. No lock, so that a fork cannot find one held.
class ScratchPool {
 public:
  ScratchPool() = default;
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  ~ScratchPool() {
    for (auto& place : places_) delete place.load();
  }

  std::unique_ptr<Scratch> take() {
    for (auto& place : places_)
      if (Scratch* scratch = place.exchange(nullptr)) return std::unique_ptr<Scratch>(scratch);
    return std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    for (auto& place : places_) {
      Scratch* empty = nullptr;
      if (place.compare_exchange_strong(empty, scratch.get())) {
        scratch.release();
        return;
      }
    }
  }

 private:
  std::array<std::atomic<Scratch*>, 16> places_{};
};

}  // namespace boundary_forest
