#include "audit_laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "nqf/numbers.hpp"

namespace nqf::drivers {

namespace {

double median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return nan;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

bool same_module(const AuditCase& a, const AuditCase& b) {
  return a.deck == b.deck && a.module == b.module && a.activation == b.activation;
}
bool same_cell(const AuditCase& a, const AuditCase& b) {
  return same_module(a, b) && a.epsilon == b.epsilon && a.width == b.width;
}

/// Runs of cases that belong together, as [begin, end).
template <class Same>
std::vector<std::pair<std::size_t, std::size_t>> groups(const std::vector<AuditCase>& cases, std::size_t begin,
                                                        std::size_t end, Same same) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = begin; i < end; ++i) {
    if (i == begin || !same(cases[i - 1], cases[i])) found.emplace_back(i, i);
    found.back().second = i + 1;
  }
  return found;
}

double median_of(const std::vector<AuditRow>& rows, std::pair<std::size_t, std::size_t> cell,
                 double AuditResult::*field) {
  std::vector<double> values;
  for (std::size_t i = cell.first; i < cell.second; ++i)
    if (!rows[i].failed) values.push_back(rows[i].result.*field);
  return median(values);
}

struct Point {
  double x[2];  // −ln d, ln ε
  double y;
};

/// Slopes and their errors of y over the directions that vary; NaN along the others.
void fit(const std::vector<Point>& points, double (&slope)[2], double (&error)[2]) {
  const auto n = static_cast<double>(points.size());
  double mean_x[2] = {}, mean_y = 0.0, xx[2][2] = {}, xy[2] = {}, yy = 0.0;
  for (const auto& point : points) {
    mean_y += point.y / n;
    for (int i = 0; i < 2; ++i) mean_x[i] += point.x[i] / n;
  }
  for (const auto& point : points) {
    const double y = point.y - mean_y, x[2] = {point.x[0] - mean_x[0], point.x[1] - mean_x[1]};
    yy += y * y;
    for (int i = 0; i < 2; ++i) {
      xy[i] += x[i] * y;
      for (int j = 0; j < 2; ++j) xx[i][j] += x[i] * x[j];
    }
  }
  slope[0] = slope[1] = error[0] = error[1] = nan;
  const bool varies[2] = {xx[0][0] > 1e-12, xx[1][1] > 1e-12};
  double unknowns = 1.0, variance[2] = {nan, nan};
  const double det = xx[0][0] * xx[1][1] - xx[0][1] * xx[0][1];
  if (varies[0] && varies[1]) {
    if (det <= 1e-12 * xx[0][0] * xx[1][1]) return;  // width and scale vary together
    slope[0] = (xx[1][1] * xy[0] - xx[0][1] * xy[1]) / det;
    slope[1] = (xx[0][0] * xy[1] - xx[0][1] * xy[0]) / det;
    variance[0] = xx[1][1] / det;
    variance[1] = xx[0][0] / det;
    unknowns = 3.0;
  } else {
    for (int i = 0; i < 2; ++i)
      if (varies[i]) {
        slope[i] = xy[i] / xx[i][i];
        variance[i] = 1.0 / xx[i][i];
        unknowns = 2.0;
      }
  }
  double residual = yy;
  for (int i = 0; i < 2; ++i)
    if (varies[i]) residual -= slope[i] * xy[i];
  if (n > unknowns)
    for (int i = 0; i < 2; ++i) error[i] = std::sqrt(std::max(0.0, residual) / (n - unknowns) * variance[i]);
}

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3g}", value);
}
std::string with_error(double value, double error) {
  if (std::isnan(value)) return "-";
  return std::isnan(error) ? fmt::format("{:.3g}", value) : fmt::format("{:.3f} +- {:.3f}", value, error);
}
std::string name_of(const deck::DeckFile& deck, const AuditCase& one) {
  const auto& name = deck.cases[one.deck].case_name;
  return (name.empty() ? "" : name + ": ") + one.module + (one.activation == "-" ? "" : " " + one.activation);
}

}  // namespace

std::vector<Law> fit_laws(const deck::DeckFile& deck, const std::vector<AuditCase>& cases,
                          const std::vector<AuditRow>& rows) {
  std::vector<Law> laws;
  for (const auto& [begin, end] : groups(cases, 0, rows.size(), same_module)) {
    const auto& first = cases[begin];
    const auto& audit = deck.cases[first.deck].audit;
    if (!audit.fit_laws) continue;
    for (const auto& [quantity, field] :
         {std::pair{"remainder", &AuditResult::remainder}, {"gap", &AuditResult::gap}}) {
      std::vector<Point> points;
      for (const auto& cell : groups(cases, begin, end, same_cell)) {
        const double value = median_of(rows, cell, field);
        const auto& one = cases[cell.first];
        if (value > 0.0 && one.width >= audit.fit_from)
          points.push_back({{-std::log(static_cast<double>(one.width)), std::log(one.epsilon)}, std::log(value)});
      }
      if (points.size() < 2) continue;
      double slope[2], error[2];
      fit(points, slope, error);
      laws.push_back({.case_name = deck.cases[first.deck].case_name,
                      .module = first.module,
                      .activation = first.activation,
                      .quantity = quantity,
                      .width_exponent = slope[0],
                      .width_exponent_error = error[0],
                      .epsilon_exponent = slope[1],
                      .epsilon_exponent_error = error[1],
                      .points = std::ssize(points)});
    }
  }
  return laws;
}

std::string audit_table(const deck::DeckFile& deck, const std::vector<AuditCase>& cases,
                        const std::vector<AuditRow>& rows, const std::vector<Law>& laws) {
  std::string text =
      fmt::format("medians over the seeds\n{:<34} {:>9} {:>10} {:>6} {:>10} {:>10} {:>10} {:>6} {:>9} {:>9} {:>9}\n",
                  "module", "epsilon", "width", "seeds", "t1", "gap", "R", "order", "ignition", "horizon", "passed");
  for (const auto& cell : groups(cases, 0, rows.size(), same_cell)) {
    const auto& one = cases[cell.first];
    std::size_t passed = 0, run = 0;
    std::vector<double> ratios, horizons;
    for (std::size_t i = cell.first; i < cell.second; ++i) {
      if (rows[i].failed) continue;
      const auto& r = rows[i].result;
      ++run;
      passed += r.passed ? 1 : 0;
      if (!r.ignition.empty()) ratios.push_back(r.ignition_ratio(0));
      horizons.push_back(r.horizon / r.end);
    }
    text += fmt::format(
        "{:<34} {:>9.3g} {:>10} {:>6} {:>10} {:>10} {:>10} {:>6} {:>9} {:>9} {:>9}\n", name_of(deck, one), one.epsilon,
        one.width, run, number(median_of(rows, cell, &AuditResult::t1)),
        number(median_of(rows, cell, &AuditResult::gap)), number(median_of(rows, cell, &AuditResult::remainder)),
        number(median_of(rows, cell, &AuditResult::remainder_order)), number(median(ratios)), number(median(horizons)),
        fmt::format("{}/{}", passed, run));
  }
  text += "ignition: the original's first ignition time over the form's; horizon: over the end of the case\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].failed)
      text += fmt::format("failed: {}{}\n", describe(cases[i]), rows[i].failure.empty() ? "" : ": " + rows[i].failure);
  if (!laws.empty())
    text += fmt::format("{:<34} {:<10} {:>18} {:>18}\n", "quantity ~ width^(-a) epsilon^b", "", "a", "b");
  for (const auto& law : laws)
    text += fmt::format("{:<34} {:<10} {:>18} {:>18}\n",
                        (law.case_name.empty() ? "" : law.case_name + ": ") + law.module +
                            (law.activation == "-" ? "" : " " + law.activation),
                        law.quantity, with_error(law.width_exponent, law.width_exponent_error),
                        with_error(law.epsilon_exponent, law.epsilon_exponent_error));
  return text;
}

}  // namespace nqf::drivers
