#include <fmt/format.h>

#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/matrices_operator.hpp"
#include "structure/modules/module.hpp"
#include "structure/modules/symmetric.hpp"

namespace nqf::structure {

namespace {

/// A (and B, g, f0) from the file that has y, or x of synthetic matrices as A.
class MatricesModule final : public Module {
 public:
  MatricesModule(const ModuleContext& context, std::int64_t p)
      : options_(context.deck.data), scale_(context.deck.module.scale) {
    n_parameters_ = p;
    parameters_ = {{"w", 0, p}};
  }

  std::unique_ptr<StructureOperator> over(const data::Dataset& samples) const override {
    StructureMatrices matrices;
    matrices.n_parameters = n_parameters_;
    matrices.n_outputs = samples.shape.n_outputs;
    matrices.n_samples = samples.rows.local_size();
    matrices.a = samples.x;
    matrices.scale = scale_;
    return make_matrices_operator(matrices);
  }

  std::unique_ptr<StructureOperator> load(const parallel::Comm& comm, const data::Dataset& samples,
                                          data::Role role) const override {
    if (!samples.shape.input.empty()) return over(samples);
    const std::string& file =
        role == data::Role::test && !options_.test_file.empty() ? options_.test_file : options_.file;
    const std::int64_t p = n_parameters_, m = samples.shape.n_outputs;
    StructureMatrices matrices;
    matrices.n_parameters = p;
    matrices.n_outputs = m;
    matrices.n_samples = samples.rows.local_size();
    matrices.scale = scale_;
    const auto a = read(comm, file, "A", samples, p * p, true), b = read(comm, file, "B", samples, p * p, true),
               g = read(comm, file, "g", samples, p, false), f0 = read(comm, file, "f0", samples, 1, false);
    matrices.has_b = data::has_dataset(comm, file, "B");
    matrices.has_g = data::has_dataset(comm, file, "g");
    matrices.a = a;
    matrices.b = b;
    matrices.g = g;
    matrices.f0 = f0;
    return make_matrices_operator(matrices);
  }

 private:
  // This rank's rows of a data set of N × (m ×) size, empty if there is none; A is there (the data room saw it).
  std::vector<double> read(const parallel::Comm& comm, const std::string& file, const std::string& name,
                           const data::Dataset& samples, std::int64_t size, bool is_matrix) const {
    if (!data::has_dataset(comm, file, name)) return {};
    const auto shape = data::dataset_shape(comm, {file, name});
    const std::int64_t m = samples.shape.n_outputs, p = n_parameters_;
    const bool square =
        !is_matrix || (shape.size() >= 3 && shape[shape.size() - 1] == p && shape[shape.size() - 2] == p);
    if (shape.empty() || shape[0] < samples.rows.global_size() || data::row_size(shape) != m * size || !square)
      throw DataError(file, name,
                      fmt::format("is {}; {} samples of {} outputs and {} parameters need {} × {}{}{}",
                                  data::shape_text(shape), samples.rows.global_size(), m, p, samples.rows.global_size(),
                                  m > 1 ? fmt::format("{} × ", m) : "", size == 1 ? 1 : p,
                                  is_matrix ? fmt::format(" × {}", p) : ""));
    auto rows = data::read_rows(comm, {file, name}, samples.rows);
    parallel::collectively(comm, [&] {
      require_finite(rows, m * size, samples.rows.begin(), file, name);
      if (is_matrix) require_symmetric(rows, p, samples.rows.begin(), m, file, name);
    });
    return rows;
  }

  deck::DataOptions options_;
  double scale_;
};

}  // namespace

/// f_c = f0 + g·s + sᵀB s + Tr[M A], all from the file.
std::unique_ptr<Module> make_matrices(const ModuleContext& context) {
  const auto& shape = context.shape;
  std::int64_t p = 0;
  if (shape.input.empty()) {
    p = data::dataset_shape(context.comm, {context.deck.data.file, "A"}).back();
  } else {
    // x of synthetic matrices; a file with x has no A.
    const std::size_t n = shape.input.size();
    if (context.deck.data.kind != deck::DataKind::matrices || n != 2 || shape.input[0] != shape.input[1])
      refuse(context, "needs a data set A in data.file, or data.kind = \"matrices\"; sensing takes x of shape [p, p]");
    require_one_output(context);
    p = shape.input[0];
  }
  require_formable(context, p);
  return std::make_unique<MatricesModule>(context, p);
}

}  // namespace nqf::structure
