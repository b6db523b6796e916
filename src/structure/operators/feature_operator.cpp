#include "nqf/structure/feature_operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "structure/operators/gemm.hpp"
#include "structure/operators/tiles.hpp"

namespace nqf::structure {

namespace {
constexpr std::int64_t tile_doubles = 64 * 1024;  // 512 KiB: half of a small second-level cache
}

FeatureOperator::FeatureOperator(std::shared_ptr<const CoreMap> core, std::int64_t n_samples,
                                 std::int64_t rows_per_sample, std::int64_t n_features, std::vector<double> features,
                                 double factor, std::string name)
    : StructureOperator(std::move(core), 1, n_samples),
      n_columns_(core_->size() / n_features),
      rows_per_sample_(rows_per_sample),
      n_features_(n_features),
      features_(std::move(features)),
      factor_(factor),
      name_(std::move(name)) {
  if (std::ssize(features_) != n_samples * rows_per_sample * n_features || core_->size() % n_features != 0 ||
      (rows_per_sample != 1 && n_columns_ != 1))
    throw std::invalid_argument("features do not fit the core");
  n_outputs_ = rows_per_sample_ * n_columns_;
  tile_size_ = std::clamp<std::int64_t>(tile_doubles / (rows_per_sample * n_features), 1, 4096);
}

FeatureOperator::FeatureOperator(std::shared_ptr<const CoreMap> core, std::int64_t n_samples,
                                 std::int64_t rows_per_sample, parallel::PetscRowBlocks features, double factor,
                                 std::string name)
    : FeatureOperator(std::move(core), 0, rows_per_sample, features.row_size(), {}, factor, std::move(name)) {
  if (features.n_rows() != n_samples * rows_per_sample) throw std::invalid_argument("features do not fit the core");
  n_samples_ = n_samples;
  matrix_ = std::move(features);
}

void FeatureOperator::set_sum_terms(const ModuleSumTerms& terms) {
  if (matrix_.n_rows() > 0) throw std::invalid_argument("these terms read features where they are not kept");
  terms_ = terms;
  has_sum_terms_ = terms.present();
}

void FeatureOperator::set_sum_terms(StoredSumTerms terms, bool present) {
  const std::int64_t p = n_parameters(), rows = n_samples_ * n_outputs_;
  if ((!terms.g.empty() && std::ssize(terms.g) != rows * p) ||
      (!terms.b.empty() && std::ssize(terms.b) != rows * (p * (p + 1) / 2)))
    throw std::invalid_argument("g or B does not fit the measurements");
  stored_ = std::move(terms);
  has_sum_terms_ = present;
}

const double* FeatureOperator::rows(const Selection& tile) const {
  if (matrix_.n_rows() > 0) {
    const std::int64_t m = rows_per_sample_, size = m * n_features_;
    if (tile.indices.empty() && tile.count > 0 && matrix_.together(tile.first * m, tile.count * m))
      return matrix_.row(tile.first * m);
    const auto copy = scratch(gathered_, tile.count * size);
    for (std::int64_t i = 0; i < tile.count; ++i) std::copy_n(matrix_.row(tile[i] * m), size, copy.data() + i * size);
    return copy.data();
  }
  return rows_of(tile, features_, rows_per_sample_ * n_features_, gathered_);
}

void FeatureOperator::offset(const Selection& selection, std::span<double> f0) const {
  if (f0_.empty()) return std::fill(f0.begin(), f0.end(), 0.0);
  for (std::int64_t i = 0; i < selection.count; ++i)
    std::copy_n(f0_.data() + selection[i] * n_outputs_, n_outputs_, f0.data() + i * n_outputs_);
}

void FeatureOperator::add_linear(const Selection& tile, std::span<const double> core, std::span<double> f) const {
  add_gemm('T', 'N', n_columns_, tile.count * rows_per_sample_, n_features_, factor_, core.data(), n_features_,
           rows(tile), n_features_, f.data(), n_columns_);
}

void FeatureOperator::add_adjoint(const Selection& tile, std::span<const double> r, std::span<double> g) const {
  add_gemm('N', 'T', n_features_, n_columns_, tile.count * rows_per_sample_, factor_, rows(tile), n_features_, r.data(),
           n_columns_, g.data(), n_features_);
}

double FeatureOperator::gradient_cost() const {
  return 2.0 * static_cast<double>(n_samples_ * n_outputs_) * static_cast<double>(n_features_);
}

double FeatureOperator::memory_doubles() const {
  return static_cast<double>(features_.size() + f0_.size() + stored_.g.size() + stored_.b.size()) +
         static_cast<double>(matrix_.n_rows()) * static_cast<double>(matrix_.row_size());
}

std::string FeatureOperator::description() const {
  return fmt::format("{}: {} parameters, {} features × {} outputs a sample, {} samples on this rank", name_,
                     n_parameters(), n_features_, n_outputs_, n_samples_);
}

}  // namespace nqf::structure
