#pragma once

#include "nqf/dynamics/training_system.hpp"
#include "support/dense_objective.hpp"

// The problem of tests/reference/general_structure.h5: p = 5 parameters, width 9, A, B and g of no special form.
namespace nqf::test {

inline DenseObjective general_objective() {
  return {5, "general_structure.h5"};
}

inline std::string general_file() {
  return NQF_TEST_DATA "/general_structure.h5";
}

/// W(0) of the file, compressed to 6 columns.
inline dynamics::CompressedWeights general_weights() {
  deck::Deck deck;
  deck.weights.initial = deck::InitialWeights::file;
  deck.weights.file = general_file();
  return dynamics::make_initial_weights(world(), deck, 5, true);
}

/// W(0) of the file as it stands, 9 columns.
inline dynamics::CompressedWeights general_full_weights() {
  const auto rows = reference_data("general_structure.h5", "W0");
  dynamics::CompressedWeights result{.p = 5, .r = 9, .width = 9};
  result.w.resize(rows.size());
  for (int a = 0; a < 5; ++a)
    for (int i = 0; i < 9; ++i) result.w[a + 5 * i] = rows[9 * a + i];
  result.ones.assign(9, 1.0);
  return result;
}

/// M and s of a state, whole.
struct OrderParameter {
  std::vector<double> m, s;
};
inline OrderParameter order_parameter(dynamics::TrainingSystem& system, std::span<const double> state,
                                      bool has_sums = true) {
  const auto p = system.n_parameters();
  OrderParameter result{std::vector<double>(p * p), std::vector<double>(has_sums ? p : 0)};
  system.order_parameter(state, result.m, result.s);
  return result;
}

}  // namespace nqf::test
