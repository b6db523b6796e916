#pragma once

#include <vector>

#include "nqf/network/layer.hpp"
#include "nqf/network/make_layer.hpp"
#include "products.hpp"
#include "tiles.hpp"

namespace nqf::network {

/// Multi-head attention, a head a unit (THEORY §2), tokens x_1 … x_T ∈ R^n:
///   y_q = scale Σ_h O_h Σ_t softmax_t((K_h x_t)·(Q_h x_q)/√k) V_h x_t
/// Rows of w: Q [k, n], K [k, n], V [k, n], O [m, k], each row-major. Heads go through in tiles whose projections
/// (T·samples × heads·k) come from one product each; a head's scores on a sample are small products.
/// Cost of forward: B d_local k T (3n + 2·queries) multiply–adds (+ outputs); backward: three times that.
class Attention final : public Layer {
 public:
  /// Collective over `comm`.
  Attention(const parallel::Comm& comm, std::int64_t width, std::int64_t tokens, std::int64_t n, std::int64_t n_outputs,
            std::int64_t head_size, Queries queries, double scale);
  void forward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<double> y) override;
  void backward(std::int64_t batch, std::span<const double> x, std::span<const double> w, std::span<const double> dy,
                std::span<double> dw, std::span<double> dx) override;
  std::string description() const override;

 private:
  /// Weights of a tile of heads, or their gradients: q, k, v [n × heads·k], o [m × heads·k].
  struct Heads {
    std::vector<double> q, k, v, o;
    void resize(std::int64_t n, std::int64_t m, std::int64_t columns);
    void fill_zero();
  };
  /// Projections of a tile, or their gradients: q, z [heads·k × queries·samples], k, v [heads·k × T·samples].
  struct Projections {
    std::vector<double> q, k, v, z;
  };
  void pack(std::int64_t heads, const double* w);
  void unpack_add(std::int64_t heads, double* dw) const;
  /// Fills projected_ and, head by head, z = V X P.
  void attend(std::int64_t heads, std::int64_t samples, const double* x);
  /// probability_ [T × queries] of one head on one sample.
  void softmax(std::int64_t offset, std::int64_t ld, std::int64_t sample);
  ConstMatrix query_tokens(const double* x) const;

  std::int64_t tokens_, n_, n_outputs_, head_size_, n_queries_;
  double scale_, score_scale_;
  Tile tile_;
  Heads heads_, head_gradient_;
  Projections projected_, projected_gradient_;
  std::vector<double> probability_, score_gradient_;
};

}  // namespace nqf::network
