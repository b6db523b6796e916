"""Modules from deck to result: reference values, closed forms, ranks, restarts, the layout of what is left."""

import re
import signal

import h5py
import numpy as np

from module_decks import PERCEPTRON, expected, from_file, merged, perceptron, stepping
from nqf_program import (INPUTS, REFERENCE, Case, contents, datasets, finish, kill_all, main, nqf, start, together, toml,
                         wait_until)

# What every kind of state and step has: each is run on several numbers of ranks.
KINDS = {
    "factor": perceptron(training={"sampling": "full", "form": "factor"}, data={"test_samples": 50}),
    "order_parameter": perceptron(training={"form": "order_parameter", "tolerance": 1e-11}),
    "stiff": perceptron(training={"method": "bdf", "tolerance": 1e-10}),
    "decay": perceptron(training={"weight_decay": 0.02}),
    "sum_terms": toml(**merged(PERCEPTRON, {"module": {"activation": "sigmoid"}, "time": {"end": 80.0}})),
    "experts": from_file("module_experts_sigmoid_linear.h5", "experts_sigmoid_linear", np.linspace(0, 10, 21)),
    "images": perceptron(module={"kind": "convolution", "kernel": [3, 3]}, time={"end": 200.0},
                         data={"kind": "images", "shape": [6, 6], "covariance": None, "target": "module", "spectrum": [9.0, 5.0]}),
    "attention": perceptron(module={"kind": "attention", "head_size": 2}, time={"end": 60.0}, weights={"width": 10},
                            data={"kind": "tokens", "shape": [4, 6]}),
    "momentum": stepping(),
    "nesterov_gram": stepping(training={"algorithm": "nesterov", "form": "gram", "weight_decay": 0.01}),
    "online": stepping(training={"algorithm": "sgd", "learning_rate": 0.05, "sampling": "online"}),
    "wide": perceptron(weights={"width": 10**15}),
    "completion": perceptron(module={"kind": "completion"}, time={"end": 300.0},
                             data={"kind": "entries", "shape": [8, 6], "samples": 30, "test_samples": 18, "outputs": None,
                                   "covariance": None, "spectrum": [9.0, 5.0]})}
DISCRETE = ("momentum", "nesterov_gram", "online")


class Modules(Case):
    def run_deck(self, name, deck, *options, ranks=0, timeout=120):
        path = deck if not isinstance(deck, str) else self.write(f"{name}.toml", deck)
        folder = self.folder / name
        return folder / "result.h5", self.good(nqf("run", path, "--output", folder, *options, ranks=ranks, timeout=timeout))


class Ranks(Modules):
    def test_losses_and_ignitions_do_not_depend_on_the_number_of_ranks(self):
        runs = {(kind, ranks): (lambda kind=kind, ranks=ranks: self.run_deck(f"{kind}{ranks}", KINDS[kind], ranks=ranks)[0])
                for kind in KINDS for ranks in (1, 2, 3)}
        found = dict(zip(runs, map(contents, together(*runs.values()))))
        for kind in KINDS:
            one = found[kind, 1]
            loss = one["series/loss"]
            self.assertLess(loss[-1], 0.9 * loss[0], f"{kind}: nothing was learnt")
            tolerance = 1e-12 if kind in DISCRETE else 1e-8
            for ranks in (2, 3):
                other, where = found[kind, ranks], f"{kind} on {ranks} ranks"
                self.assertEqual(sorted(one), sorted(other))
                for name in ("series/time", "series/loss", "series/test_loss"):
                    np.testing.assert_allclose(other[name], one[name], rtol=tolerance, atol=tolerance * loss[0], equal_nan=True,
                                               err_msg=f"{name}, {where}")
                np.testing.assert_allclose(other["modes/log_value"], one["modes/log_value"], rtol=0, atol=100 * tolerance, err_msg=where)
                np.testing.assert_array_equal(other["ignitions/mode"], one["ignitions/mode"], where)
                np.testing.assert_allclose(other["ignitions/time"], one["ignitions/time"], rtol=10 * tolerance, err_msg=where)

    def test_more_ranks_than_samples_or_parameters(self):
        decks = {"few": perceptron(data={"samples": 2, "shape": [1], "outputs": 1, "spectrum": [1.0], "covariance": None},
                                   weights={"width": 2}),
                 "few_steps": stepping(data={"samples": 3, "shape": [2], "outputs": 1, "spectrum": [1.0], "covariance": None},
                                       training={"batch": 2}, time={"end": 50, "outputs": 5})}
        for name, deck in decks.items():
            one, many = together(*(lambda r=r: contents(self.run_deck(f"{name}{r}", deck, ranks=r)[0]) for r in (1, 5)))
            np.testing.assert_allclose(many["series/loss"], one["series/loss"], rtol=1e-7, atol=1e-10)


class Reference(Modules):
    """Trajectories of independent programs."""

    def test_normal_forms_follow_the_gradient_flow_of_the_reference(self):
        cases = {"module_perceptron.h5": {}, "module_convolution.h5": {"module": {"kind": "convolution"}},
                 "module_attention.h5": {"module": {"kind": "attention", "head_size": 2}},
                 "module_query_key.h5": {"module": {"kind": "query_key", "score_scale": 1.0}},
                 "module_experts_softmax.h5": {"module": {"kind": "experts_softmax"}},
                 "module_experts_softmax_linear.h5": {"module": {"kind": "experts_softmax_linear"}},
                 "module_experts_sigmoid_linear.h5": {"module": {"kind": "experts_sigmoid_linear"}}}
        def one(name, changes, ranks):
            times = expected(name, "time")
            deck = from_file(name, "perceptron", times, **changes)
            return contents(self.run_deck(f"{name}{ranks}", deck, ranks=ranks)[0])
        runs = {(name, ranks): (lambda n=name, c=changes, r=ranks: one(n, c, r)) for name, changes in cases.items() for ranks in (0, 3)}
        for (name, ranks), found in zip(runs, together(*runs.values())):
            np.testing.assert_array_equal(found["series/time"], expected(name, "time"))
            np.testing.assert_allclose(found["series/loss"], expected(name, "normal_form_loss"), rtol=1e-7, atol=1e-9,
                                       err_msg=f"{name} on {ranks} ranks")

    def test_momentum_of_the_reference_to_rounding(self):
        # Row k is the loss before step k.
        names = {"module_perceptron.h5": "perceptron", "module_convolution.h5": "convolution", "module_experts_softmax.h5": "experts_softmax"}
        for name, kind in names.items():
            deck = from_file(name, kind, range(201), time={"unit": "steps"},
                             training={"tolerance": None, "algorithm": "momentum", "learning_rate": 0.05, "momentum": 0.9})
            found = contents(self.run_deck(f"momentum_{kind}", deck, ranks=2)[0])
            np.testing.assert_allclose(found["series/loss"][:200], expected(name, "normal_form_momentum_loss"), rtol=1e-10, atol=1e-14)

    def test_general_structure_matrices_with_weights_and_all_sum_terms(self):
        name = "general_structure.h5"
        times, loss, m, s = expected(name, "time", "loss", "M", "s")
        snapshots = {"order_parameter_every": 1}
        runs = {(form, ranks): (lambda f=form, r=ranks: contents(self.run_deck(f"general_{f}{r}", from_file(
            name, "matrices", times, output=snapshots, training={"form": f}), ranks=r)[0]))
                for form in ("factor", "order_parameter") for ranks in (0, 3)}
        for (form, ranks), found in zip(runs, together(*runs.values())):
            np.testing.assert_allclose(found["series/loss"], loss, rtol=1e-8, atol=1e-10, err_msg=f"{form} {ranks}")
            np.testing.assert_allclose(found["order_parameter/M"], m, atol=1e-7)
            np.testing.assert_allclose(found["order_parameter/s"], s, atol=1e-7)

    def test_samples_of_the_tangent_kernel_that_are_not_there(self):
        for kernel, words in (({"indices": [3, 3]}, "indices: names a sample twice"), ({"indices": [99]}, "indices: 99 is named"),
                              ({"samples": 2, "indices": [0]}, "indices: excludes samples")):
            deck = perceptron(data={"samples": 20, "shape": [4]}, tangent_kernel=kernel)
            done = self.good(nqf("check", self.write("kernel.toml", deck)), 2)
            self.assertRegex(done.err, r"kernel\.toml:\d+: \[tangent_kernel\] " + words)

    def test_listed_mini_batches_of_general_structure_to_rounding(self):
        name = "general_structure.h5"
        rules = {"sgd": {"algorithm": "sgd"}, "momentum": {"algorithm": "momentum", "momentum": 0.9, "weight_decay": 0.01},
                 "nesterov": {"algorithm": "nesterov", "momentum": 0.9}}
        def one(rule, form, ranks):
            deck = from_file(name, "matrices", range(201), time={"unit": "steps"}, output={"order_parameter_every": 200},
                             training={"tolerance": None, "learning_rate": 0.02, "sampling": "file", "form": form, **rules[rule]})
            return contents(self.run_deck(f"steps_{rule}_{form}{ranks}", deck, ranks=ranks)[0])
        runs = {(rule, form, ranks): (lambda a=(rule, form, ranks): one(*a))
                for rule in rules for form, ranks in (("factor", 0), ("factor", 3), ("gram", 2))}
        for (rule, form, ranks), found in zip(runs, together(*runs.values())):
            loss, m, s = expected(name, f"{rule}_loss", f"{rule}_M", f"{rule}_s")
            np.testing.assert_allclose(found["series/loss"][1:], loss, rtol=1e-10, err_msg=f"{rule} {form} {ranks}")
            np.testing.assert_allclose(found["order_parameter/M"][-1], m, atol=1e-11)
            np.testing.assert_allclose(found["order_parameter/s"][-1], s, atol=1e-11)

    def test_tangent_kernel_of_general_structure(self):
        name = "general_structure.h5"
        start_kernel, end_kernel, times = expected(name, "ntk_start", "ntk_end", "time")
        deck = from_file(name, "matrices", times, tangent_kernel={"samples": 14, "times": [float(times[-1])]})
        for ranks in (0, 3):
            found = contents(self.run_deck(f"kernel{ranks}", deck, ranks=ranks)[0])
            np.testing.assert_array_equal(found["tangent_kernel/time"], [0.0, times[-1]])
            np.testing.assert_allclose(found["tangent_kernel/kernel"][0], start_kernel, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(found["tangent_kernel/kernel"][1], end_kernel, rtol=1e-6, atol=1e-6)
            drift = np.linalg.norm(end_kernel - start_kernel) / np.linalg.norm(start_kernel)
            np.testing.assert_allclose(found["series/kernel_drift"][[0, -1]], [0.0, drift], rtol=1e-6)
        # Samples by their numbers, in another order.
        chosen = [11, 2, 7]
        deck = from_file(name, "matrices", times, tangent_kernel={"indices": chosen, "times": [float(times[-1])]})
        outputs = len(start_kernel) // 14
        rows = (np.array(chosen)[:, None] * outputs + np.arange(outputs)).ravel()
        for ranks in (1, 3):
            found = contents(self.run_deck(f"chosen{ranks}", deck, ranks=ranks)[0])
            np.testing.assert_allclose(found["tangent_kernel/kernel"][0], start_kernel[np.ix_(rows, rows)], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(found["tangent_kernel/kernel"][1], end_kernel[np.ix_(rows, rows)], rtol=1e-6, atol=1e-6)

    def test_orthogonal_samples_by_their_matrices(self):
        # Definite and signed samples: f_n(t) in closed form, so the loss; the reduction to modes and the flow of the weights.
        for name in ("samples_definite.h5", "samples_signed.h5"):
            times, f = expected(name, "time", "f")
            with h5py.File(REFERENCE / name) as file:
                loss = 0.5 * np.mean((f - file["y"][()]) ** 2, axis=1)
            for form in ("auto", "factor", "order_parameter"):
                deck = from_file(name, "matrices", times, training={"form": form})
                found = contents(self.run_deck(f"{name}{form}", deck, ranks=3)[0])
                np.testing.assert_allclose(found["series/loss"], loss, rtol=1e-6, atol=1e-9, err_msg=f"{name} {form}")

    def test_isotropic_matrices_in_closed_form(self):
        times, m = expected("isotropic.h5", "time", "M")
        for form in ("auto", "riccati", "factor", "order_parameter"):
            deck = from_file("isotropic.h5", "matrices", times, training={"form": form},
                             output={"order_parameter_every": 1})
            found = contents(self.run_deck(f"isotropic_{form}", deck, ranks=2)[0])
            # Closed form to rounding, integration to its tolerance.
            np.testing.assert_allclose(found["order_parameter/M"], m, atol=1e-12 if form == "riccati" else 1e-8, err_msg=form)

    def test_fourier_features_follow_the_reference(self):
        # 24 signed pairs from given weights; W0 is U over V.
        name = "fourier_normal_form.h5"
        times, loss = expected(name, "time", "loss")
        with h5py.File(REFERENCE / name) as file, h5py.File(self.folder / "fourier_w0.h5", "w") as out:
            out["W0"] = np.vstack([file["U0"][()], file["V0"][()]])
        at = lambda dataset: {"file": REFERENCE / name, "dataset": dataset}
        for form in ("auto", "factor"):
            deck = toml(system={"kind": "module"}, module={"kind": "fourier", "amplitude": at("s")},
                        data={"kind": "fourier", "samples": 64, "coefficients": at("b")},
                        weights={"initial": "file", "file": self.folder / "fourier_w0.h5"}, fit={"enabled": False},
                        training={"form": form, "tolerance": 1e-11}, time={"end": float(times[-1]), "times": list(times[1:])})
            found = contents(self.run_deck(f"fourier_{form}", deck, ranks=2)[0])
            np.testing.assert_allclose(found["series/loss"], loss, rtol=1e-6, atol=1e-8, err_msg=form)


class Theory(Modules):
    """What the decks in inputs/ promise, on shortened ones where the deck is large."""

    def test_width_of_a_thousand_and_of_a_billion_are_one_curve(self):
        path, done = self.run_deck("very_wide", INPUTS / "very_wide.toml", "--set", "data.samples=2000", ranks=2)
        found = contents(path)
        narrow, wide = (found[f"case/{name}/ignitions/time"] for name in ("d_1e3", "d_1e9"))
        np.testing.assert_array_equal(found["case/d_1e3/ignitions/mode"], [0, 1, 2])
        np.testing.assert_allclose(narrow, wide, rtol=2e-2)
        self.assertFalse(np.array_equal(narrow, wide), "M(0) fluctuates")
        # M(0) = ε² up to d^(−1/2)
        np.testing.assert_allclose(found["case/d_1e9/theory/log_initial"], 2 * np.log(1e-4), atol=5e-4)
        np.testing.assert_allclose(found["case/d_1e3/theory/log_initial"], 2 * np.log(1e-4), atol=0.2)

    def test_a_wide_network_and_its_compressed_twin_are_the_same(self):
        path, _ = self.run_deck("compression", INPUTS / "compression.toml", "--set", "time.end=400", "--set", "time.outputs=50", ranks=2)
        found = contents(path)
        wide, twin = found["case/wide/series/loss"], found["case/twin/series/loss"]
        np.testing.assert_allclose(twin, wide, rtol=0, atol=1e-12 * wide[0])
        self.assertLess(wide[-1], 0.2 * wide[0])
        for cut in ("rank_6", "rank_4"):
            self.assertGreater(np.abs(found[f"case/{cut}/series/loss"] - wide).max(), 1e-9, "something was cut")

    def test_fourier_exponents_within_two_per_cent(self):
        # Fewer features cut the slowest law short: at beta = 0.75 those behind k hold k^-0.5 of the loss.
        path, _ = self.run_deck("fourier", INPUTS / "fourier_scaling.toml", "--set", "time.outputs=60")
        found = contents(path)
        for beta in (0.75, 1.0, 1.5, 2.0):
            exponent = found[f"case/beta_{beta:g}/fit/exponent"].item()
            self.assertAlmostEqual(exponent / (-(2 * beta - 1) / (1 + beta)), 1.0, delta=0.02, msg=f"beta {beta}")

    def test_riccati_solution_is_the_integrated_flow(self):
        path, _ = self.run_deck("riccati", INPUTS / "isotropic.toml", ranks=2)
        found = contents(path)
        closed, integrated = (found[f"case/{name}/series/loss"] for name in ("closed", "integrated"))
        np.testing.assert_allclose(integrated, closed, rtol=0, atol=1e-7 * closed[0])
        np.testing.assert_allclose(found["case/integrated/ignitions/time"], found["case/closed/ignitions/time"], rtol=1e-6)
        self.assertEqual(len(found["case/closed/ignitions/time"]), 3)

    def test_predicted_ignitions_of_orthonormal_inputs_are_exact(self):
        # x the rows of √n·1: Σ_xx = 1, rank-one target along axes and a balanced start: each mode is logistic.
        n, m = 6, 2
        x = np.sqrt(n) * np.eye(n)
        y = x[:, :m] * [1.0, 0.5]
        with h5py.File(self.folder / "logistic.h5", "w") as file:
            file["x"], file["y"] = x, y
            w0 = np.zeros((n + m, m))
            for k in range(m):
                w0[k, k] = w0[n + k, k] = 1e-4
            file["W0"] = w0
        deck = toml(system={"kind": "module"}, module={"kind": "perceptron"}, data={"kind": "hdf5", "file": self.folder / "logistic.h5"},
                    weights={"initial": "file"}, training={"tolerance": 1e-11}, time={"end": 60.0, "outputs": 60}, fit={"enabled": False})
        path, done = self.run_deck("logistic", deck, ranks=2)
        found = contents(path)
        rates, saturation = np.array([2.0, 1.0]), np.array([2.0, 1.0])
        np.testing.assert_allclose(found["theory/growth_rate"], rates, rtol=1e-12)
        np.testing.assert_allclose(found["theory/saturation"], saturation, rtol=1e-9)
        np.testing.assert_allclose(found["ignitions/time"], np.log(saturation / 2e-8 - 1) / rates, rtol=1e-7)
        np.testing.assert_allclose(found["ignitions/predicted_time"], found["ignitions/time"], rtol=1e-7)

    def test_spectrum_of_a_module_names_its_modes_rates(self):
        deck = self.write("spectrum.toml", perceptron())
        self.good(nqf("spectrum", deck, "--output", self.folder / "spectrum", ranks=2))
        path, _ = self.run_deck("for_spectrum", perceptron(), ranks=1)
        found, run = contents(self.folder / "spectrum" / "spectrum.h5"), contents(path)
        np.testing.assert_allclose(found["spectrum/growth_rate"], run["theory/growth_rate"], rtol=1e-11)
        np.testing.assert_allclose(found["spectrum/drop"], run["theory/drop"], rtol=1e-9)

    def test_decay_delays_and_stops_modes(self):
        # ζ → ζ − 2λ
        free, decay = (contents(self.run_deck(f"decay{rate}", perceptron(training={"weight_decay": rate}, time={"end": 60.0}))[0]) for rate in (0.0, 0.25))
        rates = decay["theory/growth_rate"]
        np.testing.assert_allclose(rates, free["theory/growth_rate"] - 0.5, atol=1e-12)
        self.assertEqual(list(rates > 0), [True, True, False])
        np.testing.assert_array_equal(free["ignitions/mode"], [0, 1, 2])
        np.testing.assert_array_equal(decay["ignitions/mode"], [0, 1])
        self.assertTrue(np.all(decay["ignitions/time"] > free["ignitions/time"][:2]))


class Restart(Modules):
    FLOW = perceptron(time={"outputs": 400}, output={"order_parameter_every": 100}, tangent_kernel={"samples": 3, "times": [3.0, 20.0]},
                      checkpoint={"every_outputs": 25}, data={"test_samples": 20})
    STEPS = stepping(time={"end": 4000, "outputs": 400}, checkpoint={"every_outputs": 25},
                     training={"learning_rate": 1e-3, "schedule": "cosine", "decay_steps": 10000, "warmup": 100})

    @staticmethod
    def rows(folder):
        with h5py.File(folder / "result.h5", "r") as file:
            return len(file["series/time"])

    def stop(self, deck, name, ranks, how):
        folder = self.folder / name
        run = start("run", deck, "--output", folder, ranks=ranks)
        self.addCleanup(lambda: (kill_all(run), run.wait()))
        wait_until(lambda: self.rows(folder) >= 60 or run.poll() is not None, "first rows", timeout=60)
        self.assertIsNone(run.poll(), "it ended before it could be stopped")
        how(run, folder)
        self.assertEqual(finish(run, 60), 85)
        self.assertLess(self.rows(folder), 401)
        return folder

    def test_stopped_and_restarted_is_the_straight_run_bit_for_bit(self):
        signalled = lambda run, _: run.send_signal(signal.SIGUSR1)
        filed = lambda _, folder: (folder / "stop").touch()
        for name, text in (("flow", self.FLOW), ("steps", self.STEPS)):
            deck = self.write(f"{name}.toml", text)
            straight, _ = self.run_deck(f"{name}_straight", deck, ranks=2, timeout=240)
            for stopped, how in (("signal", signalled), ("file", filed)):
                folder = self.stop(deck, f"{name}_{stopped}", 2, how)
                self.good(nqf("run", deck, "--output", folder, "--restart", ranks=2, timeout=240))
                self.assert_same_bits(straight, folder / "result.h5")
            other = self.stop(deck, f"{name}_other_ranks", 3, signalled)
            self.good(nqf("run", deck, "--output", other, "--restart", ranks=1, timeout=240))
            a, b = contents(straight), contents(other / "result.h5")
            np.testing.assert_array_equal(a["series/time"], b["series/time"])
            np.testing.assert_allclose(b["series/loss"], a["series/loss"], rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(b["ignitions/time"], a["ignitions/time"], rtol=1e-5)

    def test_a_later_end_extends_a_finished_run(self):
        for name, make in (("flow", perceptron), ("steps", stepping)):
            short = {"time": {"end": 20.0, "outputs": 20}} if name == "flow" else {"time": {"end": 200, "outputs": 20}}
            long = {"time": {"end": 40.0, "outputs": 40}} if name == "flow" else {"time": {"end": 400, "outputs": 40}}
            straight, _ = self.run_deck(f"{name}_long", make(**long), ranks=2)
            path, _ = self.run_deck(f"{name}_short", make(**short), ranks=2)
            self.run_deck(f"{name}_short", make(**long), "--restart", ranks=2)
            a, b = contents(straight), contents(path)
            np.testing.assert_array_equal(a["series/time"], b["series/time"])
            np.testing.assert_allclose(b["series/loss"], a["series/loss"], rtol=1e-6, atol=1e-9)
            # Thresholds are half of the value at the end of the run: of the later end, once and for all.
            np.testing.assert_array_equal(b["ignitions/mode"], a["ignitions/mode"])
            np.testing.assert_allclose(b["ignitions/time"], a["ignitions/time"], rtol=1e-5)

    def test_another_training_is_refused_and_the_key_named(self):
        path, _ = self.run_deck("kept", stepping(time={"end": 40, "outputs": 4}), ranks=1)
        before = path.read_bytes()
        for change, key in (({"batch": 8}, r"training\.batch was 16, is 8"), ({"learning_rate": 0.01}, r"training\.learning_rate was 0\.02, is 0\.01")):
            deck = self.write("changed.toml", stepping(time={"end": 40, "outputs": 4}, training=change))
            done = self.good(nqf("run", deck, "--output", path.parent, "--restart", ranks=2), 2)
            self.assertRegex(done.err, key)
        self.assertEqual(path.read_bytes(), before)


class Layout(Modules):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        deck = cls.folder / "layout.toml"
        deck.write_text(perceptron(output={"order_parameter_every": 10, "snapshot_every": 4}, data={"test_samples": 30},
                                   tangent_kernel={"samples": 4, "times": [10.0]}, time={"end": 60.0, "outputs": 40}))
        done = nqf("run", deck, "--output", cls.folder / "layout", ranks=2)
        assert done.status == 0, done
        cls.file = h5py.File(cls.folder / "layout" / "result.h5", "r")

    @classmethod
    def tearDownClass(cls):
        cls.file.close()
        super().tearDownClass()

    def test_every_data_set_says_what_it_is(self):
        for name, item in datasets(self.file).items():
            self.assertIsInstance(item.attrs.get("units"), str, name)
            self.assertGreater(len(item.attrs.get("description", "")), 2, name)
            if "input" not in name.split("/"):
                self.assertNotEqual(item.attrs["units"], "", name)
        self.assertEqual(self.file["theory/growth_rate"].attrs["units"], "1/time")
        self.assertEqual(self.file["series/loss"].attrs["loss_offset"], "absolute")

    def test_shapes(self):
        p, modes, kernel, outputs = 9, 3, 12, 41
        shapes = {"series/time": (outputs,), "series/loss": (outputs,), "series/test_loss": (outputs,), "series/kernel_drift": (outputs,),
                  "modes/index": (modes,), "modes/time": (11,), "modes/log_value": (modes, 11), "order_parameter/time": (5,),
                  "order_parameter/M": (5, p, p), "order_parameter/s": (5, p), "tangent_kernel/time": (2,),
                  "tangent_kernel/kernel": (2, kernel, kernel), "theory/mode": (modes, p)}
        shapes |= {f"theory/{name}": (modes,) for name in ("growth_rate", "saturation", "drop", "log_initial", "ignition_time")}
        for name, shape in shapes.items():
            self.assertEqual(self.file[name].shape, shape, name)
        self.assertEqual({item.shape for item in self.file["ignitions"].values()}, {(3,)})

    def test_axes_are_dimension_scales(self):
        axes = {"series/loss": ["series/time"], "series/test_loss": ["series/time"], "modes/log_value": ["modes/index", "modes/time"],
                "order_parameter/M": ["order_parameter/time"], "tangent_kernel/kernel": ["tangent_kernel/time"]}
        for name, scales in axes.items():
            for axis, scale in enumerate(scales):
                self.assertEqual(self.file[name].dims[axis][0].name, "/" + scale, name)

    def test_arrays_fit_each_other(self):
        file = self.file
        # ln e_kᵀ M e_k of the stored M and modes are the stored strengths.
        vectors, m = file["theory/mode"][()], file["order_parameter/M"][()]
        strengths = np.log(np.einsum("ka,tab,kb->kt", vectors, m, vectors))
        at = [list(file["modes/time"][()]).index(t) for t in file["order_parameter/time"][()] if t in file["modes/time"][()]]
        kept = [i for i, t in enumerate(file["order_parameter/time"][()]) if t in file["modes/time"][()]]
        self.assertGreater(len(kept), 1)
        np.testing.assert_allclose(file["modes/log_value"][()][:, at], strengths[:, kept], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(file["theory/log_initial"][()], strengths[:, 0], rtol=1e-12)
        np.testing.assert_allclose(np.einsum("ka,la->kl", vectors, vectors), np.eye(3), atol=1e-12)
        times, kinds = file["ignitions/time"][()], file["ignitions/kind"][()]
        self.assertTrue(np.all(np.diff(times) > 0) and np.all(kinds == 1))
        half = file["ignitions/half_value"][()]
        np.testing.assert_allclose(half, 0.5 * np.exp(file["modes/log_value"][()][file["ignitions/mode"][()], -1]), rtol=1e-9)
        kernel = file["tangent_kernel/kernel"][()]
        np.testing.assert_allclose(kernel, kernel.transpose(0, 2, 1), rtol=1e-12)
        self.assertGreater(np.linalg.eigvalsh(kernel[0]).min(), -1e-12 * np.trace(kernel[0]))
        drift = np.linalg.norm(kernel[1] - kernel[0]) / np.linalg.norm(kernel[0])
        row = list(file["series/time"][()]).index(file["tangent_kernel/time"][1])
        self.assertAlmostEqual(file["series/kernel_drift"][row] / drift, 1.0, delta=1e-9)

    def test_resolved_deck_runs_to_the_same_bits(self):
        deck = self.write("resolved.toml", self.file["input/resolved"].asstr()[()])
        path, _ = self.run_deck("resolved", deck, ranks=2)
        self.assert_same_bits(self.file.filename, path)


class Commands(Modules):
    def test_check_states_sizes_and_runs_nothing(self):
        deck = self.write("checked.toml", perceptron())
        for ranks in (0, 2):
            done = self.good(nqf("check", deck, ranks=ranks, folder=self.folder))
            self.assertRegex(done.out, r"module: p = 9, d = 40, carried as 9 columns")
            self.assertRegex(done.out, rf"on {max(ranks, 1)} ranks?: memory about [\d.]+ MB a rank; result about [\d.]+ k?B, each checkpoint")
            self.assertRegex(done.out, r"mode +growth rate +saturation +drop")
        self.assertFalse((self.folder / "checked").exists())

    def test_check_counts_what_the_form_carries(self):
        # M of 2003 × 2003 beside weights of 2003 × 4.
        deck = self.write("sizes.toml", perceptron(data={"shape": [2000], "covariance": None, "samples": 20}, weights={"width": 4}))
        def memory(*options):
            done = self.good(nqf("check", deck, *options))
            number, unit = re.search(r"memory about ([\d.]+) (MB|GB) a rank", done.out).groups()
            return float(number) * (1e6 if unit == "MB" else 1e9)
        weights, order = memory(), memory("--set", 'training.form="order_parameter"')
        # 35 vectors of the triangle for BDF with GMRES, the rows of M in three, and two panels of all rows.
        self.assertAlmostEqual((order - weights) / (8 * 2003**2), 35 / 2 + 3 + 2, delta=0.5)

    def test_matrices_beyond_32_bit_indices_are_refused_by_check(self):
        wide = {"data": {"shape": [46341], "samples": 2, "covariance": None}}
        wider = {"data": {"shape": [65533], "samples": 2, "covariance": None}}
        refused = {
            "order_parameter": (perceptron(**wider, training={"form": "order_parameter"}), r"order_parameter\.toml:\d+: \[training\] form: .*65536 x 65536 .*at most 65535"),
            "snapshots": (perceptron(**wide, output={"order_parameter_every": 1}), r"\[output\] order_parameter_every: .*46344 x 46344"),
            "wide": (perceptron(**wide, weights={"width": 10**9}), r"wide\.toml:\d+: \[weights\] width: W\(0\) takes 46344 × 46344 entries"),
            "sensing": (toml(system={"kind": "module"}, module={"kind": "sensing"}, data={"kind": "matrices", "samples": 1, "shape": [46341, 46341], "spectrum": [1.0]},
                             weights={"width": 4}, time={"end": 1.0}), r"sensing\.toml:\d+: \[data\] shape: 46341 × 46341 matrices"),
        }
        runs = (lambda name=name, deck=deck, ranks=ranks: nqf("check", self.write(f"{name}.toml", deck), ranks=ranks, each_rank=ranks > 0, timeout=120)
                for name, (deck, _) in refused.items() for ranks in (0, 3))
        results = iter(together(*runs))
        for name, (_, pattern) in refused.items():
            one, three = next(results), next(results)
            self.assertEqual(one.status, 2, one)
            self.assertEqual(three.rank_statuses, [2, 2, 2], three)
            for done in (one, three):
                self.assertRegex(done.err, pattern, name)
        # Rows of M fit 32-bit indices from two ranks on, and check may run on one.
        rows = self.good(nqf("check", self.write("rows.toml", perceptron(**wide, training={"form": "order_parameter"}))))
        self.assertIn("needs at least 2 ranks", rows.out)

    def test_predict_agrees_with_check_and_run(self):
        deck = self.write("predicted.toml", perceptron())
        table = lambda text: re.findall(r"(?m)^ +\d+ +[\d.e+-]+ +[\d.e+-]+ +[\d.e+-]+ +[\d.e+-]+ +[\d.e+-]+$", text)
        predicted, checked = (self.good(nqf(command, deck)) for command in ("predict", "check"))
        self.assertEqual(len(table(predicted.out)), 3)
        self.assertEqual(table(predicted.out), table(checked.out))
        path, _ = self.run_deck("predicted", perceptron())
        times = contents(path)["theory/ignition_time"]
        np.testing.assert_allclose([float(row.split()[-1]) for row in table(predicted.out)], times, rtol=1e-7)

    def test_a_tolerance_too_large_for_the_start_is_warned_of(self):
        quiet = nqf("check", self.write("fine.toml", perceptron()))
        self.assertNotIn("warning: training.tolerance", quiet.out)
        loud = nqf("check", self.write("loose.toml", perceptron(training={"tolerance": 1e-4})))
        self.assertRegex(self.good(loud).out, r"warning: training\.tolerance 0\.0001 is not far below [\d.e-]+, .*mode [12]")
        on_m = nqf("check", self.write("on_m.toml", perceptron(training={"form": "order_parameter", "tolerance": 1e-7})))
        self.assertRegex(self.good(on_m).out, r"warning: training\.tolerance 1e-07 .*\"factor\" takes a larger one")
        self.assertNotIn("warning: training.tolerance", nqf("check", self.write("steps.toml", stepping(training={"tolerance": 1e-4}))).out)

    def test_show_and_plot_take_results_of_modules(self):
        path, _ = self.run_deck("shown", perceptron(), ranks=2)
        self.assertIn("intact", self.good(nqf("show", path)).out)
        self.assertEqual(self.good(nqf("show", path.parent / "checkpoint.h5")).err, "")
        self.good(nqf("plot", path, "-o", self.folder / "shown.svg"))
        self.assertGreater((self.folder / "shown.svg").stat().st_size, 5000)


if __name__ == "__main__":
    main()
