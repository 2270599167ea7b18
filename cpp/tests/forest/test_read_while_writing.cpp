// Read while writing (promise 7): every answer that a reader gets during learning is the answer of
// the forest frozen at some published prefix, for all rows and trees of the call together, and a
// reader never goes back in time. Runs under ThreadSanitizer and AddressSanitizer.
//
// A call does not say which prefix it saw. So the same stream is first learned alone, prefix by
// prefix, and all answers are written down; then it is learned again with readers, and each answer
// is looked up.
#include <atomic>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/check.hpp"
#include "tests/streams.hpp"

using namespace streams;

namespace {

constexpr std::size_t n_readers = 4;

using Answer = std::vector<std::uint64_t>;
enum Question { apply, estimate, nearest, neighbors, figures, state, n_questions };

struct Scenario {
  std::string name;
  Stream stream;
  RowsView queries;
  std::vector<std::size_t> call_sizes;  // over and over
  std::size_t n_jobs = 1;               // of the learner and of the readers
  bool rolls_back = false;              // the metric fails now and then, and the call is made again
};

// A failure in the learner's thread alone: distances until then.
thread_local long countdown = -1;

double failing_distance(const double* x, const double* y, std::int64_t n) {
  if (countdown >= 0 && countdown-- == 0) return std::nan("");
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

std::unique_ptr<BoundaryForest> make_forest(const Scenario& scenario) {
  const Params& params = scenario.stream.params;
  if (!scenario.rolls_back) return forest_for(params);
  return std::make_unique<BoundaryForest>(
      params, make_metric(failing_distance, params.element_type, params.n_features, true));
}

void append(Answer& answer, const std::vector<double>& values) {
  for (const double value : values) answer.push_back(std::bit_cast<std::uint64_t>(value));
}

// The whole state in one number.
std::uint64_t digest(const BoundaryForest::State& state) {
  std::uint64_t hash = 0;
  for (const NodeId size : state.tree_sizes) hash = absorb(hash, size);
  for (std::size_t v = 0; v < state.node_examples.size(); ++v)
    hash = hash64(hash, state.node_examples[v], state.node_parents[v]);
  for (const std::byte byte : state.examples.positions)
    hash = absorb(hash, static_cast<std::uint64_t>(byte));
  for (const double label : state.examples.labels)
    hash = absorb(hash, std::bit_cast<std::uint64_t>(label));
  for (const Arrival arrival : state.examples.arrivals) hash = absorb(hash, arrival);
  return hash;
}

// The answer to all queries of the scenario; empty where it is refused for want of examples.
Answer ask(BoundaryForest& forest, const Scenario& scenario, int question) {
  const Run run{.n_jobs = scenario.n_jobs};
  Answer answer;
  try {
    if (question == apply) return forest.apply(scenario.queries, run).values;
    if (question == estimate) append(answer, forest.estimate(scenario.queries, run)->values);
    if (question == nearest || question == neighbors) {
      const Neighbors found = forest.neighbors(scenario.queries, question == nearest ? 1 : 3, run);
      answer = found.arrivals.values;
      append(answer, found.distances.values);
    }
    if (question == figures) {
      const Stats stats = forest.stats();
      answer = {stats.seen, stats.stored};
      answer.insert(answer.end(), stats.nodes.begin(), stats.nodes.end());
      CHECK((stats.tree_bytes > 0) == (stats.nodes[0] > 0));
    }
    if (question == state) answer = {digest(forest.state())};
  } catch (const std::logic_error&) {  // std::invalid_argument is one, too
    answer.clear();
  }
  return answer;
}

// The rows that have been learned at each publication.
std::vector<std::size_t> publications(const Scenario& scenario) {
  const std::size_t n_T = scenario.stream.params.n_T;
  std::vector<std::size_t> seen = {0};
  for (std::size_t begin = 0, call = 0; begin < scenario.stream.n; ++call) {
    const std::size_t size = scenario.call_sizes[call % scenario.call_sizes.size()];
    const std::size_t end = std::min(begin + size, scenario.stream.n);
    while (begin < end && !scenario.rolls_back) {
      std::size_t n = std::min(end - begin, Grower::block_rows(begin));
      if (begin < n_T) n = std::min(n, n_T - begin);
      begin += n;
      seen.push_back(begin);
    }
    if (scenario.rolls_back) seen.push_back(begin = end);
  }
  return seen;
}

// answers[prefix][question]
using Answers = std::vector<std::vector<Answer>>;

Answers answers_by_prefix(const Scenario& scenario) {
  const auto forest = make_forest(scenario);
  Answers answers;
  std::size_t learned = 0;
  for (const std::size_t seen : publications(scenario)) {
    learn(*forest, scenario.stream, learned, seen - learned);
    learned = seen;
    answers.emplace_back();
    for (int question = 0; question < n_questions; ++question)
      answers.back().push_back(ask(*forest, scenario, question));
  }
  return answers;
}

// Asks until the learner has ended, and once more after that. Returns how many prefixes it can be
// sure to have seen.
std::size_t read(BoundaryForest& forest, const Scenario& scenario, const Answers& answers,
                 std::size_t first_question, const std::atomic<bool>& ended,
                 std::atomic<std::size_t>& n_samples) {
  std::size_t at = 0;  // the earliest prefix that explains all answers so far
  std::size_t n_seen = 0;
  for (bool last = false; !last; ++n_samples) {
    last = ended.load();
    const std::size_t question = (first_question + n_samples) % n_questions;
    const Answer answer = ask(forest, scenario, static_cast<int>(question));
    std::size_t prefix = at;
    while (prefix < answers.size() && answers[prefix][question] != answer) ++prefix;
    if (prefix == answers.size()) {
      bool known = false;
      for (const auto& of_prefix : answers) known = known || of_prefix[question] == answer;
      CHECK_IN(scenario.name + ", question " + std::to_string(question) + ", after prefix " +
                   std::to_string(at) + (known ? ": went back" : ": no prefix answers so"),
               false);
      continue;
    }
    n_seen += prefix != at;
    at = prefix;
  }
  return n_seen;
}

// Makes every call. A dozen times on the way it lets each reader ask some more, so that readers see
// many prefixes however the system shares out its processors.
void write(BoundaryForest& forest, const Scenario& scenario, std::size_t n_publications,
           const std::vector<std::atomic<std::size_t>>& n_samples) {
  const Stream& stream = scenario.stream;
  const std::size_t pace = std::max<std::size_t>(1, n_publications / 12);
  for (std::size_t begin = 0, call = 0; begin < stream.n; ++call) {
    const std::size_t size = scenario.call_sizes[call % scenario.call_sizes.size()];
    const std::size_t count = std::min(size, stream.n - begin);
    if (call % pace == 0)
      for (const auto& of_reader : n_samples)
        for (const std::size_t now = of_reader; of_reader < now + 2;) std::this_thread::yield();
    if (scenario.rolls_back && begin > 0) {
      countdown = static_cast<long>((call * 7919) % (20 * count));
      CHECK_THROWS(learn(forest, stream, begin, count), std::domain_error);
      countdown = -1;
    }
    learn(forest, stream, begin, count, scenario.n_jobs);
    begin += count;
  }
}

void check_readers(const Scenario& scenario) {
  const Answers answers = answers_by_prefix(scenario);
  std::size_t n_distinct = 1;
  for (std::size_t prefix = 1; prefix < answers.size(); ++prefix)
    n_distinct += answers[prefix][apply] != answers[prefix - 1][apply];
  CHECK(n_distinct >= 10);  // else an answer from the wrong prefix would go unnoticed

  const auto forest = make_forest(scenario);
  std::atomic<bool> ended{false};
  std::vector<std::atomic<std::size_t>> n_samples(n_readers);
  std::vector<std::size_t> n_seen(n_readers);
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < n_readers; ++r)
    readers.emplace_back(
        [&, r] { n_seen[r] = read(*forest, scenario, answers, r, ended, n_samples[r]); });
  write(*forest, scenario, answers.size(), n_samples);
  ended = true;
  for (std::thread& reader : readers) reader.join();
  for (int question = 0; question < n_questions; ++question)
    CHECK(ask(*forest, scenario, question) == answers.back()[static_cast<std::size_t>(question)]);
  for (const std::size_t n : n_seen) CHECK_IN(scenario.name, n >= 5);
}

// The last rows of the stream are the queries: they lie among the examples and are not learned.
Scenario scenario_of(std::string name, Stream stream, std::vector<std::size_t> call_sizes) {
  const std::size_t n_queries = 12;
  stream.n -= n_queries;
  Scenario scenario{std::move(name), std::move(stream), {}, std::move(call_sizes)};
  scenario.queries =
      RowsView{scenario.stream.positions.data(), 0, scenario.stream.params.element_type}.slice(
          scenario.stream.n, n_queries, scenario.stream.params.n_features);
  return scenario;
}

const std::vector<std::size_t> mixed = {1, 1, 7, 1, 60, 300, 2, 1500, 1, 20};

}  // namespace

CASE("readers of a classifier see published prefixes only") {
  const Params params = params_for(Task::classes, 5, 3, 4);
  check_readers(scenario_of("classes", grid(params, 4000, 1), mixed));
}

CASE("readers of a regressor see published prefixes only") {
  const Params params = params_for(Task::numbers, 6, 5, 3, ElementType::float64);
  check_readers(scenario_of("numbers", cube(params, 3000, 2), mixed));
}

CASE("readers see published prefixes while child lists of a few are outgrown and used again") {
  for (const std::uint32_t k : {2U, 3U}) {
    const Params params = params_for(Task::retrieval, 4, k, 6, ElementType::uint8);
    check_readers(scenario_of("k = " + std::to_string(k), grid(params, 2500, k), mixed));
  }
}

CASE("readers see published prefixes while long child lists are outgrown and freed") {
  for (const std::uint32_t k : {50U, unlimited}) {
    const Params params = params_for(Task::retrieval, 4, k, 30);
    const std::string name = k == unlimited ? "k unlimited" : "k = 50";
    check_readers(scenario_of(name, star(params, 1500, 4), {1, 30, 7, 80, 200}));
  }
}

CASE("readers and the learner may share the threads") {
  Scenario scenario = scenario_of("threads", cube(params_for(Task::retrieval, 8, 3, 5), 2500, 5),
                                  {3, 100, 1, 1200, 40});
  scenario.n_jobs = 3;
  check_readers(scenario);
}

CASE("readers never see what a failed call had begun to learn") {
  for (const std::uint32_t k : {3U, unlimited}) {
    Scenario scenario = scenario_of(
        "rollback", star(params_for(Task::retrieval, 3, k, 20), 1500, 6), {4, 30, 1, 100});
    scenario.rolls_back = true;
    check_readers(scenario);
  }
}

CASE("readers see published prefixes while example by example is learned") {
  const Params params = params_for(Task::retrieval, 3, 3, 3, ElementType::float64);
  check_readers(scenario_of("one by one", cube(params, 1000, 7), {1}));
}

int main() { return check::run_all(); }
