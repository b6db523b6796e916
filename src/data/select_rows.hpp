#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/data/sample_source.hpp"
#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/partition.hpp"

namespace nqf::data {

/// Which rows of a file are the samples of `role`. `eligible` are the ones of this rank's block of the file that may be
/// used at all, by their index in the file, ascending. Of all of them, in order, a pseudo-random permutation of the
/// seed sets options.test_fraction apart for the test (files without a test file); of what is left to a role the first
/// options.samples or test_samples are kept (0: all). Returns this rank's. Collective; memory as `eligible`.
/// @throws DeckError: an empty training set or test, more samples asked for than there are
std::vector<std::int64_t> select_rows(const parallel::Comm& comm, const deck::DataOptions& options, Role role,
                                      const std::vector<std::int64_t>& eligible, const std::string& file);

/// The key that limits the samples of a role.
std::string limit_key(Role role);
/// The size that options ask for of `available` samples. @throws as select_rows
std::int64_t limited_size(const deck::DataOptions& options, Role role, std::int64_t available, const std::string& file);

}  // namespace nqf::data
