#pragma once

#include <functional>

#include "arguments.hpp"
#include "nqf/parallel/log.hpp"
#include "nqf/parallel/session.hpp"

namespace nqf::drivers {

// One file each; they return the exit status. Collective, but for plot, which replaces this process.
int run(const parallel::Session& session, const Arguments& arguments);
int check(const parallel::Session& session, const Arguments& arguments);
int predict(const parallel::Session& session, const Arguments& arguments);
int audit(const parallel::Session& session, const Arguments& arguments);
int spectrum(const parallel::Session& session, const Arguments& arguments);
int show(const parallel::Session& session, const Arguments& arguments);
int describe(const parallel::Session& session, const Arguments& arguments);
int plot(const Arguments& arguments, const char* program);

/// Runs `work` so that an error of one rank ends all of them within 5 s: if every rank throws, the exception goes on
/// its way up; if only some do, they print it and abort. Wrap what holds collective objects, so that none is destroyed
/// on one rank alone.
void protect(const parallel::Comm& comm, const std::function<void()>& work);

}  // namespace nqf::drivers
