#pragma once

#include <vector>

#include "fourier_basis.hpp"
#include "nqf/network/activation.hpp"
#include "nqf/network/layer.hpp"

namespace nqf::network {

/// Fourier-feature module (THEORY §2), w = (u, v ∈ R^K):
///   f = scale Σ_k s_k ψ_k(x) c_k,   c_k = Σ_i v_ik φ(u_ik)
/// Units act on single features, so the c_k are reduced, K numbers whatever the batch. Cost: K (d_local + B).
class FourierUnits final : public Layer {
 public:
  /// `amplitude` [K]: s_k; `input_shape` one position, or K features. Collective over `comm`.
  FourierUnits(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
               std::vector<double> amplitude, Activation activation, double scale);
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override;
  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override;
  std::string description() const override;

 private:
  FourierBasis basis_;
  std::vector<double> amplitude_;  ///< scale s_k
  Activation activation_;
  std::vector<double> coefficient_, gradient_, value_, slope_;
};

}  // namespace nqf::network
