#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "nqf/parallel/comm.hpp"

namespace nqf::test {

/// ẇ = rhs(w) from t = 0 on by the pair of Dormand and Prince (order 5, step by the error of order 4), weights over the
/// ranks. `w` at the times comes out in turn.
inline void integrate(const parallel::Comm& comm, std::vector<double> w, const std::vector<double>& times,
                      double tolerance,
                      const std::function<void(const std::vector<double>&, std::vector<double>&)>& rhs,
                      const std::function<void(std::size_t, const std::vector<double>&)>& at) {
  constexpr int stages = 7;
  static constexpr double a[stages][stages] = {{},
                                               {1. / 5},
                                               {3. / 40, 9. / 40},
                                               {44. / 45, -56. / 15, 32. / 9},
                                               {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                                               {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                                               {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
  static constexpr double error[stages] = {71. / 57600,      0,         -71. / 16695, 71. / 1920,
                                           -17253. / 339200, 22. / 525, -1. / 40};
  std::vector<std::vector<double>> k(stages, std::vector<double>(w.size()));
  std::vector<double> trial(w.size());
  double t = 0.0, h = 1e-2;
  rhs(w, k[0]);
  for (std::size_t n = 0; n < times.size(); ++n) {
    while (t < times[n]) {
      const double step = std::min(h, times[n] - t);
      for (int s = 1; s < stages; ++s) {
        trial = w;
        for (int r = 0; r < s; ++r)
          for (std::size_t i = 0; i < w.size(); ++i) trial[i] += step * a[s][r] * k[r][i];
        rhs(trial, k[s]);
      }
      double norms[2] = {0.0, 0.0};
      for (std::size_t i = 0; i < w.size(); ++i) {
        double e = 0.0;
        for (int s = 0; s < stages; ++s) e += step * error[s] * k[s][i];
        norms[0] = std::max(norms[0], std::abs(e));
        norms[1] = std::max(norms[1], std::abs(w[i]));
      }
      comm.max_in_place(norms);
      const double size = norms[0] / (tolerance * norms[1]);
      if (size <= 1.0) {
        t = step < h ? times[n] : t + step;
        w = trial;
        k[0] = k[stages - 1];
      }
      h = step * std::min(5.0, std::max(0.2, 0.9 * std::pow(std::max(size, 1e-10), -0.2)));
    }
    at(n, w);
  }
}

}  // namespace nqf::test
