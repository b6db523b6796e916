#include "nqf/data/hdf5_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "data/files.hpp"
#include "nqf/parallel/errors.hpp"
#include "support/world.hpp"

using namespace nqf;
using namespace nqf::test;
using parallel::Partition;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

namespace {
std::string shape_message(const std::string& file, const std::string& dataset) {
  return message_of([&] { data::dataset_shape(world(), {file, dataset}); });
}
}  // namespace

TEST(Hdf5Reader, AnyNumberTypeComesAsDouble) {
  ScratchFolder scratch;
  const auto file = scratch.file("types.h5");
  const std::vector<double> values{0, 1, 2, 3, 100, 127, 64};
  const std::vector<hid_t> types{H5T_IEEE_F32BE, H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I8BE,      H5T_STD_U8LE,
                                 H5T_STD_I16BE,  H5T_STD_I32LE,  H5T_STD_U64BE,  H5T_NATIVE_LDOUBLE};
  write_on_root([&] {
    for (std::size_t t = 0; t < types.size(); ++t) add_dataset(file, "set" + std::to_string(t), types[t], {7}, values);
    add_dataset(file, "negative", H5T_STD_I16BE, {2}, {-32768, 300});
  });
  for (std::size_t t = 0; t < types.size(); ++t)
    EXPECT_EQ(gathered(data::read_rows(world(), {file, "set" + std::to_string(t)}, Partition(7, world()))), values)
        << t;
  EXPECT_EQ(gathered(data::read_rows(world(), {file, "negative"}, Partition(2, world()))),
            (std::vector<double>{-32768, 300}));
}

TEST(Hdf5Reader, RowsAreSplitUnevenlyAndOverMoreRanksThanRows) {
  ScratchFolder scratch;
  const auto file = scratch.file("rows.h5");
  for (const std::int64_t n : {1, 2, 4, 11}) {
    std::vector<double> values(static_cast<std::size_t>(n * 6));
    std::iota(values.begin(), values.end(), 0.5);
    const std::string name = "group/deep" + std::to_string(n);
    write_on_root([&] { add_dataset(file, name, H5T_IEEE_F64BE, {n, 2, 3}, values); });
    const Partition rows(n, world());
    const auto local = data::read_rows(world(), {file, name}, rows);
    EXPECT_EQ(static_cast<std::int64_t>(local.size()), rows.local_size() * 6);
    EXPECT_EQ(gathered(local), values);
    EXPECT_EQ(data::dataset_shape(world(), {file, name}), (std::vector<std::int64_t>{n, 2, 3}));
  }
  // The first rows only.
  EXPECT_EQ(gathered(data::read_rows(world(), {file, "group/deep11"}, Partition(2, world()))).back(), 11.5);
  EXPECT_EQ(message_of([&] {
              data::read_rows(world(), {file, "group/deep4"}, Partition(5, world()));
            }),
            file + ", data set 'group/deep4': has 4 rows (shape 4 × 2 × 3); 5 are needed");
}

TEST(Hdf5Reader, ScalarsAndSingleEntriesAreNumbers) {
  ScratchFolder scratch;
  const auto file = scratch.file("scalar.h5");
  write_on_root([&] {
    add_dataset(file, "scalar", H5T_STD_I32BE, {}, {42});
    add_dataset(file, "single", H5T_IEEE_F32BE, {1, 1}, {0.25});
    add_dataset(file, "pair", H5T_IEEE_F32BE, {2}, {1, 2});
  });
  EXPECT_EQ(data::read_scalar(world(), {file, "scalar"}), 42.0);
  EXPECT_EQ(data::read_scalar(world(), {file, "single"}), 0.25);
  EXPECT_EQ(message_of([&] {
              data::read_scalar(world(), {file, "pair"});
            }),
            file + ", data set 'pair': has the shape 2; a single number is needed");
  EXPECT_EQ(message_of([&] {
              data::read_rows(world(), {file, "scalar"}, Partition(1, world()));
            }),
            file + ", data set 'scalar': is a scalar; an array is needed");
}

TEST(Hdf5Reader, AMissingDataSetNamesTheNearest) {
  ScratchFolder scratch;
  const auto file = scratch.file("names.h5");
  const auto bare = scratch.file("bare.h5");
  write_on_root([&] {
    add_dataset(file, "growth_rate", H5T_NATIVE_DOUBLE, {1}, {1});
    add_dataset(file, "modes/drop", H5T_NATIVE_DOUBLE, {1}, {1});
    H5Fclose(H5Fcreate(bare.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
  });
  EXPECT_EQ(shape_message(file, "growth_rates"),
            file + ", data set 'growth_rates': does not exist; did you mean 'growth_rate'?");
  EXPECT_EQ(shape_message(file, "drop"), file + ", data set 'drop': does not exist; did you mean 'modes/drop'?");
  EXPECT_EQ(shape_message(file, "modes"), file + ", data set 'modes': is not a data set but a group or a type");
  EXPECT_EQ(shape_message(bare, "x"), bare + ", data set 'x': does not exist; the file holds no data set");
  EXPECT_TRUE(data::has_dataset(world(), file, "modes/drop"));
  EXPECT_FALSE(data::has_dataset(world(), file, "modes/rise"));
  EXPECT_FALSE(data::has_dataset(world(), file, "modes"));
}

TEST(Hdf5Reader, TypesThatAreNoNumbersAreRefusedByName) {
  ScratchFolder scratch;
  const auto file = scratch.file("types.h5");
  write_on_root([&] {
    const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t two = 2;
    const hid_t space = H5Screate_simple(1, &two, nullptr);
    const hid_t compound = H5Tcreate(H5T_COMPOUND, 16);
    H5Tinsert(compound, "re", 0, H5T_NATIVE_DOUBLE);
    H5Tinsert(compound, "im", 8, H5T_NATIVE_DOUBLE);
    H5Dclose(H5Dcreate2(id, "complex", compound, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dclose(H5Dcreate2(id, "text", H5T_C_S1, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hid_t null_space = H5Screate(H5S_NULL);
    H5Dclose(H5Dcreate2(id, "nothing", H5T_NATIVE_DOUBLE, null_space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(null_space);
    H5Tclose(compound);
    H5Sclose(space);
    H5Fclose(id);
  });
  EXPECT_EQ(shape_message(file, "complex"),
            file + ", data set 'complex': holds compounds; numbers are needed (any integer or float type)");
  EXPECT_EQ(shape_message(file, "text"),
            file + ", data set 'text': holds strings; numbers are needed (any integer or float type)");
  EXPECT_EQ(shape_message(file, "nothing"), file + ", data set 'nothing': has no content");
}

TEST(Hdf5Reader, UnusableFilesSayWhyAndHdf5PrintsNothing) {
  ScratchFolder scratch;
  const auto text = scratch.file("text.h5");
  const auto empty = scratch.file("empty.h5");
  const auto cut = scratch.file("cut.h5");
  write_on_root([&] {
    write_bytes(text, {'n', 'o', 't', ' ', 'h', 'd', 'f'});
    write_bytes(empty, {});
    add_dataset(cut, "x", H5T_NATIVE_DOUBLE, {1000}, std::vector<double>(1000, 1.0));
    std::filesystem::resize_file(cut, 3000);
  });
  CaptureStderr();
  EXPECT_EQ(shape_message(scratch.file("none.h5"), "x"), scratch.file("none.h5") + ": No such file or directory");
  EXPECT_EQ(shape_message(scratch.file("."), "x"), scratch.file(".") + ": is a folder, not a file");
  EXPECT_EQ(shape_message(text, "x"), text + ": is not an HDF5 file");
  EXPECT_EQ(shape_message(empty, "x"), empty + ": is empty, not an HDF5 file");
  const auto truncated = shape_message(cut, "x");
  EXPECT_EQ(GetCapturedStderr(), "");
  EXPECT_TRUE(truncated.starts_with(cut + ": cannot be opened (HDF5: truncated file")) << truncated;
}

TEST(Hdf5Reader, ADamagedChunkOfOneRankIsEveryonesError) {
  ScratchFolder scratch;
  const auto file = scratch.file("damaged.h5");
  write_on_root([&] {
    const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t n = 64, chunk = 4;
    const hid_t space = H5Screate_simple(1, &n, nullptr);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_fletcher32(properties);
    const hid_t set = H5Dcreate2(id, "x", H5T_STD_U8LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    std::vector<unsigned char> values(n, 1);
    const std::string mark = "MARK";  // the last chunk
    std::copy(mark.begin(), mark.end(), values.end() - 4);
    H5Dwrite(set, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Pclose(properties);
    H5Sclose(space);
    H5Fclose(id);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(bytes)), std::istreambuf_iterator<char>());
    bytes.clear();
    bytes.seekp(static_cast<std::streamoff>(content.find(mark)));
    bytes.put('D');
  });
  const auto message = message_of([&] { data::read_rows(world(), {file, "x"}, Partition(64, world())); });
  EXPECT_TRUE(message.starts_with(file + ", data set 'x': rows ")) << message;
  // HDF5 1.10 names the checksum; 1.14 only its filter.
  EXPECT_TRUE(message.find("checksum") != std::string::npos || message.find("filter") != std::string::npos) << message;
}
