#pragma once

#include <string>
#include <vector>

#include "audit_record.hpp"

namespace nqf::drivers {

/// quantity ~ width^(−a) epsilon^b, by least squares in logarithms through the medians over the seeds. Errors are those
/// of the scatter about the plane; NaN where there are no more points than unknowns. Widths below
/// audit.fit_from are left out.
struct Law {
  std::string case_name, module, activation, quantity;  ///< "remainder" or "gap"
  double width_exponent = 0.0, width_exponent_error = 0.0;
  double epsilon_exponent = 0.0, epsilon_exponent_error = 0.0;
  std::int64_t points = 0;
};

/// One a (case, module, activation) and quantity that has two points or more.
std::vector<Law> fit_laws(const deck::DeckFile& deck, const std::vector<AuditCase>& cases,
                          const std::vector<AuditRow>& rows);

/// Medians over the seeds, a line a (case, module, activation, ε, d), then failures and laws.
std::string audit_table(const deck::DeckFile& deck, const std::vector<AuditCase>& cases,
                        const std::vector<AuditRow>& rows, const std::vector<Law>& laws);

}  // namespace nqf::drivers
