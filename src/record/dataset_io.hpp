#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nqf/parallel/partition.hpp"
#include "nqf/record/hdf5.hpp"
#include "nqf/record/table.hpp"

// Steps that result files and checkpoints share. All throw LibraryError; none communicates by itself, but on
// a file opened through MPI-IO those that change it are to be called by all ranks with the same arguments.
namespace nqf::record::h5 {

/// Largest transfer of one H5Dwrite; MPI counts and some MPI-IO layers end at 2 GiB.
inline constexpr std::int64_t max_bytes_per_write = std::int64_t{1} << 30;

PropertyList parallel_access(const parallel::Comm& comm);
/// Opens for reading without MPI and without a lock: the file may be one that a run is writing.
File open_serial(const std::string& path);
PropertyList transfer(H5FD_mpio_xfer_t mode);
PropertyList creating_groups();
std::vector<hsize_t> shape_of(hid_t dataset);
Dataspace simple_space(std::span<const hsize_t> shape, const hsize_t* limit = nullptr);

/// A contiguous data set with its space allocated at once and never filled.
Dataset create_fixed(hid_t place, const std::string& path, hid_t type, std::span<const hsize_t> shape);
/// Writes this rank's rows of `partition` collectively, in as many calls on every rank.
void write_rows(hid_t dataset, hid_t type, std::size_t element_size, const void* local,
                const parallel::Partition& partition, std::int64_t row_length,
                std::int64_t max_bytes = max_bytes_per_write);
/// Strings as a data set, scalar or a vector. MPI-IO refuses to write strings of variable length, but copies
/// them: every rank writes the same texts to a file in memory and they are copied from there.
Dataset write_texts(hid_t place, const std::string& path, std::span<const std::string> texts, bool scalar);
std::string read_text(hid_t dataset);

void set_attribute(hid_t object, const std::string& name, std::string_view text);
void set_attribute(hid_t object, const std::string& name, double value);
void set_attribute(hid_t object, const std::string& name, std::int64_t value);
void set_attribute(hid_t object, const std::string& name, std::uint8_t value);
void set_attribute(hid_t object, const std::string& name, std::span<const std::string> texts);
void set_attribute(hid_t object, const std::string& name, std::span<const std::int64_t> values);

bool has_attribute(hid_t object, const std::string& name);
H5T_class_t attribute_class(hid_t object, const std::string& name);
std::string text_attribute(hid_t object, const std::string& name);
double real_attribute(hid_t object, const std::string& name);
std::int64_t integer_attribute(hid_t object, const std::string& name);
std::vector<std::string> texts_attribute(hid_t object, const std::string& name);
std::vector<std::int64_t> integers_attribute(hid_t object, const std::string& name);

/// True if every link of the path exists (H5Lexists fails on a missing group in the middle).
bool exists(hid_t file, const std::string& path);
std::vector<std::string> member_names(hid_t file, const std::string& group);
std::vector<std::string> attribute_names(hid_t object);

}  // namespace nqf::record::h5
