#pragma once

#include <memory>
#include <vector>

#include "block_form.hpp"
#include "nqf/network/layer.hpp"
#include "products.hpp"

namespace nqf::network {

/// A layer whose outputs depend on W through blocks of M = W Wᵀ and s alone: the normal forms ("QuadraticLayer").
///   forward   R = Σ_ranks U_local V_localᵀ and s in one reduction, whose length does not depend on the batch; then
///   Y(R, s) backward  G = ∂L/∂R and q = ∂L/∂s, the same on every rank; dU += G V, dV += Gᵀ U, dW += q oᵀ without a
///   reduction
/// The columns of W are the d units, or the r of a compressed network (compress.hpp), which stand for d by the vector
/// o. Cost of forward: |R| (d_local + B) multiply–adds, the part of the batch on every rank; backward twice that.
class BlockLayer final : public Layer {
 public:
  /// `ones` [local columns]: o; empty: all ones. Collective over `comm`.
  BlockLayer(const parallel::Comm& comm, std::int64_t columns, std::vector<std::int64_t> input_shape,
             std::vector<std::int64_t> output_shape, std::unique_ptr<BlockForm> form, std::vector<double> ones = {});
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override;
  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override;
  std::string description() const override;

 private:
  double one(std::int64_t column) const { return ones_.empty() ? 1.0 : ones_[static_cast<std::size_t>(column)]; }
  void reduce(std::span<const double> w);

  std::unique_ptr<BlockForm> form_;
  std::vector<double> ones_;
  std::int64_t tile_ = 1;
  std::vector<double> order_;     ///< blocks, then s
  std::vector<double> gradient_;  ///< the same of the loss
  std::vector<double> left_, right_, product_;
};

}  // namespace nqf::network
