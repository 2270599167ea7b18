#include "cover_tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

namespace boundary_forest::baselines {
namespace {

constexpr std::size_t rows_between_looks = 64;
constexpr double infinity = std::numeric_limits<double>::infinity();

// The sums of a distance are of at most n_features terms that are not below zero, so their rounding
// errors stay relative. Float64 is what a user's own function computes in at worst.
double rounding_of(ElementType type, std::size_t n_features) {
  const bool is_single = type == ElementType::float32 || is_short_for_float32(type);
  const double unit =
      is_single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return std::min(0.25, static_cast<double>(n_features + 16) * unit);
}

}  // namespace

void CoverTreeParams::validate() const {
  // The limit keeps the level of any distance that a double can hold within 32 bits.
  if (!(base >= 1.0 + 1e-6) || std::isinf(base))
    throw std::invalid_argument("base must be a finite number > 1 (at least 1.000001), got " +
                                std::to_string(base));
  if (n_features < 1) throw std::invalid_argument("X must have at least one feature");
}

CoverTree::CoverTree(const CoverTreeParams& params, std::unique_ptr<Metric> metric)
    : params_(params),
      metric_(std::move(metric)),
      store_(params.element_type, params.n_features, 0),
      slack_(rounding_of(params.element_type, params.n_features)) {
  params_.validate();
}

double CoverTree::scale(Level i) const { return std::pow(params_.base, i); }

double CoverTree::reach(Level e) const { return scale(e + 2) / (params_.base - 1.0); }

Level CoverTree::covering_level(double d) const {
  auto i = static_cast<Level>(std::ceil(std::log(d) / std::log(params_.base)));
  while (d > scale(i)) ++i;  // scale alone decides: the logarithm is rounded
  while (d <= scale(i - 1)) --i;
  return i;
}

// The descent

void CoverTree::wait(Level level, const Waiting& waiting) {
  if (level == bottom) return;
  auto found = waiting_.find(level);
  if (found == waiting_.end()) {
    if (spare_.empty()) {
      found = waiting_.try_emplace(level).first;
    } else {
      spare_.back().key() = level;
      found = waiting_.insert(std::move(spare_.back())).position;
      spare_.pop_back();
    }
  }
  found->second.push_back(waiting);
}

bool CoverTree::next_level(Level& level) {
  if (waiting_.empty()) return false;
  ByLevel::node_type highest = waiting_.extract(waiting_.begin());
  level = highest.key();
  at_level_.swap(highest.mapped());
  highest.mapped().clear();
  spare_.push_back(std::move(highest));
  return true;
}

// Rows are then read in the order in which they lie in memory: a comparison takes a third of the
// time at 1e5 rows of 400 bytes, where nearly all are met. Many are sorted by marking them.
void CoverTree::in_order_of_arrival(std::size_t first) {
  const std::size_t n = met_.size() - first;
  const std::size_t n_words = nodes_.size() / 64 + 1;
  if (n < n_words) {
    std::sort(met_.begin() + static_cast<std::ptrdiff_t>(first), met_.end(),
              [](const Met& a, const Met& b) { return a.node < b.node; });
    return;
  }
  marks_.assign(n_words, 0);
  vias_.resize(nodes_.size());
  for (std::size_t i = first; i < met_.size(); ++i) {
    const Met& met = met_[i];
    marks_[met.node / 64] |= std::uint64_t{1} << (met.node % 64);
    vias_[met.node] = met.via;
  }
  std::size_t i = first;
  for (std::size_t w = 0; w < n_words; ++w)
    for (std::uint64_t word = marks_[w]; word != 0; word &= word - 1) {
      const auto node = static_cast<NodeId>(w * 64 + static_cast<unsigned>(std::countr_zero(word)));
      met_[i++] = {node, vias_[node], 0.0};
    }
}

template <class Guide>
void CoverTree::meet(const Position& p, Guide& guide) {
  const std::size_t n = rows_.size();
  const std::size_t first = met_.size() - n;
  distances_.resize(n);
  metric_->distances(p, rows_.data(), n, distances_.data());
  guide.comparisons() += n;
  for (std::size_t j = 0; j < n; ++j) {
    const double d = metric_->distance(distances_[j]);
    if (!(d >= 0.0 && d < infinity))
      throw std::domain_error("a cover tree needs distances >= 0 and finite, got " +
                              std::to_string(d) + ": scale the features, or keep them as float64");
    const auto met = static_cast<std::uint32_t>(first + j);
    met_[met].d = d;
    guide.meets(met);
    wait(nodes_[met_[met].node].highest_child, {met, 0});
  }
}

template <class Guide>
void CoverTree::descend(const Position& p, Guide& guide) {
  waiting_.clear();  // what a descent that failed has left
  met_.assign(1, {0, 0, 0.0});
  rows_.assign(1, store_.row(0));
  meet(p, guide);
  for (Level e = top; next_level(e);) {
    guide.enters(e);
    rows_.clear();
    const std::size_t first = met_.size();
    for (const Waiting& waiting : at_level_) {
      const Met parent = met_[waiting.met];
      if (!guide.wants(parent, e)) continue;
      const auto& children = nodes_[parent.node].children;
      std::uint32_t at = waiting.at;
      for (; at < children.size() && children[at].level == e; ++at) {
        met_.push_back({children[at].node, waiting.met, 0.0});
      }
      if (at < children.size()) wait(children[at].level, {waiting.met, at});
    }
    in_order_of_arrival(first);
    for (std::size_t i = first; i < met_.size(); ++i) rows_.push_back(store_.row(met_[i].node));
    meet(p, guide);
  }
}

// Insertion: the lowest level i at which p is covered, d(p, C_i) <= b^i, gives it a parent; at the
// next lower one nothing is within b^(i-1), so there it belongs.

class CoverTree::Inserting {
 public:
  explicit Inserting(CoverTree& tree) : tree_(tree) {}

  std::uint64_t& comparisons() { return tree_.learn_comparisons_; }

  void meets(std::uint32_t met) {
    if (tree_.met_[met].d < least_) {
      least_ = tree_.met_[met].d;
      nearest_ = met;
    }
  }

  // Levels above e, down from the last one that had children, all have the nearest so far.
  void enters(Level e) {
    look_for_cover(e + 1);
    complete_ = e;
    scale_ = tree_.scale(e);
    within_ = tree_.params_.separated ? tree_.reach(e) : tree_.scale(e + 2);
  }

  // One of C_m below q, m <= e, matters if it is within b^m of p. Its distance to q is at most
  // b^(m+1) + ... + b^(e+1), and at most farthest.
  bool wants(const Met& q, Level) const {
    if (least_ == 0.0) return false;
    double within = within_;
    if (tree_.params_.tight) within = std::min(within, tree_.nodes_[q.node].farthest + scale_);
    return q.d * (1.0 - tree_.slack_) <= within * (1.0 + tree_.slack_);
  }

  void finish() { look_for_cover(bottom); }

  bool is_duplicate() const { return least_ == 0.0; }
  std::uint32_t parent() const { return is_duplicate() ? nearest_ : parent_; }
  Level level() const { return is_duplicate() ? bottom : covered_ - 1; }

 private:
  // Among the levels from `lowest` to the last complete one.
  void look_for_cover(Level lowest) {
    if (least_ == 0.0) return;
    const Level i = std::max(lowest, tree_.covering_level(least_));
    if (i > complete_) return;
    covered_ = i;
    parent_ = nearest_;
  }

  CoverTree& tree_;
  double least_ = infinity;    // distance to the nearest
  std::uint32_t nearest_ = 0;  // of all met
  Level complete_ = top;       // all of C_i that matter were met, for this i and above
  Level covered_ = top;
  std::uint32_t parent_ = 0;  // nearest of C_covered
  double scale_ = 0.0;
  double within_ = 0.0;
};

void CoverTree::insert_one(NodeId p) {
  if (p == 0) {
    nodes_.push_back({.parent = nothing, .level = top, .children = {}});
    return;
  }
  Inserting inserting(*this);
  descend({store_.row(p), store_.element_type()}, inserting);
  inserting.finish();
  const Level level = inserting.level();
  const NodeId parent = met_[inserting.parent()].node;
  nodes_.push_back({.parent = parent, .level = level, .children = {}});
  try {
    auto& siblings = nodes_[parent].children;
    const auto at =
        std::upper_bound(siblings.begin(), siblings.end(), level,
                         [](Level mine, const Child& child) { return mine > child.level; });
    siblings.insert(at, {level, p});
    nodes_[parent].highest_child = siblings.front().level;
  } catch (...) {
    nodes_.pop_back();
    throw;
  }
  for (std::uint32_t met = inserting.parent();; met = met_[met].via) {
    Node& above = nodes_[met_[met].node];
    above.farthest = std::max(above.farthest, met_[met].d);
    if (met == 0) break;
  }
}

void CoverTree::insert(const RowsView& rows, const std::function<void()>& now_and_then,
                       std::size_t& inserted) {
  const Slot first = store_.stage(rows.data, nullptr, rows.n, store_.size());
  try {
    for (inserted = 0; inserted < rows.n; ++inserted) {
      if (inserted % rows_between_looks == 0) now_and_then();
      insert_one(first + static_cast<NodeId>(inserted));
    }
  } catch (...) {
    store_.truncate(first + static_cast<Slot>(inserted));
    throw;
  }
}

// Search: the original procedure keeps the nodes of each level that may have a nearer one below
// them, and ends when reach (1 + 1/epsilon) <= the least distance. Asking of each node whether one
// below it may be nearer by more than 1 + epsilon ends no later, for any number of neighbours.

class CoverTree::Searching {
 public:
  Searching(CoverTree& tree, std::size_t n, double epsilon)
      : tree_(tree), n_(n), stretch_(1.0 + epsilon) {}

  std::uint64_t& comparisons() { return tree_.query_comparisons_; }

  void meets(std::uint32_t met) {
    const Met& node = tree_.met_[met];
    if (!offer({node.d, node.node})) return;
    const auto& children = tree_.nodes_[node.node].children;
    if (children.empty() || children.back().level != bottom) return;
    auto twin = std::partition_point(children.begin(), children.end(),
                                     [](const Child& child) { return child.level != bottom; });
    while (twin != children.end() && offer({node.d, twin->node})) ++twin;
  }

  void enters(Level e) { search_radius_ = tree_.reach(e); }

  bool wants(const Met& q, Level) const {
    if (found_.size() < n_) return true;
    double reach = search_radius_;
    if (tree_.params_.tight) reach = std::min(reach, tree_.nodes_[q.node].farthest);
    const double at_least = q.d * (1.0 - tree_.slack_) - reach * (1.0 + tree_.slack_);
    const double worst = found_.front().first;
    return worst > 0.0 && stretch_ * at_least < worst;
  }

  void write(double* distances, Arrival* arrivals) {
    std::sort_heap(found_.begin(), found_.end());
    for (std::size_t j = 0; j < n_; ++j) {
      distances[j] = found_[j].first;
      arrivals[j] = found_[j].second;
    }
  }

 private:
  using Candidate = std::pair<double, NodeId>;

  bool offer(const Candidate& candidate) {
    if (found_.size() == n_) {
      if (candidate >= found_.front()) return false;
      std::pop_heap(found_.begin(), found_.end());
      found_.pop_back();
    }
    found_.push_back(candidate);
    std::push_heap(found_.begin(), found_.end());
    return true;
  }

  CoverTree& tree_;
  std::size_t n_;
  double stretch_;
  double search_radius_ = 0.0;
  std::vector<Candidate> found_;  // the n nearest so far, a heap with the farthest in front
};

Neighbors CoverTree::neighbors(const RowsView& rows, std::size_t n, double epsilon,
                               const std::function<void()>& now_and_then) {
  if (n < 1 || n > nodes_.size())
    throw std::invalid_argument("n_neighbors must be between 1 and the " +
                                std::to_string(nodes_.size()) + " examples learned, got " +
                                std::to_string(n));
  if (!(epsilon >= 0.0) || std::isinf(epsilon))
    throw std::invalid_argument("epsilon must be a finite number >= 0, got " +
                                std::to_string(epsilon));
  Neighbors found{{rows.n, n, std::vector<double>(rows.n * n)},
                  {rows.n, n, std::vector<Arrival>(rows.n * n)},
                  {}};
  const QueryRows queries(rows, store_);
  for (std::size_t i = 0; i < rows.n; ++i) {
    if (i % rows_between_looks == 0) now_and_then();
    Searching searching(*this, n, epsilon);
    descend(queries.position(i), searching);
    searching.write(found.distances.values.data() + i * n, found.arrivals.values.data() + i * n);
  }
  return found;
}

std::vector<Level> CoverTree::levels() const {
  std::vector<Level> levels;
  for (const Node& node : nodes_) levels.push_back(node.level);
  return levels;
}

std::vector<NodeId> CoverTree::parents() const {
  std::vector<NodeId> parents;
  for (const Node& node : nodes_) parents.push_back(node.parent);
  return parents;
}

}  // namespace boundary_forest::baselines
