#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "nqf/parallel/comm.hpp"

namespace nqf::structure {

class CoreMap;

/// Compressed weights, whole on every rank (THEORY §3): W [p × r] column-major, and o [r] with s = W o, the vector that
/// stands for the d ones; empty where no sum is needed.
struct WeightsView {
  std::int64_t p = 0, r = 0;
  std::span<const double> w;
  std::span<const double> ones;
};

/// M [p × p] (full, symmetric) and s [p] (empty where no sum is needed), whole on every rank.
struct OrderParameterView {
  std::int64_t p = 0;
  std::span<const double> m;
  std::span<const double> s;
};

/// L with C = ∂L/∂core and q; the spans are whole on every rank and valid until the objective's next call.
struct CoreGradient {
  double loss = 0.0;
  std::span<const double> core;
  std::span<const double> q;
};

/// The loss L = Σ_n π_n Σ_c ℓ(f_nc, y_nc) of a normal form as a function of its weights or of (M, s), with
/// S = E[ℓ' A], q = E[ℓ' (g + 2Bs)] (THEORY §3). All functions but the accessors are collective, with the same
/// arguments on every rank; one reduction each. Results are whole, and the same bits, on every rank.
class Objective {
 public:
  virtual ~Objective() = default;

  std::int64_t n_parameters() const noexcept { return n_parameters_; }
  std::int64_t n_outputs() const noexcept { return n_outputs_; }
  bool has_sum_terms() const noexcept { return has_sum_terms_; }
  bool is_squared() const noexcept { return is_squared_; }  ///< squared error
  const parallel::Comm& comm() const noexcept { return comm_; }

  virtual double loss(const WeightsView& weights) = 0;
  virtual double loss(const OrderParameterView& order) = 0;
  /// L and ∂L/∂W = 2 S W + q oᵀ [p × r] of all samples with their weights.
  virtual double gradient(const WeightsView& weights, std::span<double> gradient) = 0;
  /// L, S [p × p] (full) and q [p] (empty where no sum is needed).
  virtual double structure(const OrderParameterView& order, std::span<double> s_matrix, std::span<double> q) = 0;

  /// The numbers of M that the loss reads (core_map.hpp), nullptr where an objective does not say. With them L and S
  /// are at hand to a caller whose M lies over the ranks: it sums up core(M), and S acts through ∂L/∂core.
  virtual const CoreMap* core_map() const { return nullptr; }
  /// As structure() and loss(), from core(M) and s, whole on every rank; neither may lie in a CoreGradient.
  /// @throws std::logic_error where core_map() is nullptr
  virtual CoreGradient core_gradient(std::span<const double> /*core*/, std::span<const double> /*s*/) {
    throw std::logic_error("this objective has no core");
  }
  virtual double core_loss(std::span<const double> /*core*/, std::span<const double> /*s*/) {
    throw std::logic_error("this objective has no core");
  }

  /// ∂²L/∂W² · v: analytic, 2 S v + 2 E[ℓ'' δf A] W (+ sum terms), δf = 2 Tr[A W vᵀ] (+ sum terms).
  virtual void hessian_product(const WeightsView& weights, std::span<const double> v, std::span<double> out) = 0;
  /// Diagonal of the Gauss–Newton part, for preconditioners: not negative.
  virtual void curvature_diagonal(const WeightsView& weights, std::span<double> diagonal) = 0;

  /// True if gradients of mini-batches are at hand (the samples are stored).
  virtual bool has_samples() const = 0;
  /// As gradient() and structure(), with the plain mean over the samples of global index `batch` (repeats count).
  virtual double batch_gradient(const WeightsView& weights, std::span<const std::int64_t> batch,
                                std::span<double> gradient) = 0;
  virtual double batch_structure(const OrderParameterView& order, std::span<const std::int64_t> batch,
                                 std::span<double> s_matrix, std::span<double> q) = 0;

  virtual double memory_doubles() const = 0;    ///< of this rank
  virtual std::string description() const = 0;  ///< for the log

 protected:
  explicit Objective(const parallel::Comm& comm) : comm_(comm.duplicate()) {}
  parallel::Comm comm_;
  std::int64_t n_parameters_ = 0, n_outputs_ = 1;
  bool has_sum_terms_ = false, is_squared_ = true;
};

}  // namespace nqf::structure
