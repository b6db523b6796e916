#pragma once

#include <string>

#include "nqf/record/result_file.hpp"
#include "problem_spectrum.hpp"

namespace nqf::drivers {

/// The three fits of one problem.
struct SpectrumReport {
  theory::SpectrumAnalysis analysis;
  theory::SpectrumFit moment_fit;  ///< of the eigenvalues of the second moment; refused where there are none
};

/// spectrum/… , moment/… , fit/… and prediction/… below `scope`. Collective.
void write_spectrum(record::Scope& scope, const ProblemSpectrum& spectrum, const SpectrumReport& report);

/// The first `rows` modes and all fits, for the terminal.
std::string describe_spectrum(const ProblemSpectrum& spectrum, const SpectrumReport& report, std::int64_t rows);

}  // namespace nqf::drivers
