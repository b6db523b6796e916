#pragma once

#include <cstddef>
#include <span>

namespace nqf::structure {

/// out += A x for a symmetric A of order n = |x| = |out|, given by its lower triangle: column l is at a + l·stride.
/// Each entry of the triangle is read once, so the cost is memory traffic of n²/2 entries. Entries of single precision
/// are multiplied and added up in double.
template <class Real>
void add_symmetric_product(const Real* a, std::size_t stride, std::span<const double> x, std::span<double> out);

extern template void add_symmetric_product(const double*, std::size_t, std::span<const double>, std::span<double>);
extern template void add_symmetric_product(const float*, std::size_t, std::span<const double>, std::span<double>);

}  // namespace nqf::structure
