#include "nqf/parallel/sundials.hpp"

#include <cvode/cvode.h>

#include "nqf/parallel/errors.hpp"

namespace nqf::parallel {

void sundials_check(int code, const char* call, std::source_location where) {
  if (code < 0) throw LibraryError(call, code, "", where);
}

#if SUNDIALS_VERSION_MAJOR >= 7
void catch_sundials_messages(void* /*cvode*/, SUNContext context, std::string* message) {
  SUNContext_ClearErrHandlers(context);
  SUNContext_PushErrHandler(
      context,
      [](int, const char*, const char*, const char* text, SUNErrCode, void* data, SUNContext) {
        if (text) *static_cast<std::string*>(data) = text;
      },
      message);
}
#else
void catch_sundials_messages(void* cvode, SUNContext /*context*/, std::string* message) {
  CVodeSetErrHandlerFn(
      cvode,
      [](int, const char*, const char*, char* text, void* data) {
        if (text) *static_cast<std::string*>(data) = text;
      },
      message);
}
#endif

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
