#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/linear_teacher.hpp"
#include "nqf/data/sample_source.hpp"

namespace nqf::data {

/// Samples from files: a derived class gives them as stored; scaling, standardisation, teacher, noise and centring of
/// the targets are made here, the same for training and test.
class FileSource : public SampleSource {
 public:
  void read(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
            std::span<double> weight) const final;
  bool is_synthetic() const final { return false; }

  /// Takes the statistics that the options ask for from these, the training samples. Collective; two passes over the
  /// samples, or one more for the targets' means; nothing where nothing is asked for.
  void prepare(const parallel::Comm& comm);
  /// Takes them from the training samples instead.
  void adopt(const FileSource& train) { transform_ = train.transform_; }

 protected:
  FileSource(const deck::DataOptions& options, Role role) : options_(options), role_(role) {}
  /// Samples as the file holds them; y [count × n_outputs] zero where options.target is linear or module.
  virtual void stored(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
                      std::span<double> weight) const = 0;

  deck::DataOptions options_;
  Role role_;

 private:
  /// x ← (scale·x − shift)·factor, y ← y − y_mean; empty: nothing.
  struct Transform {
    std::vector<double> shift, factor, y_mean;
    std::shared_ptr<const LinearTeacher> teacher;
  };
  void transform_inputs(std::span<double> x) const;
  /// Weighted mean over the samples of `values(x, y)` [n], as the first sample's plus the mean distance from it.
  template <class Values>
  std::vector<double> mean_of(const parallel::Comm& comm, std::int64_t n, const Values& values) const;

  Transform transform_;
};

/// Table [data] of kind "idx" or "hdf5"; null for a test it does not ask for. Collective.
std::unique_ptr<SampleSource> open_file_source(const parallel::Comm& comm, const deck::DataOptions& options, Role role);

/// The samples as stored. `train` is given for a test, whose shape and outputs must be the same.
std::unique_ptr<FileSource> open_idx(const parallel::Comm& comm, const deck::DataOptions& options, Role role,
                                     const FileSource* train);
std::unique_ptr<FileSource> open_hdf5(const parallel::Comm& comm, const deck::DataOptions& options, Role role,
                                      const FileSource* train);

/// The shape of x: that of the file, or options.shape where it has as many entries. Where a row is a pair (i, j), shape
/// may be that of the matrix to complete instead. @throws DeckError
std::vector<std::int64_t> input_shape(const deck::DataOptions& options, const std::vector<std::int64_t>& stored);

}  // namespace nqf::data
