#include "nqf/theory/single_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "nqf/numbers.hpp"
#include "theory/check_modes.hpp"

namespace nqf::theory {
namespace {

using Rule = boost::math::quadrature::gauss_kronrod<double, 21>;

/// Largest difference of the Gauss and the Kronrod value on a panel; the Kronrod value is far better than
/// this.
constexpr double panel_tolerance = 1e-11;
/// y − S above this part of its terms is taken as the difference it is.
constexpr double far_from_root = 0.25;
constexpr int max_depth = 40;
constexpr double panel_width = 2.0;
/// Times beyond this are not tabulated (a flow that slows down for ever, y = 0).
constexpr double last_time = 1e280;

/// (1 − e^{−q})/q times e^{log_weight}, for weights below the smallest double too.
double weighted_mean_decay(double log_weight, double q) {
  if (q < -1.0) return (std::exp(log_weight - q) - std::exp(log_weight)) / -q;
  return std::exp(log_weight) * (q == 0.0 ? 1.0 : -std::expm1(-q) / q);
}

}  // namespace

SingleSample::SingleSample(std::span<const double> strength, std::span<const double> log_initial, double target)
    : strength_(strength.begin(), strength.end()),
      log_initial_(log_initial.begin(), log_initial.end()),
      target_(target) {
  if (strength.size() != log_initial.size())
    throw std::invalid_argument(
        fmt::format("lengths differ: strength {}, initial value {}", strength.size(), log_initial.size()));
  if (!std::isfinite(target)) refuse("target", 0, target, "must be finite");
  for (std::size_t k = 0; k < strength.size(); ++k) {
    if (!std::isfinite(strength[k])) refuse("strength", k, strength[k], "must be finite");
    if (!(log_initial[k] < infinity)) refuse("ln z(0)", k, log_initial[k], "must be finite or -inf");
    if (strength[k] != 0.0 && log_initial[k] > -infinity) terms_.push_back({strength[k], log_initial[k], 0.0});
  }
  const double start = target_ - output_at(0.0);
  if (!std::isfinite(start)) throw std::invalid_argument(fmt::format("f(0) = {}: must be finite", output_at(0.0)));
  if (start == 0.0) return;
  direction_ = start > 0.0 ? 1.0 : -1.0;
  find_root();
  if (std::isfinite(final_tau_))
    tabulate_to_root();
  else
    tabulate_without_root();
}

double SingleSample::output_at(double tau) const {
  double sum = 0.0;
  for (const Term& term : terms_) sum += term.strength * std::exp(term.log_initial + term.strength * tau);
  return sum;
}

double SingleSample::gap(double x) const {
  // z_k(τ*) carries the rounding of a_k τ*, which may be 10⁶: far from the root the plain difference is
  // better.
  double sum = 0.0, size = std::abs(target_);
  const double tau = final_tau_ - direction_ * x;
  for (const Term& term : terms_) {
    const double part = term.strength * std::exp(term.log_initial + term.strength * tau);
    sum += part;
    size += std::abs(part);
  }
  if (std::abs(target_ - sum) > far_from_root * size) return std::abs(target_ - sum) / x;
  sum = 0.0;
  for (const Term& term : terms_) sum += weighted_mean_decay(term.log_weight, direction_ * term.strength * x);
  return sum;
}

double SingleSample::integrand(double s) const {
  if (std::isfinite(final_tau_)) return 0.25 / gap(std::exp(-s));
  return 0.25 / std::abs(target_ - output_at(direction_ * s));
}

double SingleSample::integrate(double begin, double end) const {
  if (begin == end) return 0.0;
  return Rule::integrate([this](double s) { return integrand(s); }, begin, end, 0);
}

void SingleSample::find_root() {
  const bool drives =
      std::any_of(terms_.begin(), terms_.end(), [this](const Term& term) { return term.strength * direction_ > 0.0; });
  // Without a term that grows along the way S tends to 0 from the other side.
  if (!drives && !(target_ * direction_ < 0.0)) {
    final_tau_ = direction_ * infinity;
    return;
  }
  const auto before_root = [this](double tau) { return (target_ - output_at(tau)) * direction_ > 0.0; };
  double near = 0.0, far = direction_;
  while (before_root(far)) {
    near = far;
    far *= 2;
  }
  // Bisection: S spans hundreds of decades on the bracket, where interpolation gains nothing.
  while (true) {
    const double middle = 0.5 * (near + far);
    if (middle == near || middle == far) break;
    (before_root(middle) ? near : far) = middle;
  }
  final_tau_ = far;
  for (Term& term : terms_)
    term.log_weight = 2 * std::log(std::abs(term.strength)) + term.log_initial + term.strength * final_tau_;
}

void SingleSample::tabulate(double begin, double end, int depth) {
  double error = 0.0;
  const double integral = Rule::integrate([this](double s) { return integrand(s); }, begin, end, 0, 0.0, &error);
  if (error > panel_tolerance * integral && depth < max_depth) {
    const double middle = 0.5 * (begin + end);
    tabulate(begin, middle, depth + 1);
    tabulate(middle, end, depth + 1);
    return;
  }
  panels_.push_back({begin, end, end_time_});
  end_time_ += integral;
  end_position_ = end;
}

void SingleSample::tabulate_to_root() {
  double largest = 0.0;
  for (const Term& term : terms_) largest = std::max(largest, std::abs(term.strength));
  end_position_ = -std::log(std::abs(final_tau_));
  // Nearer to the root than this, G is its limit to rounding.
  const double last = -std::log(0.5 * machine_epsilon / largest);
  while (end_position_ < last) tabulate(end_position_, end_position_ + panel_width, 0);
  end_rate_ = integrand(end_position_);
}

void SingleSample::tabulate_without_root() {
  double largest = 0.0;
  for (const Term& term : terms_) largest = std::max(largest, std::abs(term.strength));
  double width = terms_.empty() ? 1.0 : panel_width / largest;
  while (end_time_ < last_time) {
    if (std::abs(output_at(direction_ * end_position_)) <= 0.5 * machine_epsilon * std::abs(target_)) break;
    double end = end_position_ + width;
    while (!(integrand(end) < 1e10 * last_time)) end = end_position_ + 0.5 * (end - end_position_);
    tabulate(end_position_, end, 0);
    width *= 2;
  }
  end_rate_ = integrand(end_position_);
}

double SingleSample::position(double time) const {
  if (panels_.empty() || time >= end_time_) return end_position_ + (time - end_time_) / end_rate_;
  const auto next = std::upper_bound(panels_.begin(), panels_.end(), time,
                                     [](double t, const Panel& panel) { return t < panel.time; });
  const Panel& panel = next == panels_.begin() ? panels_.front() : *(next - 1);
  double low = panel.begin, high = panel.end;
  double s = low, reached = panel.time;
  // Newton from the panel's begin, each step integrated from the last point; bisection where it would leave.
  for (int iteration = 0; iteration < 100; ++iteration) {
    double trial = s + (time - reached) / integrand(s);
    if (!(trial >= low && trial <= high)) trial = 0.5 * (low + high);
    const double step = std::abs(trial - s);
    reached = panel.time + integrate(panel.begin, trial);
    s = trial;
    if (step <= 2 * machine_epsilon * std::max(1.0, std::abs(s))) break;
    (reached < time ? low : high) = s;
  }
  return s;
}

double SingleSample::tau_at(double s) const {
  return std::isfinite(final_tau_) ? final_tau_ - direction_ * std::exp(-s) : direction_ * s;
}

double SingleSample::tau(double time) const {
  if (direction_ == 0.0 || !(time > 0.0)) return 0.0;
  return tau_at(position(time));
}

double SingleSample::log_value(std::int64_t mode, double time) const {
  return log_initial_[mode] + strength_[mode] * tau(time);
}

double SingleSample::residual(double time) const {
  if (direction_ == 0.0) return 0.0;
  const double s = position(std::max(time, 0.0));
  if (!std::isfinite(final_tau_)) return target_ - output_at(direction_ * s);
  const double x = std::exp(-s);
  return direction_ * x * gap(x);
}

}  // namespace nqf::theory
