"""The program as its user has it: start nqf on some ranks, write decks, look at what it left.

Environment: NQF (the binary), NQF_MPIEXEC, NQF_REFERENCE (folder of reference/*.h5), NQF_INPUTS (folder of the decks).
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np

NQF = os.environ["NQF"]
MPIEXEC = os.environ.get("NQF_MPIEXEC", "mpiexec")
REFERENCE = Path(os.environ["NQF_REFERENCE"])
INPUTS = Path(os.environ["NQF_INPUTS"])

# A rank's own exit status, whatever mpirun makes of it: the wrapper notes it down and then pretends success, so that
# mpirun neither kills the other ranks nor hides a rank that hangs.
WRAPPER = '"$@"; echo $? > "$NQF_STATUS_FOLDER/$OMPI_COMM_WORLD_RANK"'


class Done:
    """A finished program: exit status, texts, seconds; and every rank's status where it was asked for."""

    def __init__(self, status, out, err, seconds, rank_statuses=()):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds
        self.rank_statuses = rank_statuses

    def __repr__(self):
        return f"status {self.status} {self.rank_statuses} after {self.seconds:.1f} s\n--- out\n{self.out}\n--- err\n{self.err}"


def command(arguments, ranks):
    words = [NQF, *map(str, arguments)]
    return [MPIEXEC, "-n", str(ranks), *words] if ranks else words


def nqf(*arguments, ranks=0, timeout=60, folder=None, each_rank=False, **options):
    """Runs to the end. ranks = 0: without mpirun. A run beyond `timeout` seconds is killed and raises."""
    words = command(arguments, ranks)
    with tempfile.TemporaryDirectory() as statuses:
        environment = dict(os.environ, NQF_STATUS_FOLDER=statuses)
        if each_rank:
            words = [MPIEXEC, "-n", str(ranks), "sh", "-c", WRAPPER, "sh", *command(arguments, 0)]
        begin = time.monotonic()
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=folder, env=environment, start_new_session=True, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            stacks = stacks_of(process)
            kill_all(process)
            out, err = process.communicate()
            raise AssertionError(f"{' '.join(words)} did not end within {timeout} s\n{out}\n{err}\n{stacks}") from None
        seconds = time.monotonic() - begin
        each = [(Path(statuses) / str(rank)) for rank in range(ranks)] if each_rank else []
        each = [int(path.read_text()) if path.exists() else None for path in each]
    return Done(process.returncode, out, err, seconds, each)


def start(*arguments, ranks=0, folder=None, out=subprocess.DEVNULL):
    return subprocess.Popen(command(arguments, ranks), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                            cwd=folder, start_new_session=True)


def descendants(pid):
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found - {pid}
        found |= more


def processes_of(process):
    """The ranks of a started program: those of its processes that run nqf itself."""
    own = []
    for pid in {process.pid} | descendants(process.pid):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", NQF):
                own.append(pid)
        except OSError:
            pass
    return own


def stacks_of(process):
    """Where each rank stands (needs gdb), so that a hang leaves a trace in the test's log."""
    text = ""
    for pid in processes_of(process):
        words = ["gdb", "-p", str(pid), "-batch", "-ex", "bt 40"]
        try:
            text += f"--- process {pid}\n" + subprocess.run(words, capture_output=True, text=True, timeout=30).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            text += f"--- process {pid}: {error}\n"
    return text or "no rank is running"


def finish(process, timeout=30):
    """Exit status of a started program. A hang is a failure that shows where."""
    try:
        return process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        stacks = stacks_of(process)
        kill_all(process)
        raise AssertionError(f"{process.args} did not end within {timeout} s\n{stacks}") from None


def kill_ranks(process):
    """kill -9 of every rank, without a chance to say goodbye; mpirun is left to clear up."""
    for pid in processes_of(process):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    finish(process)


def kill_all(process):
    for pid in descendants(process.pid) | {process.pid}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(condition, what, timeout=30):
    """Polls; an exception of h5py on a file that is just being made counts as not yet."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            if condition():
                return
        except (OSError, KeyError):
            pass
        time.sleep(0.01)
    raise AssertionError(f"waited {timeout} s in vain: {what}")


def together(*work):
    """Runs functions side by side (most of an mpirun's second is waiting) and returns their results in order."""
    with ThreadPoolExecutor(4) as pool:
        return [future.result() for future in [pool.submit(one) for one in work]]


# ------------------------------------------------------------------------------------------------------------ decks

def toml_value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Path):
        return json.dumps(str(value))
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def toml(**tables):
    """TOML of {table: {key: value}}; a list of tables is an array of tables with sub-tables one level deep."""
    text = ""
    for name, table in tables.items():
        for one in table if isinstance(table, list) else [table]:
            heading = f"[[{name}]]" if isinstance(table, list) else f"[{name}]"
            text += heading + "\n"
            text += "".join(f"{key} = {toml_value(value)}\n" for key, value in one.items() if not isinstance(value, dict)
                            or not isinstance(table, list))
            if isinstance(table, list):
                for key, value in one.items():
                    if isinstance(value, dict):
                        text += f"[{name}.{key}]\n" + "".join(f"{k} = {toml_value(v)}\n" for k, v in value.items())
    return text


def three_modes(**changes):
    """Three uncoupled modes that light at 5.76, 11.5 and 23.0; tables in `changes` are merged into the deck's."""
    tables = {"system": {"kind": "modes"}, "modes": {"growth_rate": [2.0, 1.0, 0.5], "saturation": 1.0},
              "initial": {"epsilon": 1e-5}, "time": {"end": 40.0, "outputs": 40}}
    for name, table in changes.items():
        tables[name] = {**tables.get(name, {}), **table} if isinstance(table, dict) else table
    return toml(**tables)


def coupled_modes(**changes):
    """The coupled modes of reference/modes_coupled.h5, with the output times of its expected arrays."""
    with h5py.File(REFERENCE / "modes_coupled.h5") as file:
        end = float(file["expected/time"][-1])
    tables = {"system": {"kind": "modes"}, "modes": {"file": REFERENCE / "modes_coupled.h5"},
              "initial": {"value": {"file": REFERENCE / "modes_coupled.h5", "dataset": "initial"}},
              "time": {"end": end, "outputs": 40}}
    for name, table in changes.items():
        tables[name] = {**tables.get(name, {}), **table}
    return toml(**tables)


# ---------------------------------------------------------------------------------------------------------- results

def datasets(file, group="/"):
    found = {}
    file[group].visititems(lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None)
    return found


def contents(path, group="/"):
    """Every data set as a numpy array, the decks in groups /input excepted."""
    with h5py.File(path, "r") as file:
        return {name: item[()] for name, item in datasets(file, group).items() if "input" not in name.split("/")}


# What counts work, not physics: it differs where the integrator took other steps.
WORK = re.compile(r"(^|/)series/(?!time$|loss$|lit_modes$)")


class Case(unittest.TestCase):
    """A test with a scratch folder."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._scratch = tempfile.TemporaryDirectory(prefix="nqf_whole_")
        cls.folder = Path(cls._scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls._scratch.cleanup()
        super().tearDownClass()

    def write(self, name, text, encoding="utf-8"):
        path = self.folder / name
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return path

    def good(self, done, status=0):
        self.assertEqual(done.status, status, done)
        return done

    def assert_same_bits(self, one, other, group="/"):
        a, b = contents(one, group), contents(other, group)
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            self.assertEqual(a[name].shape, b[name].shape, name)
            self.assertEqual(a[name].tobytes(), b[name].tobytes(), f"{name} differs:\n{a[name]}\n{b[name]}")

    def assert_same_values(self, one, other, group="/", tolerance=1e-5):
        """To the solver's tolerance: ln z and the loss absolutely, times relatively; work counters are not compared."""
        a, b = contents(one, group), contents(other, group)
        self.assertEqual(sorted(a), sorted(b))
        for name in a:
            if WORK.search(name) or name.endswith("fit/local_slope"):
                continue
            self.assertEqual(a[name].shape, b[name].shape, name)
            np.testing.assert_allclose(a[name], b[name], rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name)

    def assert_no_gap_no_duplicate(self, path, schedule, group="/"):
        with h5py.File(path, "r") as file:
            top = file[group]
            np.testing.assert_array_equal(top["series/time"][()], schedule)
            np.testing.assert_array_equal(top["modes/time"][()], schedule)
            lengths = {name: item.shape[-1] for name, item in datasets(top, "series").items()}
            self.assertEqual(set(lengths.values()), {len(schedule)}, lengths)
            times, modes, kinds = (top[f"ignitions/{name}"][()] for name in ("time", "mode", "kind"))
        self.assertTrue(np.all(np.diff(times) >= 0), times)
        events = list(zip(modes, times, kinds))
        self.assertEqual(len(set(events)), len(events), events)
        for mode in set(modes):  # lit and extinct take turns
            own = kinds[modes == mode]
            self.assertTrue(np.all(own[::2] == 1) and np.all(own[1::2] == -1), (mode, own))


def bytes_of(folder):
    """Every file below a folder with a hash of its bytes, to show that nothing was touched (lock files excepted)."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(folder).rglob("*"))
            if path.is_file() and path.name != ".nqf.lock"}


def main():
    unittest.main(verbosity=2)
