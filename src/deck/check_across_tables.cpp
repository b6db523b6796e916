#include <fmt/format.h>

#include <cmath>

#include <algorithm>

#include "deck/reading.hpp"

namespace nqf::deck {

namespace {

bool has_length(const ArraySource& array) {
  return std::holds_alternative<std::vector<double>>(array.value) || std::holds_alternative<FileArray>(array.value);
}

bool initial_has_length(const InitialOptions& initial) {
  return has_length(initial.value) || has_length(initial.log_value) || has_length(initial.shape) ||
         has_length(initial.minus_ratio);
}

void check_count(const Reading& reading) {
  const Deck& deck = reading.deck;
  bool known = initial_has_length(deck.initial);
  std::int64_t count = 0;
  std::string table;
  switch (deck.system.kind) {
    case SystemKind::modes:
      table = "modes";
      count = deck.modes.count;
      known = known || !deck.modes.file.empty() || deck.modes.coupling.given() || deck.modes.features.given() ||
              has_length(deck.modes.growth_rate) || has_length(deck.modes.saturation) || has_length(deck.modes.drop);
      break;
    case SystemKind::samples:
      table = "samples";
      count = deck.samples.count;
      known = known || !deck.samples.file.empty() || has_length(deck.samples.target) ||
              has_length(deck.samples.growth_rate);
      break;
    case SystemKind::single_sample:
      table = "single_sample";
      count = deck.single_sample.count;
      known = known || has_length(deck.single_sample.eigenvalues);
      break;
    case SystemKind::diagonal_network:
    case SystemKind::module:
      return;
  }
  reading.reader(table).require_that(known || count > 0, "count",
                                     "missing, but needed: every array is a power law or one number");
}

void check_initial(const Reading& reading) {
  const Deck& deck = reading.deck;
  const auto& initial = reading.reader("initial");
  if (deck.system.kind == SystemKind::module) {
    for (const char* key : {"value", "log_value", "epsilon", "shape", "minus_ratio"})
      initial.require_that(!initial.given(key), key, "belongs to systems of modes; a module starts from [weights]");
    return;
  }
  const bool signed_samples = deck.system.kind == SystemKind::samples && deck.samples.kind == SampleKind::signed_pair;
  const bool file_may_bring_it = (deck.system.kind == SystemKind::modes && !deck.modes.file.empty()) ||
                                 (deck.system.kind == SystemKind::samples && !deck.samples.file.empty());
  const bool any = deck.initial.value.given() || deck.initial.log_value.given() || deck.initial.epsilon.given();
  initial.require_that(any || file_may_bring_it, "", "give one of value, log_value or epsilon");
  initial.require_that(!deck.initial.minus_ratio.given() || signed_samples, "minus_ratio",
                       "belongs to system.kind = \"samples\" with samples.kind = \"signed\"");
  initial.require_that(!deck.initial.relative_to_saturation || deck.system.kind != SystemKind::single_sample,
                       "relative_to_saturation", "a single sample has no saturations");
}

void check_signed_rates(const Reading& reading) {
  const Deck& deck = reading.deck;
  if (deck.system.kind != SystemKind::samples || deck.samples.kind != SampleKind::signed_pair) return;
  const auto fits = [&](double rate) {
    reading.reader("samples").require_that(rate >= 0.0, "growth_rate",
                                           fmt::format("must not be negative where kind = \"signed\", got {}", rate));
  };
  const auto& rates = deck.samples.growth_rate.value;
  if (const auto* number = std::get_if<double>(&rates)) fits(*number);
  if (const auto* list = std::get_if<std::vector<double>>(&rates)) std::for_each(list->begin(), list->end(), fits);
  if (const auto* law = std::get_if<PowerLaw>(&rates)) fits(law->coefficient);
}

void check_closed_form(const Reading& reading) {
  const Deck& deck = reading.deck;
  if (deck.solver.form != SolutionForm::closed) return;
  const auto uncoupled = [&](bool holds, const std::string& what) {
    reading.reader("solver").require_that(holds, "form",
                                          fmt::format("\"closed\" needs uncoupled modes, but {} couples them", what));
  };
  uncoupled(deck.system.kind != SystemKind::diagonal_network, "a diagonal network");
  uncoupled(!deck.modes.coupling.given(), "modes.coupling");
  uncoupled(!deck.modes.features.given(), "modes.features");
}

void check_whole_steps(const Reading& reading, const char* key, double steps) {
  reading.reader("time").require_that(steps == std::floor(steps), key,
                                      fmt::format("time.unit = \"steps\" counts whole steps, got {}; {} or {}", steps,
                                                  std::floor(steps), std::ceil(steps)));
}

void check_time_unit(const Reading& reading) {
  const Deck& deck = reading.deck;
  const bool discrete = deck.system.kind == SystemKind::module && deck.training.algorithm != Algorithm::flow;
  reading.reader("time").require_that(deck.time.unit != TimeUnit::steps || discrete, "unit",
                                      "\"steps\" belongs to discrete training (training.algorithm)");
  if (deck.time.unit == TimeUnit::steps) {
    check_whole_steps(reading, "end", deck.time.end);
    for (const double steps : deck.time.times) check_whole_steps(reading, "times", steps);
  }
  const bool module = deck.system.kind == SystemKind::module;
  reading.reader("time").require_that(deck.time.unit != TimeUnit::log_epsilon || !module, "unit",
                                      "\"log_epsilon\" belongs to systems of modes with initial.epsilon");
  if (deck.time.unit != TimeUnit::log_epsilon) return;
  reading.reader("time").require_that(deck.initial.epsilon.given(), "unit",
                                      "\"log_epsilon\" counts in ln(1/epsilon) and needs initial.epsilon");
  reading.reader("initial").require_that(
      deck.initial.epsilon.log_value < 0.0, "epsilon",
      fmt::format("must be below 1 where time.unit = \"log_epsilon\", got {}", deck.initial.epsilon.text));
}

/// What a module's closed forms do not have.
std::string beyond_closed_forms(const Deck& deck) {
  if (deck.training.algorithm != Algorithm::flow) return "discrete training";
  if (deck.training.loss != LossKind::squared) return "a loss that is not the squared error";
  if (deck.training.weight_decay != 0.0) return "weight decay";
  if (deck.tangent_kernel.is_wanted()) return "a tangent kernel";
  return {};
}

void check_tangent_kernel(const Reading& reading, bool synthetic) {
  const auto& kernel = reading.deck.tangent_kernel;
  if (!kernel.is_wanted()) return;
  const std::string key = kernel.indices.empty() ? "samples" : "indices";
  const auto form = reading.deck.training.form;
  const auto& table = reading.reader("tangent_kernel");
  table.require_that(form == TrainingForm::automatic || form == TrainingForm::factor, key,
                     "needs the weights: training.form = \"factor\" or \"auto\"");
  const auto n = reading.deck.data.samples;
  table.require_that(!synthetic || kernel.samples <= n, key,
                     fmt::format("{} asked for, but there are {}", kernel.samples, n));
  for (const auto index : kernel.indices)
    table.require_that(!synthetic || index < n, key, fmt::format("{} is named, but there are 0 to {}", index, n - 1));
}

void check_module(const Reading& reading) {
  const Deck& deck = reading.deck;
  if (deck.system.kind != SystemKind::module) return;
  const bool from_file = deck.data.kind == DataKind::hdf5;
  reading.reader("module").require_that(
      deck.module.kind != ModuleKind::matrices || from_file || deck.data.kind == DataKind::matrices, "kind",
      "\"matrices\" needs data.kind = \"hdf5\" with a data set A");
  reading.reader("weights").require_that(
      deck.weights.initial != InitialWeights::file || from_file || !deck.weights.file.empty(), "file",
      "missing, but needed by initial = \"file\"");
  reading.reader("training")
      .require_that(deck.training.sampling != BatchSampling::file || from_file, "sampling",
                    "\"file\" needs data.file with a data set batches");
  // What takes the weights of every unit needs every unit's W(0).
  const bool adaptive = deck.training.algorithm == Algorithm::adam || deck.training.algorithm == Algorithm::adamw;
  const auto& network = deck.network;
  if (adaptive || network.has_original() || network.is_stack()) {
    const std::string user = adaptive ? "training.algorithm = \"adam\" or \"adamw\"" : "[network]";
    const auto& weights = reading.reader("weights");
    weights.require_that(
        deck.weights.initial == InitialWeights::gaussian || deck.weights.initial == InitialWeights::file, "initial",
        user + " needs the weights of every unit: \"gaussian\" or \"file\" give them");
    weights.require_that(
        deck.weights.width <= 10'000'000, "width",
        fmt::format("{} carries every unit, which {} of them are too many for; at most 1e7", user, deck.weights.width));
    weights.require_that(deck.weights.rank == 0 || !(network.original || adaptive), "rank",
                         user + " carries every unit: nothing is cut");
    reading.reader("solver").require_that(deck.solver.form == SolutionForm::integrate, "form",
                                          user + " has no closed form; use \"integrate\"");
  }
  const bool synthetic = deck.data.kind != DataKind::idx && !from_file;
  reading.reader("training")
      .require_that(deck.training.sampling != BatchSampling::online || synthetic, "sampling",
                    "\"online\" needs synthetic data; \"with_replacement\" draws from those of a file");
  const std::string beyond = beyond_closed_forms(deck);
  reading.reader("solver").require_that(deck.solver.form != SolutionForm::closed || beyond.empty(), "form",
                                        "\"closed\": there is no closed form with " + beyond);
  check_tangent_kernel(reading, synthetic);
}

}  // namespace

void check_across_tables(const Reading& reading) {
  check_count(reading);
  check_initial(reading);
  check_signed_rates(reading);
  check_closed_form(reading);
  check_time_unit(reading);
  check_module(reading);
}

}  // namespace nqf::deck
