#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>

#include "nqf/data/idx.hpp"
#include "nqf/parallel/handle.hpp"

namespace nqf::data {

/// One IDX file, plain or gzip, read from front to back on one rank. Every failure is a DataError.
class IdxStream {
 public:
  /// Opens the file and reads its header.
  explicit IdxStream(std::string path);
  const IdxHeader& header() const noexcept { return header_; }
  /// The next out.size() bytes of the elements.
  void read(std::span<unsigned char> out);
  /// Reads what is left and checks that the file ends where its header says.
  void finish();

 private:
  struct Traits {
    using Raw = gzFile;
    static Raw empty() noexcept { return nullptr; }
    static void free(Raw raw) noexcept { (void)gzclose_r(raw); }
  };
  void read_header();
  void check_length_known_beforehand();
  std::int64_t read_some(std::span<unsigned char> out);
  std::string expectation() const;
  [[noreturn]] void fail(const std::string& reason) const;

  std::string path_;
  std::int64_t stored_bytes_ = 0;  // size of the file on disk
  parallel::Handle<Traits> file_;
  IdxHeader header_;
  std::int64_t expected_ = 4;  // bytes after decompression, header included
  std::int64_t position_ = 0;
};

std::int64_t idx_element_size(IdxType type);
const char* idx_type_name(IdxType type);

}  // namespace nqf::data
