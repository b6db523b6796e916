#include "nqf/data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "data/idx_stream.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::data {

using parallel::collectively;
using parallel::Comm;
using parallel::on_root;
using parallel::Partition;

namespace {

constexpr std::int64_t block_bytes = std::int64_t{1} << 22;

template <class Unsigned, class Value>
double decode_as(const unsigned char* bytes) {
  Unsigned bits = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
    bits = static_cast<Unsigned>((std::uint64_t{bits} << 8) | bytes[i]);
  return static_cast<double>(std::bit_cast<Value>(bits));
}

template <class Unsigned, class Value, class Out>
void append_as(std::span<const unsigned char> bytes, std::vector<Out>& out) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Unsigned))
    out.push_back(static_cast<Out>(decode_as<Unsigned, Value>(bytes.data() + i)));
}

template <class Out>
void append(IdxType type, std::span<const unsigned char> bytes, std::vector<Out>& out) {
  switch (type) {
    case IdxType::uint8:
      out.insert(out.end(), bytes.begin(), bytes.end());
      break;
    case IdxType::int8:
      append_as<std::uint8_t, std::int8_t>(bytes, out);
      break;
    case IdxType::int16:
      append_as<std::uint16_t, std::int16_t>(bytes, out);
      break;
    case IdxType::int32:
      append_as<std::uint32_t, std::int32_t>(bytes, out);
      break;
    case IdxType::float32:
      append_as<std::uint32_t, float>(bytes, out);
      break;
    case IdxType::float64:
      append_as<std::uint64_t, double>(bytes, out);
      break;
  }
}

std::int64_t element_count(const IdxHeader& header) {
  return row_size(header.dims);
}

// On the root: opens the file. Everywhere: its header.
IdxHeader open_everywhere(const Comm& comm, const std::string& file, std::unique_ptr<IdxStream>& stream) {
  on_root(comm, [&] { stream = std::make_unique<IdxStream>(file); });
  IdxHeader header = stream ? stream->header() : IdxHeader{};
  std::int64_t head[2] = {static_cast<std::int64_t>(header.type), static_cast<std::int64_t>(header.dims.size())};
  comm.broadcast(std::span<std::int64_t>(head));
  header.type = static_cast<IdxType>(head[0]);
  header.dims.resize(static_cast<std::size_t>(head[1]));
  comm.broadcast(std::span<std::int64_t>(header.dims));
  return header;
}

// Reads the elements of the first rows.global_size() rows on the root and hands each rank its own, block by
// block. Every block starts with on_root, so a failed read ends the loop on all ranks alike.
template <class Out>
std::vector<Out> scatter_rows(const Comm& comm, IdxStream* stream, const IdxHeader& header, const Partition& rows) {
  const std::int64_t row_bytes = element_count(header) * idx_element_size(header.type);
  const std::int64_t n_bytes = rows.global_size() * row_bytes;
  std::vector<Out> local;
  collectively(comm, [&] { local.reserve(static_cast<std::size_t>(rows.local_size() * element_count(header))); });

  std::vector<unsigned char> block(static_cast<std::size_t>(comm.is_root() ? std::min(block_bytes, n_bytes) : 0));
  std::vector<unsigned char> piece;
  std::vector<int> counts(static_cast<std::size_t>(comm.size())), offsets(counts.size());
  for (std::int64_t begin = 0; begin < n_bytes; begin += block_bytes) {
    const std::int64_t end = std::min(begin + block_bytes, n_bytes);
    on_root(comm, [&] { stream->read(std::span(block).first(static_cast<std::size_t>(end - begin))); });
    for (int r = 0; r < comm.size(); ++r) {
      const std::int64_t first = std::clamp(rows.begin(r) * row_bytes, begin, end);
      const std::int64_t last = std::clamp(rows.begin(r + 1) * row_bytes, begin, end);
      offsets[r] = narrow<int>(first - begin);
      counts[r] = narrow<int>(last - first);
    }
    piece.resize(static_cast<std::size_t>(counts[comm.rank()]));
    parallel::mpi_check(MPI_Scatterv(block.data(), counts.data(), offsets.data(), MPI_UNSIGNED_CHAR, piece.data(),
                                     counts[comm.rank()], MPI_UNSIGNED_CHAR, 0, comm.get()),
                        "MPI_Scatterv");
    append(header.type, piece, local);
  }
  on_root(comm, [&] { stream->finish(); });
  return local;
}

Partition limited_rows(const Comm& comm, const IdxHeader& header, std::int64_t limit) {
  return Partition(limit > 0 ? std::min(limit, header.dims[0]) : header.dims[0], comm);
}

void require(const std::string& file, const IdxHeader& header, std::size_t n_dims, const char* what) {
  if (header.dims.size() == n_dims) return;
  throw DataError(file, "",
                  fmt::format("holds {} (magic 0x{:04x}, {} dimension{}); {} have {}", shape_text(header.dims),
                              static_cast<unsigned>(header.type) * 256 + header.dims.size(), header.dims.size(),
                              header.dims.size() == 1 ? "" : "s", what, n_dims));
}

}  // namespace

IdxHeader read_idx_header(const Comm& comm, const std::string& file) {
  std::unique_ptr<IdxStream> stream;
  return open_everywhere(comm, file, stream);
}

IdxImages read_images(const Comm& comm, const std::string& file, std::int64_t limit) {
  std::unique_ptr<IdxStream> stream;
  const IdxHeader header = open_everywhere(comm, file, stream);
  require(file, header, 3, "images");
  IdxImages images;
  images.rows = limited_rows(comm, header, limit);
  images.n_in_file = header.dims[0];
  images.image_rows = header.dims[1];
  images.image_columns = header.dims[2];
  images.pixels = scatter_rows<double>(comm, stream.get(), header, images.rows);
  return images;
}

IdxLabels read_labels(const Comm& comm, const std::string& file, std::int64_t limit) {
  std::unique_ptr<IdxStream> stream;
  const IdxHeader header = open_everywhere(comm, file, stream);
  require(file, header, 1, "labels");
  if (header.type == IdxType::float32 || header.type == IdxType::float64)
    throw DataError(file, "",
                    fmt::format("holds elements of type {}; labels are integers", idx_type_name(header.type)));
  IdxLabels labels;
  labels.rows = limited_rows(comm, header, limit);
  labels.n_in_file = header.dims[0];
  labels.values = scatter_rows<std::int64_t>(comm, stream.get(), header, labels.rows);
  return labels;
}

}  // namespace nqf::data
