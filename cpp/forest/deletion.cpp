#include "forest/deletion.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace boundary_forest {

Forgetting Deletion::forget(const Ids& ids, const Run& run, bool erases) {
  const LearningLock lock = draft_.begin();
  if (setup_.params.has_graph) return mark(ids, run, erases);
  ExampleStore& store = draft_.store();
  std::vector<std::size_t> unknown;
  std::vector<char> forgotten(store.size(), 0);
  std::vector<Arrival> erased;
  const std::vector<char> known = find_in_window(ids, erased);
  Slot n_forgotten = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Slot slot = store.ids().find(ids, i);
    if (slot != nothing && !std::exchange(forgotten[slot], 1)) ++n_forgotten;
    if (slot == nothing && !known[i]) unknown.push_back(i);
  }
  if (!unknown.empty()) return {std::move(unknown), std::nullopt};
  if (n_forgotten > 0 && n_forgotten == store.n_living())
    throw std::invalid_argument(
        "ids must not be those of all stored examples, because a forest needs at least one: start "
        "a new forest instead");
  draft_.commit([&] {
    uncount(forgotten, erased);
    remove(forgotten, run);
    for (Slot slot = 0; !draft_.planted() && slot < forgotten.size(); ++slot)
      if (forgotten[slot]) store.let_go(slot, draft_.next());
    draft_.progress().adaptation.reservoir.erase(forgotten, draft_.next(), store);
    Adaptation& adaptation = draft_.progress().adaptation;
    for (const Arrival a : erased) adaptation.window.erase(a);
    if (adaptation.stream.is_mixed())
      adaptation.stream.learn_again(adaptation.window, store.element_type(),
                                    setup_.params.n_features, setup_.params.label_length,
                                    setup_.votes());
  });
  return {};
}

std::vector<std::uint32_t> Deletion::classes_without(const Ids& ids) const {
  const LearningLock lock = draft_.begin();
  const ExampleStore& store = draft_.store();
  const Window& window = draft_.progress().adaptation.window;
  std::vector<char> forgotten(store.size(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (const Slot slot = store.ids().find(ids, i); slot != nothing) forgotten[slot] = 1;
  std::vector<Arrival> erased;
  find_in_window(ids, erased);
  std::vector<char> is_left(draft_.progress().n_classes, 0);
  for (Slot slot = 0; slot < store.size(); ++slot)
    if (store.is_alive(slot) && !forgotten[slot])
      is_left[static_cast<std::size_t>(*store.label(slot))] = 1;
  if (window.is_kept())
    for (const Arrival a : window.last(Window::capacity))
      if (!std::binary_search(erased.begin(), erased.end(), a))
        is_left[static_cast<std::size_t>(*window.label(a))] = 1;
  std::vector<std::uint32_t> codes;
  for (std::uint32_t code = 0; code < is_left.size(); ++code)
    if (is_left[code]) codes.push_back(code);
  return codes;
}

Forgetting Deletion::mark(const Ids& ids, const Run& run, bool erases) {
  ExampleStore& store = draft_.store();
  std::vector<std::size_t> unknown;
  std::vector<Slot> known;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    known.push_back(store.ids().find(ids, i));
    if (known.back() == nothing) unknown.push_back(i);
  }
  if (!unknown.empty()) return {std::move(unknown), std::nullopt};
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  if (!known.empty() && known.size() == store.n_living() - store.n_marked())
    throw std::invalid_argument(
        "ids must not be those of all stored examples, because a forest needs at least one: start "
        "a new forest instead");
  try {
    for (const Slot slot : known) store.mark(slot, draft_.next());
    if (erases || must_rebuild()) return {{}, take_without_marked(run)};
    draft_.publish();
  } catch (...) {
    draft_.rollback();
    throw;
  }
  return {};
}

void Deletion::mark_known(const Ids& ids, std::size_t begin, std::size_t n) {
  for (std::size_t i = begin; i < begin + n; ++i)
    if (const Slot slot = draft_.store().ids().find(ids, i); slot != nothing)
      draft_.store().mark(slot, draft_.next());
}

bool Deletion::must_rebuild() const {
  return is_rebuild_due(draft_.store().n_marked(), draft_.store().n_living());
}

std::size_t Deletion::n_before_rebuilding() const {
  const std::uint64_t marked = 3 * std::uint64_t{draft_.store().n_marked()};
  const std::uint64_t living = draft_.store().n_living();
  return marked >= living ? 1 : static_cast<std::size_t>((living - marked + 1) / 2);
}

ForestState Deletion::without_marked(const Run& run) {
  const LearningLock lock = draft_.begin();
  try {
    return take_without_marked(run);
  } catch (...) {
    draft_.rollback();
    throw;
  }
}

ForestState Deletion::take_without_marked(const Run& run) {
  const ExampleStore& store = draft_.store();
  std::vector<char> forgotten(store.size(), 0);
  std::vector<Slot> left;
  for (Slot slot = 0; slot < store.size(); ++slot)
    if (store.is_marked(slot))
      forgotten[slot] = 1;
    else
      left.push_back(slot);
  Counts learn = draft_.trees().take_cost();  // of what is not published yet
  remove(forgotten, run);
  ForestState state = state_of(setup_.params, store, draft_.preview(), left, true);
  state.learn = learn += publication_.learn_counts();
  state.query = publication_.query_counts();
  draft_.rollback();
  return state;
}

// Of each id: whether some of the last arrivals have it. Those are added to `arrivals`. (There may be
// several, as an id may be given again once no tree has its example.)
std::vector<char> Deletion::find_in_window(const Ids& ids, std::vector<Arrival>& arrivals) const {
  const Window& window = draft_.progress().adaptation.window;
  std::vector<char> found(ids.size(), 0);
  if (!window.is_kept()) return found;
  Ids one = draft_.store().ids().blank(1);
  const auto search = [&](const auto& wanted, const auto& id) {
    std::vector<std::size_t> order(wanted.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
    for (const Arrival a : window.last(Window::capacity)) {
      window.get_id(a, one, 0);
      auto at = std::lower_bound(order.begin(), order.end(), id,
                                 [&](std::size_t i, const auto& x) { return wanted[i] < x; });
      if (at != order.end() && wanted[*at] == id) arrivals.push_back(a);
      for (; at != order.end() && wanted[*at] == id; ++at) found[*at] = 1;
    }
  };
  if (ids.kind() == IdKind::integer) search(ids.integers, one.integers[0]);
  if (ids.kind() == IdKind::text) search(ids.texts, one.texts[0]);
  return found;
}

// Their classes have so many examples less, and sums lose their rows, in order of arrival. Those that only
// the window has are not among the stored.
void Deletion::uncount(std::span<const char> forgotten, std::span<const Arrival> erased) {
  const ExampleStore& store = draft_.store();
  Adaptation& adaptation = draft_.progress().adaptation;
  std::vector<double>& counts = adaptation.votes.class_counts;
  MixtureState& mixture = adaptation.mixture;
  if (counts.empty() && !mixture.is_mixed()) return;
  struct Lost {
    const std::byte* row;
    const double* label;
  };
  std::map<Arrival, Lost> lost;
  for (const Arrival a : erased) lost[a] = {adaptation.window.row(a), adaptation.window.label(a)};
  for (Slot slot = 0; slot < forgotten.size(); ++slot)
    if (forgotten[slot]) lost[store.arrival(slot)] = {store.row(slot), store.label(slot)};
  std::vector<double> row(setup_.params.n_features);
  for (const auto& [arrival, of] : lost) {
    if (!counts.empty()) counts[static_cast<std::size_t>(*of.label)] -= 1.0;
    if (!mixture.is_mixed() || arrival < mixture.first_row) continue;
    to_doubles({of.row, store.element_type()}, row.size(), row.data());
    mixture.add_row(row, of.label, setup_.votes(), -1.0);
  }
  if (mixture.is_mixed() && !lost.empty()) mixture.linear.recentre();
}

void Deletion::remove(std::span<const char> forgotten, const Run& run) {
  const std::span<const LearnerTree> trees = std::as_const(draft_).trees().all();
  std::vector<Remainder> remainders;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    Remainder remainder(i, *trees[i].tree, forgotten);
    if (remainder.examples.size() == trees[i].tree->size()) continue;
    if (remainder.examples.empty() && remainder.again.empty())
      remainder.again.push_back(earliest_left(forgotten));
    remainders.push_back(std::move(remainder));
  }
  rebuilding_.rebuild(remainders, run);
}

// The earliest stored example that is not forgotten.
Slot Deletion::earliest_left(std::span<const char> forgotten) const {
  for (const auto& [arrival, slot] : stored_by_arrival(draft_.store()))
    if (!forgotten[slot]) return slot;
  __builtin_unreachable();
}

}  // namespace boundary_forest
