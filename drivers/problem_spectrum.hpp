#pragma once

#include <string>
#include <vector>

#include "nqf/deck/deck.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/theory/spectrum.hpp"

namespace nqf::drivers {

/// What `nqf spectrum` looks at, whole on every rank.
struct ProblemSpectrum {
  std::string mode_name = "mode";
  std::vector<double> growth_rate;    ///< ζ_k
  std::vector<double> self_coupling;  ///< C_kk
  std::vector<double> log_initial;    ///< ln z_k(0)
  std::vector<double> loss_scale;     ///< factor of V_k; empty: 1
  std::vector<double> ignition_time;  ///< where it is not that of a logistic mode; else empty
  bool complete = true;               ///< all growing modes are here
  std::vector<double> second_moment;  ///< eigenvalues, descending; empty where there is no such matrix
  std::string second_moment_name;     ///< whose eigenvalues
  std::string second_moment_units = "1";
  std::vector<std::string> notes;  ///< for the log

  theory::ModeArrays arrays() const { return {growth_rate, self_coupling, log_initial, loss_scale}; }
};

/// Of a deck in modes, a diagonal network or samples: rates as they are; eigenvalues of the interaction matrix C where
/// modes are coupled, at most `count` of them (0: all up to K = 2000, else 100). Collective. Memory 3 K doubles a rank.
ProblemSpectrum spectrum_of_modes(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t count);

/// Of a module: the modes of Y = E[(y − f0) A] (solver/module_modes.hpp) with the mean of e_kᵀ M(0) e_k over the draws
/// of W(0), and the eigenvalues of its inputs' second moment. Collective.
ProblemSpectrum spectrum_of_module(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t count);

}  // namespace nqf::drivers
