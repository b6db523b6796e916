#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/solver/eigenpairs.hpp"
#include "nqf/structure/objective.hpp"

namespace nqf::solver {

/// The modes of a module (THEORY 4.2): eigenvectors e_k of Y = E[(y − f0) A] with positive eigenvalue λ_k. Each grows
/// at ζ_k = 4λ_k while it is small, and by itself would saturate at z*_k = ζ_k/C_kk with
///   C_kk = 4 E[a_k²],  a_k = e_kᵀ A e_k.
/// For commuting A these are the modes of the exact closure; for others C_kk leaves the competition out. Sum terms g, B
/// take no part. Modes are whole, and the same bits, on every rank. Of modes with one rate (copies of a block: inner
/// dimensions of attention) the basis with the fewest rows is taken, so that it does not depend on rounding.
struct ModuleModes {
  std::vector<double> growth_rate;    ///< ζ_k, descending [K]
  std::vector<double> self_coupling;  ///< C_kk [K]
  std::vector<double> vectors;        ///< e_k, p × K, column-major
  double dark_loss = 0.0;             ///< L(W = 0) = ½ E[(y − f0)²]
  bool complete = false;              ///< all modes with ζ > 0 are here, not only the first of them
  std::string method;                 ///< how Y's eigenvectors were found, for the log
};

/// Y whole and LAPACK up to this order p, else products with Y and Krylov–Schur.
inline constexpr std::int64_t dense_modes_limit = 2000;
/// As many modes of a larger Y, unless asked otherwise.
inline constexpr std::int64_t default_large_modes = 100;

/// The first `count` modes (0: all up to order dense_modes_limit, else default_large_modes). Y comes from the gradient
/// at W = 0 (one pass over the samples; or one for each of some 3–10 products a mode), E[a_k²] from the loss of the one
/// unit w = τ e_k, which is the polynomial L(0) − τ²λ_k + ½ τ⁴ E[a_k²] (one pass a mode). Collective. Memory: 2p²
/// doubles (dense), or some 5 p K. @throws UserError unless the loss is the squared error; RunError as the eigensolvers
/// do
ModuleModes module_modes(structure::Objective& objective, std::int64_t count = 0,
                         std::int64_t dense_limit = dense_modes_limit);

/// ln e_kᵀ M(0) e_k of every mode, for W(0) [p × n_columns], of which this rank holds rows row_begin … (row-major, as
/// many as there are). Collective; one reduction. −∞ where W(0) has no part of a mode.
std::vector<double> log_initial_strength(const parallel::Comm& comm, const ModuleModes& modes, std::int64_t row_begin,
                                         std::span<const double> weights, std::int64_t n_columns);

}  // namespace nqf::solver
