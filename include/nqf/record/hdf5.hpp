#pragma once

#include <hdf5.h>

#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>

#include "nqf/parallel/hdf5_handles.hpp"

namespace nqf::record {

namespace h5 {
using namespace parallel::h5;

/// Stops HDF5 printing its error stack: its reasons travel in our exceptions. Cheap; called wherever a file
/// is opened.
void silence();

/// What HDF5's error stack names as the innermost cause of the last failure, e.g. "No space left on device".
std::string innermost_reason();

/// The element types of the files: double, int64 and uint8 (flags), in native byte order.
template <class T>
concept Element = std::same_as<T, double> || std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t>;
template <Element T>
hid_t type_of() {
  if constexpr (std::same_as<T, double>)
    return H5T_NATIVE_DOUBLE;
  else if constexpr (std::same_as<T, std::int64_t>)
    return H5T_NATIVE_INT64;
  else
    return H5T_NATIVE_UINT8;
}

/// Variable-length UTF-8.
Datatype string_type();
}  // namespace h5

/// Passes the result of an HDF5 call on, or throws LibraryError with HDF5's innermost reason if it is
/// negative.
std::int64_t h5_check(std::int64_t result, const char* call,
                      std::source_location where = std::source_location::current());

}  // namespace nqf::record
