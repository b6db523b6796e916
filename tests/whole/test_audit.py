"""nqf audit: the table of THEORY §7, an independent integration, what is kept when cases fail or runs are killed."""

import os
import re
import subprocess
import time
import unittest
from pathlib import Path

import h5py
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from nqf_program import (MPIEXEC, NQF, Case, contents, kill_ranks, main, nqf, processes_of, start, together, toml,
                         wait_until)

TEACHER = {"system": {"kind": "module"}, "module": {"kind": "perceptron"},
           "data": {"kind": "gaussian", "samples": 256, "shape": [8], "outputs": 3, "spectrum": [1.0, 0.6, 0.35]},
           "weights": {"width": 16, "epsilon": 1e-2}, "training": {"tolerance": 1e-7}, "time": {"end": 60.0}}


def deck(**changes):
    tables = {name: dict(table) for name, table in TEACHER.items()}
    for name, table in changes.items():
        tables[name] = {**tables.get(name, {}), **table} if isinstance(table, dict) else table
    return toml(**tables)


class Audit(Case):
    def audit(self, name, text, *options, ranks=0, timeout=240, status=0):
        path = self.write(f"{name}.toml", text)
        done = self.good(nqf("audit", path, "--output", self.folder / name, *options, ranks=ranks, timeout=timeout), status)
        found = contents(self.folder / name / "result.h5", "audit")
        return found, done

    def test_the_remainder_falls_as_one_over_the_width(self):
        widths = [64, 128, 256, 512, 1024, 2048, 4096]
        found, done = self.audit("width", deck(audit={"width": widths, "seed_count": 9, "train_up_to": 1}), ranks=2)
        remainder = found["remainder"].reshape(len(widths), 9)
        products = np.median(remainder, axis=1) * widths
        self.assertLessEqual(products.max() / products.min(), 1.4, products)
        slope, = found["laws/width_exponent"]
        self.assertAlmostEqual(slope, 1.0, delta=0.1)
        expected = -np.polyfit(np.log(widths), np.log(np.median(remainder, axis=1)), 1)[0]
        np.testing.assert_allclose(slope, expected, rtol=1e-10)
        self.assertTrue(np.isnan(found["gap"]).all())  # no original was trained
        self.assertIn("remainder", done.out)

    def test_the_table_of_a_tanh_perceptron(self):
        # THEORY §7: medians 0.059 (one seed 0.091) at d = 16, 5.4e-3 (6.4e-3) at d = 256.
        found, _ = self.audit("table", deck(audit={"width": [16, 256], "seed_count": 5, "train_up_to": 16}))
        remainder = found["remainder"].reshape(2, 5)
        self.assertTrue(0.03 < np.median(remainder[0]) < 0.12, remainder)
        self.assertTrue(2.7e-3 < np.median(remainder[1]) < 1.1e-2, remainder)
        np.testing.assert_allclose(found["remainder_order"], 4.0, atol=0.02)
        first = found["ignition_ratio"][0, :5]
        self.assertTrue(np.all((first > 1.0) & (first < 1.2)), first)  # saturation of tanh delays, a little
        self.assertTrue(np.all(found["passed"] == ((found["remainder"] <= 0.1) & ~(found["gap"] > 0.1))))

    def test_orders_of_the_remainder(self):
        cases = [{"name": "even", "audit": {"modules": ["perceptron"], "activations": ["tanh", "erf", "sin"]}},
                 {"name": "not_even", "audit": {"modules": ["perceptron", "experts_softmax"], "activations": ["gelu"]}},
                 {"name": "gate", "audit": {"modules": ["experts_softmax", "d_experts_softmax"], "activations": ["tanh"]}},
                 {"name": "attention", "module": {"kind": "attention", "head_size": 2},
                  "data": {"kind": "tokens", "shape": [5, 8]}}]
        text = deck(data={"samples": 48}, audit={"train_up_to": 1, "outputs": 60}, case=cases)
        found, _ = self.audit("orders", text, ranks=2)
        orders = dict(zip(zip(found["case"].astype(str), found["module"].astype(str), found["activation"].astype(str)),
                          found["remainder_order"]))
        for (case, module, activation), order in orders.items():
            expected = 4 if case in ("even", "attention") else 3
            self.assertAlmostEqual(order, expected, delta=0.05, msg=(case, module, activation, orders))

    def test_one_unit_against_an_integration_of_its_own(self):
        """d = 1: M(0) = w wᵀ gives W(0) up to a sign that an even module does not see."""
        rng = np.random.default_rng(5)
        x = rng.standard_normal((40, 4))
        y = x @ np.array([[0.9, 0.1], [0.2, -0.5], [0.0, 0.3], [-0.4, 0.2]]) * 1.5
        data = self.folder / "own.h5"
        with h5py.File(data, "w") as file:
            file.update({"x": x, "y": y})
        text = deck(data={"kind": "hdf5", "file": data}, weights={"width": 1, "epsilon": 1e-2, "seed": 4, "units": "kept"},
                    training={"tolerance": 1e-10}, output={"order_parameter_every": 1}, time={"end": 1.0, "outputs": 1})
        for key in ("samples", "shape", "outputs", "spectrum"):
            text = "\n".join(line for line in text.splitlines() if not line.startswith(f"{key} =")) + "\n"
        path = self.write("own.toml", text)
        found, _ = self.audit("own_audit", text)
        self.good(nqf("run", path, "--output", self.folder / "own_run"))
        m = contents(self.folder / "own_run" / "result.h5")["order_parameter/M"][0]
        values, vectors = np.linalg.eigh(m)
        w0 = vectors[:, -1] * np.sqrt(values[-1])

        def outputs(w, act):
            return np.outer(act(x @ w[:4]), w[4:])

        def flow(act, slope):
            def rhs(_, w):
                h = x @ w[:4]
                r = (np.outer(act(h), w[4:]) - y) / len(x)
                return -np.concatenate([x.T @ (slope(h) * (r @ w[4:])), r.T @ act(h)])
            return solve_ivp(rhs, (0, end), w0, method="DOP853", rtol=1e-11, atol=1e-14, dense_output=True).sol

        end = float(found["end"][0])
        form = flow(lambda h: h, np.ones_like)
        original = flow(np.tanh, lambda h: 1 - np.tanh(h) ** 2)
        identity = lambda h: h
        loss = lambda w, act: 0.5 * np.sum((outputs(w, act) - y) ** 2) / len(x)
        total = loss(form(0), identity) - loss(form(end), identity)

        def rate(t):  # −dL/dt = ‖ẇ‖²
            u, v = form(t)[:4], form(t)[4:]
            r = (np.outer(x @ u, v) - y) / len(x)
            return np.sum((x.T @ (r @ v)) ** 2) + np.sum((r.T @ (x @ u)) ** 2)
        rates = np.array([rate(t) for t in np.linspace(0, end, 401)])
        behind = rates[np.argmax(rates):]
        self.assertTrue(np.all(np.diff(behind) < 1e-9 * rates.max()), "a single drop: all that falls falls in it")
        t1 = brentq(lambda t: loss(form(0), identity) - loss(form(t), identity) - 0.5 * total, 0, end, xtol=1e-12)
        self.assertAlmostEqual(found["t1"][0] / t1, 1.0, delta=1e-6)
        w1 = form(t1)
        remainder = np.linalg.norm(outputs(w1, np.tanh) - outputs(w1, identity)) / np.linalg.norm(outputs(w1, identity))
        self.assertAlmostEqual(found["remainder"][0] / remainder, 1.0, delta=1e-5)
        gap = abs(loss(original(t1), np.tanh) - loss(w1, identity)) / total
        self.assertAlmostEqual(found["gap"][0] / gap, 1.0, delta=1e-5)
        self.assertAlmostEqual(found["total_drop"][0] / total, 1.0, delta=1e-7)

    def test_rows_do_not_depend_on_ranks(self):
        # Few samples: with several ranks a case, a step is nearly all communication.
        text = deck(data={"samples": 48}, audit={"width": [3, 24], "seeds": [0, 7], "outputs": 60},
                    training={"tolerance": 1e-8})
        runs = together(lambda: self.audit("r0", text),
                        lambda: self.audit("r3", text, ranks=3),
                        lambda: self.audit("r32", text, "--set", "audit.ranks_per_case=2", ranks=3))
        for other, _ in runs[1:]:
            for name, values in runs[0][0].items():
                if "steps" in name or values.dtype == object:
                    continue
                np.testing.assert_allclose(other[name], values, rtol=1e-3, atol=1e-6, err_msg=name)

    def test_killed_and_rerun_it_has_the_same_rows(self):
        text = deck(audit={"width": [2, 16, 64], "seed_count": 4})
        path = self.write("killed.toml", text)
        whole, _ = self.audit("whole", text, ranks=2)
        folder = self.folder / "killed"
        process = start("audit", path, "--output", folder, ranks=2)

        def some_rows():
            with h5py.File(folder / "result.h5", "r") as file:
                return file["audit/failed"].shape[0] >= 3
        wait_until(some_rows, "three rows", timeout=120)
        kill_ranks(process)
        with h5py.File(folder / "result.h5", "r") as file:
            kept = min(file[f"audit/{name}"].shape[0] for name in ("failed", "remainder", "t1"))
            before = {name: file[f"audit/{name}"][:kept] for name in ("remainder", "gap", "t1")}
        self.assertLess(kept, 12, "it was killed too late to show anything")
        done = self.good(nqf("audit", path, "--output", folder, "--restart", ranks=2, timeout=240))
        self.assertRegex(done.out, rf"12 cases, {kept} done before")
        again = contents(folder / "result.h5", "audit")
        for name, values in before.items():
            self.assertEqual(again[name][:kept].tobytes(), values.tobytes(), name)
        self.assertEqual(sorted(again), sorted(whole))
        for name in whole:
            self.assertEqual(again[name].shape, whole[name].shape, name)
            if whole[name].dtype == object:
                np.testing.assert_array_equal(again[name], whole[name], name)
            else:
                self.assertEqual(again[name].tobytes(), whole[name].tobytes(), name)
        self.assertIn("already complete", self.good(nqf("audit", path, "--output", folder, "--restart")).out)
        other = nqf("audit", path, "--output", folder, "--restart", "--set", "audit.level=0.2")
        self.assertEqual(other.status, 2, other)
        self.assertIn("audit.level", other.err)

    def test_a_failing_case_does_not_lose_the_others(self):
        # From ε = 1e-40 the run is so much longer that a step limit meant for 1e-1 is too small.
        text = deck(audit={"epsilon": [1e-1, 1e-40, 1e-2], "seed_count": 2, "outputs": 50},
                    data={"samples": 48}, solver={"max_steps": 40})
        for ranks, options in ((0, ()), (3, ("--set", "audit.ranks_per_case=2"))):
            found, done = self.audit(f"failing{ranks}", text, *options, ranks=ranks)
            np.testing.assert_array_equal(found["failed"], [0, 0, 1, 1, 0, 0])
            self.assertTrue(np.all(np.isfinite(found["remainder"]) == (found["failed"] == 0)))
            failures = found["failure"].astype(str)
            self.assertIn("solver.max_steps", failures[2])
            self.assertEqual(failures[0], "")
            self.assertIn("failed: perceptron tanh, epsilon 1e-40", done.out)
        # What failed is missing, and is run again; it fails as it did, and nothing else changes.
        folder = self.folder / "failing0"
        again = self.good(nqf("audit", self.folder / "failing0.toml", "--output", folder, "--restart"))
        self.assertIn("6 cases, 4 done before", again.out)
        self.assertIn("solver.max_steps", again.out)
        first, second = self.audit("failing_fresh", text)[0], contents(folder / "result.h5", "audit")
        for name, values in first.items():
            same = np.array_equal(values, second[name]) if values.dtype == object else values.tobytes() == second[name].tobytes()
            self.assertTrue(same, name)
        every = nqf("audit", self.write("all.toml", text), "--output", self.folder / "all", "--set", "audit.epsilon=[1e-40]",
                    timeout=120)
        self.assertEqual(every.status, 1, every)
        self.assertIn("all 2 cases failed", every.err)

    @unittest.skipIf(os.environ.get("NQF_INSTRUMENTED"), "the address sanitizer reserves more memory than a limit can allow")
    def test_a_rank_that_fails_alone_loses_its_case_and_a_rerun_takes_it_up(self):
        """Two groups of two ranks. Rank 1 may not take the memory of the first case, while rank 0 waits for it in a
        collective call; with the memory there a second start does that case, and the others' bits stay."""
        text = deck(data={"samples": 8, "shape": [6]}, weights={"epsilon": 1e-2}, training={"tolerance": 1e-6},
                    audit={"width": [1_500_000, 64, 65, 66], "ranks_per_case": 2, "train_up_to": 1, "outputs": 30, "modes": 3})
        path, folder = self.write("memory.toml", text), self.folder / "memory"
        small = start("audit", path, "--output", self.folder / "small", "--set", "audit.width=[64]", "--set",
                      "audit.seed_count=40", ranks=4)
        needed = 0  # kB of address space, without large arrays
        while small.poll() is None:
            for pid in processes_of(small):
                try:
                    needed = max(needed, int(re.search(r"VmPeak:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]))
                except (OSError, TypeError):
                    pass  # it ended meanwhile
            time.sleep(0.02)
        self.assertEqual(small.returncode, 0)
        limited = f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -v {needed + 60_000}; exec "$@"'
        done = subprocess.run([MPIEXEC, "-n", "4", "sh", "-c", limited, "sh", NQF, "audit", path, "--output", folder],
                              text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("width 1500000, seed 0: failed: std::bad_alloc", done.stdout)
        before = contents(folder / "result.h5", "audit")
        np.testing.assert_array_equal(before["failed"], [1, 0, 0, 0])
        self.assertEqual(before["failure"][0], b"std::bad_alloc")
        again = self.good(nqf("audit", path, "--output", folder, "--restart", ranks=4, timeout=240))
        self.assertIn("4 cases, 3 done before", again.out)
        after = contents(folder / "result.h5", "audit")
        np.testing.assert_array_equal(after["failed"], [0, 0, 0, 0])
        self.assertEqual(set(after["failure"]), {b""})
        np.testing.assert_array_equal(after["width"], [1_500_000, 64, 65, 66])
        self.assertEqual(after["remainder"][1:].tobytes(), before["remainder"][1:].tobytes())
        self.assertAlmostEqual(after["remainder"][0] * 1.5e6 / (after["remainder"][1] * 64), 1.0, delta=0.5)  # R ~ 1/d

    def test_mistakes_are_named(self):
        for text, words in ((deck(audit={"modules": ["perceptrons"]}), ("[audit] modules", "did you mean", "perceptron")),
                            (deck(audit={"activations": ["relu"]}), ("activation", "relu")),
                            (deck(audit={"seeds": [1, 1]}), ("seeds", "twice")),
                            (deck(audit={"modules": ["query_key"]}), ("[module]",)),
                            (deck(data={"shape": [4, 2]}), ("perceptron", "[4, 2]")),
                            (deck(module={"kind": "phase_retrieval"}), ("its own normal form",)),
                            (deck(training={"algorithm": "sgd", "learning_rate": 0.1}), ("algorithm", "flow")),
                            (deck(audit={"epsilon": [-1.0]}), ("epsilon", "positive"))):
            path = self.write("mistake.toml", text)
            for ranks in (0, 2):
                done = nqf("audit", path, "--output", self.folder / "mistake", ranks=ranks)
                self.assertEqual(done.status, 2, (text, done))
                for word in words:
                    self.assertIn(word, done.err)
        self.assertFalse((self.folder / "mistake" / "result.h5").exists())


if __name__ == "__main__":
    main()
