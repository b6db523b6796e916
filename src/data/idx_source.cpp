#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <variant>

#include "data/file_source.hpp"
#include "data/rebalance_rows.hpp"
#include "data/select_rows.hpp"
#include "data/synthetic_source.hpp"
#include "nqf/data/idx.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

using parallel::Comm;

namespace {

// The different labels on all ranks, ascending.
std::vector<std::int64_t> distinct(const Comm& comm, std::vector<std::int64_t> values) {
  const auto reduce = [](std::vector<std::int64_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  reduce(values);
  auto all = comm.all_gather(std::span<const std::int64_t>(values));
  reduce(all);
  return all;
}

std::string list_text(const std::vector<std::int64_t>& labels) {
  const std::int64_t span = labels.empty() ? 0 : labels.back() - labels.front() + 1;
  if (labels.size() > 2 && span == static_cast<std::int64_t>(labels.size()))
    return fmt::format("{} to {}", labels.front(), labels.back());
  if (labels.size() > 12)
    return fmt::format("{} labels between {} and {}", labels.size(), labels.front(), labels.back());
  return fmt::format("{}", fmt::join(labels, ", "));
}

class IdxSource final : public FileSource {
 public:
  IdxSource(const Comm& comm, const deck::DataOptions& options, Role role, const IdxSource* train)
      : FileSource(options, role), begin_(0) {
    const bool own_file = role == Role::test && !options.test_images.empty();
    const std::string& images_file = own_file ? options.test_images : options.images;
    const std::string& labels_file = own_file ? options.test_labels : options.labels;
    // Both headers first, so that a mix-up is found before anything large is read.
    const auto images_header = read_idx_header(comm, images_file), labels_header = read_idx_header(comm, labels_file);
    const std::int64_t n = images_header.dims.empty() ? 0 : images_header.dims[0];
    if (labels_header.dims.empty() || n != labels_header.dims[0])
      throw DataError(images_file, "",
                      fmt::format("has {} images, but {} has {} labels", n, labels_file,
                                  labels_header.dims.empty() ? 0 : labels_header.dims[0]));
    if (n == 0) throw DataError(images_file, "", "holds no images");

    const auto labels = read_labels(comm, labels_file);
    classes_ = train ? train->classes_ : options.classes;
    check_classes(comm, labels, labels_file, own_file);
    std::vector<std::int64_t> eligible;
    for (std::size_t i = 0; i < labels.values.size(); ++i)
      if (classes_.size() == 1 || std::find(classes_.begin(), classes_.end(), labels.values[i]) != classes_.end())
        eligible.push_back(labels.rows.begin() + static_cast<std::int64_t>(i));
    if (!comm.any(!eligible.empty()))
      throw DataError(labels_file, "", fmt::format("no label is one of {}", list_text(classes_)));
    const auto rows = select_rows(comm, options, role, eligible, images_file);
    read_pixels(comm, images_file, rows, train);

    std::vector<std::int64_t> kept;
    for (const auto row : rows) kept.push_back(labels.values[static_cast<std::size_t>(row - labels.rows.begin())]);
    labels_ = rebalance_rows(comm, kept, 1);
    size_ = comm.sum(static_cast<std::int64_t>(labels_.size()));
    begin_ = parallel::Partition(size_, comm).begin();
    const bool by_class = options.one_hot && classes_.size() > 1;
    shape_.n_outputs = options.target != deck::TargetKind::labels ? options.outputs
                       : by_class                                 ? static_cast<std::int64_t>(classes_.size())
                                                                  : 1;
  }

 private:
  void check_classes(const Comm& comm, const IdxLabels& labels, const std::string& file, bool own_test_file) {
    const auto there = distinct(comm, labels.values);
    if (classes_.empty()) classes_ = there;
    if (!own_test_file) {
      for (std::size_t i = 0; i < classes_.size(); ++i) {
        require_option(options_,
                       std::find(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(i), classes_[i]) ==
                           classes_.begin() + static_cast<std::ptrdiff_t>(i),
                       "classes", fmt::format("names label {} twice", classes_[i]));
        if (std::binary_search(there.begin(), there.end(), classes_[i])) continue;
        const auto near = *std::min_element(there.begin(), there.end(), [&](std::int64_t a, std::int64_t b) {
          return std::abs(a - classes_[i]) < std::abs(b - classes_[i]);
        });
        throw DataError(file, "",
                        fmt::format("no label is {} ([data] classes); the nearest is {}, there are {}", classes_[i],
                                    near, list_text(there)));
      }
      return;
    }
    // Without a list every label of the training samples has an output, and no other.
    if (!options_.classes.empty()) return;
    for (const auto label : there)
      if (std::find(classes_.begin(), classes_.end(), label) == classes_.end())
        throw DataError(
            file, "",
            fmt::format("holds label {}, which the training labels do not: they are {}", label, list_text(classes_)));
  }

  void read_pixels(const Comm& comm, const std::string& file, const std::vector<std::int64_t>& rows,
                   const IdxSource* train) {
    auto images = read_images(comm, file);
    const std::vector<std::int64_t> stored_shape{images.image_rows, images.image_columns};
    const std::int64_t size = images.image_rows * images.image_columns;
    if (size == 0) throw DataError(file, "", "holds images without pixels");
    shape_.input = input_shape(options_, stored_shape);
    if (train && shape_.input != train->shape_.input)
      throw DataError(file, "",
                      fmt::format("has images of {} × {}, those for training have {} pixels", images.image_rows,
                                  images.image_columns, train->shape_.input_size()));
    std::vector<double> kept;
    kept.reserve(rows.size() * static_cast<std::size_t>(size));
    bool bytes = true;
    for (const auto row : rows) {
      const auto at = images.pixels.begin() + (row - images.rows.begin()) * size;
      kept.insert(kept.end(), at, at + size);
    }
    images.pixels = {};
    for (const double value : kept) bytes = bytes && value >= 0.0 && value <= 255.0 && value == std::floor(value);
    parallel::collectively(comm, [&] {
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (!std::isfinite(kept[i]))
          throw DataError(
              file, "",
              fmt::format("image {} has a pixel that is {}", rows[i / static_cast<std::size_t>(size)], kept[i]));
    });
    if (comm.all(bytes))
      pixels_ = rebalance_rows(comm, std::vector<unsigned char>(kept.begin(), kept.end()), size);
    else
      pixels_ = rebalance_rows(comm, kept, size);
  }

  void stored(std::int64_t first, std::int64_t count, std::span<double> x, std::span<double> y,
              std::span<double> weight) const override {
    const std::int64_t n = shape_.input_size(), local = first - begin_;
    std::visit([&](const auto& pixels) { std::copy_n(pixels.begin() + local * n, count * n, x.begin()); }, pixels_);
    std::fill(weight.begin(), weight.end(), 1.0);
    std::fill(y.begin(), y.end(), 0.0);
    if (options_.target != deck::TargetKind::labels) return;
    const auto m = static_cast<std::size_t>(shape_.n_outputs);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const std::int64_t label = labels_[static_cast<std::size_t>(local) + i];
      if (classes_.size() == 1)
        y[i] = label == classes_[0] ? 1.0 : 0.0;
      else if (!options_.one_hot)
        y[i] = static_cast<double>(label);
      else
        y[i * m + static_cast<std::size_t>(std::find(classes_.begin(), classes_.end(), label) - classes_.begin())] =
            1.0;
    }
  }

  std::int64_t begin_;  // first sample of this rank
  std::vector<std::int64_t> classes_, labels_;
  std::variant<std::vector<unsigned char>, std::vector<double>> pixels_;
};

}  // namespace

std::unique_ptr<FileSource> open_idx(const Comm& comm, const deck::DataOptions& options, Role role,
                                     const FileSource* train) {
  return std::make_unique<IdxSource>(comm, options, role, static_cast<const IdxSource*>(train));
}

}  // namespace nqf::data
