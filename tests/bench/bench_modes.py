#!/usr/bin/env python3
"""Coupled modes: nqf against scipy's best stiff solver, one thread each, in one run.

The problem: ln z of K modes, C = (4/N) A^T A with A Gaussian, columns scaled by k^-0.6 (drawn exactly through the
Bartlett factor of its Wishart matrix), targets A 1, columns with a negative rate turned round, z(0) = 1e-8, until about
95 % of the modes have passed 0.95. Both get the same tolerances; the error of each is the largest |d ln z| at the end
against nqf at 1e-10, over the modes that are alive (ln z > -20).

    bench_modes.py BENCH_MODES [--sizes 256 1024 4096] [--ratio 64] [--rounds 3] [--newton auto|direct|krylov] [--norm rms|max]
                   [--tolerance T] [--nqf-tolerance T]

--ratio N/K: 64 is nearly diagonal, 1 is ill-conditioned. Rounds alternate between the two; medians are printed.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

# One thread and no fresh pages for large temporaries: else scipy is measured 1.1 to 2 times slower than it is.
LIMITS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_MAX_": "0",
          "MALLOC_TRIM_THRESHOLD_": "100000000000"}
if any(os.environ.get(name) != value for name, value in LIMITS.items()):
    os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **LIMITS})

import h5py
import numpy as np
from scipy.integrate import solve_ivp

END = {256: 4186.52, 1024: 21772.4, 4096: 114515.8}


def problem(size, ratio, path):
    rng = np.random.default_rng(size)
    samples = ratio * size
    factor = np.tril(rng.standard_normal((size, size)), -1)
    factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(samples - np.arange(size)))
    factor *= (np.arange(1, size + 1) ** -0.6)[:, None]
    coupling = 4.0 / samples * factor @ factor.T
    growth = coupling.sum(axis=1)
    sign = np.where(growth < 0, -1.0, 1.0)
    coupling *= sign[:, None] * sign[None, :]
    growth *= sign
    end = END.get(size, 20.0 * size)
    with h5py.File(path, "w") as file:
        file["growth_rate"] = growth
        file["coupling"] = coupling
        file["log_initial"] = np.full(size, np.log(1e-8))
        file["end"] = [end]
    return growth, coupling, end


def run_nqf(program, path, newton, tolerance, norm, out):
    words = subprocess.run([program, path, out, newton, str(tolerance), norm], check=True, capture_output=True,
                           text=True).stdout.split()
    return float(words[1]), np.fromfile(out), " ".join(words[2:])


def run_lsoda(growth, coupling, end, tolerance):
    # The exponential is clipped: as it stands, LSODA dies of an overflow in a trial state.
    def rhs(_, x):
        return growth - coupling @ np.exp(np.minimum(x, 20.0))

    def jacobian(_, x):
        return -coupling * np.exp(np.minimum(x, 20.0))[None, :]

    begin = time.perf_counter()
    solution = solve_ivp(rhs, (0.0, end), np.full(growth.size, np.log(1e-8)), method="LSODA", jac=jacobian,
                         rtol=tolerance, atol=tolerance, t_eval=[end])
    return time.perf_counter() - begin, solution.y[:, -1], f"rhs {solution.nfev} jacobians {solution.njev}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--sizes", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--ratio", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--nqf-tolerance", type=float, help="another one for nqf: in the max norm it errs less than LSODA at the same")
    parser.add_argument("--newton", default="auto")
    parser.add_argument("--norm", default="rms", choices=["rms", "max"],
                        help="error norm of nqf: rms as in LSODA, or max, its default, which bounds every mode")
    options = parser.parse_args()
    our_tolerance = options.nqf_tolerance or options.tolerance
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            path, out = os.path.join(folder, "problem.h5"), os.path.join(folder, "out")
            growth, coupling, end = problem(size, options.ratio, path)
            _, reference, _ = run_nqf(options.program, path, "auto", 1e-10, "max", out)
            alive = reference > -20.0
            ours, theirs = [], []
            for _ in range(options.rounds):
                seconds, state, our_counts = run_nqf(options.program, path, options.newton, our_tolerance, options.norm, out)
                ours.append(seconds)
                our_error = np.abs(state - reference)[alive].max()
                seconds, state, their_counts = run_lsoda(growth, coupling, end, options.tolerance)
                theirs.append(seconds)
                their_error = np.abs(state - reference)[alive].max()
            ratios = [b / a for a, b in zip(ours, theirs)]
            print(f"K = {size}, N/K = {options.ratio}, {options.rounds} rounds, tolerances {our_tolerance:g} ({options.norm}) and {options.tolerance:g}")
            print(f"  nqf          {statistics.median(ours):9.3f} s  error {our_error:.1e}  {our_counts}")
            print(f"  scipy LSODA  {statistics.median(theirs):9.3f} s  error {their_error:.1e}  {their_counts}")
            print(f"  ratio        {statistics.median(ratios):9.1f}    ({min(ratios):.1f} to {max(ratios):.1f})", flush=True)


if __name__ == "__main__":
    main()
