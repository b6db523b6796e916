#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/deck/module.hpp"

namespace nqf::deck {

class TableReader;

/// What is audited: the rows of THEORY §7's table. Controls are modules whose outputs carry another power of the width.
enum class AuditModule {
  perceptron,
  convolution,
  convolution_positions,
  attention,
  query_key,
  experts_softmax_linear,
  experts_sigmoid_linear,
  experts_softmax,
  fourier,
  custom,
  mean_of_units,      ///< control: the perceptron times 1/d
  d_experts_softmax,  ///< control: softmax-gated experts times d
};

/// Table [audit] (THEORY §7): the cases are all combinations of the lists; a list that is not given is what [module]
/// and [weights] say.
struct AuditOptions {
  std::vector<AuditModule> modules;
  std::vector<ActivationKind> activations;  ///< one case each for modules that have one
  std::vector<double> epsilon;
  std::vector<std::int64_t> width;
  std::vector<std::int64_t> seeds;  ///< of W(0)
  std::int64_t seed_count = 0;      ///< instead: seeds 0 … seed_count − 1
  bool unit_slope = true;           ///< activations of the list get the gain that makes φ'(0) = 1
  double level = 0.1;               ///< gap and remainder above it fail
  double loss_tolerance = 0.1;      ///< horizon: |L_original − L_form| ≤ this × total drop until then
  double end_factor = 1.5;          ///< end of a case: this × the last predicted ignition; 0: time.end
  std::int64_t modes = 8;           ///< modes followed, by falling growth rate
  std::int64_t outputs = 400;       ///< points of the curves
  std::int64_t train_up_to = 0;     ///< originals of more units are not trained: remainder only; 0: all are
  bool fit_laws = true;             ///< R, gap ~ d^(−a) ε^b
  std::int64_t fit_from = 64;       ///< units: with fewer a module is not yet in the law's range (THEORY §7)
  std::int64_t ranks_per_case = 1;  ///< cases run side by side on so many ranks each
  Place place;
  static AuditOptions from(TableReader table);
};

/// The name of a module as decks spell it; its kind; the power of the width its outputs are multiplied by.
std::string audit_name(AuditModule module);
ModuleKind kind_of(AuditModule module);
int width_power(AuditModule module);
/// The row of a plain module. @throws std::out_of_range for kinds that are their own normal form
AuditModule audit_module(ModuleKind kind);
/// False for attention and linear experts, where [module] activation is not used.
bool has_activation(AuditModule module);
std::string activation_name(ActivationKind activation);

}  // namespace nqf::deck
