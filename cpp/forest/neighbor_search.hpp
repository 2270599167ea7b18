// Stored examples close to queries. Reads one version.
//
// There are three ways. By the paper: for one neighbour, the closest of the examples that the trees end
// at; for more, the closest of the distinct ones that the descents compared, or of all that are stored
// where those are fewer. By the graph, if the forest has one: best first, with a beam (graph_index.hpp).
// And exactly, also in place of the graph's search where that would cost more. Ties go to the earlier arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "forest/queries.hpp"
#include "forest/results.hpp"
#include "forest/setup.hpp"
#include "forest/version.hpp"
#include "graph/graph_index.hpp"

namespace boundary_forest {

// What may be returned.
struct Allowed {
  enum class By : std::uint8_t { all, arrivals, ids } by = By::all;
  std::span<const std::uint8_t> arrivals;  // 0 or 1 for each; those beyond are not allowed
  const Ids* ids = nullptr;                // those that name nothing are passed over
};

struct Search {
  bool exact = false;      // else by the graph, or by the paper where there is none
  bool cheapest = false;   // exactly, where the graph's search would cost more
  std::size_t beam = 100;  // of the graph: how many of the closest are kept on the way
  Allowed allowed = {};
};

// What one call reads, and which examples it may return.
struct SearchPlan {
  const Version& version;
  bool exact;                         // all that may be returned are compared
  std::size_t beam;                   // else, of a graph
  double widest_beam;                 // of a graph; with a wider one the search is exact
  std::size_t n_allowed;              // how many may be returned
  std::vector<std::uint8_t> allowed;  // by slot, if not all that are stored may be
  bool is_filtered = false;
  bool compared_only = false;  // fewer than wanted are enough, as other engines have more
};

class NeighborSearch {
 public:
  NeighborSearch(const Setup& setup, const ExampleStore& store, const GraphIndex& graph,
                 Queries& queries)
      : setup_(setup), store_(store), graph_(graph), queries_(queries) {}

  // Where examples are allowed by their ids, nothing must be published meanwhile (Draft::hold_newest).
  SearchPlan plan(const Search& search, const Version& version) const;

  // The n closest examples.
  Neighbors neighbors(const SearchPlan& plan, const RowsView& rows, std::size_t n, const Run& run,
                      Counts& cost);
  // All that the search finds at distances up to `radius`.
  Within within(const SearchPlan& plan, const RowsView& rows, double radius, const Run& run,
                Counts& cost);
  // Up to n of the examples that neighbors() would choose from, or those within a radius; nearest first.
  Candidates candidates(const SearchPlan& plan, const RowsView& rows, std::size_t n, double radius,
                        const Run& run, Counts& cost);

 private:
  // f(row, its closest examples in order) for each row, as far as the limit goes.
  template <class F>
  void for_each_row(const RowsView& rows, const Limit& limit, const SearchPlan& plan,
                    const Run& run, Counts& cost, F&& f);
  // Likewise for the closest alone, by the paper.
  template <class F>
  void for_each_nearest(const RowsView& rows, const SearchPlan& plan, const Run& run, Counts& cost,
                        F&& f);
  std::vector<Leaf> paper_search(const QueryRows& queries, std::size_t i, const Limit& limit,
                                 const SearchPlan& plan, Counts& cost) const;
  bool is_there(const Version& version, Slot slot) const;
  std::vector<Slot> slots_of(const SearchPlan& plan) const;
  void exact_search(const QueryRows& queries, std::size_t begin, std::size_t end,
                    const Limit& limit, const SearchPlan& plan, std::span<const Slot> slots,
                    std::span<std::vector<Leaf>> out, Counts& cost) const;
  bool are_alike(const Version& version) const;
  void measure_alike(const Position& y, const Version& version, std::span<Leaf> leaves,
                     Counts& cost) const;
  Ids ids_of(std::span<const Slot> slots) const;

  const Setup& setup_;
  const ExampleStore& store_;
  const GraphIndex& graph_;
  Queries& queries_;
};

}  // namespace boundary_forest
