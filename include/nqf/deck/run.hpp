#pragma once

#include <cstdint>
#include <vector>

#include "nqf/deck/array_source.hpp"

namespace nqf::deck {

class TableReader;

enum class TimeSpacing { linear, log };
enum class TimeUnit { time, log_epsilon, steps };

/// Table [time].
struct TimeOptions {
  double end = 0.0;                ///< required, > 0; absolute, so raising it extends a finished run
  TimeUnit unit = TimeUnit::time;  ///< "time", "log_epsilon": times in units of ln(1/epsilon), or whole "steps" of
                                   ///< discrete training
  std::int64_t outputs = 400;      ///< output times after t = 0
  TimeSpacing spacing = TimeSpacing::linear;  ///< "linear" or "log"
  double first = 0.0;                         ///< first output time of log spacing; 0: end/1e4
  std::vector<double> times;                  ///< explicit output times instead, increasing, in (0, end]
  Place place;                                ///< of the key `end`
  static TimeOptions from(TableReader table);
};

enum class SolutionForm { integrate, closed };
enum class NewtonSolver { automatic, direct, krylov };
enum class ErrorNorm { maximum, root_mean_square };

/// Table [solver].
struct SolverOptions {
  SolutionForm form = SolutionForm::integrate;  ///< "integrate" (CVODE) or "closed" (closed form, where one exists)
  double rtol = 0.0;                            ///< relative tolerance on ln z [-]; may be 0
  double atol = 1e-8;                           ///< absolute tolerance on ln z: the relative error of z [-]
  ErrorNorm norm = ErrorNorm::maximum;  ///< "max": the tolerances hold for every mode; "rms": on average over the modes
  std::int64_t max_steps = 100000;      ///< internal steps allowed between two outputs
  double max_step = 0.0;                ///< largest step [time]; 0: no limit
  NewtonSolver newton = NewtonSolver::automatic;  ///< "auto", "direct" (LAPACK on the lit set) or "krylov"
  bool single_precision = true;                   ///< products with a dense coupling, where that keeps the tolerances
  double lit_threshold = 1e-3;                    ///< a mode is in the Newton system when gamma C_kk z_k exceeds it [-]
  double dark_fraction = 1e-4;                    ///< rhs skips modes that together change it by less than this × atol
  double loss_tolerance = 1e-6;  ///< allowed rise of the loss over an earlier value, relative to that at t = 0 [-]
  Place place;                   ///< of the key `form`
  static SolverOptions from(TableReader table);
};

/// Table [output].
struct OutputOptions {
  std::int64_t snapshot_every = 1;         ///< outputs between snapshots of ln z
  std::int64_t modes_limit = 256;          ///< modes in a snapshot: all up to this, else a logarithmic selection
  bool theory_arrays = true;               ///< write /theory/growth_rate, saturation, drop, log_initial (K each)
  std::int64_t path_events = 100000;       ///< longest saddle path to compute
  std::int64_t order_parameter_every = 0;  ///< modules: outputs between snapshots of (M, s); 0: none
  static OutputOptions from(TableReader table);
};

/// Table [fit]: power law of the excess loss, excess ~ t^exponent.
struct FitOptions {
  bool enabled = true;
  std::vector<double> window;  ///< [begin, end]; empty: [10 t_1, t_K/30]
  double final_loss = 0.0;     ///< modules: L_∞, which the power law is over
  static FitOptions from(TableReader table);
};

/// Table [checkpoint]. Checkpoints fall only at points fixed here, never by clock or signal.
struct CheckpointOptions {
  std::int64_t every_outputs = 100;  ///< outputs between checkpoints; 0: none
  std::int64_t every_steps = 0;      ///< accepted steps between checkpoints; 0: none
  double stop_grace = 30.0;          ///< seconds a stop request may wait for the next checkpoint [s]
  static CheckpointOptions from(TableReader table);
};

}  // namespace nqf::deck
