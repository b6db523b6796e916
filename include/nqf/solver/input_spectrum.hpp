#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "nqf/data/dataset.hpp"
#include "nqf/data/sample_source.hpp"
#include "nqf/solver/eigenpairs.hpp"

namespace nqf::solver {

/// Receives some samples: x [count × n] row-major and their weights [count], which need not sum to 1.
using SampleVisitor =
    std::function<void(std::int64_t count, std::span<const double> x, std::span<const double> weight)>;
/// Shows all samples of this rank, in blocks, the same ones at every call. Not collective.
using InputBlocks = std::function<void(const SampleVisitor&)>;

/// Samples in memory, which must outlive the result.
InputBlocks blocks_of(const data::Dataset& samples);
/// Samples read (or drawn) anew at every call, about a megabyte at a time; `source` must outlive the result.
InputBlocks blocks_of(const parallel::Comm& comm, const data::SampleSource& source);
/// Mean token of samples x [tokens × n]: what attention and pooled convolutions see at quadratic order (THEORY §2).
InputBlocks mean_token(InputBlocks blocks, std::int64_t tokens, std::int64_t n);

/// The `count` largest eigenvalues (0: all up to n = dense_limit, else 100) of Σ_xx = Σ_n π_n x xᵀ (not centred),
/// weights normalised. Up to dense_limit one pass forms Σ_xx (n² doubles a rank, N n²/ranks multiply–adds) for LAPACK;
/// beyond it Krylov–Schur takes one pass of 2 N n/ranks multiply–adds for each of some 3–10 products an eigenvalue.
/// Collective.
/// @throws DataError (through `blocks`) on every rank
Eigenpairs input_eigenpairs(const parallel::Comm& comm, const InputBlocks& blocks, std::int64_t n,
                            std::int64_t count = 0, std::int64_t dense_limit = 2000);

}  // namespace nqf::solver
