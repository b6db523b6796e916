#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/accurate_sum.hpp"
#include "data/checks.hpp"
#include "data/file_source.hpp"
#include "data/hdf5_file.hpp"
#include "data/rebalance_rows.hpp"
#include "data/select_rows.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

using deck::FileArray;
using deck::TargetKind;
using parallel::Comm;

namespace {

class Hdf5Source final : public FileSource {
 public:
  Hdf5Source(const Comm& comm, const deck::DataOptions& options, Role role, const Hdf5Source* train)
      : FileSource(options, role),
        path_(role == Role::test && !options.test_file.empty() ? options.test_file : options.file),
        has_x_(has_dataset(comm, path_, "x")) {
    const std::int64_t n_in_file = has_x_ ? read_x_shape(comm) : read_a_shape(comm);
    read_targets_shape(comm, n_in_file);
    if (train && (train->shape_.input != shape_.input || train->shape_.n_outputs != shape_.n_outputs))
      throw DataError(
          path_, has_x_ ? "x" : "A",
          fmt::format("samples are {} with {} outputs, those for training {} with {}", shape_text(shape_.input),
                      shape_.n_outputs, shape_text(train->shape_.input), train->shape_.n_outputs));
    choose_rows(comm, n_in_file);
    read_small(comm, n_in_file);
  }

 private:
  std::int64_t read_x_shape(const Comm& comm) {
    const auto stored = dataset_shape(comm, {path_, "x"});
    if (stored.empty() || stored[0] == 0 || row_size(stored) == 0)
      throw DataError(path_, "x", fmt::format("holds no samples (shape {})", shape_text(stored)));
    std::vector<std::int64_t> sample(stored.begin() + 1, stored.end());
    if (sample.empty()) sample = {1};
    shape_.input = input_shape(options_, sample);
    return stored[0];
  }

  // N × p × p, or N × m × p × p; x is then absent.
  std::int64_t read_a_shape(const Comm& comm) {
    if (!has_dataset(comm, path_, "A")) dataset_shape(comm, {path_, "x"});  // its error names the nearest data set
    const auto stored = dataset_shape(comm, {path_, "A"});
    const std::size_t n_dims = stored.size();
    if (n_dims < 3 || n_dims > 4 || stored[n_dims - 1] != stored[n_dims - 2])
      throw DataError(path_, "A", fmt::format("is {}; N × p × p or N × m × p × p is needed", shape_text(stored)));
    if (stored[0] == 0 || row_size(stored) == 0)
      throw DataError(path_, "A", fmt::format("holds no samples (shape {})", shape_text(stored)));
    require_option(options_, options_.test_fraction == 0.0, "test_fraction",
                   "needs inputs x; structure matrices A take a test_file");
    outputs_of_a_ = n_dims == 4 ? stored[1] : 1;
    return stored[0];
  }

  void read_targets_shape(const Comm& comm, std::int64_t n_in_file) {
    if (options_.target != TargetKind::file) {
      shape_.n_outputs = has_x_ ? options_.outputs : outputs_of_a_;
      return;
    }
    const auto y = dataset_shape(comm, {path_, "y"});
    if (y.empty() || y.size() > 2 || y[0] != n_in_file || (y.size() == 2 && y[1] == 0))
      throw DataError(
          path_, "y",
          fmt::format("is {}; {} needs {} or {} × m", shape_text(y), has_x_ ? "x" : "A", n_in_file, n_in_file));
    shape_.n_outputs = row_size(y);
    if (!has_x_ && shape_.n_outputs != outputs_of_a_)
      throw DataError(path_, "y", fmt::format("has {} outputs, but A has {}", shape_.n_outputs, outputs_of_a_));
  }

  void choose_rows(const Comm& comm, std::int64_t n_in_file) {
    if (options_.test_fraction == 0.0) {  // rows 0 … size − 1: no list of them
      size_ = limited_size(options_, role_, n_in_file, path_);
      rows_ = parallel::Partition(size_, comm);
      return;
    }
    const parallel::Partition file_rows(n_in_file, comm);
    std::vector<std::int64_t> eligible(static_cast<std::size_t>(file_rows.local_size()));
    for (std::size_t i = 0; i < eligible.size(); ++i) eligible[i] = file_rows.begin() + static_cast<std::int64_t>(i);
    chosen_ = rebalance_rows(comm, select_rows(comm, options_, role_, eligible, path_), 1);
    size_ = comm.sum(static_cast<std::int64_t>(chosen_.size()));
    rows_ = parallel::Partition(size_, comm);
  }

  // Targets and weights stay in memory: they are small beside x.
  void read_small(const Comm& comm, std::int64_t n_in_file) {
    const std::int64_t n = rows_.local_size();
    const bool weighted = has_dataset(comm, path_, "weight");
    if (weighted)
      if (const auto shape = dataset_shape(comm, {path_, "weight"}); shape.size() != 1 || shape[0] != n_in_file)
        throw DataError(path_, "weight", fmt::format("is {}; {} entries are needed", shape_text(shape), n_in_file));
    parallel::collectively(comm, [&] {
      y_.assign(static_cast<std::size_t>(n * shape_.n_outputs), 0.0);
      weight_.assign(static_cast<std::size_t>(n), 1.0);
      if (options_.target == TargetKind::file) read_chosen("y", rows_.begin(), n, y_, false);
      if (weighted) read_chosen("weight", rows_.begin(), n, weight_, true);
    });
    if (!weighted) return;
    const double sum = accurate_dot(comm, std::vector<double>(weight_.size(), 1.0), weight_);
    if (!(sum > 0.0) || !std::isfinite(sum)) throw DataError(path_, "weight", fmt::format("adds up to {}", sum));
  }

  std::int64_t file_row(std::int64_t sample) const {
    return chosen_.empty() ? sample : chosen_[static_cast<std::size_t>(sample - rows_.begin())];
  }

  // Samples first … first + count − 1 of a data set, checked. Rows that are not neighbours in the file come in blocks
  // that cover them, a few hundred rows at a time.
  void read_chosen(const std::string& dataset, std::int64_t first, std::int64_t count, std::span<double> out,
                   bool non_negative) const {
    if (count == 0 || out.empty()) return;
    const Hdf5File file(path_);
    const std::size_t length = out.size() / static_cast<std::size_t>(count);
    if (chosen_.empty()) {
      file.read_rows(dataset, first, out);
    } else {
      constexpr std::int64_t longest = 512;
      for (std::int64_t i = 0; i < count;) {
        const std::int64_t begin = file_row(first + i);
        std::int64_t n = 1;
        while (i + n < count && file_row(first + i + n) < begin + longest) ++n;
        block_.resize(static_cast<std::size_t>(file_row(first + i + n - 1) + 1 - begin) * length);
        file.read_rows(dataset, begin, block_);
        for (std::int64_t k = 0; k < n; ++k)
          std::copy_n(block_.begin() + (file_row(first + i + k) - begin) * static_cast<std::int64_t>(length), length,
                      out.begin() + (i + k) * static_cast<std::int64_t>(length));
        i += n;
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (std::isfinite(out[i]) && !(non_negative && out[i] < 0.0)) continue;
      const auto row = file_row(first + static_cast<std::int64_t>(i / length));
      throw DataError(path_, dataset,
                      fmt::format("row {}, column {} is {}{}", row, i % length, out[i],
                                  std::isfinite(out[i]) ? "; it must not be negative" : ""));
    }
  }

  void stored(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
              std::span<double> weight) const override {
    if (has_x_) read_chosen("x", first, count, x, false);
    const std::int64_t local = first - rows_.begin(), m = shape_.n_outputs;
    std::copy_n(y_.begin() + local * m, count * m, y.begin());
    std::copy_n(weight_.begin() + local, count, weight.begin());
  }

  std::string path_;
  bool has_x_;
  std::int64_t outputs_of_a_ = 1;
  parallel::Partition rows_;
  std::vector<std::int64_t> chosen_;  // rows of the file, this rank's; empty: the samples are the first rows
  std::vector<double> y_, weight_;
  mutable std::vector<double> block_;
};

}  // namespace

std::unique_ptr<FileSource> open_hdf5(const Comm& comm, const deck::DataOptions& options, Role role,
                                      const FileSource* train) {
  return std::make_unique<Hdf5Source>(comm, options, role, static_cast<const Hdf5Source*>(train));
}

}  // namespace nqf::data
