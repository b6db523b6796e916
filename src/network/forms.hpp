#pragma once

#include <vector>

#include "block_form.hpp"
#include "fourier_basis.hpp"
#include "patch_perceptron.hpp"
#include "patches.hpp"

// The normal forms of THEORY §2 as functions of blocks of M and s. `scale` multiplies A, B and g.
namespace nqf::network {

/// y_c = κ Σ_t x_tᵀ R_(t,c) + φ₀ Σ_t s_(t,c) (readout per position), or with x̄ = mean_t x_t: κ x̄ᵀ R_c + φ₀ s_c, where R
/// is the block of (u, v) and s the sum of v. Perceptron, both convolutions, attention (R of value and output, φ₀ = 0),
/// experts of perceptrons behind a softmax (φ₀ = 0). With `repeat` > 1 a sample's outputs are written so many times
/// (every token a query).
class PatchForm final : public BlockForm {
 public:
  PatchForm(Patches patches, std::int64_t input_size, std::int64_t n_outputs, Readout readout, BlockPair pair,
            std::int64_t n_parameters, double kappa, double phi0, std::int64_t repeat = 1);
  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override;
  void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy, double* g,
                double* q, double* dx) override;
  std::string description() const override;

 private:
  /// Features of a tile, [n × samples·terms]: the patches or their mean.
  const double* features(std::int64_t samples, const double* x);

  Patches patches_;
  std::int64_t input_size_, n_outputs_;
  Readout readout_;
  double kappa_, phi0_;
  std::int64_t repeat_, terms_, tile_;
  std::vector<double> copy_, features_, feature_gradient_, outputs_;
};

/// Linear experts: y = a xᵀ R x + b x·s_e − c (x·s_γ)(x·s_e), R the block of (γ, e). Softmax gate: a = b = 1/d, c =
/// 1/d²; sigmoid gate: a = ¼, b = ½, c = 0.
class LinearExpertsForm final : public BlockForm {
 public:
  LinearExpertsForm(std::int64_t n, double a, double b, double c);
  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override;
  void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy, double* g,
                double* q, double* dx) override;
  std::string description() const override { return "normal form, linear experts"; }

 private:
  std::int64_t n_;
  double a_, b_, c_;
  std::int64_t tile_;
  std::vector<double> scaled_, product_, gate_, expert_;
};

/// Perceptron experts behind a softmax with φ(0) = φ₀ ≠ 0, where the gate is not inert:
///   y_c = (κ/d) xᵀ R^{uv}_c + (φ₀/d) [s_v,c + xᵀ R^{γv}_c − (x·s_γ) s_v,c / d].
class PerceptronExpertsForm final : public BlockForm {
 public:
  PerceptronExpertsForm(std::int64_t n, std::int64_t m, std::int64_t width, double kappa, double phi0, double scale);
  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override;
  void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy, double* g,
                double* q, double* dx) override;
  std::string description() const override { return "normal form, perceptron experts"; }

 private:
  /// κ/d R^{uv} + φ₀/d (R^{γv} − s_γ s_vᵀ/d): what x meets.
  void combine(const double* blocks, const double* s);

  std::int64_t n_, m_;
  double kappa_, phi0_, width_;  ///< κ·scale/d, φ₀·scale/d, d
  std::vector<double> combined_, combined_gradient_;
};

/// Fourier features: y = Σ_k s_k ψ_k(x) (κ r_k + φ₀ Σ_i v_ik), r_k = Σ_i u_ik v_ik.
class FourierForm final : public BlockForm {
 public:
  FourierForm(FourierBasis basis, std::vector<double> amplitude, double kappa, double phi0);
  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override;
  void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy, double* g,
                double* q, double* dx) override;
  std::string description() const override { return "normal form, Fourier features"; }

 private:
  /// s_k (κ r_k + φ₀ Σ_i v_ik).
  void combine(const double* blocks, const double* s);

  FourierBasis basis_;
  std::vector<double> amplitude_;
  double kappa_, phi0_;
  std::vector<double> coefficients_, projection_;
};

/// Query-key attention with fixed readout ρ, R the block of (q, k), x the last token:
///   original     y = f0 + scale (Σ_t P_t ρ·x_t − f0),  P = softmax_t(c x_tᵀ Rᵀ x),  f0 = mean_t ρ·x_t
///   normal form  y = f0 + scale c xᵀ R Cov(X) ρ,       Cov(X) ρ = mean_t x_t (ρ·x_t − f0)
/// The softmax acts on the sum over units, so the original is a function of R too; R is reduced, not the B × T scores.
class QueryKeyForm final : public BlockForm {
 public:
  QueryKeyForm(std::int64_t tokens, std::int64_t n, std::vector<double> rho, double score_scale, double scale,
               bool original);
  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override;
  void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy, double* g,
                double* q, double* dx) override;
  std::string description() const override;

 private:
  /// keys_ [n × samples] = Rᵀ x_last.
  void project(std::int64_t samples, const double* x, const double* r);
  /// weight_[t] = P_t, value_[t] = ρ·x_t of one sample; @return its output before scale, and f0.
  struct Output {
    double value, f0;
  };
  Output attend(const double* x, const double* key);

  std::int64_t tokens_, n_;
  std::vector<double> rho_;
  double score_scale_, scale_;
  bool original_;
  std::int64_t tile_;
  std::vector<double> keys_, key_gradient_, weight_, value_, score_;
};

}  // namespace nqf::network
