#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::network {

/// Columns d' of the compressed network (Theorem 3): min(d, p), or min(d, p + 1) where the normal form needs s.
constexpr std::int64_t compressed_columns(std::int64_t p, std::int64_t d, bool with_sum) {
  const std::int64_t most = with_sum ? p + 1 : p;
  return d < most ? d : most;
}

/// The vector o that stands for the d ones, this rank's columns: s = W' o. All ones if d' = d, else (√d, 0, …, 0),
/// which compress() arranges.
std::vector<double> compressed_ones(const parallel::Comm& comm, std::int64_t d, std::int64_t columns);

/// W' = W Q [p × d'] with W' W'ᵀ = W Wᵀ and, if `with_sum`, W' o = W 1: W itself if d' = d; else the columns s/√d (with
/// a sum) and a square root of M − s sᵀ/d, from its eigenvectors with the rows scaled to equal size, so that M is kept
/// to rounding in every entry relative to √(M_aa M_bb). The eigenvectors are taken on the root. `w` [p × local units],
/// columns by Partition(d, comm); @return [p × local columns], by Partition(d', comm). Collective: one reduction of p(p
/// + 1) numbers and one broadcast of p d'. Cost p² d / ranks + O(p³).
std::vector<double> compress(const parallel::Comm& comm, std::int64_t p, std::int64_t d, std::span<const double> w,
                             bool with_sum);

}  // namespace nqf::network
