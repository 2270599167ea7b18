// What the bindings share: arrays in and out, metrics, and how calls give way to others and to Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "boundary_forest/boundary_forest.hpp"
#include "callables.hpp"

namespace boundary_forest {

namespace nb = nanobind;

using Array2d = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Enum>
Enum by_name(const std::string& name, std::initializer_list<std::pair<const char*, Enum>> known) {
  for (const auto& [text, value] : known)
    if (name == text) return value;
  throw std::invalid_argument("unknown name '" + name + "'");
}

inline ElementType element_type_of(const std::string& name) {
  return by_name<ElementType>(name, {{"uint8", ElementType::uint8},
                                     {"float32", ElementType::float32},
                                     {"float64", ElementType::float64}});
}

inline ElementType element_type_of(const nb::dlpack::dtype& dtype) {
  if (dtype == nb::dtype<std::uint8_t>()) return ElementType::uint8;
  if (dtype == nb::dtype<float>()) return ElementType::float32;
  if (dtype == nb::dtype<double>()) return ElementType::float64;
  throw nb::type_error("rows must be uint8, float32 or float64");
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

template <class F>
auto without_gil(F&& f) {
  const nb::gil_scoped_release nogil;
  return f();
}

// A call that is interrupted says how much it has learned.
template <class F>
void saying_how_far(const RowsView& rows, F&& f) {
  std::size_t learned = 0;
  try {
    const nb::gil_scoped_release nogil;
    f(learned);
  } catch (nb::python_error& error) {
    if (learned > 0)
      error.value().attr("add_note")(
          nb::str("{} of {} rows were learned before this, and are kept").format(learned, rows.n));
    throw;
  }
}

// Ctrl-C ends a call where it looks for it.
inline void check_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
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
