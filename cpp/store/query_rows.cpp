#include "store/query_rows.hpp"

namespace boundary_forest {
namespace {

template <class From, class To>
bool convert_row(const From* from, To* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(from[i]);
    if (!holds_exactly<To>(value)) return false;
    to[i] = static_cast<To>(value);
  }
  return true;
}

}  // namespace

QueryRows::QueryRows(const RowsView& rows, const ExampleStore& store, Memory* memory)
    : n_features_(store.n_features()),
      positions_(rows.n, memory),
      converted_(memory),
      fingerprints_(rows.n, memory) {
  const ElementType stored = store.element_type();
  if (rows.type == stored) {
    for (std::size_t i = 0; i < rows.n; ++i)
      positions_[i] = {rows.slice(i, 1, n_features_).data, stored};
    return;
  }
  const std::size_t stride = n_features_ * sizeof(double);  // room for either type
  converted_.resize(rows.n * stride);
  with_element_type(rows.type, [&](auto from_zero) {
    with_element_type(stored, [&](auto to_zero) {
      using From = decltype(from_zero);
      using To = decltype(to_zero);
      for (std::size_t i = 0; i < rows.n; ++i) {
        const auto* from = reinterpret_cast<const From*>(rows.slice(i, 1, n_features_).data);
        std::byte* to = converted_.data() + i * stride;
        if (convert_row(from, reinterpret_cast<To*>(to), n_features_)) {
          positions_[i] = {to, stored};
        } else if (is_short_for_float32(stored) &&
                   convert_row(from, reinterpret_cast<float*>(to), n_features_)) {
          positions_[i] = {to, ElementType::float32};
        } else {
          convert_row(from, reinterpret_cast<double*>(to), n_features_);
          positions_[i] = {to, ElementType::float64};
        }
      }
    });
  });
}

QueryRows::QueryRows(const ExampleStore& store, Slot first, std::size_t n, Memory* memory)
    : n_features_(store.n_features()),
      first_(first),
      positions_(n, memory),
      converted_(memory),
      fingerprints_(n, memory) {
  for (std::size_t i = 0; i < n; ++i) positions_[i] = {store.row(slot(i)), store.element_type()};
}

QueryRows::QueryRows(const ExampleStore& store, std::span<const Slot> slots, Memory* memory)
    : n_features_(store.n_features()),
      slots_(slots),
      positions_(slots.size(), memory),
      converted_(memory),
      fingerprints_(slots.size(), memory) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    positions_[i] = {store.row(slots[i]), store.element_type()};
}

}  // namespace boundary_forest
