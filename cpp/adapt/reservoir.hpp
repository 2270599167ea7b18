// A uniform sample of all arrivals: those of least hash64(seed, arrival). So it depends neither on batches nor
// on threads or machines.
//
// Its members are stored examples: the reservoir holds them as trees do (example_store.hpp), whether or not a
// tree has kept them. A member that is forgotten leaves its place empty: nothing of it is kept but its arrival
// number, and no other arrival takes its place.
//
// Trees keep what they answer wrong. If rows come sorted by class, they forget how the classes before differ
// from those that come now. So while the classes of the latest arrivals are not those of the reservoir, each
// arrival is followed by a member, which all trees learn again, whatever max_samples allots to them. (So
// for_tables() makes 6.03 % errors on MNIST if its first 30,000 rows come sorted by class; without replay it is
// 29 %.) Whether they do is decided at fixed numbers of arrivals, from the labels alone.
//
// A reservoir is a value: copies share their members, and changing one leaves the others as they were.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "adapt/window.hpp"
#include "base/rng.hpp"
#include "base/types.hpp"
#include "store/example_store.hpp"

namespace boundary_forest {

class Reservoir {
 public:
  static constexpr std::size_t most_members = 2000;
  static constexpr Arrival replay_period = 512;    // arrivals from decision to decision
  static constexpr Arrival early_period = 64;      // the same among the first ones
  static constexpr Arrival n_early = 1024;         // arrivals
  static constexpr std::size_t most_recent = 256;  // arrivals whose classes are compared
  // Trees learn members again while the overlap of the classes is below this. Of rows in random order it is
  // about 1: in 30,000 rows never below 0.87, with 2 to 5,000 classes. Of rows sorted by two classes it is 0.67
  // or less.
  static constexpr double least_overlap = 0.75;
  // Of a forest that forgets: as a concept changes, classes may become rarer or more frequent, and members
  // that are learned again then mislead. (In River's Agrawal it is 0.66 then.) Not of the first ones, where the
  // latest arrivals are half of all.
  static constexpr double least_overlap_of_streams = 0.6;

  struct Member {
    std::uint64_t key;  // hash64(seed, arrival)
    Arrival arrival;
    Slot slot;  // `nothing` once it is forgotten

    bool operator<(const Member& other) const {
      return key != other.key ? key < other.key : arrival < other.arrival;
    }
  };

  Reservoir() = default;  // of a forest that has none
  explicit Reservoir(const Params& params)
      : capacity_(capacity_of(params)),
        seed_(params.seed),
        forgets_(params.forgets()),
        members_(std::make_shared<std::vector<Member>>()) {}

  // A quarter of what may be stored, so that trees have room.
  static std::size_t capacity_of(const Params& params) {
    if (!params.has_reservoir()) return 0;
    return params.max_stored == 0 ? most_members
                                  : std::min<std::size_t>(most_members, params.max_stored / 4);
  }

  bool is_kept() const { return capacity_ > 0; }
  std::size_t capacity() const { return capacity_; }
  // By key.
  std::span<const Member> members() const {
    return members_ ? std::span<const Member>(*members_) : std::span<const Member>();
  }
  bool replays() const { return replays_; }

  // A block that begins after `seen` arrivals must not go on beyond so many.
  static Arrival block_end(Arrival seen, const Params& params) {
    if (!params.has_reservoir()) return ~Arrival{0};
    const Arrival period = seen < n_early ? early_period : replay_period;
    return (seen / period + 1) * period;
  }

  // n arrivals are staged from slot `first` on. Returns the slot that trees learn again after each of them:
  // `nothing` for none.
  std::vector<Slot> add(Arrival seen, Slot first, std::size_t n) {
    std::vector<Slot> replayed;
    bool is_own = false;
    for (Arrival a = seen; is_kept() && a < seen + n; ++a) {
      const Member member{hash64(seed_, a), a, first + static_cast<Slot>(a - seen)};
      if (members_->size() < capacity_ || member < members_->back()) {
        if (!is_own) members_ = std::make_shared<std::vector<Member>>(*members_);
        is_own = true;
        join(member, first);
      }
      if (replays_) replayed.push_back((*members_)[hash64(seed_, a, 1) % members_->size()].slot);
    }
    return replayed;
  }

  // The slots of members that are staged, from `first` on; and where they have settled.
  std::vector<Slot> staged(Slot first) const {
    std::vector<Slot> slots;
    if (!has_staged_) return slots;
    for (const Member& member : members())
      if (is_staged(member, first)) slots.push_back(member.slot);
    return slots;
  }
  // Members hold their examples from then on, and those that have left do not from publication `next` on.
  void settle(Slot first, std::span<const Slot> where, std::uint64_t next, ExampleStore& store) {
    for (auto at = where.begin(); at != where.end(); has_staged_ = false)
      for (Member& member : *members_)
        if (is_staged(member, first)) store.hold(member.slot = *at++);
    for (const Slot slot : left_) store.let_go(slot, next);
    left_.clear();
  }

  // Puts back the members of a saved forest, by key.
  void restore(std::vector<Member> members, bool replays) {
    members_ = std::make_shared<std::vector<Member>>(std::move(members));
    replays_ = replays;
  }

  // Leaves the places of these members empty; other copies are not changed. They hold their examples no more
  // from publication `next` on.
  void erase(std::span<const char> forgotten, std::uint64_t next, ExampleStore& store) {
    if (!is_kept()) return;
    members_ = std::make_shared<std::vector<Member>>(*members_);
    for (Member& member : *members_)
      if (member.slot != nothing && forgotten[member.slot]) {
        store.let_go(member.slot, next);
        member.slot = nothing;
      }
  }

  // After `seen` arrivals, whether members are learned again.
  void decide(Arrival seen, const Window& window, const ExampleStore& store) {
    if (is_kept() && seen % (seen < n_early ? early_period : replay_period) == 0)
      replays_ = overlap(seen, window, store) <
                 (forgets_ && seen >= 2 * most_recent ? least_overlap_of_streams : least_overlap);
  }

  std::size_t bytes() const { return members().size() * sizeof(Member); }

 private:
  static bool is_staged(const Member& member, Slot first) {
    return member.slot != nothing && member.slot >= first;
  }

  void join(const Member& member, Slot first) {
    std::vector<Member>& members = *members_;
    has_staged_ = true;
    members.insert(std::lower_bound(members.begin(), members.end(), member), member);
    if (members.size() <= capacity_) return;
    if (const Slot slot = members.back().slot; slot < first) left_.push_back(slot);
    members.pop_back();
  }

  // Morisita's index of the classes of the latest arrivals (not more than half of all) and of the members: how much more often two of
  // different samples have the same class than two of the same sample. The number of classes does not matter.
  double overlap(Arrival seen, const Window& window, const ExampleStore& store) const {
    std::vector<double> latest;
    std::vector<double> members;
    for (const Arrival a : window.last(std::min<Arrival>(most_recent, seen / 2)))
      count(*window.label(a), latest);
    for (const Member& member : this->members())
      if (member.slot != nothing) count(*store.label(member.slot), members);
    latest.resize(std::max(latest.size(), members.size()));
    members.resize(latest.size());
    double n = 0.0, m = 0.0, same_latest = 0.0, same_members = 0.0, same = 0.0;
    for (std::size_t c = 0; c < latest.size(); ++c) {
      n += latest[c];
      m += members[c];
      same_latest += latest[c] * (latest[c] - 1.0);
      same_members += members[c] * (members[c] - 1.0);
      same += latest[c] * members[c];
    }
    if (n < 2.0 || m < 2.0) return 1.0;
    const double within = same_latest / (n * (n - 1.0)) + same_members / (m * (m - 1.0));
    return within > 0.0 ? 2.0 * (same / (n * m)) / within : 1.0;
  }

  static void count(double label, std::vector<double>& counts) {
    const auto code = static_cast<std::size_t>(label);
    if (counts.size() <= code) counts.resize(code + 1, 0.0);
    counts[code] += 1.0;
  }

  std::size_t capacity_ = 0;  // members
  std::uint64_t seed_ = 0;
  bool forgets_ = false;
  std::shared_ptr<std::vector<Member>> members_;  // by key; never changed once it is published
  std::vector<Slot> left_;                        // of those that left in this block
  bool has_staged_ = false;
  bool replays_ = false;
};

}  // namespace boundary_forest
