#pragma once

#include <memory>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "structure/modules/module.hpp"

namespace nqf::structure {

/// Samples whose targets are the module's own (data.target = "module"): y = f(W*) + noise, W* [p × rank] with
/// W* W*ᵀ = Q diag(spectrum) Qᵀ, Q random orthonormal columns of teacher_seed; s* = W* 1. The rank is the length of the
/// spectrum's list, else min(p, d). Online training, moments and stored samples all read it.
class TaughtSource final : public data::SampleSource {
 public:
  /// Collective. @throws DeckError: more eigenvalues than parameters
  TaughtSource(const ModuleContext& context, std::shared_ptr<const Module> module,
               std::unique_ptr<data::SampleSource> inputs, data::Role role);
  /// Builds the normal form of the block it reads, so blocks should not be small.
  void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
            std::span<double> weight) const override;
  bool is_synthetic() const override { return inputs_->is_synthetic(); }

 private:
  deck::DataOptions options_;
  std::shared_ptr<const Module> module_;
  std::unique_ptr<data::SampleSource> inputs_;
  data::Role role_;
  std::int64_t rank_ = 0;
  std::vector<double> w_, s_;
};

}  // namespace nqf::structure
