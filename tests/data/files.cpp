#include "data/files.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

namespace nqf::test {

namespace {
void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("test set-up: ") + what);
}
}  // namespace

ScratchFolder::ScratchFolder() {
  parallel::on_root(world(), [&] {
    path_ = (std::filesystem::temp_directory_path() / "nqf-data-XXXXXX").string();
    require(::mkdtemp(path_.data()) != nullptr, "mkdtemp");
  });
  world().broadcast(path_);
}

ScratchFolder::~ScratchFolder() {
  world().barrier();
  if (world().is_root()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

void write_on_root(const std::function<void()>& work) {
  parallel::on_root(world(), work);
}

void add_dataset(const std::string& file, const std::string& name, hid_t type, const std::vector<std::int64_t>& shape,
                 const std::vector<double>& values) {
  const hid_t id = std::filesystem::exists(file) ? H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                                 : H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
  require(id >= 0, "HDF5 file");
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t set = H5Dcreate2(id, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  require(set >= 0, "data set");
  require(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, "write");
  H5Dclose(set);
  H5Pclose(links);
  H5Sclose(space);
  require(H5Fclose(id) >= 0, "close");
}

void write_bytes(const std::string& file, const std::vector<unsigned char>& bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  require(out.good(), "write");
}

void write_gzip(const std::string& file, const std::vector<unsigned char>& bytes, std::size_t cut) {
  gzFile out = gzopen(file.c_str(), "wb");
  require(out != nullptr, "gzopen");
  require(gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()), "gzwrite");
  require(gzclose(out) == Z_OK, "gzclose");
  if (cut > 0) std::filesystem::resize_file(file, std::filesystem::file_size(file) - cut);
}

std::vector<unsigned char> idx_bytes(unsigned char type, const std::vector<std::uint32_t>& dims,
                                     const std::vector<unsigned char>& elements) {
  std::vector<unsigned char> bytes{0, 0, type, static_cast<unsigned char>(dims.size())};
  for (const std::uint32_t n : dims)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<unsigned char>(n >> shift));
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

deck::ArraySource array_of(std::vector<double> values, const std::string& key) {
  return {std::move(values), {"case.toml", 7, key}};
}

deck::ArraySource array_in(const std::string& file, const std::string& dataset) {
  return {deck::FileArray{file, dataset}, {"case.toml", 7, "modes.growth_rate"}};
}

std::string message_of(const std::function<void()>& work) {
  std::string mine;
  try {
    work();
  } catch (const Error& error) {
    mine = error.what();
  }
  std::string roots = mine;
  world().broadcast(roots);
  EXPECT_EQ(mine, roots);
  return mine;
}

std::vector<double> gathered(const std::vector<double>& local) {
  return world().all_gather(std::span<const double>(local));
}

}  // namespace nqf::test
