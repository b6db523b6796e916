#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nqf/theory/power_law_fit.hpp"
#include "nqf/theory/scaling.hpp"

/// The spectrum of a problem before any training (THEORY 4.2 and 5): modes k = 1 … K in order of their growth rates
///   ζ_k ~ k^{−α₂},   drops V_k = ζ_k²/(8 C_kk) ~ k^{−α₁},
/// what exponent of the loss they predict, −(α₁ − 1)/α₂, and when each mode ignites.
namespace nqf::theory {

/// Modes k from `begin` to `end`, both counted from 1 and included.
struct ModeWindow {
  std::int64_t begin = 0, end = 0;
};

/// value_k ≈ A k^{−α}, by least squares in log–log coordinates, each mode weighing as much as the stretch of ln k it
/// stands for (power_law_fit.hpp).
struct SpectrumFit {
  bool accepted = false;
  std::string reason;                              ///< why the fit is refused; empty if accepted
  double exponent = PowerLawFit::undefined;        ///< α
  double standard_error = PowerLawFit::undefined;  ///< of α, from the scatter about the line
  double log_amplitude = PowerLawFit::undefined;   ///< ln A
  ModeWindow window;                               ///< in which it was fitted, or would have been
  std::int64_t n_points = 0;
  /// −d ln value/d ln k at every mode: a power law is where it is flat. NaN beside a value that is not positive.
  std::vector<double> local_exponent;
};

/// The middle half of ln k, [K^¼, K^¾], where it is a decade (K ≥ 100): the first modes are few and have their own
/// story, the last ones bend with the cutoff of a finite sample. For smaller K all of them.
ModeWindow default_window(std::int64_t n_modes);

/// Fits value_k, k = 1 … K, in `window` (default_window of the leading values that are positive, if none is given).
/// Refuses, with the reason, what fit_power_law refuses: less than a decade, fewer than 8 modes, a value in the window
/// that is not positive. Cost O(K).
SpectrumFit fit_spectrum(std::span<const double> value, std::optional<ModeWindow> window = {});

/// Modes k as plain arrays [K], in the caller's order.
struct ModeArrays {
  std::span<const double> growth_rate;    ///< ζ_k
  std::span<const double> self_coupling;  ///< C_kk
  std::span<const double> log_initial;    ///< ln z_k(0)
  std::span<const double> loss_scale;     ///< factor of V_k (orthogonal samples: 4/(N β)); empty: 1
};

struct SpectrumAnalysis {
  std::vector<std::int64_t> order;    ///< places in the caller's arrays, by falling growth rate; ζ ≤ 0 come last
  std::int64_t n_growing = 0;         ///< modes with ζ > 0; only they ignite and lower the loss
  std::vector<double> growth_rate;    ///< in that order, as all below
  std::vector<double> drop;           ///< V_k; 0 for ζ ≤ 0
  std::vector<double> ignition_time;  ///< ln(z*_k/z_k(0) − 1)/ζ_k; NaN: never, or lit from the start
  SpectrumFit growth_fit, drop_fit;   ///< α₂ and α₁
  /// From the fitted α; no value where one was refused.
  ScalingExponent predicted;
  double predicted_error = PowerLawFit::undefined;  ///< propagated from both, taken as independent
};

/// Cost O(K log K). @throws std::invalid_argument for lengths that differ or a number that is not finite;
/// std::domain_error for a mode that grows without bound (C_kk = 0, ζ_k > 0)
SpectrumAnalysis analyse_spectrum(const ModeArrays& modes, std::optional<ModeWindow> window = {});

}  // namespace nqf::theory
