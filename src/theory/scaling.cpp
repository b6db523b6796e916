#include "nqf/theory/scaling.hpp"

#include <sstream>

#include "nqf/numbers.hpp"

namespace nqf::theory {
namespace {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

ScalingExponent none(std::string reason) {
  return {nan, false, std::move(reason)};
}

}  // namespace

ScalingExponent feature_exponent(double alpha_1, double alpha_2, std::optional<double> beta_0) {
  if (!(alpha_1 > 1)) return none(text("alpha_1 = ", alpha_1, " must exceed 1: the drops do not sum to a finite loss"));
  if (!(alpha_2 > 0)) return none(text("alpha_2 = ", alpha_2, " must be positive: later modes are not slower"));
  ScalingExponent exponent{-(alpha_1 - 1) / alpha_2, true, {}};
  if (beta_0 && !(*beta_0 >= alpha_1 - alpha_2)) {
    exponent.applies = false;
    exponent.reason = text("beta_0 = ", *beta_0, " is below alpha_1 - alpha_2 = ", alpha_1 - alpha_2,
                           ": ln(z*/z(0)) changes with the mode, and logarithms bend the law");
  }
  return exponent;
}

ScalingExponent sample_exponent(double gamma_1, double gamma_2) {
  if (!(gamma_1 > 0.5))
    return none(text("gamma_1 = ", gamma_1, " must exceed 1/2: the targets do not sum to a finite loss"));
  if (!(gamma_2 > 0)) return none(text("gamma_2 = ", gamma_2, " must be positive: later samples are not slower"));
  return {-(2 * gamma_1 - 1) / gamma_2, true, {}};
}

ScalingExponent fourier_exponent(double theta, double beta, double beta_0) {
  return feature_exponent(2 * beta, theta + beta, beta_0);
}

}  // namespace nqf::theory
