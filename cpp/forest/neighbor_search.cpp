#include "forest/neighbor_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "concurrency/thread_pool.hpp"
#include "vote/combine.hpp"

namespace boundary_forest {

SearchPlan NeighborSearch::plan(const Search& search, const Version& version) const {
  // More than there are would find no more.
  const std::size_t beam =
      std::clamp<std::size_t>(search.beam, 1, std::max<Slot>(1, version.slots));
  SearchPlan plan{version,        search.exact || (setup_.params.has_graph && !version.planted),
                  beam,           std::numeric_limits<double>::infinity(),
                  version.stored, {}};
  const Allowed& allowed = search.allowed;
  if (allowed.by != Allowed::By::all) {
    plan.is_filtered = true;
    plan.n_allowed = 0;
    plan.allowed.assign(version.slots, 0);
    const auto allow = [&](Slot slot) {
      if (slot >= version.slots || plan.allowed[slot] != 0 || !is_there(version, slot)) return;
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
    // A graph search passes through what is not allowed, so the fewer are, the more it compares: some 16
    // distances per example of the beam, times how many there are per one that is allowed.
    const double m = static_cast<double>(plan.n_allowed);
    const double compared = 16.0 * static_cast<double>(beam) * version.slots;
    if (setup_.params.has_graph && m * m <= compared) plan.exact = true;
  }
  if (search.cheapest && setup_.params.has_graph)
    plan.widest_beam = graph_.widest_beam(version.graph, version.slots, plan.n_allowed);
  return plan;
}

bool NeighborSearch::is_there(const Version& version, Slot slot) const {
  return store_.is_in(version, slot) && !store_.is_forgotten(version, slot);
}

// All that may be returned.
std::vector<Slot> NeighborSearch::slots_of(const SearchPlan& plan) const {
  std::vector<Slot> slots;
  slots.reserve(plan.n_allowed);
  for (Slot slot = 0; slot < plan.version.slots; ++slot)
    if (plan.is_filtered ? plan.allowed[slot] != 0 : is_there(plan.version, slot))
      slots.push_back(slot);
  return slots;
}

namespace {

// Rows in a mapped file are not checked; what has no order must not come to be sorted.
double ordered(double reduced) {
  return std::isnan(reduced) ? std::numeric_limits<double>::infinity() : reduced;
}

}  // namespace

template <class F>
void NeighborSearch::for_each_row(const RowsView& rows, const Limit& limit, const SearchPlan& plan,
                                  const Run& run, Counts& cost, F&& f) {
  const Version& version = plan.version;
  const bool has_graph = setup_.params.has_graph && !plan.exact;
  const auto query = [&] {
    return GraphQuery{version,        version.graph, version.trees[0], plan.beam,
                      plan.n_allowed, plan.allowed,  plan.is_filtered, plan.widest_beam};
  };
  const bool exact =
      plan.exact ||
      (has_graph && query().is_too_wide(plan.beam, limit.n <= plan.n_allowed ? limit.n : 0));
  const std::vector<Slot> slots = exact ? slots_of(plan) : std::vector<Slot>();
  // Exactly, queries share the rows that are in cache.
  const std::size_t at_once = exact ? 16 : 4;
  queries_.for_each_block(rows, run, [&](std::size_t begin, const QueryRows& queries) {
    std::vector<std::vector<Leaf>> found(queries.size());
    const std::size_t n_tasks = (queries.size() + at_once - 1) / at_once;
    std::vector<Counts> costs(n_tasks);
    parallel_for(n_tasks, setup_.n_threads(run), [&](std::size_t task) {
      const std::size_t first = task * at_once;
      const std::size_t last = std::min(first + at_once, queries.size());
      if (exact) return exact_search(queries, first, last, limit, plan, slots, found, costs[task]);
      if (!has_graph) {
        for (std::size_t row = first; row < last; ++row)
          found[row] = paper_search(queries, row, limit, plan, costs[task]);
        return;
      }
      std::unique_ptr<SearchScratch> scratch = graph_.scratch().take();
      for (std::size_t row = first; row < last; ++row) {
        auto near = graph_.search(queries, row, limit, query(), *scratch, costs[task]);
        if (near)
          found[row] = std::move(*near);
        else  // the radius reaches too far
          exact_search(queries, row, row + 1, limit, plan, slots_of(plan), found, costs[task]);
      }
      graph_.scratch().give_back(std::move(scratch));
    });
    for (const Counts& of_task : costs) cost += of_task;
    for (std::size_t row = 0; row < queries.size(); ++row) f(begin + row, found[row]);
  });
}

// The closest of the examples that the trees end at is that of BFQuery.
template <class F>
void NeighborSearch::for_each_nearest(const RowsView& rows, const SearchPlan& plan, const Run& run,
                                      Counts& cost, F&& f) {
  const Version& version = plan.version;
  queries_.for_each_row(rows, run, version, cost,
                        [&](std::size_t row, const Position& y, std::span<Leaf> v) {
                          if (!are_alike(version)) measure_alike(y, version, v, cost);
                          f(row, closest_answer(v, store_));
                        });
}

Neighbors NeighborSearch::neighbors(const SearchPlan& plan, const RowsView& rows, std::size_t n,
                                    const Run& run, Counts& cost) {
  if (n < 1 || n > plan.n_allowed)
    throw std::invalid_argument(
        "n_neighbors must be between 1 and " + std::to_string(plan.n_allowed) +
        (plan.is_filtered ? " (the examples allowed), got " : " (the examples stored), got ") +
        std::to_string(n) + ": use a smaller n_neighbors, or " +
        (plan.is_filtered ? "allow more examples" : "learn more examples first"));
  Neighbors out{{rows.n, n}, {rows.n, n}, store_.ids().blank(rows.n * n)};
  const auto put = [&](std::size_t at, const Leaf& leaf) {
    out.distances.values[at] = setup_.d().distance(leaf.reduced);
    out.arrivals.values[at] = store_.arrival(leaf.example);
    store_.ids().get(leaf.example, out.ids, at);
  };
  if (n > 1 || setup_.params.has_graph || plan.exact || plan.is_filtered)
    for_each_row(rows, {.n = n}, plan, run, cost,
                 [&](std::size_t row, const std::vector<Leaf>& found) {
                   for (std::size_t j = 0; j < n; ++j) put(row * n + j, found[j]);
                 });
  else
    for_each_nearest(rows, plan, run, cost, put);
  return out;
}

Within NeighborSearch::within(const SearchPlan& plan, const RowsView& rows, double radius,
                              const Run& run, Counts& cost) {
  Within out;
  std::vector<Slot> slots;
  for_each_row(rows, {.farthest = radius}, plan, run, cost,
               [&](std::size_t, const std::vector<Leaf>& found) {
                 for (const Leaf& leaf : found) {
                   out.distances.push_back(setup_.d().distance(leaf.reduced));
                   out.arrivals.push_back(store_.arrival(leaf.example));
                   slots.push_back(leaf.example);
                 }
                 out.row_ends.push_back(slots.size());
               });
  out.ids = ids_of(slots);
  return out;
}

Candidates NeighborSearch::candidates(const SearchPlan& plan, const RowsView& rows, std::size_t n,
                                      double radius, const Run& run, Counts& cost) {
  Candidates out;
  std::vector<Slot> slots;
  const auto put = [&](std::span<const Leaf> found) {
    for (const Leaf& leaf : found) {
      out.reduced.push_back(leaf.reduced);
      out.distances.push_back(setup_.d().distance(leaf.reduced));
      out.arrivals.push_back(store_.arrival(leaf.example));
      slots.push_back(leaf.example);
    }
    out.row_ends.push_back(slots.size());
  };
  if (n != 1 || !std::isinf(radius) || setup_.params.has_graph || plan.exact || plan.is_filtered)
    for_each_row(rows, {.n = n, .farthest = radius}, plan, run, cost,
                 [&](std::size_t, const std::vector<Leaf>& found) { put(found); });
  else
    for_each_nearest(rows, plan, run, cost,
                     [&](std::size_t, const Leaf& leaf) { put({&leaf, 1}); });
  out.ids = ids_of(slots);
  return out;
}

Ids NeighborSearch::ids_of(std::span<const Slot> slots) const {
  Ids ids = store_.ids().blank(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) store_.ids().get(slots[i], ids, i);
  return ids;
}

// What the trees compared, or all that is stored where that is less than n.
std::vector<Leaf> NeighborSearch::paper_search(const QueryRows& queries, std::size_t i,
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
  rank_once(compared, arrival_in(store_));
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
  limit.apply(compared, setup_.d());
  return compared;
}

// Queries `begin` to `end` and every example that may be returned, a few of these at a time, so that
// they are read once for all those queries.
void NeighborSearch::exact_search(const QueryRows& queries, std::size_t begin, std::size_t end,
                                  const Limit& limit, const SearchPlan& plan,
                                  std::span<const Slot> slots, std::span<std::vector<Leaf>> out,
                                  Counts& cost) const {
  constexpr std::size_t group = Metric::group;
  const Metric& d = *plan.version.adaptation.settings->d;
  const auto earlier = ranked_by(arrival_in(store_));
  const std::byte* rows[group];
  double reduced[group];
  for (std::size_t first = 0; first < slots.size(); first += group) {
    const std::size_t n = std::min(group, slots.size() - first);
    for (std::size_t j = 0; j < n; ++j) rows[j] = store_.row(slots[first + j]);
    for (std::size_t i = begin; i < end; ++i) {
      std::vector<Leaf>& found = out[i];  // the greatest first, once there are enough
      d.distances(queries.position(i), rows, n, reduced);
      for (std::size_t j = 0; j < n; ++j) {
        const Leaf leaf{slots[first + j], ordered(reduced[j])};
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
  const std::size_t n = slots.size() * (end - begin);
  cost += {n, n};
}

// Whether the trees that answer measure by the newest weights, and so by the same.
bool NeighborSearch::are_alike(const Version& version) const {
  return std::ranges::all_of(version.trees, [&](const TreeVersion& of) {
    return !of.answering || &of.tree->d() == version.adaptation.settings->d.get();
  });
}

// By the newest weights: distances that trees measured by different ones cannot be ranked.
void NeighborSearch::measure_alike(const Position& y, const Version& version,
                                   std::span<Leaf> leaves, Counts& cost) const {
  for (Leaf& leaf : leaves) {
    const std::byte* row = store_.row(leaf.example);
    version.adaptation.settings->d->distances(y, &row, 1, &leaf.reduced);
    leaf.reduced = ordered(leaf.reduced);
  }
  cost.evaluations += leaves.size();
}

}  // namespace boundary_forest
