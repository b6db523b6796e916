#include <fmt/format.h>

#include <cmath>

#include "nqf/data/array.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/commuting.hpp"
#include "structure/modules/fourier.hpp"

namespace nqf::structure {

namespace {

ModuleContext context_of(const parallel::Comm& comm, const deck::Deck& deck) {
  return {comm, deck, deck.weights.width, {{1}, 1}};
}

// b_k of the data on every rank, as many as they have (fourier_amplitudes counts the same way).
std::vector<double> targets_of(const parallel::Comm& comm, const deck::Deck& deck) {
  const auto& data = deck.data;
  const auto length = data::array_length(comm, data.coefficients);
  return data::load_replicated(comm, data.coefficients,
                               length.value_or(data.count > 0 ? data.count : data.samples - 1));
}

}  // namespace

bool is_orthonormal_fourier(const parallel::Comm& comm, const deck::Deck& deck) {
  if (deck.module.kind != deck::ModuleKind::fourier || deck.data.kind != deck::DataKind::fourier ||
      deck.data.target != deck::TargetKind::list || deck.data.noise != 0.0 ||
      deck.training.loss != deck::LossKind::squared || deck.training.sampling != deck::BatchSampling::full ||
      activation_at_zero(deck.module).value != 0.0)
    return false;
  return std::ssize(fourier_amplitudes(context_of(comm, deck))) < deck.data.samples;
}

ModeSystem fourier_modes(const parallel::Comm& comm, const deck::Deck& deck, const WeightsView& initial) {
  const auto amplitudes = fourier_amplitudes(context_of(comm, deck)), targets = targets_of(comm, deck);
  const std::int64_t n = std::ssize(amplitudes), p = initial.p;
  const double factor = deck.module.scale * activation_at_zero(deck.module).slope;
  ModeSystem system;
  system.kind = ModeSystem::Kind::signed_samples;
  system.modes = parallel::Partition(n, comm);
  system.absolute_loss = true;
  for (std::int64_t k = n; k < std::ssize(targets); ++k) system.loss_offset += 0.5 * targets[k] * targets[k];
  parallel::collectively(comm, [&] {
    for (std::int64_t k = system.modes.begin(); k < system.modes.end(); ++k) {
      const double kappa = 0.5 * factor * amplitudes[k], b = k < std::ssize(targets) ? targets[k] : 0.0;
      double plus = 0.0, minus = 0.0;
      for (std::int64_t i = 0; i < initial.r; ++i) {
        const double u = initial.w[k + i * p], v = initial.w[n + k + i * p];
        plus += 0.5 * (u + v) * (u + v);
        minus += 0.5 * (u - v) * (u - v);
      }
      if (kappa < 0.0) std::swap(plus, minus);
      const double grows = std::log(std::abs(kappa) * (b >= 0.0 ? plus : minus)),
                   other = std::log(std::abs(kappa) * (b >= 0.0 ? minus : plus));
      if (kappa == 0.0 || !std::isfinite(grows))
        throw DeckError(
            deck.module.place.file, deck.module.place.line,
            fmt::format("[module] kind = \"fourier\": mode {} of amplitude {} starts at zero and cannot grow", k,
                        amplitudes[k]));
      const double beta = 4.0 * std::abs(kappa);
      system.growth_rate.push_back(beta * std::abs(b));
      system.self_coupling.push_back(beta);
      system.loss_scale.push_back(4.0 / beta);  // ½ (b − f)² = s (⅛ β f² − ¼ ζ f + V)
      system.log_initial.push_back(grows);
      system.log_product.push_back(grows + other);
    }
  });
  return system;
}

}  // namespace nqf::structure
