#include "expanded_form.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "block_layer.hpp"
#include "nqf/network/compress.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

/// f_c = f0_c + g_c·s + sᵀB_c s + Tr[M A_c] with A, B, g of every sample from the module's expansion; without sum terms
/// f0_c + Tr[M A_c].
class ExpandedForm final : public BlockForm {
 public:
  ExpandedForm(const structure::CustomModule& module, const structure::CustomShape& shape, bool sum_terms)
      : module_(module), shape_(shape) {
    n_parameters_ = module.n_parameters(shape.n_inputs, shape.n_outputs);
    const RowGroup all{.begin = 0, .count = n_parameters_};
    pairs_ = {BlockPair{.left = all, .right = all}};
    needs_sum_ = sum_terms;
    if (sum_terms) squares_.resize(static_cast<std::size_t>(n_parameters_ * n_parameters_));
  }

  void measure(std::int64_t batch, const double* x, const double* blocks, const double* s, double* y) override {
    expand(batch, x);
    const std::int64_t p = n_parameters_, rows = batch * shape_.n_outputs;
    std::copy_n(f0_.begin(), rows, y);
    multiply(Op::transpose, Op::none, rows, 1, p * p, 1.0, {a_.data(), p * p}, {blocks, p * p}, 1.0, {y, rows});
    if (!needs_sum_) return;
    for (std::int64_t k = 0; k < p; ++k)
      for (std::int64_t l = 0; l < p; ++l) squares_[k * p + l] = s[k] * s[l];
    multiply(Op::transpose, Op::none, rows, 1, p * p, 1.0, {b_.data(), p * p}, {squares_.data(), p * p}, 1.0,
             {y, rows});
    multiply(Op::transpose, Op::none, rows, 1, p, 1.0, {g_.data(), p}, {s, p}, 1.0, {y, rows});
  }

  void assemble(std::int64_t batch, const double* x, const double* /*blocks*/, const double* s, const double* dy,
                double* g, double* q, double* dx) override {
    if (dx != nullptr)
      throw UserError(fmt::format("the normal form of {} has no gradient by its inputs: in a stack it must come first",
                                  module_.name()));
    expand(batch, x);
    const std::int64_t p = n_parameters_, rows = batch * shape_.n_outputs;
    multiply(Op::none, Op::none, p * p, 1, rows, 1.0, {a_.data(), p * p}, {dy, rows}, 1.0, {g, p * p});
    if (!needs_sum_) return;
    multiply(Op::none, Op::none, p * p, 1, rows, 2.0, {b_.data(), p * p}, {dy, rows}, 0.0, {squares_.data(), p * p});
    multiply(Op::none, Op::none, p, 1, p, 1.0, {squares_.data(), p}, {s, p}, 1.0, {q, p});
    multiply(Op::none, Op::none, p, 1, rows, 1.0, {g_.data(), p}, {dy, rows}, 1.0, {q, p});
  }

  std::string description() const override { return "normal form, custom " + module_.name(); }

 private:
  void expand(std::int64_t batch, const double* x) {
    const auto size = static_cast<std::size_t>(batch * shape_.n_inputs);
    if (x_.size() == size && std::equal(x_.begin(), x_.end(), x)) return;
    x_.assign(x, x + size);
    f0_.clear(), g_.clear(), a_.clear(), b_.clear();
    for (std::int64_t n = 0; n < batch; ++n) {
      const auto e = module_.expand(shape_, {x + n * shape_.n_inputs, static_cast<std::size_t>(shape_.n_inputs)});
      f0_.insert(f0_.end(), e.f0.begin(), e.f0.end());
      a_.insert(a_.end(), e.a.begin(), e.a.end());
      if (!needs_sum_) continue;
      g_.insert(g_.end(), e.g.begin(), e.g.end());
      b_.insert(b_.end(), e.b.begin(), e.b.end());
    }
  }

  const structure::CustomModule& module_;
  structure::CustomShape shape_;
  std::vector<double> x_, f0_, g_, a_, b_, squares_;
};

}  // namespace

std::unique_ptr<Layer> make_expanded_layer(const parallel::Comm& comm, const structure::CustomModule& module,
                                           const LayerShape& shape, const structure::CustomShape& flat, bool compressed,
                                           bool sum_terms) {
  auto form = std::make_unique<ExpandedForm>(module, flat, sum_terms);
  const std::vector<std::int64_t> output{shape.n_outputs};
  if (!compressed) return std::make_unique<BlockLayer>(comm, shape.width, shape.input, output, std::move(form));
  const std::int64_t columns = compressed_columns(form->n_parameters(), shape.width, sum_terms);
  auto ones = sum_terms ? compressed_ones(comm, shape.width, columns) : std::vector<double>{};
  return std::make_unique<BlockLayer>(comm, columns, shape.input, output, std::move(form), std::move(ones));
}

}  // namespace nqf::network
