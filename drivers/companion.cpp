#include "companion.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/dynamics/factored_state.hpp"
#include "nqf/numbers.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/solver/map_evolution.hpp"
#include "nqf/solver/training_evolution.hpp"

namespace nqf::drivers {

namespace {

constexpr std::int64_t most_samples = 1024;     // outputs are compared on
constexpr std::int64_t most_parameters = 2000;  // p beyond which M is not formed at every output

double distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

double norm(std::span<const double> a) {
  double sum = 0.0;
  for (const double value : a) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

FormOutputs::FormOutputs(const deck::Deck& deck, const structure::ModuleProblem& problem,
                         const dynamics::NetworkSamples& samples, dynamics::TrainingSystem& form)
    : samples_(samples),
      form_(form),
      n_samples_(std::min(samples.train->size, most_samples)),
      size_(n_samples_ * samples.train->shape.n_outputs),
      input_size_(samples.train->shape.input_size()),
      n_outputs_(samples.train->shape.n_outputs),
      offset_(static_cast<std::size_t>(size_), 0.0) {
  const auto& whole = *samples.train;
  if (auto* network = dynamic_cast<dynamics::NetworkState*>(&form)) {
    const std::vector<double> zero(static_cast<std::size_t>(network->objective().stack().n_local_weights()), 0.0);
    network->objective().outputs(std::span(whole.x).first(static_cast<std::size_t>(n_samples_ * input_size_)), zero,
                                 offset_);
    return;
  }
  own_.rows = parallel::Partition(n_samples_, form.comm());
  own_.shape = whole.shape;
  const auto begin = own_.rows.begin(), end = own_.rows.end();
  own_.x.assign(whole.x.begin() + begin * input_size_, whole.x.begin() + end * input_size_);
  own_.y.assign(whole.y.begin() + begin * n_outputs_, whole.y.begin() + end * n_outputs_);
  own_.weight.assign(static_cast<std::size_t>(end - begin), 1.0 / static_cast<double>(n_samples_));
  parallel::collectively(form.comm(), [&] { op_ = structure::make_structure_operator(deck, problem.width, own_); });
  const auto mine = std::span(offset_).subspan(static_cast<std::size_t>(begin * n_outputs_),
                                               static_cast<std::size_t>((end - begin) * n_outputs_));
  op_->offset(op_->all(), mine);
  form.comm().sum_in_place(std::span<double>(offset_));
  const auto p = static_cast<std::size_t>(problem.n_parameters);
  m_.resize(dynamic_cast<dynamics::FactoredState*>(&form) ? 0 : p * p);
  s_.resize(op_->has_sum_terms() ? p : 0);
  core_.resize(static_cast<std::size_t>(op_->core().size()));
}

void FormOutputs::operator()(std::span<const double> state, std::span<double> f) const {
  if (auto* network = dynamic_cast<dynamics::NetworkState*>(&form_)) {
    const auto x = std::span(samples_.train->x).first(static_cast<std::size_t>(n_samples_ * input_size_));
    network->objective().outputs(x, network->weights(state), f);
    return;
  }
  if (auto* factored = dynamic_cast<dynamics::FactoredState*>(&form_)) {
    const auto weights = factored->factor(state);
    std::fill(core_.begin(), core_.end(), 0.0);
    op_->core().add_product(weights.w, weights.w, weights.r, core_);
    std::fill(s_.begin(), s_.end(), 0.0);
    for (std::size_t i = 0; i < weights.ones.size() * s_.size(); ++i)
      s_[i % s_.size()] += weights.w[i] * weights.ones[i / s_.size()];
  } else {
    form_.order_parameter(state, m_, s_);
    op_->core().from_order_parameter(m_, core_);
  }
  std::fill(f.begin(), f.end(), 0.0);
  const auto begin = own_.rows.begin() * n_outputs_, count = own_.rows.local_size() * n_outputs_;
  op_->measure_core(op_->all(), core_, s_, f.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
  form_.comm().sum_in_place(f);
}

Companion::Companion(const parallel::Comm& comm, const deck::Deck& deck, const structure::ModuleProblem& problem,
                     const dynamics::NetworkSamples& samples, dynamics::TrainingSystem& form, double end,
                     const record::LoadedCheckpoint* checkpoint)
    : comm_(comm),
      deck_(deck),
      samples_(samples),
      form_(form),
      end_(end),
      form_outputs_(deck, problem, samples, form),
      own_f_(static_cast<std::size_t>(form_outputs_.size())),
      form_f_(own_f_.size()),
      loss_at_start_(nan),
      last_time_(nan),
      last_gap_(nan),
      divergence_time_(nan) {
  if (deck.training.algorithm == deck::Algorithm::flow) {
    flow_ = dynamics::make_network_flow(comm, deck, problem, samples, dynamics::NetworkSide::original);
    system_ = flow_.get();
    network_ = flow_.get();
  } else {
    map_ = dynamics::make_network_map(comm, deck, problem, samples, dynamics::NetworkSide::original);
    system_ = map_.get();
    network_ = map_.get();
  }
  double t0 = 0.0;
  if (checkpoint) {
    const auto& data = checkpoint->data;
    t0 = data.real("time");
    const auto saved = data.distributed_real("original_state", system_->partition().global_size());
    state_.assign(saved.begin(), saved.end());
    loss_at_start_ = data.real("original_loss_at_start");
    last_time_ = data.real("original_last_time");
    last_gap_ = data.real("original_last_gap");
    divergence_time_ = data.real("divergence_time");
  } else {
    state_ = system_->initial_state();
  }
  if (map_)
    evolution_ = std::make_unique<solver::MapEvolution>(*map_, t0, state_);
  else
    evolution_ = std::make_unique<solver::TrainingEvolution>(*flow_, deck.training, deck.solver, t0, end, state_);
}

void Companion::advance(double t) {
  while (evolution_->time() < t) evolution_->step(map_ ? t : std::max(end_, t));
  if (evolution_->time() == t) {
    const auto now = evolution_->state();
    std::copy(now.begin(), now.end(), state_.begin());
  } else {
    evolution_->interpolate(t, state_);
  }
}

Comparison Companion::compare(double t, std::span<const double> form_state, double form_loss) {
  Comparison result{nan, nan, nan, nan};
  try {
    advance(t);
  } catch (const RunError& error) {
    throw RunError(std::string("the original network: ") + error.what());
  }
  result.loss = system_->loss(state_);
  const auto w = network_->weights(state_);
  auto& objective = network_->objective();
  if (samples_.test) result.test_loss = objective.loss(dynamics::all_of(*samples_.test), w);
  const auto n = static_cast<std::size_t>(form_outputs_.n_samples() * samples_.train->shape.input_size());
  objective.outputs(std::span(samples_.train->x).first(n), w, own_f_);
  form_outputs_(form_state, form_f_);
  result.output_distance = distance(own_f_, form_f_) / distance(form_f_, form_outputs_.offset());
  result.weight_distance = weight_distance(form_state);
  if (std::isnan(loss_at_start_)) loss_at_start_ = form_loss;
  watch(t, std::abs(result.loss - form_loss) / loss_at_start_, result.output_distance);
  return result;
}

double Companion::weight_distance(std::span<const double> form_state) {
  const auto p = system_->n_parameters();
  if (p > 0 && p <= most_parameters && form_.n_parameters() == p) {
    m_.resize(static_cast<std::size_t>(p * p));
    form_m_.resize(m_.size());
    system_->order_parameter(state_, m_, {});
    form_.order_parameter(form_state, form_m_, {});
    return distance(m_, form_m_) / norm(form_m_);
  }
  auto* network = dynamic_cast<dynamics::NetworkState*>(&form_);
  const bool same =
      network && network->objective().stack().n_local_weights() == network_->objective().stack().n_local_weights();
  if (!comm_.all(same)) return nan;
  const auto w = network_->weights(state_), form_w = network->weights(form_state);
  const double apart = distance(w, form_w), size = norm(form_w);
  return std::sqrt(comm_.sum(apart * apart) / comm_.sum(size * size));
}

void Companion::watch(double t, double loss_gap, double output_gap) {
  const double gap = std::max(loss_gap, std::isnan(output_gap) ? 0.0 : output_gap);
  const double level = deck_.network.divergence_level;
  if (std::isnan(divergence_time_) && gap > level) {
    const bool first = std::isnan(last_gap_);
    divergence_time_ = first ? t : last_time_ + (t - last_time_) * (level - last_gap_) / (gap - last_gap_);
  }
  last_time_ = t;
  last_gap_ = gap;
}

std::int64_t Companion::divergence_step() const {
  return map_ && std::isfinite(divergence_time_) ? map_->nearest_step(divergence_time_) : -1;
}

void Companion::save(double t, record::CheckpointData& data) {
  advance(t);
  evolution_->restart(t, state_);
  data.distributed_reals["original_state"] = {state_, system_->partition()};
  data.reals["original_loss_at_start"] = loss_at_start_;
  data.reals["original_last_time"] = last_time_;
  data.reals["original_last_gap"] = last_gap_;
  data.reals["divergence_time"] = divergence_time_;
}

std::string Companion::description() const {
  return "beside it the original: " + system_->description();
}

}  // namespace nqf::drivers
