#include "nqf/structure/row_block.hpp"

#include <algorithm>

#include "structure/combine_columns.hpp"
#include "structure/symmetric_product.hpp"

namespace nqf::structure {

template <class Real>
RowBlock<Real>::RowBlock(const parallel::Partition& modes, std::vector<Real> rows)
    : modes_(modes), rows_(std::move(rows)) {
  lit_columns_.reserve(modes.global_size());
  lit_values_.reserve(modes.global_size());
}

template <class Real>
void RowBlock<Real>::apply(std::span<const double> z, std::span<double> out) {
  lit_columns_.clear();
  lit_values_.clear();
  const auto own_z = z.subspan(modes_.begin(), modes_.local_size());
  const auto own_lit = std::count_if(own_z.begin(), own_z.end(), [](double value) { return value != 0.0; });
  const bool use_symmetry = 2 * own_lit > modes_.local_size();
  const auto take = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t l = begin; l < end; ++l) {
      if (z[l] == 0.0) continue;
      lit_columns_.push_back(column(l));
      lit_values_.push_back(z[l]);
    }
  };
  take(0, modes_.begin());
  if (!use_symmetry) take(modes_.begin(), modes_.end());
  take(modes_.end(), modes_.global_size());
  combine_columns(std::span<const Real* const>(lit_columns_), lit_values_, out);
  if (use_symmetry) add_symmetric_product(column(modes_.begin()), modes_.local_size(), own_z, out);
}

template class RowBlock<double>;
template class RowBlock<float>;

}  // namespace nqf::structure
