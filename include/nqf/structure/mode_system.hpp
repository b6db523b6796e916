#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/structure/interaction.hpp"

namespace nqf::structure {

/// A deck's system reduced to its modes, ready for dynamics and theory. Vectors without a remark hold the own modes.
///
/// kind uncoupled  dz/dt = z (ζ − C z), one mode or one definite sample (z = f_n) each
/// kind signed     one signed orthogonal sample each: v of THEORY 4.3 with conserved product Q = κ² z₊ z₋
/// kind coupled    dz/dt = z (ζ − C z) with `interaction`
struct ModeSystem {
  enum class Kind { uncoupled, signed_samples, coupled };
  Kind kind = Kind::uncoupled;
  parallel::Partition modes;
  std::vector<double> growth_rate;    ///< ζ_k [1/time]
  std::vector<double> self_coupling;  ///< C_kk [1/time]
  std::vector<double> log_initial;    ///< ln z_k(0)
  std::vector<double> loss_scale;     ///< of uncoupled kinds; empty: 1 (dynamics/uncoupled_modes.hpp)
  std::vector<double> log_product;    ///< signed samples: ln Q
  double loss_offset = 0.0;           ///< loss that no mode can take away (uncoupled kinds)
  bool absolute_loss = false;         ///< targets fix the constant of the loss; else it is the excess over its minimum
  std::unique_ptr<Interaction> interaction;  ///< coupled only
  double asymmetry = 0.0;       ///< largest relative asymmetry of a coupling that was given, already symmetrised
  std::string coupling_source;  ///< where a coupling that was given stands, for messages

  /// A single sample has a closed form: a_k (all modes, every rank) and y.
  std::vector<double> sample_strengths;
  std::optional<double> sample_target;

  std::optional<double> log_epsilon;               ///< ln ε, where the deck names ε
  std::string mode_name = "mode";                  ///< "mode", "sample" or "pixel", for messages and descriptions
  std::int64_t image_rows = 0, image_columns = 0;  ///< modes are pixels of images; 0: they are not
  bool signed_features = false;                    ///< modes k and K/2 + k are +x_k and −x_k

  /// Power laws the deck states, for the predicted exponent: ζ ~ k^−growth, V ~ k^−drop, z(0) ~ k^−initial; samples:
  /// y ~ n^−target.
  std::optional<double> growth_exponent, drop_exponent, initial_exponent, target_exponent;

  bool has_closed_form() const { return kind != Kind::coupled || sample_target.has_value(); }
};

/// Reads and checks everything the deck's system names. Collective; memory K/ranks doubles for a few arrays, and the
/// coupling (dense K²/ranks, factored N K/ranks).
/// @throws DeckError, DataError naming the place and the value: rates, lengths, symmetry, a system with K = 0
ModeSystem make_mode_system(const parallel::Comm& comm, const deck::Deck& deck);

}  // namespace nqf::structure
