// A graph that is searched while another thread learns, forgets, replaces, fails and rebuilds it: every
// answer is that of one published state, for all rows of the call together, and no reader goes back in
// time. Runs under ThreadSanitizer and AddressSanitizer.
//
// A call does not say which state it saw. So the script is first carried out alone, and the answers after
// each of its steps are written down; then it is carried out again with readers, and each answer is
// looked up.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "adapt/depth_limit.hpp"
#include "tests/check.hpp"
#include "tests/graphs.hpp"

using namespace streams;

namespace {

using Answer = std::vector<std::uint64_t>;
enum Question { narrow, wide, exact, within, allowed, contents, n_questions };

// A failure in the learner's thread alone: distances until then.
thread_local long countdown = -1;

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown >= 0 && countdown-- == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

// The forest, which is exchanged for another one when it is rebuilt; what reads the old one keeps it.
class Held {
 public:
  explicit Held(std::unique_ptr<BoundaryForest> forest) : forest_(std::move(forest)) {}
  std::shared_ptr<BoundaryForest> get() const {
    const std::lock_guard lock(mutex_);
    return forest_;
  }
  void set(std::shared_ptr<BoundaryForest> forest) {
    const std::lock_guard lock(mutex_);
    forest_.swap(forest);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<BoundaryForest> forest_;
};

struct Scenario {
  Stream stream;
  bool fails = false;  // the metric, now and then
  std::size_t n_jobs = 1;
  bool forgets = true;

  std::unique_ptr<Metric> metric() const {
    const Params& params = stream.params;
    return fails ? make_metric(failing_distance, params.element_type, params.n_features, true)
                 : make_metric("euclidean", 3.0, params.element_type, params.n_features);
  }
  std::unique_ptr<BoundaryForest> forest() const {
    return std::make_unique<BoundaryForest>(stream.params, metric());
  }
};

Answer answer_of(const Neighbors& found) {
  Answer answer = found.arrivals.values;
  for (const double d : found.distances.values) answer.push_back(std::bit_cast<std::uint64_t>(d));
  for (const std::int64_t id : found.ids.integers) answer.push_back(static_cast<std::uint64_t>(id));
  return answer;
}

// The last rows of the stream are the queries. Empty where it is refused for want of examples.
Answer ask(BoundaryForest& forest, const Scenario& scenario, int question) {
  const RowsView queries = scenario.stream.rows(scenario.stream.n - 8, 8);
  const Run run{.n_jobs = scenario.n_jobs};
  const Ids some = ids_for(scenario.stream.params, 0, 400);
  try {
    if (question == narrow) return answer_of(forest.neighbors(queries, 3, Search{.beam = 1}, run));
    if (question == wide) return answer_of(forest.neighbors(queries, 5, Search{.beam = 30}, run));
    if (question == exact)
      return answer_of(forest.neighbors(queries, 5, Search{.exact = true}, run));
    if (question == allowed)
      return answer_of(forest.neighbors(
          queries, 2,
          {.beam = 1, .allowed = {.by = Allowed::By::ids, .arrivals = {}, .ids = &some}}, run));
    if (question == within) {
      const Within found = forest.within(queries, 0.1, Search{.beam = 2}, run);
      Answer answer = found.row_ends;
      answer.insert(answer.end(), found.arrivals.begin(), found.arrivals.end());
      return answer;
    }
    const Snapshot snapshot(forest);
    const BoundaryForest::State state = snapshot.state(true);
    std::uint64_t hash = snapshot.size();
    for (std::size_t v = 0; v < state.node_examples.size(); ++v)
      hash = hash64(hash, state.node_examples[v], state.node_parents[v]);
    for (const std::byte byte : state.examples.positions)
      hash = absorb(hash, static_cast<std::uint64_t>(byte));
    return {hash};
  } catch (const std::invalid_argument&) {
    return {};
  }
}

// Steps of one publication each: none goes on beyond the numbers of arrivals at which the depth of trees is
// looked at, because a block ends there.
using Step = std::function<void(Held&)>;

std::vector<Step> script(const Scenario& scenario, std::size_t n_rows) {
  const Stream& stream = scenario.stream;
  std::vector<Step> steps;
  std::size_t n = 0;     // learned; ids are the numbers of the examples
  std::size_t seen = 0;  // with those that replaced others
  const auto in_parts = [&](std::size_t count, const auto& add_step) {
    while (count > 0) {
      const std::size_t room = DepthLimit::depth_period - seen % DepthLimit::depth_period;
      const std::size_t part = std::min(count, room);
      add_step(part);
      seen += part;
      count -= part;
    }
  };
  const auto learn = [&](std::size_t count) {
    steps.push_back([&stream, &scenario, n, count](Held& held) {
      std::size_t learned = 0;
      const auto run = [&] {
        held.get()->learn(stream.rows(n, count), stream.labels_from(0),
                          Run{.n_jobs = scenario.n_jobs}, learned,
                          ids_for(stream.params, n, count));
      };
      if (scenario.fails && n > 10) {
        countdown = static_cast<long>(n % 37);
        CHECK_THROWS(run(), std::domain_error);
        countdown = -1;
      }
      run();
    });
    n += count;
  };
  in_parts(stream.params.n_T, learn);
  std::size_t gone = 0;  // all before it are forgotten
  while (n < n_rows) {
    for (const std::size_t count : {1, 7, 40, 1}) in_parts(count, learn);
    if (!scenario.forgets) continue;
    steps.push_back([&stream, gone](Held& held) {
      CHECK(held.get()->forget(ids_for(stream.params, gone, 8), Run{}).unknown.empty());
    });
    gone += 8;
    std::size_t first = n - 9;
    in_parts(9, [&](std::size_t count) {
      steps.push_back([&stream, first, count, from = stream.n - n](Held& held) {
        std::size_t learned = 0;
        held.get()->replace(stream.rows(from, count), stream.labels_from(0), Run{}, learned,
                            ids_for(stream.params, first, count));
        CHECK_EQ(learned, count);
      });
      first += count;
    });
    if (n % 3 == 0)
      steps.push_back([&scenario](Held& held) {
        const auto state = held.get()->without_marked(Run{.n_jobs = scenario.n_jobs});
        held.set(held.get()->rebuilt(state, scenario.metric()));
      });
  }
  return steps;
}

// answers[step][question]
using Answers = std::vector<std::vector<Answer>>;

// Asks until the learner has ended, and once more. Returns how many states it can be sure to have seen.
std::size_t read(const Held& held, const Scenario& scenario, const Answers& answers,
                 std::size_t first_question, const std::atomic<bool>& ended,
                 std::atomic<std::size_t>& n_samples) {
  std::size_t at = 0;
  std::size_t n_seen = 0;
  for (bool last = false; !last; ++n_samples) {
    last = ended.load();
    const std::size_t question = (first_question + n_samples) % n_questions;
    const Answer answer = ask(*held.get(), scenario, static_cast<int>(question));
    std::size_t state = at;
    while (state < answers.size() && answers[state][question] != answer) ++state;
    if (state == answers.size()) {
      bool known = false;
      for (const auto& of_state : answers) known = known || of_state[question] == answer;
      CHECK_IN("question " + std::to_string(question) + " after step " + std::to_string(at) +
                   (known ? ": went back" : ": no state answers so"),
               false);
      continue;
    }
    n_seen += state != at;
    at = state;
  }
  return n_seen;
}

void check_readers(const Scenario& scenario, std::size_t n_rows) {
  const std::vector<Step> steps = script(scenario, n_rows);
  Answers answers;
  const auto write_down = [&](BoundaryForest& forest) {
    answers.emplace_back();
    for (int question = 0; question < n_questions; ++question)
      answers.back().push_back(ask(forest, scenario, question));
  };
  Held alone(scenario.forest());
  write_down(*alone.get());
  for (const Step& step : steps) {
    step(alone);
    write_down(*alone.get());
  }
  std::size_t n_distinct = 1;
  for (std::size_t i = 1; i < answers.size(); ++i) n_distinct += answers[i] != answers[i - 1];
  CHECK(n_distinct > 9 * answers.size() / 10);  // else one from the wrong state would go unnoticed

  constexpr std::size_t n_readers = 3;
  Held held(scenario.forest());
  std::atomic<bool> ended{false};
  std::vector<std::atomic<std::size_t>> n_samples(n_readers);
  std::vector<std::size_t> n_seen(n_readers);
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < n_readers; ++r)
    readers.emplace_back(
        [&, r] { n_seen[r] = read(held, scenario, answers, 2 * r, ended, n_samples[r]); });
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // However the system shares out its processors, readers see many states.
    if (i % (1 + steps.size() / 12) == 0)
      for (const auto& of_reader : n_samples)
        for (const std::size_t now = of_reader; of_reader < now + 2;) std::this_thread::yield();
    steps[i](held);
  }
  ended = true;
  for (std::thread& reader : readers) reader.join();
  for (int question = 0; question < n_questions; ++question)
    CHECK(ask(*held.get(), scenario, question) ==
          answers.back()[static_cast<std::size_t>(question)]);
  for (const std::size_t n : n_seen) CHECK(n >= 5);
}

}  // namespace

CASE("searches see one state while rows that are coded as bytes come, go and are replaced") {
  check_readers({cube(graph_params(), 1600, 1)}, 800);
}

CASE("the same where rows are searched as they are") {
  check_readers({grid(graph_params(ElementType::uint8, 3, 3, 4), 1600, 2)}, 800);
}

CASE("searches and the learner may share the threads") {
  check_readers({.stream = cube(graph_params(ElementType::float64, 6, 3), 1000, 3), .n_jobs = 3},
                500);
}

CASE("searches see one state while chains of trees are rebuilt, and links with them") {
  check_readers({.stream = line(graph_params(), 1100), .forgets = false}, 1050);
}

CASE("searches never see what a failed call had begun to learn") {
  check_readers(
      {.stream = cube(graph_params(ElementType::float32, 3, unlimited), 800, 4), .fails = true},
      400);
}

CASE("a graph whose rows lie in a file is coded once, whoever asks first") {
  const Stream stream = cube(graph_params(), 2000, 5);
  std::size_t learned = 0;
  const auto whole = forest_for(stream.params);
  learn_named(*whole, stream, 0, 1500, learned, ids_for(stream.params, 0, 1500));
  const Content expected(*whole, stream);
  const auto rows = std::make_shared<std::vector<std::byte>>(expected.state.examples.positions);
  for (int round = 0; round < 5; ++round) {
    const auto forest = forest_for(stream.params);
    forest->restore(expected.state, {rows->data(), rows->size(), rows, true});
    std::vector<std::thread> readers;
    for (int r = 0; r < 3; ++r)
      readers.emplace_back([&] { CHECK(found(*forest, stream.rows(0, 12)) == expected.found); });
    for (std::thread& reader : readers) reader.join();
  }
}

int main() { return check::run_all(); }
