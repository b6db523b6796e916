#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::network {

/// One module of THEORY §2, original or normal form, on a batch of B inputs: y_b = f(x_b; W) and the gradient of any
/// function of the outputs. Original and normal form take the same weights, so what compares them swaps the layer.
///
/// X [B × input_size]    row-major, whole on every rank, the same everywhere; shapes of inputs are row-major
/// W [p × d]             this rank's columns (units) of units(), column-major, rows in the order of THEORY §2;
///                       ranks without units take part in every call
/// Y [B × output_size]   row-major, whole on every rank
///
/// forward() and backward() are collective, with the same B on every rank. Work arrays are allocated when the layer is
/// made (tiles of units × samples that fit a second-level cache, so nothing of size d × B exists) or when a larger
/// batch than ever before comes; no other call allocates.
class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const std::vector<std::int64_t>& input_shape() const noexcept { return input_shape_; }
  const std::vector<std::int64_t>& output_shape() const noexcept { return output_shape_; }
  std::int64_t input_size() const noexcept { return input_size_; }
  std::int64_t output_size() const noexcept { return output_size_; }
  std::int64_t n_parameters() const noexcept { return n_parameters_; }  ///< p
  const parallel::Partition& units() const noexcept { return units_; }  ///< columns of W over the ranks
  std::int64_t n_local_weights() const noexcept { return n_parameters_ * units_.local_size(); }
  const parallel::Comm& comm() const noexcept { return comm_; }

  /// Y = f(X; W). Collective: one reduction.
  virtual void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                       std::span<double> y) = 0;
  /// With dY = ∂L/∂Y (the same on every rank): adds ∂L/∂W to dW [p × d_local] and, unless dX [B × input_size] is empty,
  /// sets it to ∂L/∂X, whole on every rank. Must follow the forward() of the same X and W: what that has reduced
  /// (normalisers of softmaxes, order parameters) is used again. Collective: at most one reduction, and that for dX
  /// only.
  virtual void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w,
                        std::span<const double> dy, std::span<double> dw, std::span<double> dx) = 0;
  /// "perceptron, tanh, 12 + 3 parameters", for the log.
  virtual std::string description() const = 0;

 protected:
  Layer(const parallel::Comm& comm, std::int64_t columns, std::int64_t n_parameters,
        std::vector<std::int64_t> input_shape, std::vector<std::int64_t> output_shape);
  static std::int64_t product(const std::vector<std::int64_t>& shape);
  void check(std::int64_t batch, std::span<const double> x, std::span<const double> w,
             std::span<const double> y) const {
    assert(static_cast<std::int64_t>(x.size()) >= batch * input_size_);
    assert(static_cast<std::int64_t>(w.size()) >= n_local_weights());
    assert(static_cast<std::int64_t>(y.size()) >= batch * output_size_);
    static_cast<void>(batch), static_cast<void>(x), static_cast<void>(w), static_cast<void>(y);
  }

  parallel::Comm comm_;
  parallel::Partition units_;
  std::int64_t n_parameters_;
  std::vector<std::int64_t> input_shape_, output_shape_;
  std::int64_t input_size_, output_size_;
};

}  // namespace nqf::network
