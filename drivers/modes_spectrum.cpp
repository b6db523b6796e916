#include <fmt/format.h>

#include <numeric>

#include "nqf/solver/eigenpairs.hpp"
#include "nqf/structure/mode_system.hpp"
#include "prediction.hpp"
#include "problem_spectrum.hpp"

namespace nqf::drivers {

namespace {

constexpr std::int64_t dense_limit = 2000;
constexpr std::int64_t default_large_count = 100;

solver::Eigenpairs interaction_eigenpairs(const parallel::Comm& comm, structure::Interaction& interaction,
                                          std::int64_t count) {
  const auto& modes = interaction.modes();
  const auto n = modes.global_size();
  if (n <= dense_limit) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    std::vector<double> matrix(static_cast<std::size_t>(n * n));
    interaction.block(all, all, matrix);
    return solver::dense_eigenpairs(comm, std::move(matrix), n, count == 0 ? n : count);
  }
  std::vector<double> own(static_cast<std::size_t>(modes.local_size()));
  const solver::SymmetricProduct product = [&](std::span<const double> v, std::span<double> out) {
    interaction.apply(v.subspan(static_cast<std::size_t>(modes.begin()), own.size()), own);
    const auto whole = comm.all_gather(std::span<const double>(own));
    std::copy(whole.begin(), whole.end(), out.begin());
  };
  return solver::krylov_eigenpairs(comm, n, product, count == 0 ? default_large_count : count);
}

}  // namespace

ProblemSpectrum spectrum_of_modes(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t count) {
  auto system = structure::make_mode_system(comm, deck);
  ProblemSpectrum spectrum;
  spectrum.mode_name = system.mode_name;
  const auto whole = [&](const std::vector<double>& own) { return comm.all_gather(std::span<const double>(own)); };
  spectrum.growth_rate = whole(system.growth_rate);
  spectrum.self_coupling = whole(system.self_coupling);
  spectrum.log_initial = whole(system.log_initial);
  spectrum.loss_scale = whole(system.loss_scale);
  if (system.kind == structure::ModeSystem::Kind::signed_samples)
    spectrum.ignition_time = whole(predict_system(comm, system, 0.0, 0).ignition_time);
  if (system.kind != structure::ModeSystem::Kind::coupled) return spectrum;
  auto pairs = interaction_eigenpairs(comm, *system.interaction, count);
  spectrum.second_moment = std::move(pairs.values);
  spectrum.second_moment_name = "interaction matrix C";
  spectrum.second_moment_units = "1/time";
  spectrum.notes.push_back(fmt::format("{}: {}", spectrum.second_moment_name, pairs.method));
  spectrum.notes.push_back("modes are coupled: drops and ignition times are those of each mode by itself");
  return spectrum;
}

}  // namespace nqf::drivers
