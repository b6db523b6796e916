#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nqf::network {

/// Rows of W that form one side of a block: entry i of inner dimension a is row begin + i·stride + a·inner_stride.
struct RowGroup {
  std::int64_t begin = 0, count = 0, stride = 1, inner_stride = 0;
};

/// One block of the order parameter, R = Σ_units Σ_a left_a right_aᵀ [left.count × right.count, column-major], or only
/// its diagonal.
struct BlockPair {
  RowGroup left, right;
  std::int64_t inner = 1;
  bool diagonal = false;
  std::int64_t size() const { return diagonal ? left.count : left.count * right.count; }
};

/// A function of the inputs that sees the weights only through blocks of M and the sum s (Theorem 2): every normal
/// form, and query-key attention itself. Blocks stand one after another in one array; nothing here is collective.
class BlockForm {
 public:
  virtual ~BlockForm() = default;
  const std::vector<BlockPair>& pairs() const noexcept { return pairs_; }
  bool needs_sum() const noexcept { return needs_sum_; }
  std::int64_t n_parameters() const noexcept { return n_parameters_; }
  std::int64_t block_size() const {
    std::int64_t size = 0;
    for (const auto& pair : pairs_) size += pair.size();
    return size;
  }
  /// Y [batch × m] from X, the blocks and s [p] (only read if needs_sum()).
  virtual void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) = 0;
  /// Adds ∂L/∂blocks to g and ∂L/∂s to q; sets dX unless it is null.
  virtual void assemble(std::int64_t batch, const double* x, const double* blocks, const double* s, const double* dy,
                        double* g, double* q, double* dx) = 0;
  virtual std::string description() const = 0;

 protected:
  std::vector<BlockPair> pairs_;
  bool needs_sum_ = false;
  std::int64_t n_parameters_ = 0;
};

}  // namespace nqf::network
