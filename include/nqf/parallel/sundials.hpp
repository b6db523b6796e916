#pragma once

#include <sundials/sundials_config.h>
#include <sundials/sundials_context.h>
#include <sundials/sundials_linearsolver.h>
#include <sundials/sundials_matrix.h>
#include <sundials/sundials_nonlinearsolver.h>
#include <sundials/sundials_nvector.h>
#include <sundials/sundials_types.h>

#include <source_location>
#include <string>

#include "nqf/parallel/comm.hpp"
#include "nqf/parallel/handle.hpp"

// What changed between SUNDIALS 6.4 and 7.x, in one place: SUNContext_Create takes the communicator by value since
// 7.0, realtype became sunrealtype (6.0 has both), booleantype became sunbooleantype (7.0), and SUNErrCode replaced
// int.
namespace nqf::parallel {

#if SUNDIALS_VERSION_MAJOR >= 7
using SundialsBool = sunbooleantype;
#else
using SundialsBool = booleantype;
#endif

/// Throws LibraryError for a negative return value of a SUNDIALS call.
void sundials_check(int code, const char* call, std::source_location where = std::source_location::current());

#if SUNDIALS_VERSION_MAJOR >= 7
inline constexpr SUNErrCode linear_solver_success = SUN_SUCCESS, matrix_success = SUN_SUCCESS;
inline constexpr int linear_solver_recoverable = SUNLS_CONV_FAIL, linear_solver_unrecoverable = SUN_ERR_EXT_FAIL;
#else
inline constexpr int linear_solver_success = SUNLS_SUCCESS, matrix_success = SUNMAT_SUCCESS;
inline constexpr int linear_solver_recoverable = SUNLS_CONV_FAIL,
                     linear_solver_unrecoverable = SUNLS_PACKAGE_FAIL_UNREC;
#endif

/// Keeps CVODE from printing: its latest error message goes to `message`, which must outlive the integrator.
void catch_sundials_messages(void* cvode, SUNContext context, std::string* message);

struct SundialsContextTraits {
  using Raw = SUNContext;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { SUNContext_Free(&raw); }
};
using SundialsContext = Handle<SundialsContextTraits>;
/// Collective.
SundialsContext make_sundials_context(const Comm& comm);

struct NVectorTraits {
  using Raw = N_Vector;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { N_VDestroy(raw); }
};
using NVector = Handle<NVectorTraits>;

struct SundialsMatrixTraits {
  using Raw = SUNMatrix;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { SUNMatDestroy(raw); }
};
using SundialsMatrix = Handle<SundialsMatrixTraits>;

struct LinearSolverTraits {
  using Raw = SUNLinearSolver;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { SUNLinSolFree(raw); }
};
using LinearSolver = Handle<LinearSolverTraits>;

struct NonlinearSolverTraits {
  using Raw = SUNNonlinearSolver;
  static Raw empty() noexcept { return nullptr; }
  static void free(Raw raw) noexcept { SUNNonlinSolFree(raw); }
};
using NonlinearSolver = Handle<NonlinearSolverTraits>;

}  // namespace nqf::parallel
