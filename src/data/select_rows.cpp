#include "data/select_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/permutation.hpp"
#include "data/streams.hpp"
#include "data/synthetic_source.hpp"

namespace nqf::data {

namespace {
// Samples are set apart from the training set, not held in a file of their own.
bool is_split(const deck::DataOptions& options) {
  return options.test_fraction > 0.0;
}
}  // namespace

std::string limit_key(Role role) {
  return role == Role::train ? "samples" : "test_samples";
}

std::int64_t limited_size(const deck::DataOptions& options, Role role, std::int64_t available,
                          const std::string& file) {
  const std::int64_t asked = role == Role::train ? options.samples : options.test_samples;
  require_option(options, asked <= available, limit_key(role),
                 fmt::format("{} samples asked for, {} has {}{}", asked, file, available,
                             is_split(options) ? " for this after the split" : ""));
  return asked > 0 ? asked : available;
}

std::vector<std::int64_t> select_rows(const parallel::Comm& comm, const deck::DataOptions& options, Role role,
                                      const std::vector<std::int64_t>& eligible, const std::string& file) {
  const auto n_here = static_cast<std::int64_t>(eligible.size());
  const std::int64_t n = comm.sum(n_here), before = comm.exclusive_sum(n_here);
  std::vector<std::int64_t> kept = eligible;
  if (is_split(options)) {
    const std::int64_t n_test = std::llround(options.test_fraction * static_cast<double>(n));
    require_option(options, n_test > 0 && n_test < n, "test_fraction",
                   fmt::format("{} of {} samples leaves {} for the test and {} for training", options.test_fraction, n,
                               n_test, n - n_test));
    const Permutation shuffled(n, random_stream(options.seed, Use::split));
    kept.clear();
    for (std::int64_t i = 0; i < n_here; ++i)
      if ((shuffled(before + i) < n_test) == (role == Role::test))
        kept.push_back(eligible[static_cast<std::size_t>(i)]);
  }
  const auto kept_here = static_cast<std::int64_t>(kept.size());
  const std::int64_t kept_before = comm.exclusive_sum(kept_here);
  const std::int64_t size = limited_size(options, role, comm.sum(kept_here), file);
  kept.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(size - kept_before, 0, kept_here)));
  return kept;
}

}  // namespace nqf::data
