#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/refuse.hpp"
#include "dynamics/chi_squared.hpp"
#include "dynamics/compress.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/dynamics/training_system.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/parallel/random.hpp"

namespace nqf::dynamics {

using parallel::RandomStream;

namespace {

// Streams of W(0) under one seed.
enum Stream : std::uint64_t { entry = 0x5730, sum, off_diagonal, diagonal, left_factor, right_factor };

// Bartlett's factor of a Wishart matrix, column-major into `w` [p × p].
void wishart_factor(std::uint64_t seed, std::int64_t p, double degrees, double scale, double* w) {
  const RandomStream normals(seed, Stream::off_diagonal), squares(seed, Stream::diagonal);
  for (std::int64_t j = 0; j < p; ++j) {
    w[j + j * p] =
        scale * std::sqrt(chi_squared(squares, static_cast<std::uint64_t>(j), degrees - static_cast<double>(j)));
    for (std::int64_t i = j + 1; i < p; ++i)
      w[i + j * p] = scale * normals.normal(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j));
  }
}

CompressedWeights gaussian(const deck::WeightsOptions& options, std::int64_t p, bool has_sum_terms) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const std::int64_t d = options.width;
  const double root = std::sqrt(static_cast<double>(d)), scale = options.epsilon / root;
  CompressedWeights result{.p = p, .width = d};
  if (d <= p || options.units != deck::UnitsDrawn::none) {
    const RandomStream normals(seed, Stream::entry);
    result.r = d;
    result.w.resize(p * d);
    for (std::int64_t i = 0; i < d; ++i)
      for (std::int64_t a = 0; a < p; ++a)
        result.w[a + i * p] = scale * normals.normal(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(i));
    if (has_sum_terms) result.ones.assign(d, 1.0);
    if (options.units != deck::UnitsDrawn::compressed) return result;
    std::vector<double> rows(result.w.size());
    for (std::int64_t i = 0; i < d; ++i)
      for (std::int64_t a = 0; a < p; ++a) rows[a * d + i] = result.w[a + i * p];
    return compress(rows, p, d, has_sum_terms);
  }
  const std::int64_t sums = has_sum_terms ? 1 : 0;
  result.r = p + sums;
  result.w.resize(p * result.r);
  if (has_sum_terms) {
    const RandomStream normals(seed, Stream::sum);
    for (std::int64_t a = 0; a < p; ++a) result.w[a] = scale * normals.normal(static_cast<std::uint64_t>(a));
    result.ones.assign(result.r, 0.0);
    result.ones[0] = root;
  }
  wishart_factor(seed, p, static_cast<double>(d - sums), scale, result.w.data() + sums * p);
  return result;
}

// Adds a column in which all units are alike, so that s(0) = 0, where the d units are more than the columns.
void balance_sum(CompressedWeights& weights) {
  if (weights.width == weights.r) {
    weights.ones.assign(weights.r, 1.0);
    return;
  }
  weights.w.resize(weights.w.size() + weights.p, 0.0);
  weights.ones.assign(++weights.r, 0.0);
  weights.ones.back() = std::sqrt(static_cast<double>(weights.width));
}

CompressedWeights balanced(const deck::WeightsOptions& options, std::int64_t p, bool has_sum_terms,
                           const structure::Block& block) {
  if (block.size() == 0 || block.is_symmetric())
    data::refuse(data::key_of(options.place, "weights.initial"),
                 "\"balanced\" pairs the rows of u and v of a bipartite module, and this one has no such pairs; "
                 "\"identity\" or \"gaussian\" fit any module");
  const auto seed = static_cast<std::uint64_t>(options.seed);
  CompressedWeights result{
      .p = p, .r = std::min({block.n_rows, block.n_columns, options.width}), .width = options.width};
  const auto u = random_orthonormal(seed, Stream::left_factor, block.n_rows, result.r);
  const auto v = random_orthonormal(seed, Stream::right_factor, block.n_columns, result.r);
  result.w.assign(p * result.r, 0.0);
  const double scale = options.epsilon / std::sqrt(2.0);
  for (std::int64_t k = 0; k < result.r; ++k) {
    for (std::int64_t a = 0; a < block.n_rows; ++a)
      result.w[block.row_begin + a + k * p] = scale * u[a + k * block.n_rows];
    for (std::int64_t b = 0; b < block.n_columns; ++b)
      result.w[block.column_begin + b + k * p] = scale * v[b + k * block.n_columns];
  }
  if (has_sum_terms) balance_sum(result);
  return result;
}

CompressedWeights identity(const deck::WeightsOptions& options, std::int64_t p, bool has_sum_terms) {
  if (options.width < p)
    data::refuse(
        data::key_of(options.place, "weights.width"),
        fmt::format("initial = \"identity\" needs as many units as parameters: at least {}, got {}", p, options.width));
  CompressedWeights result{.p = p, .r = p, .width = options.width};
  result.w.assign(p * p, 0.0);
  for (std::int64_t a = 0; a < p; ++a) result.w[a + a * p] = options.epsilon;
  if (has_sum_terms) balance_sum(result);
  return result;
}

CompressedWeights from_file(const deck::Deck& deck, std::int64_t p, bool has_sum_terms) {
  const deck::FileArray array{deck.weights.file.empty() ? deck.data.file : deck.weights.file, "W0"};
  const auto self = parallel::Comm::duplicate(MPI_COMM_SELF);
  const auto shape = data::dataset_shape(self, array);
  const std::int64_t d = shape.size() == 2 ? shape[1] : 0;
  if (shape.size() != 2 || shape[0] != p || d < 1)
    throw DataError(
        array.file, array.dataset,
        fmt::format("has the shape {}; {} parameters × d units, d ≥ 1, are needed", data::shape_text(shape), p));
  if (deck.weights.width > 0 && deck.weights.width != d)
    data::refuse(data::key_of(deck.weights.place, "weights.width"),
                 fmt::format("is {}, but W0 of {} has {} units", deck.weights.width, array.file, d));
  const auto w = data::read_rows(self, array, parallel::Partition(p, 0, 1));
  for (std::size_t i = 0; i < w.size(); ++i)
    if (!std::isfinite(w[i])) {
      const auto at = static_cast<std::int64_t>(i);
      throw DataError(array.file, array.dataset, fmt::format("entry ({}, {}) is {}", at / d, at % d, w[i]));
    }
  return compress(w, p, d, has_sum_terms);
}

void broadcast(const parallel::Comm& comm, CompressedWeights& weights) {
  std::vector<std::int64_t> sizes{weights.p, weights.r, weights.width, std::ssize(weights.ones)};
  comm.broadcast(std::span<std::int64_t>(sizes));
  weights.p = sizes[0];
  weights.r = sizes[1];
  weights.width = sizes[2];
  weights.w.resize(static_cast<std::size_t>(sizes[0] * sizes[1]));
  weights.ones.resize(static_cast<std::size_t>(sizes[3]));
  comm.broadcast(std::span<double>(weights.w));
  comm.broadcast(std::span<double>(weights.ones));
  comm.broadcast(std::span<double>(&weights.truncation, 1));
}

structure::Block paired_block(const structure::ModuleProblem& problem) {
  if (problem.op) return problem.op->block();
  if (problem.parameters.size() != 2) return {};
  const auto &u = problem.parameters[0], &v = problem.parameters[1];
  return {u.begin, u.count, v.begin, v.count};
}

// Before it is allocated: p × p of a wide network overflows 32-bit indices from p = 46341 on.
void check_size(const deck::WeightsOptions& options, std::int64_t p) {
  if (options.initial == deck::InitialWeights::file) return;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const bool every_unit = options.units != deck::UnitsDrawn::none;
  const std::int64_t columns = every_unit ? options.width : std::min(options.width, p);
  if (columns > most / p)
    data::refuse(data::key_of(options.place, "weights.width"),
                 fmt::format("W(0) takes {} × {} entries, more than the {} a 32-bit index can number; {} units do", p,
                             columns, most, most / p));
}

}  // namespace

CompressedWeights make_initial_weights(const parallel::Comm& comm, const deck::Deck& deck, std::int64_t p,
                                       bool has_sum_terms, const structure::Block& block) {
  check_size(deck.weights, p);
  CompressedWeights result;
  // One rank draws and factorises: the same bits everywhere, whatever the machines.
  parallel::on_root(comm, [&] {
    switch (deck.weights.initial) {
      case deck::InitialWeights::gaussian:
        result = gaussian(deck.weights, p, has_sum_terms);
        break;
      case deck::InitialWeights::file:
        result = from_file(deck, p, has_sum_terms);
        break;
      case deck::InitialWeights::balanced:
        result = balanced(deck.weights, p, has_sum_terms, block);
        break;
      case deck::InitialWeights::identity:
        result = identity(deck.weights, p, has_sum_terms);
        break;
    }
    if (deck.weights.rank > 0) truncate(result, deck.weights.rank);
  });
  broadcast(comm, result);
  return result;
}

CompressedWeights make_initial_weights(const parallel::Comm& comm, const deck::Deck& deck,
                                       const structure::ModuleProblem& problem) {
  return make_initial_weights(comm, deck, problem.n_parameters, problem.objective->has_sum_terms(),
                              paired_block(problem));
}

}  // namespace nqf::dynamics
