#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nqf/deck/array_source.hpp"

namespace nqf::deck {

class TableReader;

/// The rows of THEORY §2.
enum class ModuleKind {
  perceptron,
  convolution,
  convolution_positions,
  attention,
  query_key,
  experts_softmax_linear,
  experts_sigmoid_linear,
  experts_softmax,
  fourier,
  sensing,
  phase_retrieval,
  factorisation,
  completion,
  bilinear_sequence,
  diagonal_network,
  matrices,
  custom
};

enum class ActivationKind { tanh, erf, sin, gelu, softplus, sigmoid, identity, relu, square };

/// Table [module] (system.kind = "module"): an architecture, THEORY §2.
struct ModuleOptions {
  ModuleKind kind = ModuleKind::perceptron;          ///< required in the deck
  ActivationKind activation = ActivationKind::tanh;  ///< φ₀ of φ(x) = gain·φ₀(stretch·x)
  double gain = 1.0;
  double stretch = 1.0;
  std::vector<std::int64_t>
      kernel;  ///< convolution over images [rows, columns] or sequences [tokens]; empty: x is patches
  std::vector<std::int64_t> stride;  ///< default 1 in every direction
  std::int64_t head_size = 1;        ///< k of attention
  double score_scale = 0.0;          ///< query-key attention: factor of the scores; 0: 1/√width
  ArraySource readout;     ///< query-key attention: ρ; default: data set rho of data.file, else (1, 0, …)/1
  ArraySource amplitude;   ///< Fourier features: s_k; sets their number with data.count
  bool is_signed = true;   ///< key "signed": diagonal network Σ x_k (u_k² − v_k²), else Σ x_k u_k v_k
  double scale = 1.0;      ///< A, B, g are multiplied by this (of d^(−α_A), say)
  std::string name;        ///< custom: of the user's module, structure/custom_module.hpp
  bool sum_terms = false;  ///< custom: g and B are carried; else a module that has them is refused
  Place name_place;
  Place place;
  static ModuleOptions from(TableReader table);
};

enum class DataKind { gaussian, tokens, images, fourier, entries, matrices, idx, hdf5 };
enum class TargetKind { linear, module, labels, file, list };
enum class Standardisation { none, centre, global, feature };

/// Table [data]: samples (x_n, y_n), n = 1 … N, and those of the test.
struct DataOptions {
  DataKind kind = DataKind::gaussian;  ///< required in the deck
  std::int64_t samples = 0;            ///< N; files: the first so many, 0: all
  std::int64_t test_samples = 0;       ///< synthetic data and test files: samples of the test; files 0: all
  double test_fraction = 0.0;          ///< files without a test file: drawn from the samples by the seed
  std::int64_t seed = 0;
  std::vector<std::int64_t> shape;  ///< of one x: [n], [tokens, n], images [rows, columns] or [rows, columns, channels]
  ArraySource covariance;           ///< gaussian, tokens: eigenvalues of Σ_xx along the last dimension; default 1
  bool rotate = false;              ///< gaussian, tokens: random orthogonal eigenvectors, else the coordinate axes
  bool basis = false;               ///< matrices: √N times the orthonormal basis of the symmetric ones, not random
  double correlation = 0.0;         ///< tokens, images: of neighbours, in [0, 1)

  TargetKind target = TargetKind::linear;  ///< default by kind: fourier list, idx labels, hdf5 file
  std::int64_t outputs = 1;                ///< m
  ArraySource spectrum;  ///< teacher: singular values (linear; matrices: eigenvalues) or eigenvalues of W* W*ᵀ (module)
  ArraySource coefficients;  ///< fourier: b_k
  std::int64_t count = 0;    ///< fourier: number of b_k (and of features) where no list says it; 0: samples − 1
  std::int64_t teacher_seed = 1;
  double noise = 0.0;  ///< standard deviation added to the targets

  std::string images, labels, test_images, test_labels;  ///< IDX files
  std::vector<std::int64_t> classes;  ///< labels kept, in order of the outputs; empty: all. One: 1 against the rest
  bool one_hot = true;                ///< m outputs; else one output: the label itself
  Standardisation standardise = Standardisation::none;
  bool centre_targets = false;
  double scale = 1.0;       ///< x is multiplied by this first (1/255 makes bytes to 0 … 1)
  std::string file;         ///< HDF5: x, y [, weight], or A, y [, B, g, f0, weight]
  std::string test_file;    ///< HDF5: the same data sets
  std::int64_t stream = 0;  ///< samples a rank holds at a time where moments are taken in passes; 0: by itself
  Place place;
  static DataOptions from(TableReader table);
};

enum class InitialWeights { gaussian, file, balanced, identity };

/// (M, s) drawn from its law at once; or every unit drawn, then compressed; or every unit drawn and kept.
enum class UnitsDrawn { none, compressed, kept };

/// Table [weights]: the width and W(0) (THEORY §3).
struct WeightsOptions {
  std::int64_t width = 0;  ///< d, to 1e15; required unless a file brings W0
  InitialWeights initial = InitialWeights::gaussian;
  double epsilon = 1e-3;  ///< entries N(0, ε²/d); balanced, identity: M(0) = ε² (projector or 1)
  std::int64_t seed = 0;
  std::string file;                     ///< HDF5 file with W0 (p × d); default data.file
  UnitsDrawn units = UnitsDrawn::none;  ///< gaussian: how W(0) of d > p units comes about
  std::int64_t rank = 0;                ///< d' < rank: the leading pairs only (Corollary 3); 0: exact
  Place place;
  static WeightsOptions from(TableReader table);
};

enum class Algorithm { flow, sgd, momentum, nesterov, adam, adamw };
enum class TrainingForm { automatic, factor, order_parameter, gram, modes, riccati };
enum class LossKind { squared, logistic, softmax };
enum class BatchSampling { full, with_replacement, without_replacement, online, file };
enum class RateSchedule { constant, step, exponential, cosine, linear };
enum class FlowMethod { automatic, adams, bdf };

/// Table [training] of a module.
struct TrainingOptions {
  Algorithm algorithm = Algorithm::flow;
  TrainingForm form = TrainingForm::automatic;
  LossKind loss = LossKind::squared;
  double weight_decay = 0.0;
  double tolerance = 1e-9;  ///< flow: relative error of W a step; absolute: this × rms of W(0)
  FlowMethod method = FlowMethod::automatic;
  double learning_rate = 0.0;                         ///< η; required for discrete training
  double momentum = 0.9;                              ///< β of momentum and nesterov
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of adam and adamw
  BatchSampling sampling = BatchSampling::full;
  std::int64_t batch = 0;  ///< samples of a mini-batch
  std::int64_t seed = 0;   ///< of the batches
  RateSchedule schedule = RateSchedule::constant;
  std::int64_t warmup = 0;              ///< steps of linear warm-up
  std::int64_t decay_steps = 0;         ///< step: steps between two decays; cosine, linear: steps until final_rate
  double decay_factor = 0.1;            ///< step, exponential (per step)
  double final_rate = 0.0;              ///< cosine, linear [η]
  double commutator_tolerance = 1e-10;  ///< auto: commuting systems are reduced to modes below this
  Place place;
  static TrainingOptions from(TableReader table);
};

/// Table [tangent_kernel] (THEORY §6).
struct TangentKernelOptions {
  std::int64_t samples = 0;           ///< the first so many; 0: off, unless there are indices
  std::vector<std::int64_t> indices;  ///< instead: global numbers of the samples, each once
  std::vector<double> times;          ///< of the kernel's matrix in the result, beside the start and the half-loss time
  bool is_wanted() const { return samples > 0 || !indices.empty(); }
  std::vector<std::int64_t> chosen() const;  ///< samples of the kernel's rows, in order
  static TangentKernelOptions from(TableReader table);
};

}  // namespace nqf::deck
