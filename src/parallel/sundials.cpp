#include "nqf/parallel/sundials.hpp"

#include "nqf/parallel/errors.hpp"

namespace nqf::parallel {

void sundials_check(int code, const char* call, std::source_location where) {
  if (code < 0) throw LibraryError(call, code, "", where);
}

SundialsContext make_sundials_context(const Comm& comm) {
  SundialsContext context;
#if SUNDIALS_VERSION_MAJOR >= 7
  sundials_check(SUNContext_Create(comm.get(), context.out()), "SUNContext_Create");
#else
  MPI_Comm raw = comm.get();
  sundials_check(SUNContext_Create(&raw, context.out()), "SUNContext_Create");
#endif
  return context;
}

}  // namespace nqf::parallel
