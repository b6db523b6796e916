#include <fmt/format.h>

#include <algorithm>

#include "nqf/parallel/errors.hpp"
#include "nqf/structure/custom_module.hpp"
#include "nqf/structure/diagnosis.hpp"
#include "nqf/structure/matrices_operator.hpp"
#include "structure/modules/module.hpp"

namespace nqf::structure {

namespace {

constexpr double rounding_share = 1e-10;  // g and B beside A

/// Inputs of the first few samples, on every rank. Collective.
std::vector<double> first_inputs(const parallel::Comm& comm, const data::SampleSource& source) {
  constexpr std::int64_t most = 4;
  const parallel::Partition all(source.size(), comm);
  const std::int64_t begin = std::min(all.begin(), most), count = std::min(all.end(), most) - begin;
  std::vector<double> x(static_cast<std::size_t>(count * source.shape().input_size())),
      y(static_cast<std::size_t>(count * source.shape().n_outputs)), weight(static_cast<std::size_t>(count));
  parallel::collectively(comm, [&] {
    if (count > 0) source.read(begin, count, x, y, weight);
  });
  return comm.all_gather(std::span<const double>(x));
}

/// A, B, g and f0 of every sample from the user's function by automatic differentiation, then stored as matrices are:
/// m p(p + 1)/2 doubles a sample, twice that with sum terms; three times as much while they are made.
class CustomForm final : public Module {
 public:
  explicit CustomForm(const ModuleContext& context)
      : options_(context.deck.module),
        module_(custom_module(options_)),
        shape_{context.shape.input_size(), context.shape.n_outputs, context.width} {
    n_parameters_ = module_.n_parameters(shape_.n_inputs, shape_.n_outputs);
    parameters_ = {{"w", 0, n_parameters_}};
  }

  std::vector<std::string> examine(const parallel::Comm& comm, const data::SampleSource& inputs) const override {
    const auto diagnosis = diagnose(module_, shape_, first_inputs(comm, inputs));
    require_normal_form(diagnosis, options_);
    return {fmt::format("custom module {}: {}", options_.name, describe(diagnosis))};
  }

  std::unique_ptr<StructureOperator> over(const data::Dataset& samples) const override {
    return make(expand(samples, false), samples);
  }

  std::unique_ptr<StructureOperator> load(const parallel::Comm& comm, const data::Dataset& samples,
                                          data::Role) const override {
    Expansion e;
    parallel::collectively(comm, [&] { e = expand(samples, true); });
    return make(e, samples);
  }

 private:
  /// Of this rank's samples, one after another; g and B only where they are carried.
  Expansion expand(const data::Dataset& samples, bool checked) const {
    const std::int64_t n = samples.rows.local_size(), m = shape_.n_outputs, p = n_parameters_;
    Expansion all;
    all.a.reserve(static_cast<std::size_t>(n * m * p * p));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto e = module_.expand(shape_, samples.input(i));
      if (checked) check(e, samples.rows.begin() + i);
      all.a.insert(all.a.end(), e.a.begin(), e.a.end());
      all.f0.insert(all.f0.end(), e.f0.begin(), e.f0.end());
      if (!options_.sum_terms) continue;
      all.b.insert(all.b.end(), e.b.begin(), e.b.end());
      all.g.insert(all.g.end(), e.g.begin(), e.g.end());
    }
    return all;
  }

  std::unique_ptr<StructureOperator> make(const Expansion& e, const data::Dataset& samples) const {
    return make_matrices_operator({.n_parameters = n_parameters_,
                                   .n_outputs = shape_.n_outputs,
                                   .n_samples = samples.rows.local_size(),
                                   .a = e.a,
                                   .b = e.b,
                                   .g = e.g,
                                   .f0 = e.f0,
                                   .has_b = options_.sum_terms,
                                   .has_g = options_.sum_terms});
  }

  /// The diagnosis has seen a few inputs; what it found must hold for all.
  void check(const Expansion& e, std::int64_t sample) const {
    const auto fail = [&](const std::string& reason) {
      throw DeckError(options_.name_place.file, options_.name_place.line,
                      fmt::format("[module] name = \"{}\": on sample {} {}", options_.name, sample, reason));
    };
    if (!e.is_finite()) fail("its derivatives at zero weights are not finite (normalisation)");
    if (const double share = e.sum_share(); !options_.sum_terms && share > rounding_share)
      fail(
          fmt::format("it has terms in the sum of the units, {:.2g} of its quadratic ones, which sum_terms = true "
                      "carries (bias, or nonlinearity after the sum)",
                      share));
  }

  deck::ModuleOptions options_;
  const CustomModule& module_;
  CustomShape shape_;
};

}  // namespace

/// f_c of a user's function (custom_module.hpp).
std::unique_ptr<Module> make_custom(const ModuleContext& context) {
  if (context.shape.input.empty())
    refuse(context, "needs inputs x; the file holds structure matrices A, which kind = \"matrices\" takes");
  auto form = std::make_unique<CustomForm>(context);
  if (form->n_parameters() < 1) refuse(context, "has no parameters at these inputs");
  require_formable(context, form->n_parameters());
  return form;
}

}  // namespace nqf::structure
