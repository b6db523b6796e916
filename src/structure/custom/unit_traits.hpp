#pragma once

#include <concepts>
#include <cstdint>
#include <span>

namespace nqf::structure {

/// What a user's file holds:
///   static constexpr const char* name
///   static n_parameters(n, m), n_features(n, m)            from the lengths of input and output
///   features<T>(w, x, out)                                  what a unit adds to the sum over units, [n_features]
///   readout<T>(sum, x, d, y)           optional             outputs from that sum; without it y is the sum
/// T is double or a dual number: call functions unqualified after `using std::tanh;` and name intermediate results T,
/// not auto (the library's expressions refer to temporaries). features may take the unit's number as a fourth argument,
/// if units are not alike; diagnose() will say that this breaks the symmetry.
template <class Unit, class T>
constexpr bool has_readout = requires(std::span<const T> in, std::int64_t d, std::span<T> out) {
  Unit::readout(in, in, d, out);
};
template <class Unit, class T>
constexpr bool is_numbered = requires(std::span<const T> in, std::span<T> out, std::int64_t unit) {
  Unit::features(in, in, out, unit);
};

template <class Unit, class T>
void features_of(std::span<const T> w, std::span<const T> x, std::span<T> out, std::int64_t unit) {
  if constexpr (is_numbered<Unit, T>)
    Unit::features(w, x, out, unit);
  else
    Unit::features(w, x, out);
}

template <class Unit, class T>
void readout_of(std::span<const T> sum, std::span<const T> x, std::int64_t d, std::span<T> y) {
  if constexpr (has_readout<Unit, T>)
    Unit::readout(sum, x, d, y);
  else
    for (std::size_t c = 0; c < y.size(); ++c) y[c] = sum[c];
}

}  // namespace nqf::structure
