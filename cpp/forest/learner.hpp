// Learning calls: rows in blocks, each of which is staged in the store, learned by every tree in order of
// arrival, and published. Nothing depends on where a block begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "adapt/decisions.hpp"
#include "forest/answers.hpp"
#include "forest/deletion.hpp"
#include "forest/draft.hpp"
#include "forest/grower.hpp"
#include "forest/replacement.hpp"
#include "forest/training.hpp"

namespace boundary_forest {

// Rows to learn: labels has label_length values per row, ids one if examples have them.
struct LearningRows {
  const RowsView& rows;
  const double* labels;
  const Ids& ids;
};

class Learner {
 public:
  Learner(const Setup& setup, const Decisions& decisions, Publication& publication,
          QueryCache& query_cache, Draft& draft);

  // Learns rows in order. If it throws, the rows published by then stay, and `learned` says how many.
  void learn(const LearningRows& rows, const Run& run, std::size_t& learned);
  // The same for rows whose ids may be known: a known example is marked when the row with its id is
  // published. As soon as as many examples are marked as are not, it returns the state of a forest that has
  // learned the first `learned` rows, and has nothing of the marked ones; that forest goes on. This one
  // keeps what it has published: the same rows, or, where learning may fail, none.
  std::optional<ForestState> replace(const LearningRows& rows, const Run& run,
                                     std::size_t& learned);
  // Learns likewise, and answers each row just before; for a forest that has learned something, with a table of answers.
  Table<double> answer_then_learn(const LearningRows& rows, AnswerRequest request, const Run& run,
                                  std::size_t& learned);
  TreeLeaves leaves_then_learn(const LearningRows& rows, const Run& run, std::size_t& learned);
  // The paper's offline variant (OBF), for a forest that is still empty: tree i is shown its own shuffle
  // of all rows, and its root is the first of that.
  void learn_offline(const LearningRows& rows, const Run& run);

  Replacement& replacement() { return replacement_; }
  Deletion& deletion() { return deletion_; }
  const Grower& grower() const { return grower_; }

 private:
  // The rows of a call from `begin` on.
  struct RowBlock {
    const LearningRows& call;
    std::size_t begin;
    std::size_t n;
  };

  // Returns a state where `replaces`; see replace().
  std::optional<ForestState> learn_blocks(LearningLock& lock, const LearningRows& rows,
                                          const AnswerRequest& request, bool replaces,
                                          const Run& run, std::size_t& learned);
  std::size_t block_rows(std::size_t n_left, bool answers) const;
  void learn_block(const RowBlock& block, const AnswerRequest& request, const Run& run);
  void answer_awaited(Slot first, std::size_t n, std::span<Leaf> v);
  void answer_and_judge(const AnswerRequest& request, std::size_t begin, Slot first,
                        std::span<const Leaf> v);
  void try_votes(Slot first, std::span<const Leaf> v);
  void judge_experts(Slot first, std::span<const Leaf> v);
  void check_learned() const;

  const Setup& setup_;
  const Decisions& decisions_;
  Publication& publication_;
  Draft& draft_;
  const Answers answers_;
  const Grower grower_;
  Training training_;
  Rebuilding rebuilding_;
  Replacement replacement_;
  Deletion deletion_;
};

}  // namespace boundary_forest
