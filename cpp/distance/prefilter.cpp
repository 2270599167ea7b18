#include "distance/prefilter.hpp"

namespace boundary_forest {

std::unique_ptr<Prefilter> Metric::prefilter(const QueryRows& block) const {
  return std::make_unique<PlainPrefilter>(*this, block);
}

std::size_t PlainPrefilter::filter(std::span<const std::uint32_t> queries,
                                   std::span<const std::byte* const> rows, std::span<double> bounds,
                                   Workspace&, std::span<std::uint64_t> closest) const {
  double reduced[most_rows];
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    d_.distances(block_.position(queries[i]), rows.data(), rows.size(), reduced);
    closest[i] = 0;
    for (std::uint32_t j = 0; j < rows.size(); ++j) consider(j, reduced[j], bounds[i], closest[i]);
  }
  return queries.size() * rows.size();
}

}  // namespace boundary_forest
