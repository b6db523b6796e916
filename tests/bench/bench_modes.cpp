// Integrates one coupled problem from an HDF5 file (growth_rate K, coupling K×K, log_initial K, end) and prints what it
// took; the final ln z goes to the second file. Driven by bench_modes.py, which compares with scipy in the same run.
//   bench_modes PROBLEM OUT newton(auto|direct|krylov) atol norm(max|rms)
#include <fmt/format.h>
#include <hdf5.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "nqf/dynamics/lotka_volterra.hpp"
#include "nqf/parallel/session.hpp"
#include "nqf/solver/cvode_evolution.hpp"
#include "nqf/structure/dense_interaction.hpp"

namespace {

std::vector<double> read(hid_t file, const char* name) {
  const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(set);
  std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space);
  H5Dclose(set);
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace nqf;
  if (argc != 6) return 2;
  const std::string newton = argv[3];
  parallel::Session session(argv[0]);
  const auto& comm = session.comm();
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return 2;
  const auto growth = read(file, "growth_rate"), coupling = read(file, "coupling"), initial = read(file, "log_initial");
  const double end = read(file, "end").front();
  H5Fclose(file);
  const parallel::Partition modes(static_cast<std::int64_t>(growth.size()), comm);
  const auto own = [&](const std::vector<double>& all) {
    return std::vector<double>(all.begin() + modes.begin(), all.begin() + modes.end());
  };
  std::vector<double> rows(modes.local_size() * modes.global_size());
  for (std::int64_t l = 0; l < modes.global_size(); ++l)
    for (std::int64_t k = 0; k < modes.local_size(); ++k)
      rows[l * modes.local_size() + k] = coupling[(modes.begin() + k) * modes.global_size() + l];
  structure::DenseInteraction interaction(comm, modes, std::move(rows), own(growth));
  deck::SolverOptions options;
  options.atol = std::stod(argv[4]);
  options.rtol = options.atol;
  options.norm = std::string(argv[5]) == "rms" ? deck::ErrorNorm::root_mean_square : deck::ErrorNorm::maximum;
  options.newton = newton == "direct"   ? deck::NewtonSolver::direct
                   : newton == "krylov" ? deck::NewtonSolver::krylov
                                        : deck::NewtonSolver::automatic;
  comm.barrier();
  const auto begin = std::chrono::steady_clock::now();
  dynamics::LotkaVolterra flow(interaction, options.dark_fraction * options.atol / end);
  solver::CvodeEvolution evolution(flow, options, 0.0, own(initial));
  while (evolution.time() < end) evolution.step(end);
  comm.barrier();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto final_state = comm.all_gather(evolution.state());
  if (comm.is_root()) {
    const auto& work = evolution.work();
    fmt::print("seconds {} steps {} rhs {} newton {} krylov {} factorisations {} failures {} lit {}\n", seconds,
               work.steps, work.rhs_evaluations, work.newton_iterations, work.linear_iterations, work.factorisations,
               work.error_test_failures, work.newton_size);
    std::FILE* out = std::fopen(argv[2], "wb");
    if (!out) return 1;
    std::fwrite(final_state.data(), sizeof(double), final_state.size(), out);
    std::fclose(out);
  }
  return 0;
}
