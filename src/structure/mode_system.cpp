#include "nqf/structure/mode_system.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "nqf/data/array.hpp"
#include "nqf/data/matrix.hpp"
#include "nqf/data/redistribute.hpp"
#include "nqf/data/samples.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/dense_interaction.hpp"
#include "nqf/structure/factored_interaction.hpp"

namespace nqf::structure {

using deck::ArraySource;
using deck::Deck;
using parallel::Comm;
using parallel::Partition;

namespace {

constexpr std::int64_t largest_petsc_vector = std::numeric_limits<std::int32_t>::max();

std::string table_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}

/// An error about a source: in the deck's line, or in the file it names.
[[noreturn]] void refuse(const ArraySource& source, const std::string& reason) {
  if (const auto* array = std::get_if<deck::FileArray>(&source.value))
    throw DataError(array->file, array->dataset, reason);
  throw DeckError(source.place.file, source.place.line,
                  fmt::format("[{}] {}: {}", table_of(source.place.key),
                              source.place.key.substr(source.place.key.find('.') + 1), reason));
}

[[noreturn]] void refuse(const deck::Place& place, const std::string& reason) {
  throw DeckError(place.file, place.line, reason);
}

/// Fails on every rank if `bad(local index)` is true of any entry; the lowest index is named.
template <class Bad, class Reason>
void check_each(const Comm& comm, const Partition& modes, const ArraySource& source, Bad&& bad, Reason&& reason) {
  parallel::collectively(comm, [&] {
    for (std::int64_t k = 0; k < modes.local_size(); ++k)
      if (bad(k)) refuse(source, fmt::format("entry {}: {}", modes.begin() + k, reason(k)));
  });
}

std::optional<double> exponent_of(const ArraySource& source) {
  if (const auto* law = std::get_if<deck::PowerLaw>(&source.value)) return law->exponent;
  if (std::holds_alternative<double>(source.value)) return 0.0;
  return {};
}

/// The number of modes: what the deck counts, or the length of the arrays that have one.
std::int64_t count_modes(const Comm& comm, std::int64_t count, const deck::Place& place,
                         std::initializer_list<const ArraySource*> sources) {
  for (const auto* source : sources)
    if (const auto length = data::array_length(comm, *source)) {
      if (count == 0) count = *length;
      if (*length != count) refuse(*source, fmt::format("has {} entries where {} are needed", *length, count));
      if (*length == 0) refuse(*source, "is empty: a system needs at least one mode");
    }
  if (count == 0)
    refuse(place, fmt::format("[{}] count: is missing; power laws and single numbers need the number of modes",
                              table_of(place.key)));
  if (count > largest_petsc_vector)
    refuse(place, fmt::format("[{}] count: {} modes exceed what PETSc's 32-bit indices can number ({})",
                              table_of(place.key), count, largest_petsc_vector));
  return count;
}

/// ln z_k(0) of the own modes, from [initial] or from the system's file. `scale` is what relative_to_saturation means;
/// none for coupled modes (an empty span is a rank without modes).
std::vector<double> load_log_initial(const Comm& comm, const deck::InitialOptions& initial, const std::string& file,
                                     const Partition& modes, std::optional<std::span<const double>> scale) {
  const bool in_deck = initial.value.given() || initial.log_value.given() || initial.epsilon.given();
  const auto value = in_deck ? initial.value : data::or_dataset(comm, initial.value, file, "initial");
  const auto log_value =
      in_deck || value.given() ? initial.log_value : data::or_dataset(comm, initial.log_value, file, "log_initial");
  std::vector<double> result;
  if (initial.epsilon.given()) {
    result.assign(modes.local_size(), initial.epsilon.log_value);
    if (initial.shape.given()) {
      const auto shape = data::load_array(comm, initial.shape, modes, data::Sign::positive);
      for (std::size_t k = 0; k < result.size(); ++k) result[k] += std::log(shape[k]);
    }
  } else if (value.given()) {
    result = data::load_array(comm, value, modes, data::Sign::positive);
    for (double& entry : result) entry = std::log(entry);
  } else if (log_value.given()) {
    result = data::load_array(comm, log_value, modes);
  } else {
    refuse(initial.place,
           file.empty() ? "[initial] is missing: give value, log_value or epsilon"
                        : fmt::format("[initial] is missing, and {} has neither 'initial' nor 'log_initial'", file));
  }
  if (initial.relative_to_saturation) {
    if (!scale)
      refuse(initial.place, "[initial] relative_to_saturation: coupled modes have no saturation of their own");
    for (std::size_t k = 0; k < result.size(); ++k) result[k] += std::log(std::abs((*scale)[k]));
  }
  return result;
}

std::optional<double> initial_exponent(const deck::InitialOptions& initial, std::optional<double> saturation) {
  std::optional<double> exponent;
  if (initial.epsilon.given())
    exponent = initial.shape.given() ? exponent_of(initial.shape) : 0.0;
  else
    exponent = exponent_of(initial.value);
  if (initial.relative_to_saturation && exponent) {
    if (!saturation) return {};
    exponent = *exponent + *saturation;
  }
  return exponent;
}

void make_uncoupled(const Comm& comm, const Deck& deck, const ArraySource& growth, const ArraySource& saturation,
                    const ArraySource& drop, ModeSystem& system) {
  const auto& options = deck.modes;
  const auto& second = saturation.given() ? saturation : drop;
  system.kind = ModeSystem::Kind::uncoupled;
  system.modes =
      Partition(count_modes(comm, options.count, options.place,
                            {&growth, &second, &deck.initial.value, &deck.initial.log_value, &deck.initial.shape}),
                comm);
  system.growth_rate = data::load_array(comm, growth, system.modes);
  auto values = data::load_array(comm, second, system.modes, data::Sign::positive);
  check_each(
      comm, system.modes, growth, [&](std::int64_t k) { return !(system.growth_rate[k] > 0.0); },
      [&](std::int64_t k) {
        return fmt::format(
            "growth rate {} is not positive; modes with a saturation or a drop grow (decaying modes "
            "take a coupling)",
            system.growth_rate[k]);
      });
  system.self_coupling.resize(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double zeta = system.growth_rate[k];
    system.self_coupling[k] = saturation.given() ? zeta / values[k] : zeta * zeta / (8.0 * values[k]);
    if (!saturation.given()) values[k] = zeta / system.self_coupling[k];  // now z*_k in both cases
  }
  system.log_initial = load_log_initial(comm, deck.initial, options.file, system.modes, values);
  system.growth_exponent = exponent_of(growth);
  const auto second_exponent = exponent_of(second);
  if (system.growth_exponent && second_exponent) {
    // V = ζ z*/8
    system.drop_exponent = saturation.given() ? *system.growth_exponent + *second_exponent : *second_exponent;
    system.initial_exponent = initial_exponent(deck.initial, *system.drop_exponent - *system.growth_exponent);
  }
}

void adopt(ModeSystem& system, std::unique_ptr<Interaction> interaction) {
  system.kind = ModeSystem::Kind::coupled;
  system.modes = interaction->modes();
  system.growth_rate.assign(interaction->growth_rate().begin(), interaction->growth_rate().end());
  system.self_coupling.assign(interaction->diagonal().begin(), interaction->diagonal().end());
  system.absolute_loss = interaction->has_absolute_loss();
  system.interaction = std::move(interaction);
}

void make_dense(const Comm& comm, const Deck& deck, const ArraySource& growth, const deck::MatrixSource& coupling,
                ModeSystem& system) {
  const auto& options = deck.modes;
  const auto shape = data::matrix_shape(comm, coupling);
  const auto blame = [&](const std::string& reason) {
    ArraySource as_array{{}, coupling.place};
    if (const auto* file = std::get_if<deck::FileArray>(&coupling.value)) as_array.value = *file;
    refuse(as_array, reason);
  };
  if (shape.rows != shape.columns) blame(fmt::format("is {} × {}, not square", shape.rows, shape.columns));
  if (shape.rows == 0) blame("is empty: a system needs at least one mode");
  if (options.count != 0 && options.count != shape.rows)
    blame(fmt::format("has {} rows, but [modes] count is {}", shape.rows, options.count));
  const Partition modes(shape.rows, comm);
  const auto rates = data::load_array(comm, growth, modes);
  const auto row_major = data::load_matrix(comm, coupling, modes, shape.columns);
  const std::int64_t k_local = modes.local_size();
  std::vector<double> rows(row_major.size());
  for (std::int64_t k = 0; k < k_local; ++k)
    for (std::int64_t l = 0; l < shape.columns; ++l) rows[l * k_local + k] = row_major[k * shape.columns + l];
  auto interaction = std::make_unique<DenseInteraction>(comm, modes, std::move(rows), rates);
  const auto asymmetry = interaction->asymmetry();
  // Rounding of a product computed elsewhere is let pass, a matrix that means something else is not.
  if (asymmetry.value > 1e-9)
    blame(fmt::format("is not symmetric: entries ({0}, {1}) and ({1}, {0}) differ by {2:.3g} of the diagonal",
                      asymmetry.row, asymmetry.column, asymmetry.value));
  if (asymmetry.value > 0.0) {
    // Which triangle is read depends on the lit set and on the ranks: the mean of the two is one matrix for all.
    interaction.reset();
    auto mean = data::redistribute_columns(comm, row_major, modes, modes);  // column k of C, as rows of its transpose
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = 0.5 * (mean[i] + row_major[i]);
    rows.resize(mean.size());
    for (std::int64_t k = 0; k < k_local; ++k)
      for (std::int64_t l = 0; l < shape.columns; ++l) rows[l * k_local + k] = mean[k * shape.columns + l];
    interaction = std::make_unique<DenseInteraction>(comm, modes, std::move(rows), rates);
  }
  parallel::collectively(comm, [&] {
    for (std::int64_t k = 0; k < k_local; ++k)
      if (const double c = interaction->diagonal()[k]; c < 0.0)
        blame(fmt::format("is not positive semidefinite: diagonal entry {} is {}", modes.begin() + k, c));
      else if (c == 0.0 && interaction->growth_rate()[k] > 0.0)
        blame(fmt::format("diagonal entry {} is 0 while its growth rate {} is positive: the mode grows without bound",
                          modes.begin() + k, interaction->growth_rate()[k]));
  });
  adopt(system, std::move(interaction));
  system.asymmetry = asymmetry.value;
  if (const auto* file = std::get_if<deck::FileArray>(&coupling.value))
    system.coupling_source = fmt::format("{}, data set '{}'", file->file, file->dataset);
  else
    system.coupling_source = fmt::format("{}:{}: [modes] coupling", coupling.place.file, coupling.place.line);
  system.log_initial = load_log_initial(comm, deck.initial, options.file, system.modes, std::nullopt);
}

/// C = 4 Fᵀ diag(π) F, formed once when that is smaller (K < N), else kept factored.
void make_from_samples(const Comm& comm, data::RegressionSamples samples, bool is_signed, ModeSystem& system) {
  const std::int64_t n = samples.n_features;
  const std::int64_t n_modes = is_signed ? 2 * n : n;
  if (n_modes < samples.rows.global_size()) {
    adopt(system, DenseInteraction::from_features(comm, n, samples.x, samples.y, samples.weight, is_signed));
    return;
  }
  const Partition modes(n_modes, comm);
  std::vector<double> columns;
  if (is_signed) {
    // The extended rows (+x, −x) exist only here, while they change hands.
    std::vector<double> extended(samples.rows.local_size() * n_modes);
    for (std::int64_t i = 0; i < samples.rows.local_size(); ++i)
      for (std::int64_t k = 0; k < n; ++k) {
        extended[i * n_modes + k] = samples.x[i * n + k];
        extended[i * n_modes + n + k] = -samples.x[i * n + k];
      }
    columns = data::redistribute_columns(comm, extended, samples.rows, modes);
  } else {
    columns = data::redistribute_columns(comm, samples.x, samples.rows, modes);
  }
  const auto targets = comm.all_gather(std::span<const double>(samples.y));
  const auto weight = comm.all_gather(std::span<const double>(samples.weight));
  adopt(system, std::make_unique<FactoredInteraction>(comm, modes, std::move(columns), targets, weight));
}

void make_modes(const Comm& comm, const Deck& deck, ModeSystem& system) {
  const auto& options = deck.modes;
  const auto growth = data::or_dataset(comm, options.growth_rate, options.file, "growth_rate");
  const auto coupling = data::or_dataset(comm, options.coupling, options.file, "coupling");
  const auto features = data::or_dataset(comm, options.features, options.file, "features");
  // The deck's own keys decide what the file is asked for.
  const bool wants_uncoupled = options.saturation.given() || options.drop.given();
  const auto saturation =
      wants_uncoupled ? options.saturation : data::or_dataset(comm, options.saturation, options.file, "saturation");
  const auto drop =
      wants_uncoupled || saturation.given() ? options.drop : data::or_dataset(comm, options.drop, options.file, "drop");
  if (!wants_uncoupled && features.given() && !options.coupling.given() && !options.growth_rate.given()) {
    make_from_samples(comm, data::load_samples(comm, options), false, system);
    system.log_initial = load_log_initial(comm, deck.initial, options.file, system.modes, std::nullopt);
    return;
  }
  if (!growth.given())
    refuse(
        options.place,
        fmt::format("[modes] growth_rate: is missing{}",
                    options.file.empty() ? "" : ", and " + options.file + " has neither 'growth_rate' nor 'features'"));
  if (!wants_uncoupled && coupling.given()) return make_dense(comm, deck, growth, coupling, system);
  if (!saturation.given() && !drop.given())
    refuse(options.place, "[modes] growth_rate: needs saturation, drop or coupling beside it");
  make_uncoupled(comm, deck, growth, saturation, drop, system);
}

void make_diagonal_network(const Comm& comm, const Deck& deck, ModeSystem& system) {
  auto samples = data::load_samples(comm, deck.diagonal_network);
  system.image_rows = samples.image_rows;
  system.image_columns = samples.image_columns;
  system.signed_features = deck.diagonal_network.is_signed;
  if (system.image_rows > 0) system.mode_name = "pixel";
  make_from_samples(comm, std::move(samples), deck.diagonal_network.is_signed, system);
  system.log_initial = load_log_initial(comm, deck.initial, deck.diagonal_network.file, system.modes, std::nullopt);
}

void make_samples(const Comm& comm, const Deck& deck, ModeSystem& system) {
  const auto& options = deck.samples;
  const auto target = data::or_dataset(comm, options.target, options.file, "target");
  const auto growth = data::or_dataset(comm, options.growth_rate, options.file, "growth_rate");
  if (!target.given()) refuse(options.place, "[samples] target: is missing");
  if (!growth.given()) refuse(options.place, "[samples] growth_rate: is missing");
  const bool is_signed = options.kind == deck::SampleKind::signed_pair;
  system.mode_name = "sample";
  system.absolute_loss = true;
  system.kind = is_signed ? ModeSystem::Kind::signed_samples : ModeSystem::Kind::uncoupled;
  system.modes = Partition(count_modes(comm, options.count, options.place,
                                       {&target, &growth, &deck.initial.value, &deck.initial.log_value,
                                        &deck.initial.shape, &deck.initial.minus_ratio}),
                           comm);
  const auto y = data::load_array(comm, target, system.modes);
  system.growth_rate = data::load_array(comm, growth, system.modes);
  check_each(
      comm, system.modes, growth,
      [&](std::int64_t k) {
        return !(is_signed ? system.growth_rate[k] > 0.0 && y[k] != 0.0 : system.growth_rate[k] * y[k] > 0.0);
      },
      [&](std::int64_t k) {
        return is_signed
                   ? fmt::format("growth rate {} must be positive and target {} not zero", system.growth_rate[k], y[k])
                   : fmt::format("growth rate {} must have the sign of the target {}", system.growth_rate[k], y[k]);
      });
  system.log_initial = load_log_initial(comm, deck.initial, options.file, system.modes, y);
  const double n = static_cast<double>(system.modes.global_size());
  system.self_coupling.resize(y.size());
  system.loss_scale.resize(y.size());
  double offset = 0.0;
  for (std::size_t k = 0; k < y.size(); ++k) {
    const double beta = is_signed ? system.growth_rate[k] / std::abs(y[k]) : system.growth_rate[k] / y[k];
    system.self_coupling[k] = beta;
    system.loss_scale[k] = 4.0 / (n * beta);  // ½ (y − f)²/N = s (⅛ β f² − ¼ ζ f + V)
    if (!is_signed && y[k] < 0.0) offset += y[k] * y[k] / (2.0 * n);  // out of reach of f > 0
  }
  system.loss_offset = comm.sum(offset);
  if (is_signed) {
    system.log_product.resize(y.size());
    std::vector<double> ratio(y.size(), 1.0);
    if (deck.initial.minus_ratio.given())
      ratio = data::load_array(comm, deck.initial.minus_ratio, system.modes, data::Sign::non_negative);
    for (std::size_t k = 0; k < y.size(); ++k) {
      const double plus = system.log_initial[k], minus = plus + std::log(ratio[k]);
      system.log_product[k] = plus + minus;
      if (y[k] < 0.0) system.log_initial[k] = minus;  // v is κz₋ there
    }
    check_each(
        comm, system.modes, deck.initial.minus_ratio,
        [&](std::int64_t k) { return !std::isfinite(system.log_initial[k]); },
        [](std::int64_t) { return std::string("0 leaves nothing that could grow towards a negative target"); });
  }
  system.growth_exponent = exponent_of(growth);
  system.target_exponent = exponent_of(target);
}

void make_single_sample(const Comm& comm, const Deck& deck, ModeSystem& system) {
  const auto& options = deck.single_sample;
  if (!options.eigenvalues.given()) refuse(options.place, "[single_sample] eigenvalues: is missing");
  const std::int64_t count =
      count_modes(comm, options.count, options.place,
                  {&options.eigenvalues, &deck.initial.value, &deck.initial.log_value, &deck.initial.shape});
  const Partition modes(count, comm);
  auto own = data::load_array(comm, options.eigenvalues, modes);
  system.sample_strengths = comm.all_gather(std::span<const double>(own));
  system.sample_target = options.target;
  const double target = options.target, weight = 1.0;
  adopt(system, std::make_unique<FactoredInteraction>(comm, modes, std::move(own), std::span(&target, 1),
                                                      std::span(&weight, 1)));
  system.log_initial = load_log_initial(comm, deck.initial, "", system.modes, std::nullopt);
}

}  // namespace

ModeSystem make_mode_system(const Comm& comm, const Deck& deck) {
  ModeSystem system;
  switch (deck.system.kind) {
    case deck::SystemKind::modes:
      make_modes(comm, deck, system);
      break;
    case deck::SystemKind::diagonal_network:
      make_diagonal_network(comm, deck, system);
      break;
    case deck::SystemKind::samples:
      make_samples(comm, deck, system);
      break;
    case deck::SystemKind::single_sample:
      make_single_sample(comm, deck, system);
      break;
    case deck::SystemKind::module:
      refuse(deck.system.place, "[system] kind = \"module\": is not a system of modes");
  }
  if (deck.initial.epsilon.given()) system.log_epsilon = deck.initial.epsilon.log_value;
  if (deck.solver.form == deck::SolutionForm::closed && !system.has_closed_form())
    refuse(deck.solver.place, "[solver] form = \"closed\": coupled modes have no closed form; use \"integrate\"");
  return system;
}

}  // namespace nqf::structure
