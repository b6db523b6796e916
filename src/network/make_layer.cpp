#include "nqf/network/make_layer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "attention.hpp"
#include "block_layer.hpp"
#include "forms.hpp"
#include "fourier_units.hpp"
#include "gated_experts.hpp"
#include "nqf/data/array.hpp"
#include "nqf/network/activation.hpp"
#include "nqf/network/compress.hpp"
#include "nqf/network/custom_layer.hpp"
#include "nqf/parallel/errors.hpp"
#include "patch_perceptron.hpp"

namespace nqf::network {
namespace {

using deck::ModuleKind;
using Options = deck::ModuleOptions;

/// What a line of the registry builds from.
struct Request {
  const parallel::Comm& comm;
  const Options& options;
  const LayerShape& shape;
  Variant variant;
  Activation activation;

  std::int64_t input_size() const {
    return std::accumulate(shape.input.begin(), shape.input.end(), std::int64_t{1}, std::multiplies<>());
  }
  bool original() const { return variant == Variant::original; }
  double width() const { return static_cast<double>(shape.width); }
  double kappa() const { return options.scale * activation.slope_at_zero(); }
  double phi0() const { return options.scale * activation.value_at_zero(); }
  [[noreturn]] void refuse(const std::string& key, const std::string& reason) const {
    throw DeckError(options.place.file, options.place.line, fmt::format("[module] {}: {}", key, reason));
  }
  void require_outputs(std::int64_t n) const {
    if (shape.n_outputs != n)
      refuse("kind", fmt::format("this module has {} output, the targets have {}", n, shape.n_outputs));
  }
  void require_tokens() const {
    if (shape.input.size() != 2)
      refuse("kind",
             fmt::format("this module takes inputs [tokens, n], the data have [{}]", fmt::join(shape.input, ", ")));
  }
  /// Rows are the flattened input, the layer's input shape stays as it is.
  Patches whole_input() const { return {1, input_size(), {}}; }
  Patches tokens() const {
    require_tokens();
    return {shape.input[0], shape.input[1], {}};
  }

  std::unique_ptr<Layer> with_form(std::unique_ptr<BlockForm> form, std::vector<std::int64_t> output = {}) const {
    const bool sum = form->needs_sum();
    if (output.empty()) output = {shape.n_outputs};
    if (variant != Variant::compressed)
      return std::make_unique<BlockLayer>(comm, shape.width, shape.input, output, std::move(form));
    const std::int64_t columns = compressed_columns(form->n_parameters(), shape.width, sum);
    auto ones = sum ? compressed_ones(comm, shape.width, columns) : std::vector<double>{};
    return std::make_unique<BlockLayer>(comm, columns, shape.input, output, std::move(form), std::move(ones));
  }
};

std::unique_ptr<Layer> on_patches(const Request& r, Patches patches, Readout readout) {
  if (r.original())
    return std::make_unique<PatchPerceptron>(r.comm, r.shape.width, r.shape.input, std::move(patches),
                                             r.shape.n_outputs, readout, r.activation, r.options.scale);
  const std::int64_t n = patches.size;
  const std::int64_t v = (readout == Readout::mean ? 1 : patches.positions) * r.shape.n_outputs;
  const BlockPair pair{.left = {.begin = 0, .count = n}, .right = {.begin = n, .count = v}};
  return r.with_form(std::make_unique<PatchForm>(std::move(patches), r.input_size(), r.shape.n_outputs, readout, pair,
                                                 n + v, r.kappa(), r.phi0()));
}

std::unique_ptr<Layer> perceptron(const Request& r) {
  return on_patches(r, r.whole_input(), Readout::mean);
}

Patches convolved(const Request& r) {
  const auto &kernel = r.options.kernel, &stride = r.options.stride, &input = r.shape.input;
  if (kernel.empty()) {
    if (!stride.empty()) r.refuse("stride", "needs a kernel; without one x holds the patches [positions, n]");
    return r.tokens();
  }
  if (kernel.size() > 2)
    r.refuse("kernel", fmt::format("[{}] has {} directions; 1 (tokens) or 2 (rows, columns) are possible",
                                   fmt::join(kernel, ", "), kernel.size()));
  if (input.size() < kernel.size() || input.size() > kernel.size() + 1)
    r.refuse("kernel", fmt::format("[{}] does not fit inputs [{}]", fmt::join(kernel, ", "), fmt::join(input, ", ")));
  if (!stride.empty() && stride.size() != kernel.size())
    r.refuse("stride", fmt::format("[{}] must have as many directions as the kernel, {}", fmt::join(stride, ", "),
                                   kernel.size()));
  for (std::size_t i = 0; i < kernel.size(); ++i)
    if (kernel[i] > input[i])
      r.refuse("kernel", fmt::format("[{}] is larger than the inputs [{}]; at most {} fits in direction {}",
                                     fmt::join(kernel, ", "), fmt::join(input, ", "), input[i], i));
  return convolution_patches(input, kernel, stride);
}

std::unique_ptr<Layer> convolution(const Request& r) {
  return on_patches(r, convolved(r), Readout::mean);
}
std::unique_ptr<Layer> convolution_positions(const Request& r) {
  return on_patches(r, convolved(r), Readout::per_position);
}

std::unique_ptr<Layer> attention(const Request& r) {
  auto tokens = r.tokens();
  const std::int64_t n = tokens.size, k = r.options.head_size, m = r.shape.n_outputs, t_count = tokens.positions;
  if (r.original())
    return std::make_unique<Attention>(r.comm, r.shape.width, t_count, n, m, k, r.shape.queries, r.options.scale);
  const BlockPair pair{.left = {.begin = 2 * k * n, .count = n, .stride = 1, .inner_stride = n},
                       .right = {.begin = 3 * k * n, .count = m, .stride = k, .inner_stride = 1},
                       .inner = k};
  const bool all = r.shape.queries == Queries::all;
  return r.with_form(std::make_unique<PatchForm>(std::move(tokens), r.input_size(), m, Readout::mean, pair,
                                                 k * (3 * n + m), r.options.scale, 0.0, all ? t_count : 1),
                     all ? std::vector{t_count, m} : std::vector{m});
}

std::unique_ptr<Layer> query_key(const Request& r) {
  const auto tokens = r.tokens();
  r.require_outputs(1);
  auto rho = std::vector<double>(static_cast<std::size_t>(tokens.size));
  rho[0] = 1.0;
  if (r.options.readout.given()) rho = data::load_replicated(r.comm, r.options.readout, tokens.size);
  const double score_scale = r.options.score_scale > 0.0 ? r.options.score_scale : 1.0 / std::sqrt(r.width());
  return r.with_form(std::make_unique<QueryKeyForm>(tokens.positions, tokens.size, std::move(rho), score_scale,
                                                    r.options.scale, r.original()));
}

std::unique_ptr<Layer> linear_experts(const Request& r, Gate gate) {
  const std::int64_t n = r.input_size();
  const double scale = r.options.scale, d = r.width();
  r.require_outputs(1);
  if (r.original())
    return std::make_unique<GatedExperts>(r.comm, r.shape.width, r.shape.input, 1, gate, std::nullopt, scale);
  return r.with_form(gate == Gate::softmax ? std::make_unique<LinearExpertsForm>(n, scale / d, scale / d, scale / d / d)
                                           : std::make_unique<LinearExpertsForm>(n, scale / 4.0, scale / 2.0, 0.0));
}
std::unique_ptr<Layer> experts_softmax_linear(const Request& r) {
  return linear_experts(r, Gate::softmax);
}
std::unique_ptr<Layer> experts_sigmoid_linear(const Request& r) {
  return linear_experts(r, Gate::sigmoid);
}

std::unique_ptr<Layer> experts_softmax(const Request& r) {
  const std::int64_t n = r.input_size(), m = r.shape.n_outputs;
  if (r.original())
    return std::make_unique<GatedExperts>(r.comm, r.shape.width, r.shape.input, m, Gate::softmax, r.activation,
                                          r.options.scale);
  if (r.activation.value_at_zero() != 0.0)
    return r.with_form(std::make_unique<PerceptronExpertsForm>(n, m, r.shape.width, r.activation.slope_at_zero(),
                                                               r.activation.value_at_zero(), r.options.scale));
  const BlockPair pair{.left = {.begin = n, .count = n}, .right = {.begin = 2 * n, .count = m}};
  return r.with_form(
      std::make_unique<PatchForm>(r.whole_input(), n, m, Readout::mean, pair, 2 * n + m, r.kappa() / r.width(), 0.0));
}

std::unique_ptr<Layer> fourier(const Request& r) {
  r.require_outputs(1);
  auto source = r.options.amplitude;
  if (!source.given()) source.value = 1.0;
  // A list sets the number of features; else as many as the input has, which a single position does not say.
  const std::int64_t n = data::array_length(r.comm, source).value_or(r.input_size());
  if (r.input_size() != 1 && r.input_size() != n)
    r.refuse("amplitude",
             fmt::format("{} amplitudes, but the inputs [{}] are neither one position nor as many features", n,
                         fmt::join(r.shape.input, ", ")));
  auto amplitude = data::load_replicated(r.comm, source, n);
  if (r.original())
    return std::make_unique<FourierUnits>(r.comm, r.shape.width, r.shape.input, std::move(amplitude), r.activation,
                                          r.options.scale);
  return r.with_form(
      std::make_unique<FourierForm>(FourierBasis(n, r.input_size()), std::move(amplitude), r.kappa(), r.phi0()));
}

std::unique_ptr<Layer> custom(const Request& r) {
  return make_custom_layer(r.comm, structure::custom_module(r.options), r.shape, r.variant, r.options.sum_terms);
}

struct Entry {
  ModuleKind kind;
  bool activated;      ///< [module] activation matters
  bool always_summed;  ///< normal form with g or B whatever the activation
  std::unique_ptr<Layer> (*make)(const Request&);
};

constexpr Entry registry[] = {
    {ModuleKind::perceptron, true, false, perceptron},
    {ModuleKind::convolution, true, false, convolution},
    {ModuleKind::convolution_positions, true, false, convolution_positions},
    {ModuleKind::attention, false, false, attention},
    {ModuleKind::query_key, false, false, query_key},
    {ModuleKind::experts_softmax_linear, false, true, experts_softmax_linear},
    {ModuleKind::experts_sigmoid_linear, false, true, experts_sigmoid_linear},
    {ModuleKind::experts_softmax, true, false, experts_softmax},
    {ModuleKind::fourier, true, false, fourier},
    {ModuleKind::custom, false, false, custom},
};

const Entry* find(ModuleKind kind) {
  const auto* entry =
      std::find_if(std::begin(registry), std::end(registry), [&](const auto& e) { return e.kind == kind; });
  return entry == std::end(registry) ? nullptr : entry;
}

Activation activation_of(const Options& o) {
  return Activation(o.activation, o.gain, o.stretch);
}

}  // namespace

std::unique_ptr<Layer> make_layer(const parallel::Comm& comm, const Options& options, const LayerShape& shape,
                                  Variant variant) {
  const Request request{comm, options, shape, variant, activation_of(options)};
  const Entry* entry = find(options.kind);
  if (entry == nullptr)
    request.refuse("kind", "this module is its own normal form, exactly; there is no other original");
  if (shape.width < 1) request.refuse("kind", fmt::format("needs at least one unit, the width is {}", shape.width));
  if (shape.n_outputs < 1 || shape.input.empty() || request.input_size() < 1)
    request.refuse("kind", fmt::format("inputs [{}] and {} outputs leave nothing to compute",
                                       fmt::join(shape.input, ", "), shape.n_outputs));
  if (variant != Variant::original && entry->activated)
    if (const auto reason = request.activation.refusal(); !reason.empty()) request.refuse("activation", reason);
  return entry->make(request);
}

bool has_sum_terms(const Options& options) {
  if (options.kind == ModuleKind::custom) return options.sum_terms;
  const Entry* entry = find(options.kind);
  return entry != nullptr &&
         (entry->always_summed || (entry->activated && activation_of(options).value_at_zero() != 0.0));
}

}  // namespace nqf::network
