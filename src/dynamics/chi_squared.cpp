#include "dynamics/chi_squared.hpp"

#include <boost/math/special_functions/log1p.hpp>
#include <cmath>

namespace nqf::dynamics {

double chi_squared(const parallel::RandomStream& stream, std::uint64_t index, double degrees) {
  if (degrees == 1.0) {  // shape ½ is below the method's range
    const double x = stream.normal(index);
    return x * x;
  }
  const double d = 0.5 * degrees - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (std::uint64_t trial = 0;; ++trial) {
    const double x = stream.normal(index, 2 * trial);
    const double t = c * x * (3.0 + c * x * (3.0 + c * x));  // v − 1 of v = (1 + c x)³, without cancellation
    if (!(1.0 + c * x > 0.0)) continue;
    // Accept if ln u < x²/2 + d (1 − v + ln v).
    if (std::log(stream.uniform(index, 2 * trial + 1)) < 0.5 * x * x + d * boost::math::log1pmx(t))
      return 2.0 * d * (1.0 + t);
  }
}

}  // namespace nqf::dynamics
