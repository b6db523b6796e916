#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nqf/data/dataset.hpp"
#include "nqf/data/sample_source.hpp"
#include "nqf/deck/deck.hpp"
#include "nqf/structure/objective.hpp"
#include "nqf/structure/structure_operator.hpp"

namespace nqf::structure {

/// Rows of W in the order of THEORY §2: "u" 0…n−1, "v" n…n+m−1, for messages and figures.
struct ParameterGroup {
  std::string name;
  std::int64_t begin = 0, count = 0;
};

/// A deck's module and data as a trainable quadratic form.
struct ModuleProblem {
  std::int64_t n_parameters = 0;  ///< p
  std::int64_t width = 0;         ///< d
  std::vector<ParameterGroup> parameters;
  std::unique_ptr<data::SampleSource> source;  ///< of the training samples
  data::Dataset train;                         ///< empty where only moments were taken
  std::optional<data::Dataset> test;
  std::unique_ptr<StructureOperator> op;  ///< over `train`; empty where only moments were taken
  std::unique_ptr<StructureOperator> test_op;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Objective> test_objective;  ///< empty without test samples
  std::vector<std::string> notes;             ///< for the log: which operator, why moments or not
};

/// From here on a matrix p × p has more entries than PETSc's 32-bit indices can number.
constexpr std::int64_t largest_formable_parameters = 46341;

/// Reads the data, builds the normal form of [module] on them (the registry of modules is src/structure/modules/), sets
/// the targets of a module teacher (`source` gives them too), and chooses moments or stored samples by operation count
/// and memory: samples are stored, with their operator, where they take less than a GiB a rank or moments will not do
/// (mini-batches, other losses, modules whose loss has no moments), unless data.stream asks for passes; moments serve
/// wherever they do and take fewer operations a step, in as many passes as data::distributed_moments needs. Orthonormal
/// Fourier features (commuting.hpp) too many for either leave op and objective empty: fourier_modes() solves them.
/// Collective.
/// @throws DeckError, DataError: an activation with φ(0) = φ'(0) = 0 or not C³, shapes that do not fit, p × p beyond
///   PETSc's indices, targets that are no labels or probabilities where the loss needs them
ModuleProblem make_module_problem(const parallel::Comm& comm, const deck::Deck& deck);

/// A normal form over other samples, with the same deck (mini-batches of online training, tests). Not collective: what
/// the module reads from files each rank reads by itself.
std::unique_ptr<StructureOperator> make_structure_operator(const deck::Deck& deck, std::int64_t width,
                                                           const data::Dataset& samples);

}  // namespace nqf::structure
