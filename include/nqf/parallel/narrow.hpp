#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace nqf {

/// Integer conversion that throws std::range_error instead of changing the value; for MPI, BLAS and PETSc counts.
template <class To, class From>
constexpr To narrow(From value) {
  if (!std::in_range<To>(value)) throw std::range_error("integer " + std::to_string(value) + " does not fit");
  return static_cast<To>(value);
}

}  // namespace nqf
