#include "nqf/record/table.hpp"

#include <algorithm>
#include <cstring>

#include "nqf/parallel/errors.hpp"
#include "record/dataset_io.hpp"
#include "record/result_file_impl.hpp"

namespace nqf::record {

namespace {

constexpr std::int64_t most_pending_rows = 256;
constexpr std::int64_t most_pending_bytes = std::int64_t{4} << 20;  // of a matrix, on one rank
constexpr std::int64_t chunk_numbers = 1024;                        // 8 KiB of doubles

hid_t type_of(ColumnType type) {
  switch (type) {
    case ColumnType::real:
      return h5::type_of<double>();
    case ColumnType::integer:
      return h5::type_of<std::int64_t>();
    case ColumnType::flag:
      break;
  }
  return h5::type_of<std::uint8_t>();
}

}  // namespace

struct Table::Column {
  std::string path;
  ColumnType type = ColumnType::real;
  bool matrix = false;
  std::int64_t size = 1;  // numbers a row adds: 1, or n of a matrix
  std::int64_t begin = 0, local_size = 0;
  std::size_t element = sizeof(double);
  h5::Dataset dataset;
  std::vector<std::byte> buffer;   // [pending row][local number]
  std::vector<double> transposed;  // matrices only: [local number][pending row]

  std::vector<hsize_t> shape(std::int64_t rows) const {
    if (matrix) return {static_cast<hsize_t>(size), static_cast<hsize_t>(rows)};
    return {static_cast<hsize_t>(rows)};
  }
  // A row of a matrix is one column of the data set. Chunks are as narrow as a sensible size allows, since
  // each row writes to every chunk in pieces as long as the chunk is wide.
  std::vector<hsize_t> chunk() const {
    if (!matrix) return {static_cast<hsize_t>(chunk_numbers)};
    const std::int64_t rows = std::clamp<std::int64_t>(size, 1, 64 * chunk_numbers);
    return {static_cast<hsize_t>(rows), static_cast<hsize_t>(std::max<std::int64_t>(1, chunk_numbers / rows))};
  }
  // Most bytes that `rows` more rows may take: chunks are allocated whole.
  std::int64_t growth(std::int64_t rows) const {
    const auto lengths = chunk();
    const auto width = static_cast<std::int64_t>(lengths.back());
    const auto height = matrix ? static_cast<std::int64_t>(lengths.front()) : 1;
    return 8 * (rows + width) * (size + height);
  }
};

Table::Table(ResultFileImpl& file, std::string prefix, const std::string& path)
    : file_(file), prefix_(std::move(prefix)), path_(join(prefix_, path)) {}
Table::~Table() = default;

std::int64_t Table::rows() const noexcept {
  return written_ + pending_;
}

void Table::define_column(const std::string& name, ColumnType type, const DataInfo& info) {
  auto column = std::make_unique<Column>();
  column->path = join(path_, name);
  column->type = type;
  column->element = type == ColumnType::flag ? 1 : 8;
  column->local_size = file_.comm().is_root() ? 1 : 0;
  take_up(std::move(column), info);
}

void Table::define_matrix(const std::string& name, std::int64_t local_rows, const DataInfo& info) {
  auto column = std::make_unique<Column>();
  column->path = join(path_, name);
  column->matrix = true;
  column->local_size = local_rows;
  column->begin = file_.comm().exclusive_sum(local_rows);
  column->size = file_.comm().sum(local_rows);
  take_up(std::move(column), info);
}

void Table::take_up(std::unique_ptr<Column> column, const DataInfo& info) {
  write_pending();
  const auto chunk = column->chunk();
  file_.run(0, [&] {
    const hid_t file = file_.file();
    const hid_t type = type_of(column->type);
    if (h5::exists(file, column->path)) {
      column->dataset.reset(h5_check(H5Dopen2(file, column->path.c_str(), H5P_DEFAULT), "H5Dopen2"));
      const h5::Datatype found(h5_check(H5Dget_type(column->dataset.get()), "H5Dget_type"));
      auto shape = h5::shape_of(column->dataset.get());
      const bool fits = growing_axis(column->dataset.get()) == (column->matrix ? 1 : 0) &&
                        H5Tequal(found.get(), type) > 0 &&
                        (!column->matrix || shape[0] == static_cast<hsize_t>(column->size));
      if (!fits) throw RunError("data set '" + column->path + "' has another type or shape than this run writes");
    } else {
      auto limit = column->shape(0);
      limit.back() = H5S_UNLIMITED;
      const auto space = h5::simple_space(column->shape(0), limit.data());
      const auto links = h5::creating_groups();
      const h5::PropertyList layout(h5_check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"));
      h5_check(H5Pset_chunk(layout.get(), static_cast<int>(chunk.size()), chunk.data()), "H5Pset_chunk");
      h5_check(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
      column->dataset.reset(
          h5_check(H5Dcreate2(file, column->path.c_str(), type, space.get(), links.get(), layout.get(), H5P_DEFAULT),
                   "H5Dcreate2"));
    }
    file_.describe(column->dataset.get(), column->path, prefix_, info);
  });
  columns_.push_back(std::move(column));
  capacity_ = 0;
  file_.look([&] { reload_length(); });
}

void Table::reload_length() {
  if (columns_.empty()) return;
  // A run killed between two writes may have left columns of different lengths: only whole rows count.
  hsize_t rows = H5S_UNLIMITED;
  for (const auto& column : columns_) rows = std::min(rows, h5::shape_of(column->dataset.get()).back());
  written_ = static_cast<std::int64_t>(rows);
}

void Table::make_buffers() {
  std::int64_t largest = 1;
  for (const auto& column : columns_) largest = std::max(largest, column->local_size);
  largest = file_.comm().max(largest);
  capacity_ = std::clamp<std::int64_t>(most_pending_bytes / (largest * 8), 1, most_pending_rows);
  for (auto& column : columns_) {
    const auto numbers = static_cast<std::size_t>(capacity_ * column->local_size);
    column->buffer.resize(numbers * column->element);
    if (column->matrix) column->transposed.resize(numbers);
  }
}

void Table::append(std::span<const Value> values, std::span<const std::span<const double>> matrices) {
  if (columns_.empty()) throw std::logic_error(path_ + ": a row for a table without columns");
  if (capacity_ == 0) make_buffers();
  std::size_t next_value = 0, next_matrix = 0;
  for (auto& column : columns_) {
    std::byte* place =
        column->buffer.data() + pending_ * column->local_size * static_cast<std::int64_t>(column->element);
    if (column->matrix) {
      if (next_matrix == matrices.size()) throw std::logic_error(path_ + ": too few matrices in a row");
      const auto part = matrices[next_matrix++];
      if (static_cast<std::int64_t>(part.size()) != column->local_size)
        throw std::logic_error(column->path + ": part of another length than defined");
      if (!part.empty()) std::memcpy(place, part.data(), part.size_bytes());
      continue;
    }
    if (next_value == values.size()) throw std::logic_error(path_ + ": too few values in a row");
    const Value& value = values[next_value++];
    if (column->type != ColumnType::real && value.kind_ == Value::Kind::real)
      throw std::logic_error(column->path + ": a real number for a column of integers");
    if (column->local_size == 0) continue;
    if (column->type == ColumnType::real) {
      const double real = value.kind_ == Value::Kind::real ? value.real_ : static_cast<double>(value.integer_);
      std::memcpy(place, &real, sizeof real);
    } else if (column->type == ColumnType::integer) {
      std::memcpy(place, &value.integer_, sizeof value.integer_);
    } else {
      *place = static_cast<std::byte>(value.integer_ != 0);
    }
  }
  if (next_value != values.size() || next_matrix != matrices.size())
    throw std::logic_error(path_ + ": more entries in a row than columns");
  if (++pending_ == capacity_) write_pending();
}

void Table::write_column(Column& column) {
  const auto shape = column.shape(written_ + pending_);
  h5_check(H5Dset_extent(column.dataset.get(), shape.data()), "H5Dset_extent");
  if (column.local_size == 0) return;  // independent writes: ranks without numbers have nothing to do
  const void* from = column.buffer.data();
  if (column.matrix && pending_ > 1) {
    const auto* rows = reinterpret_cast<const double*>(column.buffer.data());
    for (std::int64_t i = 0; i < column.local_size; ++i)
      for (std::int64_t r = 0; r < pending_; ++r)
        column.transposed[static_cast<std::size_t>(i * pending_ + r)] = rows[r * column.local_size + i];
    from = column.transposed.data();
  }
  const hsize_t start[2] = {static_cast<hsize_t>(column.matrix ? column.begin : written_),
                            static_cast<hsize_t>(written_)};
  const hsize_t count[2] = {static_cast<hsize_t>(column.matrix ? column.local_size : pending_),
                            static_cast<hsize_t>(pending_)};
  const auto memory = h5::simple_space(std::span(count, shape.size()));
  const h5::Dataspace file(h5_check(H5Dget_space(column.dataset.get()), "H5Dget_space"));
  h5_check(H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), "H5Sselect_hyperslab");
  h5_check(H5Dwrite(column.dataset.get(), type_of(column.type), memory.get(), file.get(), H5P_DEFAULT, from),
           "H5Dwrite");
}

void Table::write_pending() {
  if (pending_ == 0) return;
  std::int64_t bytes = 0;
  for (const auto& column : columns_) bytes += column->growth(pending_);
  file_.run(bytes, [&] {
    for (auto& column : columns_) write_column(*column);
  });
  written_ += pending_;
  pending_ = 0;
}

void Table::truncate(std::int64_t n_rows) {
  write_pending();
  if (n_rows > written_) throw std::logic_error(path_ + ": cannot be cut to more rows than it has");
  file_.run(0, [&] {
    for (auto& column : columns_)
      h5_check(H5Dset_extent(column->dataset.get(), column->shape(n_rows).data()), "H5Dset_extent");
  });
  written_ = n_rows;
}

}  // namespace nqf::record
