#include "riccati_system.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nqf::drivers {

RiccatiSystem::RiccatiSystem(structure::ModuleProblem& problem, double c, const dynamics::CompressedWeights& initial)
    : problem_(problem) {
  const auto p = static_cast<std::size_t>(problem.n_parameters);
  partition_ = parallel::Partition(static_cast<std::int64_t>(p * p), comm());
  whole_.assign(p * p, 0.0);
  std::vector<double> y(p * p);
  // At M = 0 the residual is f0 − y, so that S = −Y and the loss is ½ E[(y − f0)²].
  second_moment_ = 2.0 * problem.objective->structure(structure::OrderParameterView{problem.n_parameters, whole_, {}},
                                                      y, std::span<double>());
  for (double& entry : y) entry = -entry;
  flow_ = std::make_unique<theory::RiccatiFlow>(y, problem.n_parameters, c, initial.w, initial.r);
}

void RiccatiSystem::state_at(double t, std::span<double> state) const {
  flow_->order_parameter(t, whole_);
  std::copy_n(whole_.begin() + partition_.begin(), partition_.local_size(), state.begin());
}

std::vector<double> RiccatiSystem::initial_state() const {
  std::vector<double> state(static_cast<std::size_t>(partition_.local_size()));
  state_at(0.0, state);
  return state;
}

void RiccatiSystem::order_parameter(std::span<const double> state, std::span<double> m, std::span<double> s) {
  const auto whole = comm().all_gather(state);
  std::copy(whole.begin(), whole.end(), m.begin());
  std::fill(s.begin(), s.end(), 0.0);
}

double RiccatiSystem::loss(std::span<const double> state) {
  const auto whole = comm().all_gather(state);
  return problem_.objective->loss(structure::OrderParameterView{problem_.n_parameters, whole, {}});
}

std::string RiccatiSystem::description() const {
  return fmt::format("closed form of isotropic data, matrix Riccati equation of order {}", problem_.n_parameters);
}

std::unique_ptr<solver::Evolution> RiccatiSystem::evolution(double t0) {
  solver::ClosedForm form;
  form.state = [this](double t, std::span<double> state) { state_at(t, state); };
  form.loss = [this](double t, std::span<const double>) { return flow_->loss(t, second_moment_); };
  return std::make_unique<solver::ClosedFormEvolution>(partition_, std::move(form), t0);
}

}  // namespace nqf::drivers
