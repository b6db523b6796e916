#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/structure/activation.hpp"
#include "nqf/structure/feature_operator.hpp"
#include "nqf/structure/module_problem.hpp"

namespace nqf::structure {

/// What a module is made from: the deck, the width d (which experts contain) and what a sample looks like.
struct ModuleContext {
  const parallel::Comm& comm;
  const deck::Deck& deck;
  std::int64_t width = 0;
  data::SampleShape shape;
};

/// An architecture of THEORY §2, able to make its normal form over any samples of its shape.
class Module {
 public:
  virtual ~Module() = default;
  std::int64_t n_parameters() const noexcept { return n_parameters_; }
  const std::vector<ParameterGroup>& parameters() const noexcept { return parameters_; }
  /// The normal form over this rank's samples. Not collective.
  virtual std::unique_ptr<StructureOperator> over(const data::Dataset& samples) const = 0;
  /// The same with what the module reads from files, and checks of the inputs. Collective. @throws DataError, DeckError
  virtual std::unique_ptr<StructureOperator> load(const parallel::Comm& /*comm*/, const data::Dataset& samples,
                                                  data::Role /*role*/) const {
    return over(samples);
  }
  /// Measures what Theorem 1 assumes of the module on a few of the inputs: lines for the log; none where it is known to
  /// hold. Collective. @throws DeckError if a hypothesis fails
  virtual std::vector<std::string> examine(const parallel::Comm& /*comm*/, const data::SampleSource& /*inputs*/) const {
    return {};
  }

 protected:
  std::int64_t n_parameters_ = 0;
  std::vector<ParameterGroup> parameters_;
};

/// Modules whose measurements are features times columns of a core (FeatureOperator).
class FeatureModule : public Module {
 public:
  /// z [count × n_features] from x [count × input]; none: z is x.
  using Map = std::function<void(std::int64_t count, std::span<const double> x, std::span<double> z)>;

  FeatureModule(std::string name, std::shared_ptr<const CoreMap> core, std::int64_t n_features, double factor,
                std::vector<ParameterGroup> parameters, Map map = {}, const ModuleSumTerms& terms = {});
  std::unique_ptr<StructureOperator> over(const data::Dataset& samples) const override;

  const std::shared_ptr<const CoreMap>& core() const noexcept { return core_; }
  std::int64_t n_features() const noexcept { return n_features_; }
  double factor() const noexcept { return factor_; }
  const ModuleSumTerms& terms() const noexcept { return terms_; }
  const Map& map() const noexcept { return map_; }

 private:
  std::string name_;
  std::shared_ptr<const CoreMap> core_;
  std::int64_t n_features_;
  double factor_;
  Map map_;
  ModuleSumTerms terms_;
};

/// A module given by its operator alone.
class OperatorModule final : public Module {
 public:
  using Make = std::function<std::unique_ptr<StructureOperator>(const data::Dataset&)>;
  /// What load() makes instead, where it depends on the samples of all ranks. Collective.
  using Load = std::function<std::unique_ptr<StructureOperator>(const parallel::Comm&, const data::Dataset&)>;
  using Check = std::function<void(const data::Dataset&)>;  ///< of the own samples; may throw on one rank
  OperatorModule(std::int64_t n_parameters, std::vector<ParameterGroup> parameters, Make make, Check check = {},
                 Load load = {});
  std::unique_ptr<StructureOperator> over(const data::Dataset& samples) const override { return make_(samples); }
  std::unique_ptr<StructureOperator> load(const parallel::Comm& comm, const data::Dataset& samples,
                                          data::Role role) const override;

 private:
  Make make_;
  Check check_;
  Load load_;
};

/// The error of a module, at its line of the deck.
[[noreturn]] void refuse(const ModuleContext& context, const std::string& reason);
/// @throws DeckError unless x has so many dimensions; `instead` says what takes such data
void require_dimensions(const ModuleContext& context, std::size_t n, const std::string& form,
                        const std::string& instead);
void require_one_output(const ModuleContext& context);
/// @throws DeckError for p × p entries beyond PETSc's 32-bit indices, where the whole of M is formed
void require_formable(const ModuleContext& context, std::int64_t n_parameters);
std::string module_name(deck::ModuleKind kind);

std::unique_ptr<Module> make_module(const ModuleContext& context);

}  // namespace nqf::structure
