#pragma once

#include <cstdint>
#include <string>

#include "nqf/deck/array_source.hpp"

namespace nqf::deck {

class TableReader;

enum class SystemKind { modes, diagonal_network, samples, single_sample, module };

/// Table [system].
struct SystemOptions {
  SystemKind kind = SystemKind::modes;  ///< required in the deck
  Place place;                          ///< of the key `kind`
  static SystemOptions from(TableReader table);
};

/// Table [modes] (system.kind = "modes"), THEORY 4.1 and 4.2:
///   dz_k/dt = z_k (ζ_k − Σ_l C_kl z_l).
/// Uncoupled: growth_rate with saturation (z*_k = ζ_k/C_kk) or drop (V_k = ζ_k²/(8 C_kk)).
/// Dense: growth_rate with coupling (C, K×K). Factored: features (F, N×K) with targets (N), C = 4 Fᵀ diag(π) F,
/// ζ = 4 Fᵀ diag(π) y.
struct ModesOptions {
  std::int64_t count = 0;  ///< K; needed where every array is a power law or one number, else checked against them
  std::string file;  ///< HDF5 file with growth_rate, coupling | features, targets [, weight], initial | log_initial
  ArraySource growth_rate;  ///< ζ_k [1/time]
  ArraySource saturation;   ///< z*_k
  ArraySource drop;         ///< V_k
  MatrixSource coupling;    ///< C [1/time]
  MatrixSource features;    ///< F
  ArraySource targets;      ///< y_n
  ArraySource weight;       ///< π_n, normalised to sum 1; default 1/N
  Place place;
  static ModesOptions from(TableReader table);
};

/// Table [diagonal_network] (system.kind = "diagonal_network"): f = Σ_k x_k (u_k² − v_k²) (signed) or Σ_k x_k u_k².
/// Data: IDX images and labels, gzip or plain (one class against the rest), or an HDF5 file with x (N×n), y (N).
struct DiagonalNetworkOptions {
  bool is_signed = true;          ///< key "signed": modes k = +x_k and n + k = −x_k
  std::string images;             ///< IDX file of images
  std::string labels;             ///< IDX file of labels
  std::int64_t target_class = 0;  ///< key "class": y = 1 where the label is this one
  std::int64_t samples = 0;       ///< use the first so many samples; 0: all
  std::string file;               ///< HDF5 file with x, y instead of images and labels
  double scale = 1.0;             ///< inputs are multiplied by this (1/255 makes bytes to [0, 1])
  bool centre = true;             ///< subtract the means of inputs and targets
  Place place;
  static DiagonalNetworkOptions from(TableReader table);
};

enum class SampleKind { definite, signed_pair };

/// Table [samples] (system.kind = "samples"), orthogonal samples of THEORY 4.3.
struct SamplesOptions {
  SampleKind kind = SampleKind::definite;  ///< "definite" or "signed"
  std::int64_t count = 0;                  ///< N; needed where every array is a power law or one number
  std::string file;                        ///< HDF5 file with target, growth_rate, initial | log_initial
  ArraySource target;                      ///< y_n
  ArraySource growth_rate;                 ///< definite: ζ_n = 4 κ_n y_n / N; signed: 4 κ_n |y_n| / N
  Place place;
  static SamplesOptions from(TableReader table);
};

/// Table [single_sample] (system.kind = "single_sample"), THEORY 4.4.
struct SingleSampleOptions {
  std::int64_t count = 0;   ///< K
  ArraySource eigenvalues;  ///< a_k of the structure matrix
  double target = 0.0;      ///< y; required
  Place place;
  static SingleSampleOptions from(TableReader table);
};

/// Table [initial]: exactly one of value, log_value, epsilon, or none where the system's file brings it.
struct InitialOptions {
  ArraySource value;                    ///< z_k(0) (samples: f_n(0); signed: κ z₊(0))
  ArraySource log_value;                ///< ln z_k(0)
  LogNumber epsilon;                    ///< z_k(0) = epsilon · shape_k
  ArraySource shape;                    ///< default 1
  bool relative_to_saturation = false;  ///< multiply by z*_k (samples: y_n)
  ArraySource minus_ratio;              ///< signed samples: κ z₋(0) = minus_ratio · κ z₊(0); default 1
  Place place;
  static InitialOptions from(TableReader table);
};

}  // namespace nqf::deck
