#include <fmt/format.h>

#include "nqf/deck/module.hpp"
#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

namespace {

TargetKind usual_target(DataKind kind) {
  switch (kind) {
    case DataKind::fourier:
      return TargetKind::list;
    case DataKind::idx:
      return TargetKind::labels;
    case DataKind::hdf5:
      return TargetKind::file;
    default:
      return TargetKind::linear;
  }
}

// Rules by value, not by presence: the resolved deck names every default, and must run.
void check_kind(const TableReader& table, const DataOptions& o) {
  const bool idx = o.kind == DataKind::idx, hdf5 = o.kind == DataKind::hdf5, files = idx || hdf5;
  const bool gaussian = o.kind == DataKind::gaussian, tokens = o.kind == DataKind::tokens;
  const auto belongs = [&](bool fits, bool used, const char* key, const char* where) {
    table.require_that(fits || !used, key, std::string("belongs to ") + where);
  };
  table.require_that(!idx || !o.images.empty(), "images", "missing, but needed by kind = \"idx\"");
  table.require_that(!hdf5 || !o.file.empty(), "file", "missing, but needed by kind = \"hdf5\"");
  belongs(idx, !o.images.empty(), "images", "kind = \"idx\"");
  belongs(idx, !o.classes.empty(), "classes", "kind = \"idx\"");
  belongs(hdf5, !o.test_file.empty(), "test_file", "kind = \"hdf5\"");
  belongs(gaussian || tokens, o.covariance.given(), "covariance", "kinds gaussian and tokens");
  belongs(gaussian || tokens, o.rotate, "rotate", "kinds gaussian and tokens");
  belongs(tokens || o.kind == DataKind::images, o.correlation != 0.0, "correlation", "kinds tokens and images");
  belongs(files, o.standardise != Standardisation::none, "standardise", "data from files");
  belongs(files, o.centre_targets, "centre_targets", "data from files");
  belongs(files, o.scale != 1.0, "scale", "data from files");
  belongs(files, o.test_fraction != 0.0, "test_fraction", "data from files; synthetic data take test_samples");
  table.require_that(files || o.samples > 0, "samples", "missing, but needed by synthetic data");
  table.require_that(files || !o.shape.empty() || o.kind == DataKind::fourier, "shape",
                     "missing, but needed by synthetic data");
  table.require_that(o.correlation < 1.0, "correlation", fmt::format("must be below 1, got {}", o.correlation));
}

void check_test(const TableReader& table, const DataOptions& o) {
  const bool files = o.kind == DataKind::idx || o.kind == DataKind::hdf5;
  table.require_that(o.test_fraction < 1.0, "test_fraction", fmt::format("must be below 1, got {}", o.test_fraction));
  table.require_that(o.test_fraction == 0.0 || o.test_images.empty(), "test_fraction",
                     "and test_images exclude each other");
  table.require_that(o.test_fraction == 0.0 || o.test_file.empty(), "test_fraction",
                     "and test_file exclude each other");
  table.require_that(
      !files || o.test_samples == 0 || o.test_fraction > 0.0 || !o.test_images.empty() || !o.test_file.empty(),
      "test_samples", "needs test_fraction or a test file beside it");
}

void check_target(const TableReader& table, const DataOptions& o) {
  const bool idx = o.kind == DataKind::idx, hdf5 = o.kind == DataKind::hdf5, fourier = o.kind == DataKind::fourier;
  const bool teacher = o.target == TargetKind::linear || o.target == TargetKind::module;
  const auto only = [&](TargetKind target, bool fits, const char* reason) {
    table.require_that(o.target != target || fits, "target", reason);
  };
  only(TargetKind::labels, idx, "\"labels\" belongs to kind = \"idx\"");
  only(TargetKind::file, hdf5, "\"file\" belongs to kind = \"hdf5\"");
  only(TargetKind::list, fourier, "\"list\" belongs to kind = \"fourier\"");
  only(TargetKind::linear, !fourier, "\"linear\" has no meaning for kind = \"fourier\"; list or module are");
  only(TargetKind::module, !o.centre_targets, "\"module\" sets the targets later; centre_targets must be false");
  table.require_that(teacher || o.outputs == 1, "outputs", "belongs to the targets linear and module");
  table.require_that(teacher || !o.spectrum.given(), "spectrum", "belongs to the targets linear and module");
  table.require_that(teacher || fourier || o.noise == 0.0, "noise", "belongs to synthetic targets");
  table.require_that(fourier || !o.coefficients.given(), "coefficients", "belongs to kind = \"fourier\"");
  table.require_that(fourier || o.count == 0, "count", "belongs to kind = \"fourier\"");
  table.require_that(o.target != TargetKind::list || o.coefficients.given(), "coefficients",
                     "missing, but needed by target = \"list\"");
}

}  // namespace

DataOptions DataOptions::from(TableReader table) {
  DataOptions o;
  table.require("kind", o.kind, "where the inputs x come from",
                {{"gaussian", DataKind::gaussian},
                 {"tokens", DataKind::tokens},
                 {"images", DataKind::images},
                 {"fourier", DataKind::fourier},
                 {"entries", DataKind::entries},
                 {"matrices", DataKind::matrices},
                 {"idx", DataKind::idx},
                 {"hdf5", DataKind::hdf5}});
  table.read("samples", o.samples, "number of samples N; of files the first so many, 0: all", non_negative);
  table.read("test_samples", o.test_samples, "samples of the test; of test files the first so many, 0: all",
             non_negative);
  table.read("test_fraction", o.test_fraction, "share of a file's samples set apart for the test, by the seed [-]",
             non_negative);
  table.read("seed", o.seed, "seed of inputs, noise and split");
  table.read("shape", o.shape,
             "shape of one x: [n], [tokens, n], [rows, columns] or [rows, columns, channels]; entries: of the matrix; "
             "files: as which x is read",
             at_least(1));
  table.read("covariance", o.covariance,
             "eigenvalues of the inputs' covariance along the last dimension; default 1 [-]", non_negative);
  table.read("rotate", o.rotate, "random orthogonal eigenvectors of the covariance; else the coordinate axes");
  table.read(
      "basis", o.basis,
      "matrices: sqrt(N) times the orthonormal basis of the symmetric matrices, N = n(n + 1)/2, in place of random "
      "ones: exactly isotropic");
  table.read("correlation", o.correlation, "tokens, images: correlation of neighbours, in [0, 1) [-]", non_negative);
  o.target = usual_target(o.kind);
  table.read("target", o.target,
             "where the targets y come from; default: fourier list, idx labels, hdf5 file, else linear",
             {{"linear", TargetKind::linear},
              {"module", TargetKind::module},
              {"labels", TargetKind::labels},
              {"file", TargetKind::file},
              {"list", TargetKind::list}});
  table.read("outputs", o.outputs, "number of outputs m of a synthetic target", at_least(1));
  table.read(
      "spectrum", o.spectrum,
      "teacher: singular values of the linear map (kind matrices: eigenvalues), or eigenvalues of W* W*^T of the "
      "module; a list shorter than full rank is the rank; default 1 [-]");
  table.read("coefficients", o.coefficients, "Fourier data: target sum_k b_k psi_k(x) [-]");
  table.read("count", o.count,
             "Fourier data: number of coefficients and features where no list says it; 0: samples - 1", non_negative);
  table.read("teacher_seed", o.teacher_seed, "seed of the teacher");
  table.read("noise", o.noise, "standard deviation of the noise on linear and module targets [-]", non_negative);
  table.read_path("images", o.images, "IDX file of images, gzip or plain");
  table.read_path("labels", o.labels, "IDX file of labels, gzip or plain");
  table.read_path("test_images", o.test_images, "IDX file of the test images");
  table.read_path("test_labels", o.test_labels, "IDX file of the test labels");
  table.read("classes", o.classes,
             "labels that have an output, in order, others are left out; empty: all; one: it against all others",
             at_least(0));
  table.read("one_hot", o.one_hot,
             "one output a class, 1 where the label is its own; else the label as a number; one class: 1 or 0");
  table.read("standardise", o.standardise,
             "inputs of files: as they are; less the mean of each feature; (x - mean)/deviation with those of all "
             "entries (global) or of each feature; always of the training samples",
             {{"none", Standardisation::none},
              {"centre", Standardisation::centre},
              {"global", Standardisation::global},
              {"feature", Standardisation::feature}});
  table.read("centre_targets", o.centre_targets, "subtract the targets' means");
  table.read("scale", o.scale, "inputs are multiplied by this first; 1/255 makes bytes to 0 … 1 [-]", positive);
  table.read_path("file", o.file, "HDF5 file with x, y [, weight], or A, y [, B, g, f0, weight]");
  table.read_path("test_file", o.test_file, "HDF5 file with the same data sets for the test");
  table.read("stream", o.stream, "samples a rank holds at a time where moments are taken; 0: by itself", non_negative);
  table.finish();
  o.place = table.place();

  table.needs("images", "labels");
  table.needs("labels", "images");
  table.needs("test_images", "test_labels");
  table.needs("test_labels", "test_images");
  table.needs("test_images", "images");
  table.needs("test_file", "file");
  check_kind(table, o);
  check_test(table, o);
  check_target(table, o);
  return o;
}

}  // namespace nqf::deck
