#include "module_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "companion.hpp"
#include "modes_case.hpp"
#include "module_checks.hpp"
#include "module_record.hpp"
#include "nqf/dynamics/distributed_order_parameter_flow.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/map_evolution.hpp"
#include "nqf/solver/strength_recorder.hpp"
#include "nqf/solver/training_evolution.hpp"
#include "nqf/structure/commuting.hpp"
#include "nqf/theory/tangent_kernel.hpp"
#include "riccati_system.hpp"
#include "simulation.hpp"

namespace nqf::drivers {

namespace {

bool is_discrete(const deck::Deck& deck) {
  return deck.training.algorithm != deck::Algorithm::flow;
}

bool is_adaptive(const deck::Deck& deck) {
  return deck.training.algorithm == deck::Algorithm::adam || deck.training.algorithm == deck::Algorithm::adamw;
}

/// True if what is carried are the weights of every unit.
bool is_network(const deck::Deck& deck) {
  return deck.network.original || deck.network.is_stack() || is_adaptive(deck);
}

/// Output times of discrete training are those of whole steps: unit "steps" counts them, others are rounded to one.
/// What that makes of the end of the run, for the log; empty if nothing.
std::string fit_to_steps(solver::Schedule& schedule, const deck::Deck& deck, const dynamics::LearningRate& map) {
  const double end = schedule.output_times.back();
  const bool steps = deck.time.unit == deck::TimeUnit::steps;
  std::vector<double> times;
  for (const double t : schedule.output_times) {
    const auto n = steps ? static_cast<std::int64_t>(std::llround(t)) : map.nearest_step(t);
    const double whole = map.time_after(n);
    if (times.empty() || whole > times.back()) times.push_back(whole);
  }
  schedule.output_times = std::move(times);
  const double whole = schedule.output_times.back();
  if (steps || std::abs(whole - end) <= 1e-12 * end) return {};
  return fmt::format("time: outputs fall on whole steps; the last, t = {:.10g}, is at t = {:.10g}, step {}", end, whole,
                     map.nearest_step(whole));
}

std::string describe_modes(const ModulePrediction& prediction, std::int64_t limit) {
  std::string text = fmt::format("{} modes of the module{}\n", prediction.size(),
                                 prediction.modes.complete ? "" : " (the first of more)");
  if (prediction.size() == 0) return text;
  text += fmt::format("  {:>6}  {:>14}  {:>14}  {:>14}  {:>14}  {:>14}\n", "mode", "growth rate", "saturation", "drop",
                      "ln strength(0)", "ignition time");
  for (std::int64_t i = 0; i < std::min(limit, prediction.size()); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double rate = prediction.modes.growth_rate[k], c = prediction.modes.self_coupling[k];
    const double time = prediction.ignition_time[k];
    text += fmt::format("  {:>6}  {:>14.8g}  {:>14.6g}  {:>14.6g}  {:>14.6g}  {:>14}\n", i, rate,
                        std::max(rate, 0.0) / c, rate > 0.0 ? rate * rate / (8.0 * c) : 0.0, prediction.log_initial[k],
                        std::isnan(time) ? "-" : fmt::format("{:.8g}", time));
  }
  if (prediction.size() > limit) text += fmt::format("  ... {} more\n", prediction.size() - limit);
  return text;
}

std::string compare_module_events(std::span<const solver::Event> events, std::int64_t n_events) {
  constexpr std::size_t limit = 20;
  std::string text = fmt::format("{:>8}  {:<8}  {:>14}  {:>14}  {:>18}\n", "mode", "kind", "predicted", "measured",
                                 "relative difference");
  for (std::size_t i = 0; i < std::min(limit, events.size()); ++i) {
    const auto& e = events[i];
    const bool known = !std::isnan(e.predicted_time);
    text += fmt::format("{:>8}  {:<8}  {:>14}  {:>14.8g}  {:>18}\n", e.mode, e.kind > 0 ? "lit" : "extinct",
                        known ? fmt::format("{:.8g}", e.predicted_time) : "-", e.time,
                        known ? fmt::format("{:.2g}", (e.time - e.predicted_time) / e.predicted_time) : "-");
  }
  if (n_events > static_cast<std::int64_t>(limit))
    text += fmt::format("  ... {} more in /ignitions\n", n_events - static_cast<std::int64_t>(limit));
  if (n_events == 0) text += "  no mode ignited\n";
  return text;
}

}  // namespace

ModuleCase::ModuleCase(const parallel::Comm& comm, const deck::Deck& deck, structure::ModuleProblem problem,
                       dynamics::CompressedWeights initial, std::vector<std::string> notes,
                       std::optional<double> isotropic_c)
    : Case(comm, deck),
      problem_(std::move(problem)),
      initial_(std::move(initial)),
      notes_(std::move(notes)),
      isotropic_c_(isotropic_c) {
  check_order_parameter_size(deck, *problem_.objective);
  check_kernel_samples(deck, problem_);
  schedule_ = make_schedule(deck);
  prediction_ = predict_module(*problem_.objective, initial_, deck);
  if (is_network(deck) || deck.network.side_by_side)
    notes_.push_back("network: " + dynamics::make_network_objective(comm, deck, problem_,
                                                                    deck.network.has_original()
                                                                        ? dynamics::NetworkSide::original
                                                                        : dynamics::NetworkSide::form)
                                       ->stack()
                                       .description());
  if (deck.network.is_stack() && deck.network.side_by_side)  // refuses what does not fit
    dynamics::make_network_objective(comm, deck, problem_, dynamics::NetworkSide::form);
  if (deck.network.is_stack())
    notes_.push_back("a stack of modules has no modes: no ignition times are predicted, none are recorded");
  if (!is_discrete(deck)) return;
  if (!is_network(deck)) dynamics::make_training_map(comm, deck, problem_, initial_);  // refuses what does not fit
  const auto note = fit_to_steps(schedule_, deck, dynamics::LearningRate(deck.training));
  if (!note.empty()) notes_.push_back(note);
}

std::vector<double> ModuleCase::fingerprint() const {
  std::vector<double> sums(6, 0.0);
  const auto& train = problem_.train;
  const auto add = [&](std::size_t at, std::span<const double> values, std::int64_t begin, double length) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double place = 1.0 + static_cast<double>(begin + static_cast<std::int64_t>(i)) / std::max(length, 1.0);
      sums[at] += place * values[i];
      sums[at + 1] += place * std::abs(values[i]);
    }
  };
  if (train.rows.global_size() > 0) {
    const auto n = static_cast<std::int64_t>(train.rows.global_size());
    const auto size = train.shape.input_size(), m = train.shape.n_outputs;
    add(0, train.x, train.rows.begin() * size, static_cast<double>(n * size));
    add(2, train.y, train.rows.begin() * m, static_cast<double>(n * m));
  }
  if (comm_.is_root()) add(4, initial_.w, 0, static_cast<double>(initial_.w.size()));
  comm_.sum_in_place(std::span<double>(sums));
  return sums;
}

std::string ModuleCase::describe(bool with_sizes, std::int64_t rows) {
  std::string text = is_network(deck_) ? fmt::format("module: p = {}, d = {}, every unit carried\n",
                                                     problem_.n_parameters, initial_.width)
                                       : fmt::format("module: p = {}, d = {}, carried as {} columns\n",
                                                     problem_.n_parameters, initial_.width, initial_.r);
  for (const auto& note : problem_.notes) text += "  " + note + "\n";
  for (const auto& note : notes_) text += "  " + note + "\n";
  if (initial_.truncation > 0.0)
    text += fmt::format("  cut to {} columns: ||M - M'|| = {:.6g} at the start\n", initial_.r, initial_.truncation);
  const bool follows_flow = !isotropic_c_ && !is_discrete(deck_);
  if (follows_flow) text += tolerance_warning(deck_, prediction_, problem_.n_parameters);
  if (with_sizes) {
    const auto [state, kept] = state_size(deck_, *problem_.objective, static_cast<double>(initial_.r), comm_.size());
    const double rows_out = static_cast<double>(schedule_.output_times.size());
    // Of CVODE with functional iteration, or with GMRES (TrainingEvolution); of a map.
    const double vectors = !follows_flow ? 4.0 : deck_.training.method == deck::FlowMethod::adams ? 13.0 : 35.0;
    const double doubles = problem_.objective->memory_doubles() + kept + vectors / comm_.size() * state;
    const double snapshots = deck_.output.order_parameter_every > 0
                                 ? static_cast<double>(problem_.n_parameters * problem_.n_parameters) * rows_out /
                                       static_cast<double>(deck_.output.order_parameter_every)
                                 : 0.0;
    text += fmt::format("{} output times to t = {:.10g}\n", schedule_.output_times.size(), end_time());
    text += fmt::format("on {} rank{}: memory about {} a rank; result about {}, each checkpoint about {}\n",
                        comm_.size(), comm_.size() == 1 ? "" : "s", bytes(8.0 * doubles + 60e6),
                        bytes(8.0 * ((10.0 + static_cast<double>(prediction_.size())) * rows_out + snapshots)),
                        bytes(8.0 * (state + snapshots)));
    if (deck_.training.form == deck::TrainingForm::order_parameter)
      if (const auto ranks = dynamics::fewest_order_parameter_ranks(*problem_.objective); ranks > comm_.size())
        text +=
            fmt::format("the rows of M on a rank are beyond 32-bit indices: a run needs at least {} ranks\n", ranks);
  }
  return deck_.network.is_stack() ? text : text + describe_modes(prediction_, rows);
}

ModuleCase::System ModuleCase::make_system(const dynamics::NetworkSamples& samples) {
  System made;
  const auto side = deck_.network.original ? dynamics::NetworkSide::original : dynamics::NetworkSide::form;
  if (is_discrete(deck_)) {
    if (is_network(deck_))
      made.map = dynamics::make_network_map(comm_, deck_, problem_, samples, side);
    else
      made.map = dynamics::make_training_map(comm_, deck_, problem_, initial_);
    made.system = made.map.get();
  } else if (isotropic_c_) {
    made.closed = std::make_unique<RiccatiSystem>(problem_, *isotropic_c_, initial_);
    made.system = made.closed.get();
  } else {
    if (is_network(deck_))
      made.flow = dynamics::make_network_flow(comm_, deck_, problem_, samples, side);
    else
      made.flow = dynamics::make_training_flow(comm_, deck_, problem_, initial_);
    made.system = made.flow.get();
  }
  return made;
}

CaseOutcome ModuleCase::run(Campaign& campaign, const std::optional<record::LoadedCheckpoint>& loaded) {
  auto& log = campaign.log;
  const std::string label = label_of(deck_);
  log.info(label + describe(false, 10));
  if (loaded) check_input(*loaded);

  dynamics::NetworkSamples samples;
  if (is_network(deck_) || deck_.network.side_by_side) samples = dynamics::gather_samples(comm_, problem_);
  auto [flow, map, closed, system] = make_system(samples);
  ModuleView view(problem_, *system, deck_.tangent_kernel.chosen(), samples);
  std::vector<double> log_saturation;
  for (std::size_t k = 0; k < prediction_.modes.growth_rate.size(); ++k) {
    const double saturation = prediction_.modes.growth_rate[k] / prediction_.modes.self_coupling[k];
    log_saturation.push_back(saturation > 0.0 ? std::log(saturation) : 0.0);
  }
  solver::StrengthRecorder strengths(*system, prediction_.modes.vectors, prediction_.ignition_time, log_saturation,
                                     map == nullptr);
  std::unique_ptr<Companion> companion;
  if (deck_.network.side_by_side)
    companion =
        std::make_unique<Companion>(comm_, deck_, problem_, samples, *system, end_time(), loaded ? &*loaded : nullptr);
  ModuleRecord record(comm_, campaign.file, campaign.checkpoints, deck_, view, strengths, fingerprint(),
                      loaded ? &loaded->data : nullptr, companion.get());
  record.set_unfinished();
  record.write_theory(prediction_);

  std::optional<solver::Progress> resume;
  double t0 = 0.0;
  std::vector<double> initial_state;
  std::span<const double> state;
  if (loaded) {
    resume = module_progress_of(loaded->data, system->partition());
    fit_schedule(schedule_, *resume);
    t0 = resume->time;
    state = resume->state;
    log.info(fmt::format("{}going on from {} at t = {:.10g}", label, loaded->path, t0));
  } else {
    initial_state = system->initial_state();
    state = initial_state;
  }

  std::unique_ptr<solver::Evolution> evolution;
  if (closed) {
    evolution = closed->evolution(t0);
    log.info(label + closed->description());
  } else if (map) {
    evolution = std::make_unique<solver::MapEvolution>(*map, t0, state);
    log.info(label + map->description());
  } else {
    auto training =
        std::make_unique<solver::TrainingEvolution>(*flow, deck_.training, deck_.solver, t0, end_time(), state);
    log.info(fmt::format("{}{}, {}", label, system->description(),
                         training->method() == deck::FlowMethod::adams ? "Adams" : "BDF with GMRES"));
    evolution = std::move(training);
  }
  if (companion) log.info(label + companion->description());
  if (map) schedule_.max_steps = std::numeric_limits<std::int64_t>::max();
  solver::RunLoop loop(comm_, *evolution, strengths, record, campaign.stop, log, schedule_);

  CaseOutcome outcome;
  guarded(campaign, loop, [&] {
    outcome.run = loop.run(resume, label);
    outcome.fit = record.finish(deck_.fit, prediction_);
    record.set_outcome(outcome.run);
    campaign.file.flush();
  });
  outcome.final_loss = record.losses().back();
  if (!record.shown_events().empty()) outcome.first_event = record.shown_events().front().time;
  if (companion) {
    const double t = companion->divergence_time();
    const auto step = companion->divergence_step();
    log.info(std::isnan(t)
                 ? fmt::format("{}original and normal form stay within {} of each other", label,
                               deck_.network.divergence_level)
                 : fmt::format("{}original and normal form diverge by {} at t = {:.6g}{}", label,
                               deck_.network.divergence_level, t, step >= 0 ? fmt::format(" (step {})", step) : ""));
  }
  if (outcome.run.complete && !deck_.network.is_stack())
    log.info(compare_module_events(record.shown_events(), record.n_events()));
  for (const double t : prediction_.ignition_time)
    if (t > 0.0 && t <= outcome.run.time) ++outcome.agreement.predicted;
  std::vector<double> distances;
  for (const auto& event : record.shown_events())
    if (event.kind > 0 && std::isfinite(event.predicted_time)) {
      ++outcome.agreement.measured;
      distances.push_back(std::abs(event.time / event.predicted_time - 1.0));
    }
  outcome.agreement.median = std::nan("");
  if (!distances.empty()) {
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    outcome.agreement.median = *middle;
  }
  if (view.kernel_size() > 0) {
    const double drift = record.drift_at_half_loss();
    log.info(
        fmt::format("{}tangent kernel: drift {:.4g} when the loss had halved: {}", label, drift,
                    theory::name_of(std::isnan(drift)                           ? theory::Regime::undecided
                                    : drift < theory::drift_of_feature_learning ? theory::Regime::lazy
                                                                                : theory::Regime::feature_learning)));
  }
  if (outcome.fit.accepted) log.info(label + describe_fit(outcome.fit, Prediction{}));
  const auto& work = outcome.run.work;
  log.info(fmt::format("{}{} steps, {} gradient evaluations, {} nonlinear and {} Krylov iterations", label, work.steps,
                       work.rhs_evaluations, work.newton_iterations, work.linear_iterations));
  return outcome;
}

namespace {

constexpr std::int64_t largest_reduction = 2000;  // p beyond which auto does not spend p³ on looking for structure
constexpr double isotropy_tolerance = 1e-10;

[[noreturn]] void refuse_form(const deck::Deck& deck, const std::string& reason) {
  throw DeckError(deck.training.place.file, deck.training.place.line, "[training] form: " + reason);
}

/// What the reduced systems do not have: empty, or its name.
std::string wanted_of_weights(const deck::Deck& deck) {
  if (deck.training.algorithm != deck::Algorithm::flow) return "discrete training";
  if (deck.training.loss != deck::LossKind::squared) return "a loss that is not the squared error";
  if (deck.training.weight_decay != 0.0) return "weight decay";
  if (deck.network.has_original() || deck.network.is_stack()) return "[network]";
  if (deck.tangent_kernel.is_wanted()) return "a tangent kernel";
  return {};
}

}  // namespace

std::unique_ptr<Case> make_module_case(const parallel::Comm& comm, const deck::Deck& deck, double horizon) {
  const auto form = deck.training.form;
  const bool automatic = form == deck::TrainingForm::automatic;
  const bool as_modes = form == deck::TrainingForm::modes, as_riccati = form == deck::TrainingForm::riccati;
  const std::string wanted = wanted_of_weights(deck);
  if ((as_modes || as_riccati) && !wanted.empty())
    refuse_form(deck, fmt::format("\"{}\" does not go with {}", as_modes ? "modes" : "riccati", wanted));

  const bool tests = deck.data.test_samples > 0 || deck.data.test_fraction > 0.0 || !deck.data.test_images.empty() ||
                     !deck.data.test_file.empty() || deck.output.order_parameter_every > 0;
  if (deck.solver.form == deck::SolutionForm::closed && !wanted.empty())
    throw DeckError(deck.solver.place.file, deck.solver.place.line,
                    "[solver] form = \"closed\": there is no closed form with " + wanted);
  const bool may_reduce = as_modes || (automatic && wanted.empty() && !tests);
  if (may_reduce && structure::is_orthonormal_fourier(comm, deck)) {
    const auto p = 2 * structure::count_fourier_features(comm, deck);
    const auto initial = dynamics::make_initial_weights(comm, deck, p, false, structure::Block{0, p / 2, p / 2, p / 2});
    return std::make_unique<ModesCase>(comm, deck, structure::fourier_modes(comm, deck, initial.view()), horizon);
  }

  auto problem = structure::make_module_problem(comm, deck);
  if (deck.network.is_stack() && deck.output.order_parameter_every > 0)
    throw DeckError(deck.network.place.file, deck.network.place.line,
                    "[network] widths: a stack has no order parameter; leave out output.order_parameter_every");
  // A network starts from units, so what is said of its W(0) is said of these; a closed form beside its original
  // takes them compressed, unless they are kept.
  auto start = deck;
  if ((deck.network.side_by_side || is_network(deck)) && deck.weights.initial == deck::InitialWeights::gaussian &&
      deck.weights.units == deck::UnitsDrawn::none)
    start.weights.units = deck::UnitsDrawn::compressed;
  auto initial = dynamics::make_initial_weights(comm, start, problem);
  std::vector<std::string> notes;
  std::optional<double> isotropic_c;
  const bool bare = !problem.objective->has_sum_terms();
  if ((as_modes || as_riccati) && !bare)
    refuse_form(deck, "modes and riccati need a normal form without sum terms g, B");
  if (bare && (as_modes || as_riccati || problem.n_parameters <= largest_reduction)) {
    const double commutator = structure::commutator_norm(comm, deck, problem);
    const bool commutes = commutator <= deck.training.commutator_tolerance;
    notes.push_back(fmt::format("commutator norm of two mixtures of structure matrices: {:.3g}{}", commutator,
                                commutes ? ", they commute" : ""));
    if (as_modes && !commutes)
      refuse_form(deck, fmt::format("\"modes\": the structure matrices do not commute: {:.3g} exceeds "
                                    "commutator_tolerance {:.3g}",
                                    commutator, deck.training.commutator_tolerance));
    if (commutes && may_reduce) {
      auto system = structure::reduce_to_modes(comm, deck, problem, initial.view());
      notes.insert(notes.begin(), problem.notes.begin(), problem.notes.end());
      return std::make_unique<ModesCase>(comm, deck, std::move(system), horizon, std::move(notes));
    }
    if (wanted.empty() && (automatic || as_riccati)) {
      const auto isotropy = structure::isotropy(comm, deck, problem);
      const bool isotropic = isotropy.deviation <= isotropy_tolerance;
      if (isotropic || as_riccati)
        notes.push_back(fmt::format("E[Tr(MA) A] = c M: c = {:.8g}, largest relative deviation {:.3g}", isotropy.c,
                                    isotropy.deviation));
      if (as_riccati && !isotropic)
        refuse_form(deck,
                    fmt::format("\"riccati\": the data are not isotropic: E[Tr(MA) A] deviates from c M by {:.3g}",
                                isotropy.deviation));
      if (isotropic) isotropic_c = isotropy.c;
    }
  }
  if (deck.solver.form == deck::SolutionForm::closed && !isotropic_c)
    throw DeckError(deck.solver.place.file, deck.solver.place.line,
                    "[solver] form = \"closed\": this module has no closed form; use \"integrate\"");
  return std::make_unique<ModuleCase>(comm, deck, std::move(problem), std::move(initial), std::move(notes),
                                      isotropic_c);
}

}  // namespace nqf::drivers
