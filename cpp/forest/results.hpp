// What calls return: neighbours, answers and what they are made of, hashes, and figures about itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "store/ids.hpp"

namespace boundary_forest {

// A dense table, row by row.
template <class T>
struct Table {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<T> values = std::vector<T>(rows * columns);

  std::span<T> row(std::size_t i) { return std::span(values).subspan(i * columns, columns); }
};

// Examples taken out of the store.
struct Examples {
  std::vector<std::byte> positions;  // n x n_features, of the store's element type
  std::vector<double> labels;        // n x label_length
  std::vector<Arrival> arrivals;
  Ids ids;
};

struct Neighbors {
  Table<double> distances;
  Table<Arrival> arrivals;
  Ids ids;  // one for each, row by row
};

// Those within a radius: of row i, from number row_ends[i - 1] to row_ends[i].
struct Within {
  std::vector<std::uint64_t> row_ends;
  std::vector<double> distances;
  std::vector<Arrival> arrivals;
  Ids ids;
};

// Examples along a descent, or that the trees ended at: numbers into a list of examples, and their
// distances to the query.
struct Found {
  Table<std::uint32_t> places;
  Table<double> distances;
};

struct FoundExamples {
  Found found;        // a column a tree
  Examples examples;  // the distinct ones, by arrival
};

// What answers are made of: the example that each tree ended at, a column a tree. Before there are
// trees, every column has the nearest of the examples that are awaited.
struct TreeLeaves {
  Table<Arrival> arrivals;
  Table<double> labels;  // label_length columns a tree
  Table<double> distances;
  Table<double> weights;  // shares of the answer: a row's sum to 1; or none
};

// What one engine of several finds in a search: of row i, from number row_ends[i - 1] to row_ends[i]. They
// are ranked by reduced distances, of which two may be the same distance.
struct Candidates {
  std::vector<std::uint64_t> row_ends;
  std::vector<double> reduced;
  std::vector<double> distances;
  std::vector<Arrival> arrivals;
  Ids ids;
};

struct Paths {
  std::vector<Found> trees;
  Examples examples;  // the distinct ones, by arrival
  std::vector<double> weights;
  Table<double> estimate;  // E = Shepard vote: code and share of each class that has votes; else
                           // one row, as estimate() would have it
  // Of a stream's mixture: the recent rows that experts answer from, and what their labels are multiplied by.
  struct Recent {
    std::vector<Arrival> arrivals;
    Table<double> labels;
    std::vector<double> distances;
    std::vector<double> weights;
  };
  Recent recent = {};
};

// A forest's content in 128-bit hashes that neither depend on the layout of memory nor need all of
// it in one place: one a tree, and a sum over examples and their holders, so that those of engines
// that hold different trees add up.
struct Digest {
  std::uint64_t seen = 0;
  std::vector<std::array<std::uint64_t, 2>> trees;
  std::array<std::uint64_t, 2> examples = {0, 0};
  std::array<std::uint64_t, 2> adaptation = {0, 0};  // the same in all of them
};

// The weights of the features in use, and the features' variances: over the last arrivals if weights are
// learned, otherwise over the stored examples.
struct Features {
  std::vector<double> weights;  // none: all are 1
  std::vector<double> variances;
};

struct Stats {
  std::uint64_t seen = 0;
  Slot stored = 0;
  std::vector<NodeId> nodes;  // of the trees that answer; 0 before they are planted
  Counts learn;
  Counts query;
  std::size_t position_bytes = 0;  // the one copy of the rows
  std::size_t example_bytes = 0;   // labels, arrival numbers and holders
  std::size_t id_bytes = 0;
  std::size_t tree_bytes = 0;
  std::size_t window_bytes = 0;     // of the last arrivals, if weights are learned from them
  std::size_t reservoir_bytes = 0;  // of the list of its members, which are stored examples
  std::size_t mixture_bytes = 0;    // of the sums and solutions of the models over all rows
  std::size_t link_bytes = 0;       // of the graph, if there is one
  std::size_t code_bytes = 0;       // rows as bytes, likewise
  std::size_t sketch_bytes = 0;     // of long rows, if there are any
  // Of a forest that forgets: what became of the trees that answer, by place.
  struct Turnover {
    std::vector<std::uint32_t> generations;  // how many trees have stood there before
    std::vector<Arrival> ages;               // arrivals since the oldest example that it has
    std::vector<double> losses;              // recent means, if votes are judged
    std::uint8_t rule = 0;                   // in use, among vote_rules()
  };
  Turnover turnover;
};

}  // namespace boundary_forest
