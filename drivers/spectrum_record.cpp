#include "spectrum_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nqf::drivers {

namespace {

std::vector<std::int64_t> counted_from_one(std::size_t n) {
  std::vector<std::int64_t> k(n);
  std::iota(k.begin(), k.end(), std::int64_t{1});
  return k;
}

void write_fit(record::Scope& scope, const std::string& name, const theory::SpectrumFit& fit, const std::string& of) {
  const std::string group = "fit/" + name;
  const auto put = [&](const std::string& key, double value, const std::string& meaning) {
    scope.write_array(group + "/" + key, std::span<const double>(&value, 1), {"1", meaning});
  };
  put("exponent", fit.exponent, "exponent a of " + of + " ~ k^-a; NaN if refused");
  put("standard_error", fit.standard_error, "standard error of the exponent, from the scatter about the line");
  put("log_amplitude", fit.log_amplitude, "ln of the fitted value at k = 1");
  const std::int64_t window[2] = {fit.window.begin, fit.window.end};
  scope.write_array(group + "/window", std::span<const std::int64_t>(window), {"1", "first and last k of the fit"});
  scope.set_attribute(group, "accepted", fit.accepted);
  scope.set_attribute(group, "reason", fit.reason);
  scope.set_attribute(group, "points", fit.n_points);
}

std::string describe_fit(const std::string& name, const theory::SpectrumFit& fit) {
  if (!fit.accepted) return fmt::format("{}: not fitted ({})\n", name, fit.reason);
  return fmt::format("{} ~ k^-{:.5g} +- {:.2g} over k = {} ... {}\n", name, fit.exponent, fit.standard_error,
                     fit.window.begin, fit.window.end);
}

std::string number_or_dash(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

}  // namespace

void write_spectrum(record::Scope& scope, const ProblemSpectrum& spectrum, const SpectrumReport& report) {
  const auto& analysis = report.analysis;
  const auto order = std::span(analysis.order);
  const auto permuted = [&](const std::vector<double>& values) {
    std::vector<double> result;
    for (const auto place : order) result.push_back(values[place]);
    return result;
  };
  const auto write = [&](const std::string& name, const std::vector<double>& values, const std::string& units,
                         const std::string& meaning, const std::string& axis) {
    scope.write_array(name, std::span<const double>(values), {units, meaning, {axis}});
  };
  const std::string k = "spectrum/index";
  const auto index = counted_from_one(order.size());
  scope.write_array(k, std::span<const std::int64_t>(index), {"1", "k: modes by falling growth rate, from 1"});
  scope.write_array("spectrum/mode", order,
                    {"1", "index of the " + spectrum.mode_name + " in the system, from 0", {k}});
  write("spectrum/growth_rate", analysis.growth_rate, "1/time", "growth rate zeta_k", k);
  write("spectrum/drop", analysis.drop, "loss", "drop V_k of the loss by the mode alone; 0 if it never lights", k);
  write("spectrum/self_coupling", permuted(spectrum.self_coupling), "1/time", "self-coupling C_kk", k);
  write("spectrum/log_initial", permuted(spectrum.log_initial), "1", "ln z_k(0)", k);
  write("spectrum/ignition_time", analysis.ignition_time, "time",
        "ignition time: of the mode alone; NaN if it never lights or starts lit", k);
  const auto growing = analysis.growth_fit.local_exponent.size();
  auto local = analysis.growth_fit.local_exponent, local_drop = analysis.drop_fit.local_exponent;
  if (growing < order.size()) {  // modes that do not grow have no place in a power law
    local.resize(order.size(), std::nan(""));
    local_drop.resize(order.size(), std::nan(""));
  }
  write("spectrum/growth_local_exponent", local, "1", "local exponent -d ln zeta/d ln k", k);
  write("spectrum/drop_local_exponent", local_drop, "1", "local exponent -d ln V/d ln k", k);
  scope.set_attribute("spectrum", "complete", spectrum.complete);
  scope.set_attribute("spectrum", "growing_modes", analysis.n_growing);
  write_fit(scope, "growth_rate", analysis.growth_fit, "zeta_k");
  write_fit(scope, "drop", analysis.drop_fit, "V_k");

  if (!spectrum.second_moment.empty()) {
    const std::string axis = "moment/index";
    const auto places = counted_from_one(spectrum.second_moment.size());
    scope.write_array(axis, std::span<const std::int64_t>(places), {"1", "k: eigenvalues in falling order, from 1"});
    write("moment/eigenvalue", spectrum.second_moment, spectrum.second_moment_units,
          "eigenvalue: of the " + spectrum.second_moment_name, axis);
    write("moment/local_exponent", report.moment_fit.local_exponent, "1", "local exponent -d ln lambda/d ln k", axis);
    write_fit(scope, "moment", report.moment_fit, "lambda_k");
  }
  const double predicted = analysis.predicted.value, error = analysis.predicted_error;
  scope.write_array("prediction/exponent", std::span<const double>(&predicted, 1),
                    {"1", "exponent e of the predicted law, loss over its end ~ t^e; NaN if there is none"});
  scope.write_array("prediction/standard_error", std::span<const double>(&error, 1),
                    {"1", "standard error of that exponent, from those of the two fits"});
  scope.set_attribute("prediction", "applies", analysis.predicted.applies);
  scope.set_attribute("prediction", "reason", analysis.predicted.reason);
}

std::string describe_spectrum(const ProblemSpectrum& spectrum, const SpectrumReport& report, std::int64_t rows) {
  const auto& analysis = report.analysis;
  const auto n_modes = std::ssize(analysis.order), n_values = std::ssize(spectrum.second_moment);
  std::string text;
  for (const auto& note : spectrum.notes) text += note + "\n";
  text += fmt::format("{}{} growing {}{} of {}\n", spectrum.complete ? "" : "the first ", analysis.n_growing,
                      spectrum.mode_name, analysis.n_growing == 1 ? "" : "s", n_modes);
  text += fmt::format("{:>6}  {:>8}  {:>13}  {:>13}  {:>13}  {:>13}\n", "k", spectrum.mode_name, "rate zeta", "drop V",
                      "ignition t", n_values > 0 ? "lambda" : "");
  for (std::int64_t k = 0; k < std::min(rows, std::max(n_modes, n_values)); ++k) {
    const bool mode = k < n_modes;
    text += fmt::format(
        "{:>6}  {:>8}  {:>13}  {:>13}  {:>13}  {:>13}\n", k + 1, mode ? fmt::format("{}", analysis.order[k]) : "-",
        mode ? number_or_dash(analysis.growth_rate[k]) : "-", mode ? number_or_dash(analysis.drop[k]) : "-",
        mode ? number_or_dash(analysis.ignition_time[k]) : "-",
        k < n_values ? number_or_dash(spectrum.second_moment[k]) : "");
  }
  if (const auto total = std::max(n_modes, n_values); total > rows)
    text += fmt::format("  ... {} more\n", total - rows);
  if (n_values > 0) {
    text += fmt::format("lambda: eigenvalues of the {}\n", spectrum.second_moment_name);
    text += describe_fit("lambda", report.moment_fit);
  }
  text += describe_fit("zeta", analysis.growth_fit) + describe_fit("V", analysis.drop_fit);
  if (std::isfinite(analysis.predicted.value))
    text += fmt::format("predicted power law: L - L_inf ~ t^e, e = -(a1 - 1)/a2 = {:.5g} +- {:.2g}\n",
                        analysis.predicted.value, analysis.predicted_error);
  else
    text += fmt::format("predicted power law: none ({})\n", analysis.predicted.reason);
  return text;
}

}  // namespace nqf::drivers
