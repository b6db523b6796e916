"""Original networks beside their normal forms, alone, in stacks: against torch, restarted, on several ranks."""

import h5py
import numpy as np

from nqf_program import REFERENCE, Case, finish, kill_all, main, nqf, start, together, toml, wait_until


def reference(name):
    with h5py.File(REFERENCE / f"module_{name}.h5") as file:
        return {key: file["expected"][key][()] for key in file["expected"]}


def module_deck(name, **changes):
    file = REFERENCE / f"module_{name}.h5"
    module = {"kind": name, "score_scale": 1.0} if name == "query_key" else {"kind": name, "head_size": 2}
    tables = {"system": {"kind": "module"}, "module": module, "data": {"kind": "hdf5", "file": file},
              "weights": {"initial": "file"}, "fit": {"enabled": False}}
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys}
    return toml(**tables)


def perceptron_deck(**changes):
    tables = {"system": {"kind": "module"}, "module": {"kind": "perceptron"},
              "data": {"kind": "gaussian", "samples": 64, "test_samples": 32, "shape": [5], "outputs": 2, "spectrum": [1.0, 0.5]},
              "weights": {"width": 24, "epsilon": 0.3}, "network": {"side_by_side": True},
              "fit": {"enabled": False}}
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys}
    return toml(**tables)


STEPS = {"unit": "steps", "end": 40, "outputs": 40}


class AgainstTorch(Case):
    def series(self, name, text, ranks=2):
        folder = self.folder / name
        self.good(nqf("run", self.write(name + ".toml", text), "--output", folder, ranks=ranks))
        with h5py.File(folder / "result.h5", "r") as file:
            return {key: file["series"][key][()] for key in file["series"]}

    def test_both_losses_under_gradient_flow(self):
        for name in ("perceptron", "attention"):
            expected = reference(name)
            times = expected["time"]
            series = self.series(f"flow_{name}", module_deck(
                name, network={"side_by_side": True}, time={"end": times[-1], "times": times[(times > 0) & (times < times[-1])]}))
            for column, key in (("loss", "normal_form_loss"), ("original_loss", "original_loss")):
                rows = np.searchsorted(series["time"], times)
                np.testing.assert_allclose(series[column][rows], expected[key], rtol=1e-6, err_msg=f"{name} {column}")
            self.assertLess(series["output_distance"][0], 0.5)
            self.assertEqual(series["weight_distance"][0] < 1e-12, True)

    def test_both_losses_under_adam_and_momentum(self):
        for rule, rate in (("adam", 0.01), ("momentum", 0.05)):
            expected = reference("perceptron")
            series = self.series(rule, module_deck(
                "perceptron", network={"side_by_side": True}, training={"algorithm": rule, "learning_rate": rate},
                time={"unit": "steps", "end": 199, "outputs": 199}))
            # Moments give the loss to the rounding of E[y²].
            for column, key in (("loss", f"normal_form_{rule}_loss"), ("original_loss", f"original_{rule}_loss")):
                np.testing.assert_allclose(series[column], expected[key], rtol=1e-9, atol=1e-15, err_msg=f"{rule} {column}")


class Restarts(Case):
    def test_steps_go_on_bit_for_bit(self):
        for rule, more in (("adamw", {"weight_decay": 0.1}), ("nesterov", {"sampling": "without_replacement", "batch": 16})):
            deck = self.write(f"{rule}.toml", perceptron_deck(
                training={"algorithm": rule, "learning_rate": 0.01, **more}, checkpoint={"every_outputs": 10},
                time=STEPS))
            straight, halved = self.folder / f"{rule}_straight", self.folder / f"{rule}_halved"
            self.good(nqf("run", deck, "--output", straight, ranks=2))
            self.good(nqf("run", deck, "--output", halved, "--set", "time.end=20", "--set", "time.outputs=20", ranks=2))
            self.good(nqf("run", deck, "--output", halved, "--restart", ranks=2))
            self.assert_same_bits(straight / "result.h5", halved / "result.h5")

    def test_a_stopped_flow_goes_on_bit_for_bit(self):
        deck = self.write("flow.toml", perceptron_deck(time={"end": 20.0, "outputs": 3000}, checkpoint={"every_outputs": 20}))
        straight, stopped = self.folder / "straight", self.folder / "stopped"
        self.good(nqf("run", deck, "--output", straight, ranks=2))
        run = start("run", deck, "--output", stopped, ranks=2)
        self.addCleanup(lambda: (kill_all(run), run.wait()))

        def some_rows():
            with h5py.File(stopped / "result.h5", "r") as file:
                return len(file["series/time"]) > 20
        wait_until(some_rows, "first rows")
        (stopped / "stop").touch()
        self.assertEqual(finish(run), 85)
        (stopped / "stop").unlink(missing_ok=True)
        self.good(nqf("run", deck, "--output", stopped, "--restart", ranks=2))
        self.assert_same_bits(straight / "result.h5", stopped / "result.h5")


class Networks(Case):
    def result(self, name):
        return self.folder / name / "result.h5"

    def run_deck(self, name, text, ranks):
        self.good(nqf("run", self.write(name + ".toml", text), "--output", self.folder / name, ranks=ranks))

    def test_alone_the_original_is_the_one_that_runs_beside_its_form(self):
        training = {"algorithm": "momentum", "learning_rate": 0.02, "sampling": "online", "batch": 8}
        together(lambda: self.run_deck("beside", perceptron_deck(training=training, time=STEPS), 1),
                 lambda: self.run_deck("alone", perceptron_deck(training=training, time=STEPS, network={
                     "side_by_side": False, "original": True}), 3))
        with h5py.File(self.result("beside"), "r") as beside, h5py.File(self.result("alone"), "r") as alone:
            for column, original in (("loss", "original_loss"), ("test_loss", "original_test_loss")):
                np.testing.assert_allclose(alone["series"][column][()], beside["series"][original][()], rtol=1e-12)
            self.assertNotIn("original_loss", alone["series"])

    def test_a_compressed_form_is_as_far_from_the_original_as_the_whole(self):
        training = {"algorithm": "sgd", "learning_rate": 0.05}
        together(lambda: self.run_deck("kept", perceptron_deck(training=training, time=STEPS, weights={"units": "kept"}), 1),
                 lambda: self.run_deck("compressed", perceptron_deck(training=training, time=STEPS), 2))
        with h5py.File(self.result("kept"), "r") as kept, h5py.File(self.result("compressed"), "r") as compressed:
            for column in ("loss", "original_loss", "output_distance", "weight_distance"):
                np.testing.assert_allclose(compressed["series"][column][()], kept["series"][column][()], rtol=1e-9, atol=1e-12)

    def test_stacks_are_the_same_on_any_number_of_ranks(self):
        text = perceptron_deck(network={"widths": [12, 7], "outputs": [5], "residual": [1], "inputs": ["none", "tanh"]},
                               training={"algorithm": "adam", "learning_rate": 0.01}, time=STEPS)
        together(lambda: self.run_deck("one", text, 1), lambda: self.run_deck("three", text, 3))
        with h5py.File(self.result("one"), "r") as one, h5py.File(self.result("three"), "r") as three:
            for column in ("loss", "original_loss", "original_test_loss", "output_distance", "weight_distance"):
                np.testing.assert_allclose(three["series"][column][()], one["series"][column][()], rtol=1e-9, atol=1e-12)
            self.assertLess(one["series/loss"][-1], 0.9 * one["series/loss"][0])

    def test_divergence_is_where_a_distance_passes_the_level(self):
        self.run_deck("apart", perceptron_deck(weights={"epsilon": 2.5}, time={"end": 10.0, "outputs": 100}), 2)
        with h5py.File(self.result("apart"), "r") as file:
            t, loss, original, outputs = (file["series"][name][()] for name in ("time", "loss", "original_loss", "output_distance"))
            level = float(file["series/original_loss"].attrs["divergence_level"])
            when = float(file["series/original_loss"].attrs["divergence_time"])
        gap = np.maximum(np.abs(original - loss) / loss[0], outputs)
        self.assertTrue(np.any(gap > level), gap)
        first = int(np.argmax(gap > level))
        expected = t[0] if first == 0 else np.interp(level, gap[first - 1:first + 1], t[first - 1:first + 1])
        self.assertAlmostEqual(when, expected, delta=1e-9)


class Refusals(Case):
    def test_mistakes_are_named(self):
        for changes, said in (
                ({"network": {"original": True}}, "excludes side_by_side"),
                ({"network": {"outputs": [3]}}, "belongs to a stack"),
                ({"network": {"widths": [4, 4]}}, "all of the 2 layers but the last"),
                ({"network": {"widths": [4, 4], "outputs": [3], "residual": [1]}}, "residual connection needs outputs"),
                ({"weights": {"width": 100_000_000}}, "at most 1e7"),
                ({"weights": {"initial": "identity"}}, "needs the weights of every unit"),
                ({"solver": {"form": "closed"}}, "no closed form"),
                ({"module": {"kind": "phase_retrieval"}}, "normal form"),
                ({"training": {"algorithm": "adam", "learning_rate": 0.1, "form": "gram"}}, "do not close")):
            deck = self.write("bad.toml", perceptron_deck(**{"time": {"end": 1.0}, **changes}))
            done = nqf("check", deck, ranks=2)
            self.assertEqual(done.status, 2, done)
            self.assertIn(said, done.err + done.out)


if __name__ == "__main__":
    main()
