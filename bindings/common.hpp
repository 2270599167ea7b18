// What the bindings share: arrays in and out, metrics, and calls that say how far they came.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callables.hpp"
#include "constants.hpp"
#include "forest/boundary_forest.hpp"
#include "interpreter.hpp"

template <>
struct nanobind::detail::dtype_traits<boundary_forest::Half> {
  static constexpr dlpack::dtype value{static_cast<std::uint8_t>(dlpack::dtype_code::Float), 16, 1};
  static constexpr auto name = const_name("float16");
};

namespace boundary_forest {

namespace nb = nanobind;

using Array2d = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Labels2d = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using RankArray = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using ClassWeightArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Where classes stand, by code; none, and they stand by their codes.
inline Ranks ranks_in(const std::optional<RankArray>& given) {
  return given ? Ranks(given->data(), given->shape(0)) : Ranks();
}

inline ElementType element_type_of(const std::string& name) {
  for (const ElementType type : element_types)
    if (name == name_of(type)) return type;
  throw std::invalid_argument("unknown element type '" + name + "'");
}

inline ElementType element_type_of(const nb::dlpack::dtype& dtype) {
  std::string names;
  for (const ElementType type : element_types) {
    const bool same =
        with_element_type(type, [&](auto zero) { return dtype == nb::dtype<decltype(zero)>(); });
    if (same) return type;
    names += (names.empty() ? "" : ", ") + std::string(name_of(type));
  }
  throw nb::type_error(("rows must be of one of the types " + names).c_str());
}

template <class T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

template <class T>
nb::object to_numpy(Table<T>&& table) {
  return to_numpy(std::move(table.values), {table.rows, table.columns});
}

// A call that is interrupted says how much it has learned.
template <class F>
void saying_how_far(const RowsView& rows, F&& f) {
  std::size_t learned = 0;
  try {
    const ReleasedGil nogil;
    f(learned);
  } catch (nb::python_error& error) {
    if (learned > 0)
      error.value().attr("add_note")(
          nb::str("{} of {} rows were learned before this, and are kept").format(learned, rows.n));
    throw;
  }
}

// By name, by address or a callable, which the caller keeps alive.
inline std::unique_ptr<Metric> make_metric(const nb::object& metric, double p, ElementType stored,
                                           std::size_t n_features, bool needs_non_negative) {
  if (nb::isinstance<nb::str>(metric))
    return make_metric(nb::cast<std::string>(metric), p, stored, n_features);
  if (nb::isinstance<nb::int_>(metric))
    return make_metric(reinterpret_cast<DistanceFunction>(nb::cast<std::uintptr_t>(metric)), stored,
                       n_features, needs_non_negative);
  return make_callable_metric(metric, stored, n_features, needs_non_negative);
}

}  // namespace boundary_forest
