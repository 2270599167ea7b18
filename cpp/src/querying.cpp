// Algorithm 2, the asking side: BFQuery and the answers made of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "boundary_forest/block_descent.hpp"
#include "boundary_forest/boundary_forest.hpp"
#include "boundary_forest/stack_memory.hpp"

namespace boundary_forest {

// v[row * n_T + i] becomes the locally closest example of tree i.
void BoundaryForest::BFQuery(const QueryRows& queries, Reading& reading, Leaf* v, const Run& run) {
  const Prefix& prefix = reading.prefix;
  const std::size_t n_T = params_.n_T;
  if (!prefix.planted()) {
    for (std::size_t row = 0; row < queries.size(); ++row)
      std::fill_n(v + row * n_T, n_T,
                  nearest_buffered(queries, row, prefix.stored, prefix.seen, reading.cost));
    return;
  }
  StackMemory memory;
  std::pmr::vector<Counts> costs(n_T, &memory);
  const std::unique_ptr<Sieve> sieve = sieve_for(queries);
  std::vector<std::uint32_t> rows(sieve ? queries.size() : 0);
  std::iota(rows.begin(), rows.end(), 0);
  pool_.parallel_for(n_T, threads(run), [&](std::size_t i) {
    if (sieve) {
      BlockDescent block(queries, *sieve);
      block.descend(*trees_[i], rows, prefix.seen, 0, prefix.nodes[i], costs[i]);
      for (std::size_t row = 0; row < queries.size(); ++row)
        v[row * n_T + i] = block.endings()[row].at;
      return;
    }
    for (std::size_t row = 0; row < queries.size(); ++row)
      v[row * n_T + i] =
          trees_[i]->BTQuery(queries, row, prefix.seen, prefix.nodes[i], costs[i]).second;
  });
  for (const Counts& cost : costs) reading.cost += cost;
}

// Before the n_T-th example there are no trees: the exact nearest of those that have arrived, ties
// by the first tree's priorities.
Leaf BoundaryForest::nearest_buffered(const QueryRows& queries, std::size_t i, Slot stored,
                                      std::uint64_t seen, Counts& cost) const {
  if (stored == 0) throw std::logic_error("the forest has not learned anything yet");
  Nearest closest(BoundaryTree::tie_hash(params_, 0), store_, queries, i, seen);
  for (Slot slot = 0; slot < stored; ++slot) {
    Leaf candidate{slot, 0.0};
    const std::byte* row = store_.row(slot);
    d_->distances(queries.position(i), &row, 1, &candidate.reduced);
    closest.consider(slot, candidate);
  }
  cost += {stored, stored};
  return closest.at();
}

template <class F>
void BoundaryForest::for_each_query_block(const RowsView& rows, const Run& run, F&& f) {
  const std::size_t block_rows = query_block_rows();
  for (std::size_t begin = 0; begin < rows.n; begin += block_rows) {
    if (begin > 0) run.between_blocks();
    const std::size_t n = std::min(block_rows, rows.n - begin);
    StackMemory memory;
    const QueryRows queries(rows.slice(begin, n, params_.n_features), store_, &memory);
    f(begin, queries);
  }
}

Table<Arrival> BoundaryForest::apply(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  const std::size_t n_T = params_.n_T;
  Table<Arrival> out{rows.n, n_T, std::vector<Arrival>(rows.n * n_T)};
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, query_block_rows()) * n_T, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, reading, v.data(), run);
    for (std::size_t j = 0; j < queries.size() * n_T; ++j)
      out.values[begin * n_T + j] = store_.arrival(v[j].example);
  });
  return out;
}

Table<double> BoundaryForest::estimate(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  const std::size_t n_T = params_.n_T;
  const bool vote = params_.estimator == Estimator::shepard_vote;
  const std::size_t length = vote ? reading.prefix.n_classes : params_.label_length;
  Table<double> out{rows.n, length, std::vector<double>(rows.n * length)};
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, query_block_rows()) * n_T, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, reading, v.data(), run);
    for (std::size_t row = 0; row < queries.size(); ++row)
      E(std::span<const Leaf>(v).subspan(row * n_T, n_T),
        std::span(out.values).subspan((begin + row) * length, length));
  });
  return out;
}

void BoundaryForest::E(std::span<const Leaf> v, std::span<double> out) const {
  if (params_.estimator == Estimator::nearest) {
    std::copy_n(store_.label(nearest(v, store_).example), out.size(), out.begin());
    return;
  }
  StackMemory memory;
  std::pmr::vector<double> weights(v.size(), &memory);
  for (std::size_t i = 0; i < v.size(); ++i) weights[i] = d_->distance(v[i].reduced);
  const double sum = shepard_weights(weights);
  const bool vote = params_.estimator == Estimator::shepard_vote;
  (vote ? shepard_vote : shepard_mean)(v, weights, sum, store_, out);
}

Found BoundaryForest::found(const RowsView& rows, const Run& run) {
  Reading reading(publication_);
  const std::size_t n_T = params_.n_T;
  Found out{{rows.n, n_T, std::vector<Slot>(rows.n * n_T)},
            {rows.n, n_T, std::vector<double>(rows.n * n_T)}};
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, query_block_rows()) * n_T, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, reading, v.data(), run);
    for (std::size_t j = 0; j < queries.size() * n_T; ++j) {
      out.slots.values[begin * n_T + j] = v[j].example;
      out.distances.values[begin * n_T + j] = d_->distance(v[j].reduced);
    }
  });
  return out;
}

Paths BoundaryForest::paths(const RowsView& row) {
  Reading reading(publication_);
  const Prefix& prefix = reading.prefix;
  const QueryRows query(row, store_);
  Paths out;
  std::vector<Leaf> v(params_.n_T);
  if (!prefix.planted()) BFQuery(query, reading, v.data(), Run{});
  for (std::size_t t = 0; t < params_.n_T; ++t) {
    std::vector<Slot> slots = {v[t].example};
    if (prefix.planted()) {
      NodeId w = 0;
      std::tie(w, v[t]) = trees_[t]->BTQuery(query, 0, prefix.seen, prefix.nodes[t], reading.cost);
      for (slots.clear(); w != nothing; w = trees_[t]->parent(w))
        slots.push_back(trees_[t]->example(w));
      std::reverse(slots.begin(), slots.end());
    }
    std::vector<double> distances(slots.size());
    for (std::size_t j = 0; j < slots.size(); ++j) {
      const std::byte* example = store_.row(slots[j]);
      d_->distances(query.position(0), &example, 1, &distances[j]);
      distances[j] = d_->distance(distances[j]);
    }
    const std::size_t length = slots.size();
    out.trees.push_back({{1, length, std::move(slots)}, {1, length, std::move(distances)}});
  }
  const Slot closest = nearest(v, store_).example;
  for (const Leaf& v_i : v)
    out.weights.push_back(params_.estimator == Estimator::nearest
                              ? static_cast<double>(v_i.example != closest)
                              : d_->distance(v_i.reduced));
  const double sum = shepard_weights(out.weights);  // 0 for the closest: it decides alone
  for (double& weight : out.weights) weight /= sum;
  const bool vote = params_.estimator == Estimator::shepard_vote;
  out.estimate.resize(vote ? prefix.n_classes : params_.label_length);
  E(v, out.estimate);
  return out;
}

Neighbors BoundaryForest::neighbors(const RowsView& rows, std::size_t n, const Run& run) {
  Reading reading(publication_);
  const Prefix& prefix = reading.prefix;
  const std::size_t n_T = params_.n_T;
  if (n < 1 || n > prefix.stored)
    throw std::invalid_argument("n_neighbors must be between 1 and the " +
                                std::to_string(prefix.stored) + " examples stored, got " +
                                std::to_string(n) + "; learn more first, or ask for fewer");
  Neighbors out{{rows.n, n, std::vector<double>(rows.n * n)},
                {rows.n, n, std::vector<Arrival>(rows.n * n)}};
  StackMemory memory;
  std::pmr::vector<Leaf> v(n == 1 ? std::min(rows.n, query_block_rows()) * n_T : 0, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    double* distances = out.distances.values.data() + begin * n;
    Arrival* arrivals = out.arrivals.values.data() + begin * n;
    if (n == 1) {
      BFQuery(queries, reading, v.data(), run);
      for (std::size_t row = 0; row < queries.size(); ++row) {
        const Leaf& best = nearest(std::span<const Leaf>(v.data() + row * n_T, n_T), store_);
        distances[row] = d_->distance(best.reduced);
        arrivals[row] = store_.arrival(best.example);
      }
      return;
    }
    std::vector<Counts> costs(queries.size());
    pool_.parallel_for(queries.size(), threads(run), [&](std::size_t row) {
      neighbors_of(queries, row, prefix, costs[row], n, distances + row * n, arrivals + row * n);
    });
    for (const Counts& cost : costs) reading.cost += cost;
  });
  return out;
}

void BoundaryForest::neighbors_of(const QueryRows& queries, std::size_t i, const Prefix& prefix,
                                  Counts& cost, std::size_t n, double* distances,
                                  Arrival* arrivals) const {
  std::vector<Leaf> compared;
  // Rows in a mapped file are not checked; what has no order must not come to be sorted.
  const auto ordered = [](double reduced) {
    return std::isnan(reduced) ? std::numeric_limits<double>::infinity() : reduced;
  };
  const auto earlier = [&](const Leaf& a, const Leaf& b) {
    if (a.reduced != b.reduced) return a.reduced < b.reduced;
    return store_.arrival(a.example) < store_.arrival(b.example);
  };
  if (prefix.planted()) {
    for (std::size_t t = 0; t < trees_.size(); ++t)
      trees_[t]->BTQuery(
          queries, i, prefix.seen, prefix.nodes[t], cost,
          [&](Slot example, double reduced) { compared.push_back({example, ordered(reduced)}); });
    std::sort(compared.begin(), compared.end(), earlier);
    const auto same = [](const Leaf& a, const Leaf& b) { return a.example == b.example; };
    compared.erase(std::unique(compared.begin(), compared.end(), same), compared.end());
  }
  if (compared.size() < n) {  // too few were met on the way, or there are no trees yet
    compared.resize(prefix.stored);
    for (Slot slot = 0; slot < prefix.stored; ++slot) {
      const std::byte* row = store_.row(slot);
      compared[slot].example = slot;
      d_->distances(queries.position(i), &row, 1, &compared[slot].reduced);
      compared[slot].reduced = ordered(compared[slot].reduced);
    }
    cost += {prefix.planted() ? 0 : prefix.stored, prefix.stored};
    std::partial_sort(compared.begin(), compared.begin() + static_cast<std::ptrdiff_t>(n),
                      compared.end(), earlier);
  }
  for (std::size_t j = 0; j < n; ++j) {
    distances[j] = d_->distance(compared[j].reduced);
    arrivals[j] = store_.arrival(compared[j].example);
  }
}

}  // namespace boundary_forest
