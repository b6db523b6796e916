#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nqf/deck/array_source.hpp"

// Input files that the tests of this room write for themselves. Everything here is collective; the root
// writes.
namespace nqf::test {

/// A folder of its own for each run of the program, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Runs `work` on the root and waits for it.
void write_on_root(const std::function<void()>& work);

/// Adds a data set of file type `type` (say H5T_IEEE_F32BE), creating file and groups where needed. Root
/// only.
void add_dataset(const std::string& file, const std::string& name, hid_t type, const std::vector<std::int64_t>& shape,
                 const std::vector<double>& values);

/// Writes bytes as they are, or as one gzip stream of which the last `cut` bytes are missing. Root only.
void write_bytes(const std::string& file, const std::vector<unsigned char>& bytes);
void write_gzip(const std::string& file, const std::vector<unsigned char>& bytes, std::size_t cut = 0);
/// An IDX file's bytes: type, dimensions, then `elements` as they are.
std::vector<unsigned char> idx_bytes(unsigned char type, const std::vector<std::uint32_t>& dims,
                                     const std::vector<unsigned char>& elements);

deck::ArraySource array_of(std::vector<double> values, const std::string& key = "modes.growth_rate");
deck::ArraySource array_in(const std::string& file, const std::string& dataset);

/// What the error says that `work` throws on this rank; empty if it throws none of ours. Checks that all
/// ranks say the same.
std::string message_of(const std::function<void()>& work);

/// All ranks' entries, in rank order.
std::vector<double> gathered(const std::vector<double>& local);

}  // namespace nqf::test
