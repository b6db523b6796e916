"""Decks of modules for the tests of the whole program."""

import h5py

from nqf_program import REFERENCE, toml

PERCEPTRON = {
    "system": {"kind": "module"}, "module": {"kind": "perceptron"},
    "data": {"kind": "gaussian", "samples": 200, "shape": [6], "outputs": 3, "spectrum": [1.0, 0.6, 0.35],
             "covariance": {"coefficient": 1.0, "exponent": 0.4}, "seed": 2},
    "weights": {"width": 40, "epsilon": 1e-3, "seed": 4},
    "time": {"end": 40.0, "outputs": 40}, "fit": {"enabled": False}}

STEPS = {"training": {"algorithm": "momentum", "learning_rate": 0.02, "sampling": "without_replacement", "batch": 16},
         "time": {"unit": "steps", "end": 400, "outputs": 40}}


def merged(tables, changes):
    """Tables of a deck; a table of `changes` is merged into its own, None takes a key or a table out."""
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for name, table in changes.items():
        if isinstance(table, dict):
            table = {**tables.get(name, {}), **table}
            tables[name] = {key: value for key, value in table.items() if value is not None}
        else:
            tables[name] = table
    return {name: table for name, table in tables.items() if table is not None}


def perceptron(**changes):
    """A perceptron of 40 units, 9 parameters, that a linear teacher of three modes teaches."""
    return toml(**merged(PERCEPTRON, changes))


def stepping(**changes):
    """The same, by 400 steps of SGD with momentum on mini-batches of 16."""
    return toml(**merged(merged(PERCEPTRON, STEPS), changes))


def from_file(name, kind, times, **changes):
    """A module on the samples, targets and W0 of a reference file, or of one that is given whole; outputs at `times`."""
    tables = {"system": {"kind": "module"}, "module": {"kind": kind}, "data": {"kind": "hdf5", "file": REFERENCE / name},
              "weights": {"initial": "file"}, "training": {"tolerance": 1e-11}, "time": {"end": times[-1], "times": list(times[1:])},
              "fit": {"enabled": False}}
    return toml(**merged(tables, changes))


def expected(name, *paths):
    with h5py.File(REFERENCE / name) as file:
        found = [file[f"expected/{path}"][()] for path in paths]
    return found[0] if len(found) == 1 else found
