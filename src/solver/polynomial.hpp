#pragma once

#include <span>
#include <vector>

namespace nqf::solver {

/// Value of Σ_j c_j s^j.
double evaluate(std::span<const double> coefficients, double s);

/// All points of [a, b], ascending, at which Σ_j c_j s^j changes sign, to machine precision. Between the roots of its
/// derivative (found the same way) a polynomial is monotone, so no crossing is missed, however close two of them are.
std::vector<double> sign_changes(std::span<const double> coefficients, double a, double b);

}  // namespace nqf::solver
