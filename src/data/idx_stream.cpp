#include "data/idx_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "data/files.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::data {

namespace {

std::int64_t big_endian_32(const unsigned char* bytes) {
  return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 | std::int64_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

std::int64_t idx_element_size(IdxType type) {
  switch (type) {
    case IdxType::uint8:
    case IdxType::int8:
      return 1;
    case IdxType::int16:
      return 2;
    case IdxType::int32:
    case IdxType::float32:
      return 4;
    case IdxType::float64:
      return 8;
  }
  return 0;  // not a type of the format
}

const char* idx_type_name(IdxType type) {
  switch (type) {
    case IdxType::uint8:
      return "uint8";
    case IdxType::int8:
      return "int8";
    case IdxType::int16:
      return "int16";
    case IdxType::int32:
      return "int32";
    case IdxType::float32:
      return "float32";
    case IdxType::float64:
      return "float64";
  }
  return "unknown";
}

IdxStream::IdxStream(std::string path) : path_(std::move(path)), stored_bytes_(readable_size(path_)) {
  errno = 0;
  file_.reset(gzopen(path_.c_str(), "rb"));
  if (!file_) fail(errno ? std::generic_category().message(errno) : std::string("out of memory"));
  gzbuffer(file_.get(), 1u << 17);
  read_header();
  check_length_known_beforehand();
}

void IdxStream::fail(const std::string& reason) const {
  throw DataError(path_, "", reason);
}

std::string IdxStream::expectation() const {
  return header_.dims.empty() ? fmt::format("expected at least {} bytes", expected_)
                              : fmt::format("expected {} bytes for {} elements of type {}", expected_,
                                            shape_text(header_.dims), idx_type_name(header_.type));
}

// As many bytes as there are; fewer than asked for only at the end of the file.
std::int64_t IdxStream::read_some(std::span<unsigned char> out) {
  std::int64_t done = 0;
  while (done < static_cast<std::int64_t>(out.size())) {
    const auto n = std::min<std::size_t>(out.size() - static_cast<std::size_t>(done), std::size_t{1} << 30);
    const int got = gzread(file_.get(), out.data() + done, static_cast<unsigned>(n));
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 && code != Z_BUF_ERROR)
      fail(code == Z_ERRNO ? std::generic_category().message(errno)
                           : fmt::format("damaged gzip data after {} bytes ({})", position_, message));
    if (got <= 0) break;  // the end, also that of a gzip stream cut short
    done += got;
    position_ += got;
  }
  return done;
}

void IdxStream::read(std::span<unsigned char> out) {
  if (read_some(out) < static_cast<std::int64_t>(out.size()))
    fail(fmt::format("{}, found {}", expectation(), position_));
}

void IdxStream::read_header() {
  unsigned char magic[4] = {};
  read(magic);
  header_.type = static_cast<IdxType>(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || idx_element_size(header_.type) == 0 || magic[3] == 0)
    fail(
        fmt::format("is not an IDX file: it starts with 0x{:08x}, not with 0x0000, a type (0x08, 09, 0b … "
                    "0e) and a number of dimensions",
                    big_endian_32(magic)));
  std::vector<unsigned char> lengths(std::size_t{4} * magic[3]);
  expected_ = 4 + static_cast<std::int64_t>(lengths.size());
  read(lengths);
  std::int64_t bytes = idx_element_size(header_.type);
  bool representable = true;
  for (std::size_t d = 0; d < magic[3]; ++d) {
    header_.dims.push_back(big_endian_32(lengths.data() + 4 * d));
    representable = representable && !__builtin_mul_overflow(bytes, header_.dims.back(), &bytes);
  }
  if (!representable || __builtin_add_overflow(expected_, bytes, &expected_))
    fail(fmt::format("its header claims {} elements, more than a file can hold", shape_text(header_.dims)));
}

// A header that claims too much is refused before memory is taken for it.
void IdxStream::check_length_known_beforehand() {
  constexpr std::int64_t best_ratio = 1032;  // deflate cannot compress better than this
  if (gzdirect(file_.get())) {
    if (stored_bytes_ != expected_) fail(fmt::format("{}, found {}", expectation(), stored_bytes_));
  } else if (expected_ / best_ratio > stored_bytes_) {
    fail(fmt::format("{}, found at most {}", expectation(), stored_bytes_ * best_ratio));
  }
}

void IdxStream::finish() {
  std::vector<unsigned char> rest(std::size_t{1} << 20);
  while (read_some(rest) > 0) {
  }
  if (position_ != expected_) fail(fmt::format("{}, found {}", expectation(), position_));
  // Bytes can all be there and the stream still lack its end or its checksum be wrong.
  int code = Z_OK;
  const char* message = gzerror(file_.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END)
    fail(fmt::format("damaged gzip data after {} bytes ({})", position_, message));
}

}  // namespace nqf::data
