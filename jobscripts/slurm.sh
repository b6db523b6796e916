#!/bin/bash
# Slurm: starts or continues a run; it comes back by itself until the run has reached its end.
#
#   sbatch jobscripts/slurm.sh DECK DIR [OPTIONS of nqf run]
#   for e in 1e-3 1e-5 1e-7; do sbatch jobscripts/slurm.sh deck.toml "eps_$e" --set "initial.epsilon=$e"; done
#
# Edit the resources below (or give them to sbatch) and the modules. NQF names the program if it is not in PATH.
#SBATCH --job-name=nqf
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=24:00:00
# USR1 comes to this script (B:) 300 s before the limit: long enough for stop_grace of the deck and a checkpoint.
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=nqf-%j.log

# module purge
# module load gcc openmpi petsc slepc sundials hdf5 openblas

set -u
deck=${1:?usage: sbatch slurm.sh DECK DIR [OPTIONS of nqf run]}
output=${2:?usage: sbatch slurm.sh DECK DIR [OPTIONS of nqf run]}
shift 2
nqf=${NQF:-nqf}
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1  # one rank a core

echo "$(date -Is) job ${SLURM_JOB_ID:-none}, start $((${SLURM_RESTART_COUNT:-0} + 1)): $("$nqf" --version), $deck -> $output"

# A second line of defence: nqf knows its limit, too, and then stops at the checkpoint before it.
limit=()
if [ -n "${SLURM_JOB_END_TIME:-}" ]; then limit=(--wall-time $((SLURM_JOB_END_TIME - $(date +%s) - 60))); fi

# The shell gets USR1 and hands it to mpirun, which hands it to the ranks. A trap ends the wait: then wait again.
pid='' signalled=
trap 'signalled=1; [ -z "$pid" ] || kill -USR1 "$pid"' USR1
mpirun -n "${SLURM_NTASKS:-2}" "$nqf" run "$deck" --output "$output" --restart ${limit[@]+"${limit[@]}"} "$@" &
pid=$!
while wait "$pid"; status=$?; [ -n "$signalled" ]; do signalled=; done

# 85: stopped early with a good checkpoint. The limit on restarts ends a run that never gets on.
if [ "$status" -eq 85 ] && [ -n "${SLURM_JOB_ID:-}" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 100 ]; then
  echo "$(date -Is) to be continued"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
