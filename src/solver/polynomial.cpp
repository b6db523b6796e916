#include "solver/polynomial.hpp"

#include <cmath>

namespace nqf::solver {

double evaluate(std::span<const double> coefficients, double s) {
  double value = 0.0;
  for (auto c = coefficients.rbegin(); c != coefficients.rend(); ++c) value = value * s + *c;
  return value;
}

namespace {

double bisect(std::span<const double> p, double a, double b) {
  const bool rising = evaluate(p, a) < 0.0;
  while (true) {
    const double middle = 0.5 * (a + b);
    if (middle <= std::min(a, b) || middle >= std::max(a, b)) return b;
    if ((evaluate(p, middle) < 0.0) == rising)
      a = middle;
    else
      b = middle;
  }
}

}  // namespace

std::vector<double> sign_changes(std::span<const double> coefficients, double a, double b) {
  if (coefficients.size() < 2) return {};
  std::vector<double> derivative(coefficients.size() - 1);
  for (std::size_t j = 1; j < coefficients.size(); ++j) derivative[j - 1] = static_cast<double>(j) * coefficients[j];
  std::vector<double> knots{a};
  for (const double root : sign_changes(derivative, a, b)) knots.push_back(root);
  knots.push_back(b);
  std::vector<double> roots;
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const bool negative_left = evaluate(coefficients, knots[i]) < 0.0;
    const bool negative_right = evaluate(coefficients, knots[i + 1]) < 0.0;
    if (negative_left != negative_right) roots.push_back(bisect(coefficients, knots[i], knots[i + 1]));
  }
  return roots;
}

}  // namespace nqf::solver
