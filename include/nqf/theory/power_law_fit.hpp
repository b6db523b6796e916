#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Power law of a loss curve, L − L_∞ ≈ A t^e, by least squares in log–log coordinates (THEORY 5).
namespace nqf::theory {

struct TimeWindow {
  double begin, end;
};

/// Where to fit: `window` if given; else between the ignitions, [10 t₁, t_K/30], where the law is neither
/// bent by the first modes nor by the last (a fit over all of [t₁, t_K] is 6 % off, this 0.2 %).
struct FitOptions {
  std::optional<TimeWindow> window = {};
  std::optional<double> first_ignition = {};  ///< t₁
  std::optional<double> last_ignition = {};   ///< t_K
};

struct PowerLawFit {
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

  bool accepted = false;
  std::string reason;           ///< why the fit is refused; empty if accepted
  double exponent = undefined;  ///< e; NaN if refused
  /// Of the exponent, from the scatter about the line; curvature of the curve shows in it, a bias does not.
  double standard_error = undefined;
  double log_amplitude = undefined;            ///< ln A
  TimeWindow window = {undefined, undefined};  ///< asked for, cut to the data
  std::int64_t n_points = 0;                   ///< in the window
  /// d ln L/d ln t at every input time, by three-point differences on the uneven grid of ln t (one-sided at
  /// the ends); NaN where t ≤ 0 or the loss of a neighbour is not positive.
  std::vector<double> local_slope;
};

/// Fits excess_loss ~ time^e. Each point weighs as much as the stretch of ln t it stands for, so that output
/// times spaced evenly in t do not crowd the fit into its last factor of two; for times even in ln t it is
/// ordinary least squares. Never throws for what the data are: a window of less than a decade, fewer than 8
/// points in it, a loss there that is not positive, unsorted times or no window at all are refused with a
/// reason. time [T] increasing (t = 0 allowed), excess_loss [T]. Cost O(T).
/// @throws std::invalid_argument if the lengths differ
PowerLawFit fit_power_law(std::span<const double> time, std::span<const double> excess_loss, const FitOptions& options);

}  // namespace nqf::theory
