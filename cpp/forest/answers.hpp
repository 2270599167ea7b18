// E: what the examples that the trees found for a row become (combine.hpp), in the forms that calls return.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "adapt/adaptation.hpp"
#include "forest/results.hpp"
#include "forest/setup.hpp"
#include "store/example_store.hpp"
#include "tree/nearest.hpp"
#include "vote/combine.hpp"
#include "vote/mixture.hpp"
#include "vote/voting.hpp"

namespace boundary_forest {

// Where answers go, and what they are: labels, or each class's share by rank.
struct AnswerRequest {
  Table<double>* out = nullptr;  // null: no answers are wanted
  bool shares = false;
  Ranks ranks;
  TreeLeaves* leaves = nullptr;  // null: what answers are made of is not wanted

  bool any() const { return out != nullptr || leaves != nullptr; }
};

// How answers are made of what the trees find: by a ballot; or, where `mixture` is not null, by a mixture,
// with the classes that have been seen. One thread uses it at a time.
struct AnswerRule {
  Ballot ballot;
  RowMixture* mixture = nullptr;
  const ClassOrder* seen = nullptr;
  StreamRow* stream = nullptr;  // of a stream, where the ballot's answer is one of the experts
};

// What a rule needs besides the ballot, as far as something is mixed; `adaptation` must outlive it.
class MixedRow {
 public:
  MixedRow(const Setup& setup, const ExampleStore& store, const Adaptation& adaptation)
      : adaptation_(adaptation) {
    const Metric& learned = *adaptation.settings->d;
    if (setup.params.mixes())
      mixture_.emplace(store, learned.scales(), adaptation.mixture, setup.votes());
    if (setup.params.mixes_streams())
      stream_.emplace(store, setup.d(), learned, adaptation.window, adaptation.stream,
                      setup.votes());
  }

  AnswerRule rule(const Ballot& ballot) {
    return {ballot, mixture_ ? &*mixture_ : nullptr, &adaptation_.mixture.classes,
            stream_ ? &*stream_ : nullptr};
  }

 private:
  const Adaptation& adaptation_;
  std::optional<RowMixture> mixture_;
  std::optional<StreamRow> stream_;
};

// Of one row: the form in which votes are counted.
class RowAnswers {
 public:
  RowAnswers(const Setup& setup, const ExampleStore& store, std::span<const Leaf> v,
             std::pmr::memory_resource* memory);

  TreeAnswers view() const { return {distances_, labels_, closest_}; }

 private:
  const std::pmr::vector<double> distances_;
  const std::pmr::vector<const double*> labels_;
  const double* closest_;
};

class Answers {
 public:
  using Memory = std::pmr::memory_resource;

  Answers(const Setup& setup, const ExampleStore& store) : setup_(setup), store_(store) {}

  // What the trees found for a row, v, becomes row `row` of what is requested.
  void put(const AnswerRequest& request, const AnswerRule& rule, std::size_t row,
           const Position& query, std::span<const Leaf> v) const;
  void put_leaves(TreeLeaves& leaves, const AnswerRule& rule, std::size_t row,
                  const Position& query, std::span<const Leaf> v) const;
  TreeLeaves blank_leaves(std::size_t n, bool with_weights) const;
  // The columns of a table of answers, if there are so many classes.
  std::size_t n_columns(const AnswerRequest& request, std::size_t n_classes) const;

  // The two forms of E, and the share that each tree has in the answer. Without `all`, E_vote may leave out classes
  // that do not win.
  std::pmr::vector<Vote> E_vote(const Position& query, std::span<const Leaf> v,
                                const AnswerRule& rule, Ranks ranks, Memory* memory,
                                bool all = true) const;
  void E_label(const Position& query, std::span<const Leaf> v, const AnswerRule& rule,
               std::span<double> out) const;
  // The row of a stream, with what the ballot makes of its trees.
  void begin(StreamRow& stream, const Position& query, std::span<const Leaf> v,
             const AnswerRule& rule) const;
  std::pmr::vector<double> shares(const Position& query, std::span<const Leaf> v,
                                  const AnswerRule& rule, Memory* memory) const;

 private:
  const Setup& setup_;
  const ExampleStore& store_;
};

}  // namespace boundary_forest
