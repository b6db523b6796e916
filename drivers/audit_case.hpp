#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/comm.hpp"

namespace nqf::drivers {

/// One cell of an audit: a deck (its [[case]]) with module, activation, ε, d and seed written in.
struct AuditCase {
  std::size_t deck = 0;  ///< which of the file's cases
  std::string module;
  std::string activation;  ///< "-" where the module has none
  double epsilon = 0.0;
  std::int64_t width = 0;
  std::int64_t seed = 0;
  deck::ModuleOptions options;
};

/// All combinations of [audit], seeds innermost, so that cases that run at the same time cost the same.
/// @throws DeckError: a module that is its own normal form; what an audit does not take (mini-batches, weight decay,
///   another loss, W(0) that is not Gaussian)
std::vector<AuditCase> audit_cases(const deck::DeckFile& file);
/// The deck of one case, as `run` would take it.
deck::Deck deck_of(const deck::DeckFile& file, const AuditCase& one);
/// "perceptron tanh, epsilon 0.01, width 64, seed 3".
std::string describe(const AuditCase& one);

/// What THEORY §7 asks of a case. NaN: not defined, or the original was not trained.
struct AuditResult {
  double t1 = 0.0, end = 0.0, first_drop = 0.0, total_drop = 0.0;
  double gap = 0.0;  ///< |L_orig − L_nqf|(t₁) / total drop
  double remainder = 0.0, remainder_order = 0.0;
  double horizon = 0.0, final_loss = 0.0, original_final_loss = 0.0;
  double exponent = 0.0, exponent_error = 0.0;  ///< power law of the original's loss, where it has one
  std::int64_t plateaus = 0, original_plateaus = 0, unmatched_plateaus = 0, steps = 0, original_steps = 0;
  bool trained = false, passed = false;
  std::vector<double> growth_rate, ignition, original_ignition;  ///< of the modes followed

  double ignition_ratio(std::size_t k) const { return original_ignition[k] / ignition[k]; }
  /// As plain numbers, with `modes` entries of each list (padded with NaN); and back.
  std::vector<double> pack(std::size_t modes) const;
  static AuditResult unpack(std::span<const double> numbers, std::size_t modes);
  static std::size_t packed_size(std::size_t modes) { return 19 + 3 * modes; }
};

/// Trains the normal form, compressed, and the original from the same W(0): entries N(0, ε²/d), a function of seed,
/// unit and row alone, the numbers that run draws for the original. The weights of all d units at t₁ come from the
/// compressed flow: it is affine in W(0), W(t) = P(t) W(0) + c(t) 1ᵀ, and P and c are read off W'(0) and W'(t₁)
/// (THEORY §3), so that the form costs the same at any width. It is integrated twice, the second time to t₁, and no
/// states are kept.
/// Memory: 8 p d/ranks bytes × (2, with a trained original some 18), and samples and modes whole on every rank.
/// Collective over `comm`. @throws RunError, the same on every rank: no mode grows, the loss does not fall, a solver
///   gives up; DeckError, DataError as the rooms do
AuditResult run_audit_case(const parallel::Comm& comm, const deck::Deck& deck);

}  // namespace nqf::drivers
