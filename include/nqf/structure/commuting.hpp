#pragma once

#include <cstdint>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/structure/mode_system.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::structure {

/// ‖C₁C₂ − C₂C₁‖_F / (‖C₁‖_F ‖C₂‖_F) of two random mixtures C = Σ_j √π_n ξ_j A_j, ξ standard normal by the seed and the
/// global index: zero to rounding where all A_j commute, and only there (with probability 1). Zero without computation
/// for diagonal modules. From moments alone the mixtures are drawn by their distribution. Collective; p³ multiply–adds,
/// 4 p² doubles on every rank.
/// @throws DeckError for p × p beyond PETSc's indices
double commutator_norm(const parallel::Comm& comm, const deck::Deck& deck, const ModuleProblem& problem,
                       std::int64_t seed = 0);

/// The modes of a commuting system (THEORY 4.1): A_j = Q diag(a_j) Qᵀ, z_k(0) = |q_k·W(0)|², targets y − f0. Coupled
/// modes, with C formed where it is smaller than the features, else factored. A diagonal network has its coordinates as
/// modes, in order (k: +x_k, n + k: −x_k; pairs: (u_k ± v_k)/√2), elsewhere Q comes from an eigendecomposition of one
/// random mixture, refined by a second where eigenvalues meet. Only without sum terms and for the squared error; from
/// moments alone only diagonal networks (C = 4 E[a a] is their Σ_zz with signs, n² doubles on every rank). Collective.
/// Beside Q, p measurements of all samples, each of half a gradient's multiply–adds (N m p³/2 over the ranks for stored
/// matrices), p core products and C (N m p²); N m p/ranks doubles. Of a diagonal network none of this but C.
/// @throws DeckError: sum terms, another loss, a mode that starts at zero
ModeSystem reduce_to_modes(const parallel::Comm& comm, const deck::Deck& deck, const ModuleProblem& problem,
                           const WeightsView& initial, std::int64_t seed = 0);

/// True if the deck trains Fourier features on Fourier data whose ψ_k are orthonormal on the grid of the samples:
/// module and data "fourier", target "list" without noise, full batch, squared error, φ(0) = 0, and fewer features than
/// samples. Then fourier_modes() solves it for any number of features.
bool is_orthonormal_fourier(const parallel::Comm& comm, const deck::Deck& deck);

/// Number K of Fourier features that the deck trains (p = 2K). Collective.
std::int64_t count_fourier_features(const parallel::Comm& comm, const deck::Deck& deck);

/// Orthonormal Fourier features as signed orthogonal samples (THEORY 4.3 with N = 1): mode k has f_k = ½ φ'(0) s_k
/// (z₊ − z₋), z± = ½|u_k ± v_k|² and the target b_k. No matrix is formed: K/ranks numbers. Collective.
/// @throws DeckError: an amplitude of 0, a start from which a mode cannot grow
ModeSystem fourier_modes(const parallel::Comm& comm, const deck::Deck& deck, const WeightsView& initial);

/// How close E[Tr(M A) A] is to c M (THEORY 4.5).
struct Isotropy {
  double c = 0.0;
  double deviation = 0.0;  ///< largest ‖E[Tr(M A) A] − c M‖_F/‖c M‖_F over random symmetric M
};
/// By measuring and assembling three random symmetric M; from moments by the change of S. Collective; as three
/// gradients.
/// @throws DeckError for p × p beyond PETSc's indices
Isotropy isotropy(const parallel::Comm& comm, const deck::Deck& deck, const ModuleProblem& problem,
                  std::int64_t seed = 0);

}  // namespace nqf::structure
