#include "prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/dense_interaction.hpp"
#include "nqf/theory/logistic.hpp"
#include "nqf/theory/nonnegative_quadratic.hpp"
#include "nqf/theory/orthogonal_samples.hpp"

namespace nqf::drivers {

namespace {

using structure::ModeSystem;

/// The interaction as theory's callbacks: every rank calls them alike and gets all entries.
theory::Coupling as_coupling(structure::Interaction& interaction) {
  theory::Coupling coupling;
  coupling.apply = [&interaction](std::span<const std::int64_t> lit, std::span<const double> z, std::span<double> out) {
    const auto& modes = interaction.modes();
    std::vector<double> own_z(modes.local_size(), 0.0), own_out(modes.local_size());
    for (std::size_t i = 0; i < lit.size(); ++i)
      if (modes.owns(lit[i])) own_z[lit[i] - modes.begin()] = z[i];
    interaction.apply(own_z, own_out);
    // Every entry comes from its owner, so all ranks go on with the same bits.
    const auto all = interaction.comm().all_gather(std::span<const double>(own_out));
    std::copy(all.begin(), all.end(), out.begin());
  };
  coupling.block = [&interaction](std::span<const std::int64_t> rows, std::span<const std::int64_t> columns,
                                  std::span<double> out) { interaction.block(rows, columns, out); };
  return coupling;
}

void predict_coupled(const parallel::Comm& comm, ModeSystem& system, double horizon, std::int64_t max_events,
                     Prediction& prediction) {
  const auto growth = comm.all_gather(std::span<const double>(system.growth_rate));
  const auto diagonal = comm.all_gather(std::span<const double>(system.self_coupling));
  const auto initial = comm.all_gather(std::span<const double>(system.log_initial));
  const auto coupling = as_coupling(*system.interaction);
  try {
    prediction.path = theory::saddle_path(growth, diagonal, initial, coupling, {horizon, max_events});
    if (auto* dense = dynamic_cast<structure::DenseInteraction*>(system.interaction.get());
        dense && !dense->has_absolute_loss())
      dense->set_minimum(theory::nonnegative_minimum(growth, diagonal, coupling).value);
  } catch (const std::logic_error& error) {  // theory's two: a domain that is left, an argument that is none
    throw UserError(fmt::format("{}: the coupling is not that of a quadratic loss: {}",
                                system.coupling_source.empty() ? "the features" : system.coupling_source,
                                error.what()));
  }
  const auto k_local = system.modes.local_size();
  prediction.log_threshold.resize(k_local);
  for (std::int64_t k = 0; k < k_local; ++k)
    prediction.log_threshold[k] = system.growth_rate[k] > 0.0 && system.self_coupling[k] > 0.0
                                      ? std::log(0.5 * system.growth_rate[k] / system.self_coupling[k])
                                      : infinity;
  const auto end = prediction.path->end;
  if (!system.absolute_loss) {
    prediction.final_loss = 0.0;  // the loss is the excess over its minimum
  } else if (end == theory::PathEnd::no_more_events || end == theory::PathEnd::residual_zero) {
    const std::vector<double> dark(k_local, 0.0);
    prediction.final_loss = system.interaction->loss(dark, system.growth_rate) + prediction.path->loss_drop;
  }
  for (const auto& event : prediction.path->events) {
    if (event.kind < 0 || event.time <= 0.0) continue;
    if (prediction.n_ignitions++ == 0) prediction.first_ignition = event.time;
    prediction.last_ignition = event.time;
  }
}

void predict_single_modes(const parallel::Comm& comm, const ModeSystem& system, Prediction& prediction) {
  prediction.final_loss = system.loss_offset;
  const auto k_local = system.modes.local_size();
  prediction.log_threshold.resize(k_local);
  prediction.ignition_time.resize(k_local);
  double first = infinity, last = -infinity;
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < k_local; ++k) {
    const double zeta = system.growth_rate[k], c = system.self_coupling[k];
    double threshold = infinity, time;
    if (system.kind == ModeSystem::Kind::signed_samples) {
      const double y = zeta / c;
      const theory::SignedSample sample{y, c, system.log_initial[k], system.log_product[k] - system.log_initial[k]};
      time = theory::ignition_time(sample);
      threshold = std::log(0.25 * (y + std::hypot(y, 2.0 * std::exp(0.5 * system.log_product[k]))));
    } else {
      const theory::LogisticMode mode{zeta, c, system.log_initial[k]};
      time = theory::ignition_time(mode);
      if (zeta > 0.0) threshold = theory::log_saturation(mode) - std::numbers::ln2;
    }
    prediction.log_threshold[k] = threshold;
    prediction.ignition_time[k] = time;
    if (std::isnan(time)) continue;
    ++count;
    first = std::min(first, time);
    last = std::max(last, time);
  }
  prediction.n_ignitions = comm.sum(count);
  first = comm.min(first);
  last = comm.max(last);
  if (prediction.n_ignitions == 0) return;
  prediction.first_ignition = first;
  prediction.last_ignition = last;
}

}  // namespace

Prediction predict_system(const parallel::Comm& comm, ModeSystem& system, double horizon, std::int64_t max_events) {
  Prediction prediction;
  double largest = -infinity;
  for (const double value : system.log_initial) largest = std::max(largest, value);
  largest = comm.max(largest);
  prediction.log_inverse_epsilon = system.log_epsilon ? -*system.log_epsilon : -largest;
  if (!(prediction.log_inverse_epsilon > 0.0)) prediction.log_inverse_epsilon = 1.0;  // no small scale: plain time
  if (system.kind == ModeSystem::Kind::coupled)
    predict_coupled(comm, system, horizon, max_events, prediction);
  else
    predict_single_modes(comm, system, prediction);
  if (system.growth_exponent && system.drop_exponent) {
    prediction.exponent =
        theory::feature_exponent(*system.drop_exponent, *system.growth_exponent, system.initial_exponent);
    prediction.exponent_source =
        fmt::format("-(a1 - 1)/a2, V ~ k^-{:g}, rate ~ k^-{:g}", *system.drop_exponent, *system.growth_exponent);
  } else if (system.growth_exponent && system.target_exponent) {
    prediction.exponent = theory::sample_exponent(*system.target_exponent, *system.growth_exponent);
    prediction.exponent_source =
        fmt::format("-(2 g1 - 1)/g2, y ~ n^-{:g}, rate ~ n^-{:g}", *system.target_exponent, *system.growth_exponent);
  }
  return prediction;
}

std::vector<PredictedEvent> first_events(const parallel::Comm& comm, const ModeSystem& system,
                                         const Prediction& prediction, std::int64_t limit) {
  std::vector<PredictedEvent> events;
  if (prediction.path) {
    for (const auto& event : prediction.path->events) {
      if (static_cast<std::int64_t>(events.size()) == limit) break;
      events.push_back({event.time, event.mode, event.kind, event.value});
    }
    return events;
  }
  // Each rank offers its first `limit`; the first of all are among them.
  const auto& times = prediction.ignition_time;
  std::vector<std::int64_t> order;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(times.size()); ++k)
    if (!std::isnan(times[k])) order.push_back(k);
  const auto n = std::min<std::int64_t>(limit, static_cast<std::int64_t>(order.size()));
  const auto earlier = [&](std::int64_t a, std::int64_t b) {
    return times[a] != times[b] ? times[a] < times[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + n, order.end(), earlier);
  std::vector<double> own_times, own_values;
  std::vector<std::int64_t> own_modes;
  for (std::int64_t i = 0; i < n; ++i) {
    own_times.push_back(times[order[i]]);
    own_values.push_back(2.0 * std::exp(prediction.log_threshold[order[i]]));
    own_modes.push_back(system.modes.begin() + order[i]);
  }
  const auto all_times = comm.all_gather(std::span<const double>(own_times));
  const auto all_values = comm.all_gather(std::span<const double>(own_values));
  const auto all_modes = comm.all_gather(std::span<const std::int64_t>(own_modes));
  for (std::size_t i = 0; i < all_times.size(); ++i) events.push_back({all_times[i], all_modes[i], 1, all_values[i]});
  std::sort(events.begin(), events.end(), [](const PredictedEvent& a, const PredictedEvent& b) {
    return a.time != b.time ? a.time < b.time : a.mode < b.mode;
  });
  if (static_cast<std::int64_t>(events.size()) > limit) events.resize(static_cast<std::size_t>(limit));
  return events;
}

std::vector<solver::PredictedInterval> predicted_intervals(const Prediction& prediction) {
  std::vector<solver::PredictedInterval> intervals;
  if (!prediction.path) return intervals;
  for (const auto& interval : prediction.path->intervals)
    intervals.push_back({interval.mode, interval.lit_time, std::log(interval.lit_value),
                         std::log(interval.smallest_value), interval.dark_time});
  return intervals;
}

}  // namespace nqf::drivers
