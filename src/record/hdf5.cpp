#include "nqf/record/hdf5.hpp"

#include "nqf/parallel/errors.hpp"

namespace nqf::record {

namespace h5 {

void silence() {
  (void)H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string innermost_reason() {
  std::string reason;
  const auto first_only = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    *static_cast<std::string*>(out) = error->desc ? error->desc : "";
    return 1;
  };
  (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_only, &reason);
  return reason;
}

Datatype string_type() {
  Datatype type(h5_check(H5Tcopy(H5T_C_S1), "H5Tcopy"));
  h5_check(H5Tset_size(type.get(), H5T_VARIABLE), "H5Tset_size");
  h5_check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

}  // namespace h5

std::int64_t h5_check(std::int64_t result, const char* call, std::source_location where) {
  if (result < 0) throw LibraryError(call, static_cast<long>(result), h5::innermost_reason(), where);
  return result;
}

}  // namespace nqf::record
