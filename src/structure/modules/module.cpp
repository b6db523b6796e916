#include "structure/modules/module.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nqf/parallel/errors.hpp"

namespace nqf::structure {

FeatureModule::FeatureModule(std::string name, std::shared_ptr<const CoreMap> core, std::int64_t n_features,
                             double factor, std::vector<ParameterGroup> parameters, Map map,
                             const ModuleSumTerms& terms)
    : name_(std::move(name)),
      core_(std::move(core)),
      n_features_(n_features),
      factor_(factor),
      map_(std::move(map)),
      terms_(terms) {
  n_parameters_ = core_->n_parameters();
  parameters_ = std::move(parameters);
}

std::unique_ptr<StructureOperator> FeatureModule::over(const data::Dataset& samples) const {
  const std::int64_t n = samples.rows.local_size();
  std::vector<double> features;
  if (map_) {
    features.resize(n * n_features_);
    map_(n, samples.x, features);
  } else {
    features = samples.x;
  }
  auto op = std::make_unique<FeatureOperator>(core_, n, 1, n_features_, std::move(features), factor_, name_);
  op->set_sum_terms(terms_);
  return op;
}

OperatorModule::OperatorModule(std::int64_t n_parameters, std::vector<ParameterGroup> parameters, Make make,
                               Check check, Load load)
    : make_(std::move(make)), check_(std::move(check)), load_(std::move(load)) {
  n_parameters_ = n_parameters;
  parameters_ = std::move(parameters);
}

std::unique_ptr<StructureOperator> OperatorModule::load(const parallel::Comm& comm, const data::Dataset& samples,
                                                        data::Role) const {
  if (check_) parallel::collectively(comm, [&] { check_(samples); });
  return load_ ? load_(comm, samples) : make_(samples);
}

void refuse(const ModuleContext& context, const std::string& reason) {
  const auto& place = context.deck.module.place;
  throw DeckError(place.file, place.line,
                  fmt::format("[module] kind = \"{}\": {}", module_name(context.deck.module.kind), reason));
}

void require_dimensions(const ModuleContext& context, std::size_t n, const std::string& form,
                        const std::string& instead) {
  const auto& input = context.shape.input;
  if (input.size() == n) return;
  if (input.empty())
    refuse(context, fmt::format("needs inputs x of shape {}, and the file holds structure matrices A, which "
                                "kind = \"matrices\" takes",
                                form));
  const std::string flat =
      n == 1 && input.size() > 1 ? fmt::format("; data.shape = [{}] would flatten it", context.shape.input_size()) : "";
  refuse(context,
         fmt::format("needs x of shape {}, data give [{}]; {}{}", form, fmt::join(input, ", "), instead, flat));
}

void require_one_output(const ModuleContext& context) {
  if (context.shape.n_outputs != 1)
    refuse(context, fmt::format("has one output, data give {}", context.shape.n_outputs));
}

void require_formable(const ModuleContext& context, std::int64_t n_parameters) {
  if (n_parameters >= largest_formable_parameters)
    refuse(context, fmt::format("forms the order parameter of {0} × {0} entries, {1} of them, beyond PETSc's 32-bit "
                                "indices (at most {2} parameters)",
                                n_parameters, static_cast<double>(n_parameters) * static_cast<double>(n_parameters),
                                largest_formable_parameters - 1));
}

}  // namespace nqf::structure
