#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

// IDX files (the format of MNIST, http://yann.lecun.com/exdb/mnist), plain or gzip: 0 0 type n_dims, the
// dimensions as big-endian 32-bit integers, then the elements, big-endian. Types: unsigned and signed byte,
// 16- and 32-bit integer, float, double.
//
// All functions are collective. The root reads the file once, to its end, and scatters it in blocks of a few
// MiB; other ranks need no access to it. Whatever is wrong is a DataError on every rank: no such file, not
// IDX, a wrong number of dimensions, damaged gzip data, a file longer or shorter than its header says
// (expected and found bytes).
namespace nqf::data {

enum class IdxType : unsigned char {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0B,
  int32 = 0x0C,
  float32 = 0x0D,
  float64 = 0x0E
};

struct IdxHeader {
  IdxType type = IdxType::uint8;
  std::vector<std::int64_t> dims;
};

/// The header alone; of a plain file its length is checked too.
IdxHeader read_idx_header(const parallel::Comm& comm, const std::string& file);

struct IdxImages {
  parallel::Partition rows;    ///< images over the ranks
  std::int64_t n_in_file = 0;  ///< images in the file, also those beyond the limit
  std::int64_t image_rows = 0;
  std::int64_t image_columns = 0;
  std::vector<double> pixels;  ///< rows.local_size() × (image_rows·image_columns), row-major, as stored (0 … 255)
};

struct IdxLabels {
  parallel::Partition rows;
  std::int64_t n_in_file = 0;
  std::vector<std::int64_t> values;  ///< rows.local_size()
};

/// The first `limit` images (0: all; no more than there are), three dimensions. Memory: the local pixels, and
/// a block.
IdxImages read_images(const parallel::Comm& comm, const std::string& file, std::int64_t limit = 0);

/// The first `limit` labels (0: all; no more than there are), one dimension, an integer type.
IdxLabels read_labels(const parallel::Comm& comm, const std::string& file, std::int64_t limit = 0);

}  // namespace nqf::data
