#!/usr/bin/env python3
"""nqf-plot as a user meets it: result files by the contract of DESIGN.md in, figures and messages out.

    /usr/bin/python3 tests/whole/test_plot.py                 the tests (NQF_PLOT: the program, if installed elsewhere)
    /usr/bin/python3 tests/whole/test_plot.py --write DIR     the result files of the tests, to look at their figures
"""

import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np

PROGRAM = Path(os.environ.get("NQF_PLOT", Path(__file__).resolve().parents[2] / "drivers" / "nqf-plot"))
MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF"}


# ------------------------------------------------------------------------------------ result files by the contract

def put(group, name, values, units, description, **attributes):
    dataset = group.create_dataset(name, data=values)
    dataset.attrs.update({"units": units, "description": description, **attributes})


def put_series(group, time, loss, offset):
    put(group, "series/time", time, "time", "time")
    put(group, "series/loss", loss, "loss", "excess loss" if offset == "excess" else "loss", loss_offset=offset)


def put_ignitions(group, mode, time, kind, predicted):
    order = np.argsort(time, kind="stable")
    put(group, "ignitions/mode", mode[order], "", "mode")
    put(group, "ignitions/time", time[order], "time", "ignition time")
    put(group, "ignitions/kind", kind[order], "", "+1 lit, -1 extinct")
    put(group, "ignitions/predicted_time", predicted[order], "time", "predicted time of the event")


def put_modes(group, index, time, log_value):
    put(group, "modes/index", index, "", "mode")
    put(group, "modes/time", time, "time", "time")
    put(group, "modes/log_value", log_value, "", "ln z")


class Logistic:
    """Uncoupled modes (THEORY 4.2): everything in closed form."""

    def __init__(self, growth, drop, log_initial):
        self.growth, self.drop, self.log_initial = map(np.asarray, (growth, drop, log_initial))
        self.log_saturation = np.log(8 * self.drop / self.growth)
        self.ignition = (self.log_saturation - self.log_initial) / self.growth

    def log_value(self, modes, t):
        a = (self.log_saturation - self.log_initial)[modes, None] - self.growth[modes, None] * t
        return self.log_saturation[modes, None] - np.logaddexp(0, a)

    def excess(self, t):
        a = (self.log_saturation - self.log_initial)[:, None] - self.growth[:, None] * t
        return np.sum(self.drop[:, None] / (1 + np.exp(-np.clip(a, -300, 300))) ** 2, axis=0)


def write_sudden_learning(group, log_initial=np.log(1e-5)):
    """Five uncoupled modes, clear plateaus."""
    growth = np.array([2.0, 1.0, 0.5, 0.28, 0.16])
    drop = np.array([1.0, 0.55, 0.35, 0.2, 0.12])
    modes = Logistic(growth, drop, np.full(5, log_initial))
    end = 1.25 * modes.ignition.max()
    t = np.linspace(0, end, 500)
    put_series(group, t, modes.excess(t), "excess")
    put_modes(group, np.arange(5), t[::2], modes.log_value(np.arange(5), t[::2]))
    put_ignitions(group, np.arange(5), modes.ignition * (1 + 1e-7), np.ones(5), modes.ignition)
    put(group, "theory/growth_rate", growth, "1/time", "growth rate")
    put(group, "theory/saturation", np.exp(modes.log_saturation), "", "saturation z*")
    put(group, "theory/log_initial", modes.log_initial, "", "ln z(0)")
    put(group, "theory/time", t, "time", "time")
    put(group, "theory/loss", modes.excess(t), "loss", "loss in closed form")


def write_power_law(group, n_modes=2000):
    """ζ_k = k^−0.8, V_k = k^−2, z_k(0) = ε k^−1.2 (THEORY 5): exponent −1.25 between first ignition and cut-off."""
    k = np.arange(1, n_modes + 1.0)
    modes = Logistic(k ** -0.8, k ** -2.0, np.log(1e-5 * k ** -1.2))
    t = np.geomspace(1, 10 * modes.ignition.max(), 160)
    loss = modes.excess(t)
    put_series(group, t, loss, "excess")
    chosen = np.unique(np.geomspace(1, n_modes, 60).astype(int)) - 1
    put_modes(group, chosen, t, modes.log_value(chosen, t))
    put_ignitions(group, np.arange(n_modes), modes.ignition, np.ones(n_modes), modes.ignition)
    put(group, "theory/saturation", np.exp(modes.log_saturation), "", "saturation z*")
    put(group, "theory/log_initial", modes.log_initial, "", "ln z(0)")
    window = np.array([10 * modes.ignition[0], modes.ignition[-1] / 30])
    if window[1] < 10 * window[0]:  # too few modes for the rule: still something to draw
        window = np.array([3 * modes.ignition[0], modes.ignition[-1] / 5])
    inside = (t >= window[0]) & (t <= window[1])
    (slope, _), covariance = np.polyfit(np.log(t[inside]), np.log(loss[inside]), 1, cov=True)
    put(group, "fit/exponent", slope, "", "fitted exponent")
    put(group, "fit/standard_error", np.sqrt(covariance[0, 0]), "", "standard error")
    put(group, "fit/window", window, "time", "window of the fit")
    put(group, "fit/predicted", -1.25, "", "predicted exponent")
    put(group, "fit/local_slope", np.gradient(np.log(loss), np.log(t)), "", "local slope")


def write_images(group, log_inverse_epsilon, rows=28, columns=28, n_events=300, seed=3):
    """Signed pixels that light along a path, a few going dark again; measured times off by O(1)/ln(1/ε)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:rows, :columns]
    shapes = [np.exp(-(((x / columns - a) / 0.16) ** 2 + ((y / rows - b) / 0.2) ** 2)) for a, b in ((.5, .3), (.4, .7))]
    field = np.concatenate([shape.ravel() for shape in shapes]) * rng.uniform(0.5, 1.0, 2 * rows * columns)
    mode = np.argsort(-field)[:n_events]
    tau = 0.12 / field[mode]
    n_dark = n_events // 6
    mode = np.concatenate([mode, mode[:n_dark]])
    tau = np.concatenate([tau, tau[:n_dark] * rng.uniform(1.5, 6, n_dark)])
    kind = np.concatenate([np.ones(n_events), -np.ones(n_dark)])
    order = np.argsort(tau)
    mode, tau, kind = mode[order], tau[order], kind[order]
    end = 0.9 * tau.max() * log_inverse_epsilon
    predicted = tau * log_inverse_epsilon
    measured = predicted * np.exp(rng.normal(0, 8.0 / log_inverse_epsilon, tau.size)) + rng.normal(2, 1, tau.size).clip(0)
    seen = measured < end
    t = np.linspace(0, end, 80)
    put_series(group, t, 0.1 / (1 + t / predicted[0]) ** 0.4, "absolute")
    without_partner = rng.random(seen.sum()) < 0.03
    put_ignitions(group, mode[seen], measured[seen], kind[seen], np.where(without_partner, np.nan, predicted[seen]))
    slowness = np.full(2 * rows * columns, 3 * end)
    slowness[mode[kind > 0]] = measured[kind > 0]
    put_modes(group, np.arange(2 * rows * columns), t,
              -log_inverse_epsilon + np.minimum(log_inverse_epsilon * t / slowness[:, None], log_inverse_epsilon - 2))
    put(group, "theory/log_initial", np.full(2 * rows * columns, -log_inverse_epsilon), "", "ln z(0)")
    put(group, "theory/path/tau", tau, "time / ln(1/epsilon)", "time of the event")
    put(group, "theory/path/mode", mode, "", "mode")
    put(group, "theory/path/kind", kind, "", "+1 lit, -1 extinct")
    group["modes"].attrs.update({"image_rows": rows, "image_columns": columns, "signed": np.uint8(1)})


def write_cases(file, write, **cases):
    for name, argument in cases.items():
        write(file.create_group(f"case/{name}"), argument)


def write_all(directory):
    """Every result file of the tests; returns {name: path}."""
    writers = {
        "sudden_learning": write_sudden_learning,
        "tiny_epsilon": lambda file: write_sudden_learning(file, -2302.585),
        "power_law": write_power_law,
        "image": lambda file: write_images(file, 690.8),
        "cases": lambda file: write_cases(file, write_sudden_learning, ln11=-11.5, ln69=-69.1, ln690=-690.8),
        "image_cases": lambda file: write_cases(file, write_images, ln69=69.08, ln690=690.8),
    }
    paths = {}
    for name, write in writers.items():
        paths[name] = Path(directory) / f"{name}.h5"
        with h5py.File(paths[name], "w") as file:
            file.attrs["title"] = name
            write(file)
    return paths


# ----------------------------------------------------------------------------------------------------------- tests

class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="nqf-plot-test-")
        cls.directory = Path(cls.scratch.name)
        cls.results = write_all(cls.directory)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def run_plot(self, *arguments, **environment):
        """No display, whatever the machine has."""
        env = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
        env.update(environment)
        return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], env=env, text=True,
                              capture_output=True, timeout=120)

    def assert_draws(self, *arguments, out="figure.png", **environment):
        path = self.directory / out
        path.unlink(missing_ok=True)
        done = self.run_plot("--dpi", 50, *arguments, "-o", path, **environment)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertTrue(path.read_bytes().startswith(MAGIC[path.suffix.lower()]), f"{path} is no {path.suffix}")
        self.assertEqual(list(self.directory.glob(".*.part")), [])
        return path

    def assert_refuses(self, *arguments, says, out="refused.png"):
        done = self.run_plot(*arguments, "-o", self.directory / out)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.directory / out).exists())
        self.assertIn("nqf-plot: ", done.stderr.strip().splitlines()[-1])
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr.strip().splitlines()[-1])
        return done.stderr

    def write(self, name, fill):
        path = self.directory / name
        with h5py.File(path, "w") as file:
            fill(file)
        return path

    def test_suffix_chooses_png_svg_or_pdf(self):
        for suffix in (".png", ".svg", ".pdf", ".PNG"):
            with self.subTest(suffix=suffix):
                self.assert_draws(self.results["sudden_learning"], out="figure" + suffix)

    def test_unknown_suffix_names_the_valid_ones(self):
        for out in ("figure.gif", "figure"):
            self.assert_refuses(self.results["sudden_learning"], out=out, says=(".png", ".svg", ".pdf"))

    def test_every_kind_draws_where_its_data_exist(self):
        for name, kinds in {"sudden_learning": "auto loss modes overview", "tiny_epsilon": "auto modes",
                            "power_law": "auto loss modes power_law overview", "image": "auto image overview",
                            "cases": "auto loss modes overview", "image_cases": "auto image"}.items():
            for kind in kinds.split():
                with self.subTest(name=name, kind=kind):
                    self.assert_draws(self.results[name], "--kind", kind)

    def test_kind_without_its_data_is_refused(self):
        bare = self.write("bare.h5", lambda file: put_series(file, np.arange(5.0), np.ones(5), "absolute"))
        self.assert_draws(bare)
        self.assert_refuses(bare, "--kind", "modes", says="/modes")
        self.assert_refuses(bare, "--kind", "image", says="image_rows")
        zero = self.write("zero.h5", lambda file: put_series(file, np.arange(5.0), np.zeros(5), "absolute"))
        self.assert_refuses(zero, "--kind", "power_law", says="no positive loss")

    def test_several_files_are_overlaid_with_their_titles(self):
        svg = self.assert_draws(self.results["sudden_learning"], self.results["tiny_epsilon"], "--kind", "loss",
                                "--title", "costs $5, not $6", out="both.svg").read_text()
        for text in ("sudden_learning", "tiny_epsilon", "costs $5, not $6", "ln(1/ε)"):
            self.assertIn(text, svg)

    def test_a_directory_stands_for_its_result(self):
        run = self.directory / "run"
        run.mkdir(exist_ok=True)
        (run / "result.h5").write_bytes(self.results["sudden_learning"].read_bytes())
        self.assert_draws(run)

    def test_axis_labels_come_from_the_attributes(self):
        def fill(file):
            put(file, "series/time", np.arange(4.0), "steps", "training time")
            put(file, "series/loss", np.arange(4.0), "nat", "cross-entropy")
        svg = self.assert_draws(self.write("units.h5", fill), "--kind", "loss", out="units.svg").read_text()
        self.assertIn("training time [steps]", svg)
        self.assertIn("cross-entropy [nat]", svg)

    def test_attributes_may_be_missing(self):
        def fill(file):
            write_sudden_learning(file)
            for name in ("series/time", "series/loss", "modes/log_value", "ignitions/time"):
                for key in list(file[name].attrs):
                    del file[name].attrs[key]
        self.assert_draws(self.write("unlabelled.h5", fill))

    def test_the_original_is_marked_where_it_leaves_its_normal_form(self):
        t = np.linspace(0.0, 10.0, 21)

        def beside(divergence_time):
            def fill(file):
                put_series(file, t, np.exp(-0.5 * t), "absolute")
                put(file, "series/original_loss", np.exp(-0.4 * t), "loss", "loss of the original network",
                    divergence_level=0.1, divergence_time=divergence_time)
            return fill

        def svg_of(name, divergence_time):
            return self.assert_draws(self.write(f"{name}.h5", beside(divergence_time)), "--kind", "loss",
                                     out=f"{name}.svg").read_text()

        def upright(svg):
            """Horizontal places of lines that go from the bottom to the top of the axes."""
            lines = re.findall(r'd="M ([\d.]+) ([\d.]+) \s*L ([\d.]+) ([\d.]+) \s*"', svg)
            return {float(x) for x, y, other, end in lines if x == other and abs(float(y) - float(end)) > 50}

        never = svg_of("never_apart", np.nan)
        self.assertIn("original network", never)
        self.assertNotIn("first apart", never)
        places = []
        for name, time in (("apart_early", 2.25), ("apart_between", 4.5), ("apart_late", 6.75)):
            svg = svg_of(name, time)
            self.assertIn("first apart by 0.1", svg)
            place, = upright(svg) - upright(never)
            places.append(place)
        self.assertAlmostEqual(places[1] - places[0], places[2] - places[1], delta=1e-3)
        self.assertGreater(places[1] - places[0], 10.0)  # points: 2.25 of an axis of 10

    def test_power_law_states_exponent_error_and_prediction(self):
        svg = self.assert_draws(self.results["power_law"], "--kind", "power_law", out="law.svg").read_text()
        self.assertRegex(svg, r"exponent −1\.\d+ ± 0\.\d+, predicted −1\.25")

    def test_refused_fit_draws_no_power_law(self):
        def fill(file):
            write_sudden_learning(file)
            put(file, "fit/exponent", np.nan, "", "fitted exponent")
        self.assertNotIn("local slope", self.assert_draws(self.write("nofit.h5", fill), out="nofit.svg").read_text())

    def test_many_ignitions_are_capped_and_the_legend_says_so(self):
        n = 100_000
        def fill(file):
            t = np.geomspace(1, 1e5, 50)
            put_series(file, t, 1 / t, "absolute")
            times = np.geomspace(1, 1e5, n)
            put_ignitions(file, np.arange(n), times, np.ones(n), times)
        svg = self.assert_draws(self.write("many.h5", fill), "--kind", "loss", out="many.svg").read_text()
        self.assertRegex(svg, r"predicted ignitions \(\d\d of 100,000\)")
        self.assertLess(len(svg), 200_000)

    def test_values_far_below_the_smallest_double_are_drawn(self):
        svg = self.assert_draws(self.results["tiny_epsilon"], "--kind", "modes", out="tiny.svg").read_text()
        self.assertIn("−2000", svg)

    def test_missing_file(self):
        self.assert_refuses(self.directory / "absent.h5", says=("absent.h5", "no such file"))

    def test_not_an_hdf5_file(self):
        text = self.directory / "text.h5"
        text.write_text("not HDF5\n")
        self.assert_refuses(text, says=("text.h5", "not an HDF5 file"))
        (self.directory / "empty.h5").write_bytes(b"")
        self.assert_refuses(self.directory / "empty.h5", says=("empty.h5", "not an HDF5 file"))

    def test_cut_off_file(self):
        cut = self.directory / "cut.h5"
        cut.write_bytes(self.results["power_law"].read_bytes()[:3000])
        self.assert_refuses(cut, says="cut.h5")

    def test_result_without_rows(self):
        def fill(file):
            put_series(file, np.zeros(0), np.zeros(0), "absolute")
        self.assert_refuses(self.write("norows.h5", fill), says=("norows.h5", "no rows"))
        self.assert_refuses(self.write("nothing.h5", lambda file: None), says=("nothing.h5", "no rows"))

    def test_inconsistent_result(self):
        def fill(file):
            write_sudden_learning(file)
            del file["modes/index"]
            file["modes/index"] = np.arange(3)
        self.assert_refuses(self.write("shapes.h5", fill), says=("shapes.h5", "/modes/index"))

    def test_one_bad_file_among_good_ones(self):
        self.assert_refuses(self.results["image"], self.directory / "absent.h5", says="absent.h5")

    def test_output_directory_must_exist(self):
        self.assert_refuses(self.results["image"], out="nowhere/figure.png", says=("nowhere", "no directory"))

    def test_bad_usage(self):
        self.assertEqual(self.run_plot().returncode, 2)
        self.assertEqual(self.run_plot(self.results["image"]).returncode, 2)
        self.assert_refuses(self.results["image"], "--kind", "pie", says="pie")
        self.assert_refuses(self.results["image"], "--dpi", "0", says="--dpi 0")

    def test_help_has_an_example(self):
        done = self.run_plot("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("nqf-plot out/sudden_learning/result.h5 -o sudden_learning.png", done.stdout)

    def test_same_input_gives_the_same_bytes(self):
        for suffix in (".png", ".svg", ".pdf"):
            first = self.assert_draws(self.results["sudden_learning"], out="same" + suffix).read_bytes()
            self.assertEqual(first, self.assert_draws(self.results["sudden_learning"], out="same" + suffix).read_bytes())

    def test_home_that_cannot_be_written(self):
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        home.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.assert_draws(self.results["sudden_learning"], HOME=str(home), MPLCONFIGDIR="/proc/none")

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_user_without_rights(self):
        """A home that cannot even be searched; a file and an output directory that are somebody else's."""
        with tempfile.TemporaryDirectory() as name:
            room, nobody = Path(name), {"user": 65534, "group": 65534, "extra_groups": []}
            program, result, closed = room / "nqf-plot", room / "result.h5", room / "closed"
            program.write_bytes(PROGRAM.read_bytes())
            result.write_bytes(self.results["sudden_learning"].read_bytes())
            closed.mkdir(mode=0o700)
            (room / "out").mkdir()
            (room / "out").chmod(0o777)
            room.chmod(0o755)
            def plot(file, out):
                return subprocess.run([sys.executable, str(program), str(file), "-o", str(out)], text=True, timeout=120,
                                      capture_output=True, env={"HOME": str(closed / "home"), "PATH": "/usr/bin"}, **nobody)
            done = plot(result, room / "out" / "figure.png")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            for file, out, says in ((closed / "result.h5", room / "out" / "b.png", "no such file"),
                                    (result, room / "figure.png", "cannot be written (Permission denied)")):
                done = plot(file, out)
                self.assertEqual(done.returncode, 2)
                self.assertIn(says, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_result_of_a_running_run(self):
        """Open for writing elsewhere, flushed, one column a row ahead of another."""
        path = self.directory / "running.h5"
        with h5py.File(path, "w") as file:
            write_sudden_learning(file)
            loss = file["series/loss"][:-1]
            del file["series/loss"]
            put(file, "series/loss", loss, "loss", "loss")
            file.flush()
            self.assert_draws(path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        for path in write_all(sys.argv[2]).values():
            print(path)
    else:
        unittest.main()
