// Stored examples close to queries: what is asked of a search, and what becomes of its findings. The
// searches are below, by the paper and exactly, and in graph_search.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "forest/boundary_forest.hpp"
#include "forest/query_blocks.hpp"
#include "forest/search_plan.hpp"

namespace boundary_forest {

Neighbors BoundaryForest::neighbors(const RowsView& rows, std::size_t n, const Search& search,
                                    const Run& run) {
  prepare_search();
  if (search.allowed.by != Allowed::By::ids) {
    Reading reading(publication_);
    return neighbors(rows, n, plan(search, reading.version), run, reading.cost);
  }
  // The index of ids belongs to the learner, and to the newest version between two of its blocks.
  std::unique_lock lock(block_);
  Reading reading(publication_);
  const SearchPlan plan = this->plan(search, reading.version);
  lock.unlock();
  return neighbors(rows, n, plan, run, reading.cost);
}

BoundaryForest::SearchPlan BoundaryForest::plan(const Search& search,
                                                const Version& version) const {
  // More than there are would find no more.
  const std::size_t beam =
      std::clamp<std::size_t>(search.beam, 1, std::max<Slot>(1, version.slots));
  SearchPlan plan{version, search.exact || (params_.has_graph && !version.planted),
                  beam,    version.stored,
                  {},      {}};
  const Allowed& allowed = search.allowed;
  const auto is_there = [&](Slot slot) {
    return store_.is_in(version, slot) && !store_.is_forgotten(version, slot);
  };
  if (allowed.by != Allowed::By::all) {
    plan.is_filtered = true;
    plan.n_allowed = 0;
    plan.allowed.assign(version.slots, 0);
    const auto allow = [&](Slot slot) {
      if (slot >= version.slots || plan.allowed[slot] != 0 || !is_there(slot)) return;
      plan.allowed[slot] = 1;
      ++plan.n_allowed;
    };
    if (allowed.by == Allowed::By::arrivals)
      for (Slot slot = 0; slot < version.slots; ++slot)
        if (const Arrival a = store_.arrival(slot);
            a < allowed.arrivals.size() && allowed.arrivals[a])
          allow(slot);
    if (allowed.by == Allowed::By::ids)
      for (std::size_t i = 0; i < allowed.ids->size(); ++i)
        if (const Slot slot = store_.ids().find(*allowed.ids, i); slot != nothing) allow(slot);
    // A graph is walked past what is not allowed, so the fewer examples are, the more it takes: some
    // 16 distances for each of the beam, times how many there are for one that is allowed.
    const double m = static_cast<double>(plan.n_allowed);
    const double walked = 16.0 * static_cast<double>(beam) * version.slots;
    if (params_.has_graph && m * m <= walked) plan.exact = true;
  }
  if (plan.exact)
    for (Slot slot = 0; slot < version.slots; ++slot)
      if (plan.is_filtered ? plan.allowed[slot] != 0 : is_there(slot)) plan.slots.push_back(slot);
  return plan;
}

namespace {

// Rows in a mapped file are not checked; what has no order must not come to be sorted.
double ordered(double reduced) {
  return std::isnan(reduced) ? std::numeric_limits<double>::infinity() : reduced;
}

// What was found in several places, in order and each example once.
template <class T, class ArrivalOf>
void merge(std::vector<T>& found, ArrivalOf arrival_of) {
  std::sort(found.begin(), found.end(), ranked_by(arrival_of));
  const auto same = [&](const T& a, const T& b) { return arrival_of(a) == arrival_of(b); };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
}

}  // namespace

template <class F>
void BoundaryForest::for_each_search(const RowsView& rows, const Limit& limit,
                                     const SearchPlan& plan, const Run& run, Counts& cost, F&& f) {
  const bool by_graph = params_.has_graph && !plan.exact;
  // Exactly, queries share the rows that are in cache.
  const std::size_t at_once = plan.exact ? 16 : 4;
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    std::vector<std::vector<Leaf>> found(queries.size());
    const std::size_t n_tasks = (queries.size() + at_once - 1) / at_once;
    std::vector<Counts> costs(n_tasks);
    parallel_for(n_tasks, threads(run), [&](std::size_t task) {
      const std::size_t first = task * at_once;
      const std::size_t last = std::min(first + at_once, queries.size());
      if (plan.exact) return exact_search(queries, first, last, limit, plan, found, costs[task]);
      std::unique_ptr<Scratch> scratch = by_graph ? scratch_.take() : nullptr;
      for (std::size_t row = first; row < last; ++row)
        found[row] = by_graph ? graph_search(queries, row, limit, plan, *scratch, costs[task])
                              : paper_search(queries, row, limit, plan, costs[task]);
      if (scratch) scratch_.give_back(std::move(scratch));
    });
    for (const Counts& of_task : costs) cost += of_task;
    for (std::size_t row = 0; row < queries.size(); ++row) f(begin + row, found[row]);
  });
}

Neighbors BoundaryForest::neighbors(const RowsView& rows, std::size_t n, const SearchPlan& plan,
                                    const Run& run, Counts& cost) {
  const std::size_t n_T = params_.n_held();
  const Version& version = plan.version;
  if (n < 1 || n > plan.n_allowed)
    throw std::invalid_argument(
        "n_neighbors must be between 1 and " + std::to_string(plan.n_allowed) +
        (plan.is_filtered ? " (the examples allowed), got " : " (the examples stored), got ") +
        std::to_string(n) + ": use a smaller n_neighbors, or " +
        (plan.is_filtered ? "allow more examples" : "learn more examples first"));
  Neighbors out{{rows.n, n, std::vector<double>(rows.n * n)},
                {rows.n, n, std::vector<Arrival>(rows.n * n)},
                store_.ids().blank(rows.n * n)};
  const auto put = [&](std::size_t at, const Leaf& leaf) {
    out.distances.values[at] = settings_->d->distance(leaf.reduced);
    out.arrivals.values[at] = store_.arrival(leaf.example);
    store_.ids().get(leaf.example, out.ids, at);
  };
  if (n > 1 || params_.has_graph || plan.exact || plan.is_filtered) {
    for_each_search(rows, {.n = n}, plan, run, cost,
                    [&](std::size_t row, const std::vector<Leaf>& found) {
                      for (std::size_t j = 0; j < n; ++j) put(row * n + j, found[j]);
                    });
    return out;
  }
  StackMemory memory;
  std::pmr::vector<Leaf> v(std::min(rows.n, query_block_rows()) * n_T, &memory);
  for_each_query_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    BFQuery(queries, version, v.data(), run, cost);
    for (std::size_t row = 0; row < queries.size(); ++row) {
      const std::span<Leaf> v_row = std::span(v).subspan(row * n_T, n_T);
      if (!are_alike(version)) measure_alike(queries.position(row), version, v_row, cost);
      put(begin + row, nearest(v_row, store_));
    }
  });
  return out;
}

Within BoundaryForest::within(const RowsView& rows, double radius, const Search& search,
                              const Run& run) {
  prepare_search();
  std::unique_lock lock(block_, std::defer_lock);
  if (search.allowed.by == Allowed::By::ids) lock.lock();
  Reading reading(publication_);
  const SearchPlan plan = this->plan(search, reading.version);
  if (lock) lock.unlock();
  Within out;
  std::vector<Slot> slots;
  for_each_search(rows, {.farthest = radius}, plan, run, reading.cost,
                  [&](std::size_t, const std::vector<Leaf>& found) {
                    for (const Leaf& leaf : found) {
                      out.distances.push_back(settings_->d->distance(leaf.reduced));
                      out.arrivals.push_back(store_.arrival(leaf.example));
                      slots.push_back(leaf.example);
                    }
                    out.row_ends.push_back(slots.size());
                  });
  out.ids = store_.ids().blank(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) store_.ids().get(slots[i], out.ids, i);
  return out;
}

// A part that has no trees yet has all that is stored anywhere. An engine that is no part is a shard: it
// searches its own examples as neighbors() and within() do, however few there are.
Candidates BoundaryForest::candidates(const RowsView& rows, std::size_t n, double radius,
                                      const Search& search, const Run& run) {
  prepare_search();
  std::unique_lock lock(block_, std::defer_lock);
  if (search.allowed.by == Allowed::By::ids) lock.lock();
  Reading reading(publication_);
  SearchPlan plan = this->plan(search, reading.version);
  if (lock) lock.unlock();
  plan.compared_only = params_.is_part() && reading.version.planted;
  if (!params_.is_part() && std::isinf(radius)) n = std::min(n, plan.n_allowed);
  Candidates out;
  std::vector<Slot> slots;
  const auto put = [&](const Leaf& leaf) {
    out.reduced.push_back(leaf.reduced);
    out.distances.push_back(settings_->d->distance(leaf.reduced));
    out.arrivals.push_back(store_.arrival(leaf.example));
    slots.push_back(leaf.example);
  };
  if (n != 1 || !std::isinf(radius) || params_.has_graph || plan.exact || plan.is_filtered) {
    for_each_search(rows, {.n = n, .farthest = radius}, plan, run, reading.cost,
                    [&](std::size_t, const std::vector<Leaf>& found) {
                      for (const Leaf& leaf : found) put(leaf);
                      out.row_ends.push_back(slots.size());
                    });
  } else {
    const std::size_t n_T = params_.n_held();
    for_each_query_block(rows, run, [&](std::size_t, const QueryRows& queries) {
      std::vector<Leaf> v(queries.size() * n_T);
      BFQuery(queries, reading.version, v.data(), run, reading.cost);
      for (std::size_t row = 0; row < queries.size(); ++row) {
        const std::span<Leaf> v_row = std::span(v).subspan(row * n_T, n_T);
        if (!are_alike(reading.version))
          measure_alike(queries.position(row), reading.version, v_row, reading.cost);
        put(nearest(v_row, store_));
        out.row_ends.push_back(slots.size());
      }
    });
  }
  out.ids = store_.ids().blank(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) store_.ids().get(slots[i], out.ids, i);
  return out;
}

Closest closest(std::span<const std::span<const std::uint64_t>> ends,
                std::span<const double> reduced, std::span<const Arrival> arrivals, std::size_t n) {
  const std::size_t rows = ends.empty() ? 0 : ends[0].size();
  std::uint64_t total = 0;
  for (const auto& of_part : ends) {
    if (of_part.size() != rows || !std::ranges::is_sorted(of_part))
      throw std::invalid_argument("parts must have the same rows, whose ends ascend");
    if (rows > 0) total += of_part.back();
  }
  if (total != reduced.size() || total != arrivals.size())
    throw std::invalid_argument("each candidate needs a reduced distance and an arrival number");
  struct Candidate {
    std::uint64_t number;
    double reduced;
  };
  Closest out;
  std::vector<Candidate> found;
  for (std::size_t row = 0; row < rows; ++row) {
    found.clear();
    std::uint64_t first = 0;  // of the part
    for (const auto& of_part : ends) {
      for (std::uint64_t i = row == 0 ? 0 : of_part[row - 1]; i < of_part[row]; ++i)
        found.push_back({first + i, reduced[first + i]});
      first += of_part.back();
    }
    merge(found, [&](const Candidate& one) { return arrivals[one.number]; });
    if (found.size() > n) found.resize(n);
    for (const Candidate& one : found) out.numbers.push_back(one.number);
    out.row_ends.push_back(out.numbers.size());
  }
  return out;
}

// Of what was found, in order: as far as the limit goes.
void BoundaryForest::cut(std::vector<Leaf>& found, const Limit& limit) const {
  if (found.size() > limit.n) found.resize(limit.n);
  if (std::isinf(limit.farthest)) return;
  while (!found.empty() && settings_->d->distance(found.back().reduced) > limit.farthest)
    found.pop_back();
}

// Whether the trees that answer measure by the newest weights, and so by the same.
bool BoundaryForest::are_alike(const Version& version) const {
  return std::ranges::all_of(version.trees, [&](const TreeVersion& of) {
    return !of.answering || &of.tree->d() == version.adaptation.settings->d.get();
  });
}

// By the newest weights: distances that trees measured by different ones cannot be ranked.
void BoundaryForest::measure_alike(const Position& y, const Version& version,
                                   std::span<Leaf> leaves, Counts& cost) const {
  for (Leaf& leaf : leaves) {
    const std::byte* row = store_.row(leaf.example);
    version.adaptation.settings->d->distances(y, &row, 1, &leaf.reduced);
    leaf.reduced = ordered(leaf.reduced);
  }
  cost.evaluations += leaves.size();
}

// What the trees compared, or all that is stored where that is less than n.
std::vector<Leaf> BoundaryForest::paper_search(const QueryRows& queries, std::size_t i,
                                               const Limit& limit, const SearchPlan& plan,
                                               Counts& cost) const {
  const Version& version = plan.version;
  std::vector<Leaf> compared;
  for (const auto& [tree, n_nodes, generation, answering] : version.trees) {
    if (!answering) continue;
    tree->BTQuery({queries, i, version.seen, n_nodes}, cost, [&](Slot example, double reduced) {
      if (!plan.is_filtered || plan.allowed[example] != 0)
        compared.push_back({example, ordered(reduced)});
    });
  }
  if (!are_alike(version)) measure_alike(queries.position(i), version, compared, cost);
  merge(compared, arrival_in(store_));
  const bool has_limit = limit.n <= plan.n_allowed;
  // Too few were met on the way, or there are no trees yet.
  const bool too_few = has_limit ? compared.size() < limit.n : !version.planted;
  if (too_few && !plan.compared_only) {
    compared.clear();
    compared.reserve(plan.n_allowed);
    for (Slot slot = 0; slot < version.slots; ++slot) {
      if (!store_.is_in(version, slot)) continue;
      if (plan.is_filtered && plan.allowed[slot] == 0) continue;
      const std::byte* row = store_.row(slot);
      double reduced = 0.0;
      version.adaptation.settings->d->distances(queries.position(i), &row, 1, &reduced);
      compared.push_back({slot, ordered(reduced)});
    }
    cost += {version.planted ? 0 : compared.size(), compared.size()};
    std::partial_sort(
        compared.begin(),
        compared.begin() + static_cast<std::ptrdiff_t>(std::min(limit.n, compared.size())),
        compared.end(), ranked_by(arrival_in(store_)));
  }
  cut(compared, limit);
  return compared;
}

// Queries `begin` to `end` and every example that may be returned, a few of these at a time, so that
// they are read once for all those queries.
void BoundaryForest::exact_search(const QueryRows& queries, std::size_t begin, std::size_t end,
                                  const Limit& limit, const SearchPlan& plan,
                                  std::span<std::vector<Leaf>> out, Counts& cost) const {
  constexpr std::size_t group = Metric::group;
  const Metric& d = *plan.version.adaptation.settings->d;
  const auto earlier = ranked_by(arrival_in(store_));
  const std::byte* rows[group];
  double reduced[group];
  for (std::size_t first = 0; first < plan.slots.size(); first += group) {
    const std::size_t n = std::min(group, plan.slots.size() - first);
    for (std::size_t j = 0; j < n; ++j) rows[j] = store_.row(plan.slots[first + j]);
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<Leaf>& found = out[i];  // the greatest first, once there are enough
      d.distances(queries.position(i), rows, n, reduced);
      for (std::size_t j = 0; j < n; ++j) {
        const Leaf leaf{plan.slots[first + j], ordered(reduced[j])};
        if (found.size() >= limit.n) {
          if (!earlier(leaf, found.front())) continue;
          std::pop_heap(found.begin(), found.end(), earlier);
          found.back() = leaf;
          std::push_heap(found.begin(), found.end(), earlier);
        } else if (std::isinf(limit.farthest) || d.distance(leaf.reduced) <= limit.farthest) {
          found.push_back(leaf);
          if (found.size() == limit.n) std::make_heap(found.begin(), found.end(), earlier);
        }
      }
    }
  }
  for (std::size_t i = begin; i < end; ++i) std::sort(out[i].begin(), out[i].end(), earlier);
  const std::size_t n = plan.slots.size() * (end - begin);
  cost += {n, n};
}

}  // namespace boundary_forest
