#include "nqf/solver/input_spectrum.hpp"

#include <algorithm>
#include <cmath>

#include "nqf/parallel/blas.hpp"
#include "nqf/parallel/narrow.hpp"

namespace nqf::solver {

namespace {

constexpr std::int64_t block_bytes = 1 << 20;
constexpr std::int64_t default_large_count = 100;

/// Rows of samples that fill a block of memory.
std::int64_t rows_in_block(std::int64_t row_size) {
  return std::max<std::int64_t>(1, block_bytes / (8 * std::max<std::int64_t>(row_size, 1)));
}

double total_weight(const parallel::Comm& comm, const InputBlocks& blocks) {
  double sum = 0.0;
  parallel::collectively(comm, [&] {
    blocks([&](std::int64_t, std::span<const double>, std::span<const double> weight) {
      for (const double w : weight) sum += w;
    });
  });
  return comm.sum(sum);
}

std::vector<double> second_moment(const parallel::Comm& comm, const InputBlocks& blocks, std::int64_t n,
                                  double all_weight) {
  std::vector<double> moment(static_cast<std::size_t>(n * n), 0.0), scaled;
  const int order = narrow<int>(n);
  const double one = 1.0;
  parallel::collectively(comm, [&] {
    blocks([&](std::int64_t count, std::span<const double> x, std::span<const double> weight) {
      scaled.resize(x.size());
      for (std::int64_t i = 0; i < count; ++i) {
        const double root = std::sqrt(weight[i] / all_weight);
        for (std::int64_t k = 0; k < n; ++k) scaled[i * n + k] = root * x[i * n + k];
      }
      const int inner = narrow<int>(count);
      dsyrk_("L", "N", &order, &inner, &one, scaled.data(), &order, &one, moment.data(), &order);
    });
  });
  comm.sum_in_place(std::span<double>(moment));
  return moment;
}

}  // namespace

InputBlocks blocks_of(const data::Dataset& samples) {
  return [&samples](const SampleVisitor& visit) {
    const auto n = samples.shape.input_size();
    const auto rows = rows_in_block(n);
    for (std::int64_t first = 0; first < samples.rows.local_size(); first += rows) {
      const auto count = std::min(rows, samples.rows.local_size() - first);
      visit(count, std::span(samples.x).subspan(first * n, count * n), std::span(samples.weight).subspan(first, count));
    }
  };
}

InputBlocks blocks_of(const parallel::Comm& comm, const data::SampleSource& source) {
  const parallel::Partition rows(source.size(), comm);
  return [&source, rows](const SampleVisitor& visit) {
    const auto n = source.shape().input_size(), m = source.shape().n_outputs;
    const auto block = std::min(rows_in_block(n + m), std::max<std::int64_t>(rows.local_size(), 1));
    std::vector<double> x(static_cast<std::size_t>(block * n)), y(static_cast<std::size_t>(block * m));
    std::vector<double> weight(static_cast<std::size_t>(block));
    for (std::int64_t first = rows.begin(); first < rows.end(); first += block) {
      const auto count = std::min(block, rows.end() - first);
      const auto own_x = std::span(x).first(static_cast<std::size_t>(count * n));
      const auto own_weight = std::span(weight).first(static_cast<std::size_t>(count));
      source.read(first, count, own_x, std::span(y).first(static_cast<std::size_t>(count * m)), own_weight);
      visit(count, own_x, own_weight);
    }
  };
}

InputBlocks mean_token(InputBlocks blocks, std::int64_t tokens, std::int64_t n) {
  return [blocks = std::move(blocks), tokens, n](const SampleVisitor& visit) {
    std::vector<double> mean;
    blocks([&](std::int64_t count, std::span<const double> x, std::span<const double> weight) {
      mean.assign(static_cast<std::size_t>(count * n), 0.0);
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t t = 0; t < tokens; ++t)
          for (std::int64_t k = 0; k < n; ++k)
            mean[i * n + k] += x[(i * tokens + t) * n + k] / static_cast<double>(tokens);
      visit(count, mean, weight);
    });
  };
}

Eigenpairs input_eigenpairs(const parallel::Comm& comm, const InputBlocks& blocks, std::int64_t n, std::int64_t count,
                            std::int64_t dense_limit) {
  const double all_weight = total_weight(comm, blocks);
  if (n <= dense_limit)
    return dense_eigenpairs(comm, second_moment(comm, blocks, n, all_weight), n, count == 0 ? n : count);
  std::vector<double> projected;
  const int size = narrow<int>(n), step = 1;
  const double one = 1.0, zero = 0.0;
  const SymmetricProduct product = [&](std::span<const double> v, std::span<double> out) {
    std::fill(out.begin(), out.end(), 0.0);
    parallel::collectively(comm, [&] {
      blocks([&](std::int64_t n_rows, std::span<const double> x, std::span<const double> weight) {
        projected.resize(static_cast<std::size_t>(n_rows));
        const int columns = narrow<int>(n_rows);
        dgemv_("T", &size, &columns, &one, x.data(), &size, v.data(), &step, &zero, projected.data(), &step);
        for (std::int64_t i = 0; i < n_rows; ++i) projected[i] *= weight[i] / all_weight;
        dgemv_("N", &size, &columns, &one, x.data(), &size, projected.data(), &step, &one, out.data(), &step);
      });
    });
    comm.sum_in_place(out);
  };
  return krylov_eigenpairs(comm, n, product, count == 0 ? default_large_count : count);
}

}  // namespace nqf::solver
