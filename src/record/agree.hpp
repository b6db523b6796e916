#pragma once

#include <functional>
#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::record {

/// A failed rank waited for the others in vain: most likely they wait for it inside HDF5.
class DesertedError : public RunError {
 public:
  using RunError::RunError;
};

/// parallel::collectively for work that is itself collective inside a library, as parallel HDF5 is: if it
/// threw on any rank, every rank throws RunError "subject: text of the lowest such rank". A failed rank may
/// have left the others waiting inside the library, so it waits for their answer for a few seconds only, then
/// throws DesertedError alone; the program must then end through MPI_Abort, as it does for every error of a
/// single rank. Collective.
void agree(const parallel::Comm& comm, const std::string& subject, const std::function<void()>& work);

/// Makes must_abort() true.
void note_broken() noexcept;

}  // namespace nqf::record
