#pragma once

#include <vector>

#include "nqf/network/activation.hpp"
#include "nqf/network/layer.hpp"
#include "patches.hpp"
#include "products.hpp"
#include "tiles.hpp"

namespace nqf::network {

/// How a unit's outputs at the T positions of a patch become its contribution.
enum class Readout { mean, per_position };

/// Perceptrons on patches x_t ∈ R^n of the input (THEORY §2, rows 1 to 3), w = (u, v):
///   mean           f_c = scale Σ_i v_ic (1/T) Σ_t φ(u_i·x_t),   v ∈ R^m; T = 1: the perceptron
///   per_position   f_c = scale Σ_i Σ_t v_itc φ(u_i·x_t),        v ∈ R^{T·m}, index t·m + c
/// scale = 1/d gives the mean over units without a gate.
/// Cost of forward: 2 B d_local T n multiply–adds (+ the readout); backward: three times that.
class PatchPerceptron final : public Layer {
 public:
  /// Collective over `comm`.
  PatchPerceptron(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
                  Patches patches, std::int64_t n_outputs, Readout readout, Activation activation, double scale);
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override;
  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override;
  std::string description() const override;

 private:
  /// hidden_ [units × positions·samples] = u_i·x_t.
  void preactivate(std::int64_t units, std::int64_t samples, const double* w, const double* patches);
  /// mean_ [units × samples] of hidden_ over the positions.
  void pool(std::int64_t units, std::int64_t samples);

  Patches patches_;
  std::int64_t n_outputs_;
  Readout readout_;
  Activation activation_;
  double scale_;
  Tile tile_;
  std::vector<double> patch_copy_, patch_gradient_, hidden_, slope_, gradient_, mean_;
};

}  // namespace nqf::network
