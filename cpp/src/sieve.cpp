#include "boundary_forest/sieve.hpp"

namespace boundary_forest {

std::unique_ptr<Sieve> Metric::sieve(const QueryRows& block) const {
  return std::make_unique<PlainSieve>(*this, block);
}

std::size_t PlainSieve::sift(std::span<const std::uint32_t> queries,
                             std::span<const std::byte* const> rows, std::span<double> bounds,
                             Workspace&, std::vector<Candidate>& found) const {
  double reduced[most_rows];
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    d_.distances(block_.position(queries[i]), rows.data(), rows.size(), reduced);
    for (std::uint32_t j = 0; j < rows.size(); ++j) {
      if (reduced[j] > bounds[i]) continue;
      bounds[i] = reduced[j];
      found.push_back({i, j, reduced[j]});
    }
  }
  return queries.size() * rows.size();
}

}  // namespace boundary_forest
