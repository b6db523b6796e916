#pragma once

#include <optional>
#include <vector>

#include "nqf/network/activation.hpp"
#include "nqf/network/layer.hpp"
#include "products.hpp"
#include "softmax_merge.hpp"
#include "tiles.hpp"

namespace nqf::network {

enum class Gate { softmax, sigmoid };

/// Mixture of experts, a unit an expert with its gate (THEORY §2), a_i = γ_i·x:
///   linear       f = scale Σ_i P_i (e_i·x),              w = (γ, e),    P_i = softmax_i(a) over all d units, or σ(a_i)
///   perceptron   f_c = scale Σ_i P_i v_ic φ(u_i·x),      w = (γ, u, v)
/// The softmax's numerators and normaliser travel in the one reduction (SoftmaxMerge); backward uses them again.
/// Cost of forward: 4 B d_local n multiply–adds; backward: three times that.
class GatedExperts final : public Layer {
 public:
  /// Linear experts (one output) without an activation. Collective over `comm`.
  GatedExperts(const parallel::Comm& comm, std::int64_t width, std::vector<std::int64_t> input_shape,
               std::int64_t n_outputs, Gate gate, std::optional<Activation> activation, double scale);
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override;
  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override;
  std::string description() const override;

 private:
  void project(std::int64_t units, std::int64_t samples, const double* rows, const double* x, std::vector<double>& out);
  /// logits_ become the weights of a softmax relative to the row's μ, which rises as needed.
  void weigh(std::int64_t units, std::int64_t samples, double* rows);

  std::int64_t n_, n_outputs_;
  Gate gate_;
  std::optional<Activation> activation_;
  double scale_;
  Tile tile_;
  SoftmaxMerge merge_;
  std::vector<double> rows_;  ///< [B × (2 + m)]: μ, Z and, after forward, f before scale
  std::vector<double> logits_, hidden_, slope_, gradient_;
};

}  // namespace nqf::network
