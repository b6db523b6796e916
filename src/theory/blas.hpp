#pragma once

// The few BLAS routines the theory calls, by their Fortran symbols (32-bit integers, column-major).
extern "C" {
/// x ← op(A)⁻¹ x, A triangular and packed by columns.
void dtpsv_(const char* uplo, const char* trans, const char* diag, const int* n, const double* ap, double* x,
            const int* incx);
double ddot_(const int* n, const double* x, const int* incx, const double* y, const int* incy);
}
