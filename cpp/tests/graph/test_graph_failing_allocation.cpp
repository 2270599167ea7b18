// Memory that runs out while a graph is built, searched, marked or rebuilt: the forest is as it was
// before the call, or as some of its blocks left it, finds what it found, and goes on from there.
#include <functional>
#include <numeric>

#include "tests/check.hpp"
#include "tests/failing_allocations.hpp"
#include "tests/graphs.hpp"

using namespace streams;
using failing::fails_at;

namespace {

constexpr ElementType types[] = {ElementType::float32, ElementType::uint8};

std::unique_ptr<BoundaryForest> taught(const Stream& stream, std::size_t n) {
  auto forest = forest_for(stream.params);
  std::size_t learned = 0;
  learn_named(*forest, stream, 0, n, learned, ids_for(stream.params, 0, n));
  return forest;
}

// The third, fourth and fifth of every five examples.
Ids most_of(const Stream& stream, std::size_t n) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < n; ++i)
    if (i % 5 > 1) numbers.push_back(i);
  return names(stream.params, numbers);
}

std::unique_ptr<Metric> metric_of(const Stream& stream) {
  return make_metric("euclidean", 3.0, stream.params.element_type, stream.params.n_features);
}

// Each allocation of the call fails in turn (of later ones some), alone and with all that follow. `prepared` gives the forest
// each time; then `holds` is checked, and the call is made again.
using Forest = std::unique_ptr<BoundaryForest>;
void whatever_fails(const std::function<Forest()>& prepared,
                    const std::function<void(Forest&)>& call,
                    const std::function<void(Forest&)>& holds,
                    const std::function<void(Forest&)>& again) {
#if defined(CHECK_THREAD_SANITIZER) || defined(CHECK_ADDRESS_SANITIZER)
  constexpr long apart = 6;
#else
  constexpr long apart = 32;
#endif
  for (const bool from_there_on : {false, true})
    for (long at = 0;; at += 1 + at / apart) {
      Forest forest = prepared();
      if (!fails_at(at, from_there_on, [&] { call(forest); })) {
        CHECK(at > 0);
        break;
      }
      holds(forest);
      again(forest);
    }
}

}  // namespace

CASE("a graph may run out of memory anywhere while it is built") {
  // The last one has lists of links that are long, and outgrown.
  for (const Stream& stream :
       {cube(graph_params(types[0]), 330, 5), cube(graph_params(types[1]), 330, 5),
        star(graph_params(types[0], 3, unlimited, 20), 330, 5)}) {
    const Params& params = stream.params;
    const auto whole = taught(stream, stream.n);
    const Content expected(*whole, stream);
    for (const bool held : {false, true})
      for (const auto& [before, n] : {std::pair<std::size_t, std::size_t>{1, 20}, {30, 290}}) {
        const Ids ids = ids_for(params, before, n);
        std::size_t learned = 0;
        std::unique_ptr<Snapshot> holder;  // what it reads is not used again
        whatever_fails(
            [&] {
              holder.reset();
              Forest forest = taught(stream, before);
              if (held) holder = std::make_unique<Snapshot>(*forest);
              return forest;
            },
            [&](Forest& forest) {
              learned = 0;
              learn_named(*forest, stream, before, n, learned, ids);
              holder.reset();
            },
            [&](Forest& forest) {
              CHECK_EQ(forest->seen(), before + learned);
              const auto prefix = taught(stream, before + learned);
              CHECK(Content(*forest, stream) == Content(*prefix, stream));
            },
            [&](Forest& forest) {
              const std::size_t begin = before + learned;
              learn_named(*forest, stream, begin, stream.n - begin, learned,
                          ids_for(params, begin, stream.n - begin));
              CHECK(Content(*forest, stream) == expected);
              holder.reset();
            });
      }
  }
}

CASE("a graph may run out of memory anywhere while chains of its trees are rebuilt") {
  const Stream stream = line(graph_params(), 520);
  const auto whole = taught(stream, 520);
  const Content expected(*whole, stream);
  std::size_t learned = 0;
  const auto learn_from = [&](Forest& forest, std::size_t begin) {
    learned = 0;
    learn_named(*forest, stream, begin, 520 - begin, learned,
                ids_for(stream.params, begin, 520 - begin));
  };
  whatever_fails([&] { return taught(stream, 505); }, [&](Forest& f) { learn_from(f, 505); },
                 [&](Forest& f) {
                   const auto prefix = taught(stream, 505 + learned);
                   CHECK(Content(*f, stream) == Content(*prefix, stream));
                 },
                 [&](Forest& f) {
                   learn_from(f, 505 + learned);
                   CHECK(Content(*f, stream) == expected);
                 });
}

CASE("forgetting from a graph may run out of memory anywhere, and so may rebuilding it") {
  for (const ElementType type : types) {
    const Stream stream = cube(graph_params(type), 300, 5);
    const Ids some = most_of(stream, 130);
    const auto marked = [&] {
      Forest forest = taught(stream, 250);
      CHECK(forest->forget(some, Run{}).unknown.empty());
      return forest;
    };
    const auto rebuild = [&](Forest& forest) {
      forest = forest->rebuilt(forest->without_marked(Run{}), metric_of(stream));
    };
    const auto go_on = [&](Forest& forest) {
      std::size_t learned = 0;
      learn_named(*forest, stream, 250, 50, learned, ids_for(stream.params, 250, 50));
      return Content(*forest, stream);
    };
    Forest forest = taught(stream, 250);
    const Content before(*forest, stream);
    forest = marked();
    const Content after(*forest, stream);
    CHECK_EQ(after.n_marked, std::size_t{78});
    CHECK(before.found != after.found);
    Forest other = marked();
    rebuild(other);
    const Content expected = go_on(other);
    CHECK_EQ(expected.n_marked, std::size_t{0});
    whatever_fails([&] { return taught(stream, 250); }, [&](Forest& f) { f->forget(some, Run{}); },
                   [&](Forest& f) { CHECK(Content(*f, stream) == before); },
                   [&](Forest& f) {
                     CHECK(f->forget(some, Run{}).unknown.empty());
                     CHECK(Content(*f, stream) == after);
                   });
    whatever_fails(
        marked, rebuild, [&](Forest& f) { CHECK(Content(*f, stream) == after); },
        [&](Forest& f) {
          rebuild(f);
          CHECK(go_on(f) == expected);
        });
  }
}

CASE("forgetting half of a graph may run out of memory anywhere, and then nothing is forgotten") {
  const Stream stream = cube(graph_params(), 250, 5);
  const Ids half = ids_for(stream.params, 0, 125);
  const auto forget = [&](Forest& forest) {
    const Forgetting forgetting = forest->forget(half, Run{});
    CHECK(forgetting.unknown.empty() && forgetting.rebuilt);
    forest = forest->rebuilt(*forgetting.rebuilt, metric_of(stream));
  };
  Forest forest = taught(stream, 250);
  const Content before(*forest, stream);
  forget(forest);
  const Content after(*forest, stream);
  CHECK_EQ(after.n_marked, std::size_t{0});
  CHECK_EQ(after.state.examples.arrivals.size(), std::size_t{125});
  whatever_fails([&] { return taught(stream, 250); }, forget,
                 [&](Forest& f) { CHECK(Content(*f, stream) == before); },
                 [&](Forest& f) {
                   forget(f);
                   CHECK(Content(*f, stream) == after);
                 });
}

CASE("replacing in a graph may run out of memory anywhere") {
  const Stream stream = cube(graph_params(), 700, 5);
  std::size_t learned = 0;
  Forest whole = taught(stream, 300);
  replace(whole, stream, 0, 300, 400, learned);  // it is rebuilt on the way
  CHECK_EQ(learned, std::size_t{300});
  const Content expected(*whole, stream);
  CHECK_EQ(expected.state.examples.arrivals.size() - expected.n_marked, std::size_t{300});
  whatever_fails([&] { return taught(stream, 300); },
                 [&](Forest& f) { replace(f, stream, 0, 300, 400, learned); },
                 [&](Forest& f) {
                   CHECK_EQ(f->seen(), 300 + learned);
                   CHECK_EQ(f->stats().stored, Slot{300});
                 },
                 [&](Forest& f) {
                   // Where it failed to be rebuilt, that is due as before.
                   const std::size_t done = learned;
                   if (f->needs_rebuild())
                     f = f->rebuilt(f->without_marked(Run{}), metric_of(stream));
                   std::size_t more = 0;
                   replace(f, stream, done, 300 - done, 400 + done, more);
                   CHECK(Content(*f, stream) == expected);
                 });
}

CASE(
    "a graph that runs out of memory while it is restored stays empty, and one in a file as it "
    "was") {
  const Stream stream = cube(graph_params(), 300, 5);
  const auto whole = taught(stream, 300);
  const Content expected(*whole, stream);
  const auto rows = std::make_shared<std::vector<std::byte>>(expected.state.examples.positions);
  const auto empty = [&] { return forest_for(stream.params); };
  for (const bool in_file : {false, true}) {
    const auto restore = [&](Forest& f) {
      if (in_file)
        f->restore(expected.state, {rows->data(), rows->size(), rows, true});
      else
        f->restore(expected.state);
    };
    const auto restored = [&] {
      Forest f = empty();
      restore(f);
      return f;
    };
    whatever_fails(
        empty, restore, [&](Forest& f) { CHECK_EQ(f->seen(), std::uint64_t{0}); },
        [&](Forest& f) {
          restore(f);
          CHECK(Content(*f, stream) == expected);
        });
    // Rows in a file are coded by the first search.
    whatever_fails(
        restored, [&](Forest& f) { found(*f, stream.rows(0, 12)); }, [](Forest&) {},
        [&](Forest& f) { CHECK(Content(*f, stream) == expected); });
  }
}

CASE("a search that runs out of memory harms nothing") {
  const Stream stream = cube(graph_params(), 300, 5);
  const Forest forest = taught(stream, 250);
  CHECK(forest->forget(most_of(stream, 100), Run{}).unknown.empty());
  const Content expected(*forest, stream);
  const Ids some = ids_for(stream.params, 100, 150);
  const std::vector<std::uint8_t> mask(250, 1);
  const RowsView rows = stream.rows(0, 20);
  for (const Allowed& allowed :
       {Allowed{}, Allowed{.by = Allowed::By::ids, .arrivals = {}, .ids = &some},
        Allowed{.by = Allowed::By::arrivals, .arrivals = mask}})
    for (const std::size_t n_jobs : {std::size_t{1}, std::size_t{3}})
      for (const Search& search :
           {Search{.beam = 1, .allowed = allowed}, Search{.exact = true, .allowed = allowed}})
        for (const bool from_there_on : {false, true}) {
          const auto call = [&] { forest->neighbors(rows, 5, search, Run{.n_jobs = n_jobs}); };
          const auto within = [&] { forest->within(rows, 0.3, search, Run{.n_jobs = n_jobs}); };
          for (long at = 0; fails_at(at, from_there_on, call); ++at) {
          }
          for (long at = 0; fails_at(at, from_there_on, within); ++at) {
          }
        }
  CHECK(Content(*forest, stream) == expected);
}

int main() { return check::run_all(); }
