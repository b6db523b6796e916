#pragma once

namespace nqf::record {

/// True once HDF5 has failed to write or close a file in this process (seen when a disk fills up on a file
/// system that cannot reserve space). MPI_Finalize would then crash inside HDF5, or wait for a rank that is
/// stuck there: print the error and end with MPI_Abort. Not collective; may differ between ranks.
bool must_abort() noexcept;

}  // namespace nqf::record
