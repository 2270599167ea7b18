// The class Forest of _core: a forest of the engine, as Python sees it. Its methods check arrays and release
// the GIL; they are bound where they are defined: learning, asking, states, and parts of a forest.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.hpp"
#include "conversions.hpp"
#include "forest/boundary_forest.hpp"

namespace boundary_forest {

class PySnapshot;

using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Distances = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// How neighbours are searched for, as Python says it; what it refers to lives as long as this.
struct PySearch {
  PySearch(std::size_t beam, std::optional<bool> exact, const std::optional<Mask>& mask,
           const nb::object& ids)
      : names(ids_from(ids)) {
    search.beam = beam;
    search.exact = exact.value_or(false);
    search.cheapest = !exact;
    if (mask)
      search.allowed = {Allowed::By::arrivals, {mask->data(), mask->shape(0)}, nullptr};
    else if (!ids.is_none())
      search.allowed = {Allowed::By::ids, {}, &names};
  }

  Ids names;
  Search search;
};

class Forest {
 public:
  Forest(std::uint32_t n_T, std::optional<std::uint32_t> k, std::size_t n_features,
         std::size_t label_length, nb::object label_metric, const std::string& estimator,
         std::optional<double> epsilon, const std::string& element_type, std::uint64_t seed,
         nb::object metric, double p, const std::string& ids, double max_samples,
         const std::string& votes, const nb::object& feature_weights,
         std::vector<std::uint32_t> lifetimes, std::uint32_t max_stored, const std::string& search,
         std::optional<std::pair<std::uint32_t, std::uint32_t>> trees, bool balanced);

  // A callable metric may refer to the forest it serves; the garbage collector is shown the way.
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(nb::inst_ptr<Forest>(self)->metric_.ptr());
    Py_VISIT(nb::inst_ptr<Forest>(self)->label_metric_.ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    nb::inst_ptr<Forest>(self)->metric_.reset();
    nb::inst_ptr<Forest>(self)->label_metric_.reset();
    return 0;
  }

  // forest_learning.cpp
  void learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs, const nb::object& ids);
  // predict_then_learn or estimate_then_learn
  template <auto method>
  nb::object answer_then_learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                               const nb::object& ids, const std::optional<RankArray>& ranks,
                               bool with_leaves);
  void learn_offline(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                     const nb::object& ids);
  void weigh_classes(const ClassWeightArray& weights);
  void check_ids(const nb::object& ids, bool may_be_known);
  // Learns rows in place of those that have their ids. Whenever the examples that were replaced are as
  // many as the others, an engine without them takes this one's place; where learning may
  // fail, not before all rows are learned.
  void replace(const Array2d& X, const Labels2d& y, std::size_t n_jobs, const nb::object& ids);
  // The numbers of the ids that are not known; then nothing is forgotten.
  std::vector<std::size_t> forget(const nb::object& ids, std::size_t n_jobs, bool erase);
  nb::object classes_without(const nb::object& ids);
  nb::tuple named(const nb::object& ids);
  // Removes what was forgotten and what searches still pass through.
  void erase_forgotten(std::size_t n_jobs);
  std::size_t n_forgotten();
  void regrow(std::uint32_t place, const Keys& arrivals, bool answering);
  void succeed(std::uint32_t place);

  // forest_asking.cpp
  nb::object apply(const Array2d& X, std::size_t n_jobs);
  // predict or estimate
  template <auto method>
  nb::object answer(const Array2d& X, std::size_t n_jobs, const std::optional<RankArray>& ranks);
  nb::tuple neighbors(const Array2d& X, std::size_t n, std::size_t n_jobs, std::size_t beam,
                      std::optional<bool> exact, const std::optional<Mask>& mask,
                      const nb::object& ids);
  nb::tuple within(const Array2d& X, double radius, std::size_t n_jobs, std::size_t beam,
                   std::optional<bool> exact, const std::optional<Mask>& mask,
                   const nb::object& ids);
  nb::tuple found(const Array2d& X, std::size_t n_jobs);
  nb::tuple paths(const Array2d& x);

  // forest_state.cpp
  PySnapshot snapshot(bool searched);
  // None if there are more classes than keys.
  nb::object digest(const std::optional<Keys>& label_keys, const std::optional<nb::dict>& kept,
                    std::optional<std::size_t> n_features);
  nb::tuple features();
  double label_deviation();
  nb::dict stats();
  // The positions' array is "copied"; or it is "kept", and must not be written any more; or it is
  // kept and "mapped" from a file, so that it does not count as memory.
  void restore(const nb::dict& all, const std::string& positions);
  // The same forest whose stored rows have further features, all zero; not while another thread learns.
  Forest widened(std::size_t n_features) const;

  std::uint64_t seen() const { return forest_->seen(); }
  std::uint32_t n_classes() const { return forest_->n_classes(); }

  // forest_parts.cpp
  nb::tuple leaves(const Array2d& X, std::size_t n_jobs);
  nb::tuple leaves_then_learn(const Array2d& X, const Labels2d& y, std::size_t n_jobs,
                              const nb::object& ids);
  nb::tuple candidates(const Array2d& X, std::optional<std::size_t> n, std::optional<double> radius,
                       std::size_t n_jobs, std::size_t beam, std::optional<bool> exact,
                       const std::optional<Mask>& mask, const nb::object& ids);
  nb::tuple examples(const Keys& arrivals);
  std::vector<std::uint32_t> places_to_grow();
  void grow(const Array2d& X, const Labels2d& y, const Keys& arrivals, std::size_t n_jobs,
            const nb::object& ids);
  nb::object oldest();
  void cut(std::uint32_t place, bool answering, std::size_t n_jobs);
  bool is_planted();

 private:
  std::shared_ptr<BoundaryForest> make_forest(const Params& params) const;
  static std::shared_ptr<BoundaryForest> shared(std::unique_ptr<BoundaryForest> forest);
  std::unique_ptr<Metric> metric_for(const Params& params) const;
  // These without the GIL.
  std::shared_ptr<BoundaryForest> rebuilt(const BoundaryForest& forest,
                                          const BoundaryForest::State& state) const;
  void become(std::shared_ptr<BoundaryForest> forest);
  // The engine that a changing call begins with: it is rebuilt first if an earlier call failed to do so.
  std::shared_ptr<BoundaryForest> rebuilt_if_due(std::shared_ptr<BoundaryForest> forest,
                                                 std::size_t n_jobs);

  RowsView view(const BoundaryForest& forest, const Array2d& X) const;
  static Ids ids_to_learn(const BoundaryForest& forest, const nb::object& given, std::size_t n);
  RowsView rows_to_learn(const BoundaryForest& forest, const Array2d& X, const Labels2d& y) const;
  // The rows of an array of positions.
  static std::vector<std::byte> bytes_of(const BoundaryForest& forest, const Array2d& array);
  static SavedRows rows_in(const BoundaryForest& forest, const Array2d& array,
                           const std::string& how);

  nb::object metric_;        // a name, an address or a callable
  nb::object label_metric_;  // a name or a callable
  double p_;
  std::vector<double> weights_;  // of the features, if they were given
  // A rebuild puts another engine here, on whichever thread has the GIL. So a call copies this
  // pointer once, before it releases the GIL, and reads params() of its copy alone.
  std::shared_ptr<BoundaryForest> forest_;
};

void bind_learning(nb::class_<Forest>& forest);
void bind_asking(nb::class_<Forest>& forest);
void bind_states(nb::module_& m, nb::class_<Forest>& forest);
void bind_parts(nb::module_& m, nb::class_<Forest>& forest);

// The class itself, to which the others add their methods.
void bind_forest(nb::module_& m);

}  // namespace boundary_forest
