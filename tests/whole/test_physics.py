"""What the program computes, against closed forms and arrays made elsewhere."""

import gzip
import re
import struct

import h5py
import numpy as np

from nqf_program import INPUTS, REFERENCE, Case, coupled_modes, main, nqf, three_modes, together, toml


def read(path, *names):
    with h5py.File(path, "r") as file:
        return [file[name][()] for name in names]


class Physics(Case):
    def run_decks(self, decks, ranks=0):
        """Runs {name: deck or path} side by side; results are in self.folder/name/result.h5."""
        paths = {name: deck if not isinstance(deck, str) else self.write(f"{name}.toml", deck) for name, deck in decks.items()}
        done = together(*(lambda n=n, p=p: nqf("run", p, "--output", self.folder / n, ranks=ranks, timeout=120) for n, p in paths.items()))
        for one in done:
            self.good(one)
        return {name: (self.folder / name / "result.h5", one) for name, one in zip(decks, done)}

    def test_sudden_learning_gives_the_numbers_of_its_header(self):
        deck = INPUTS / "sudden_learning.toml"
        header = deck.read_text().split("title")[0]
        expected = [float(x) for x in re.search(r"t = ([0-9., ]+) \(modes", header).group(1).split(",")]
        start_loss = float(re.search(r"loss ([0-9.]+) at t = 0", header).group(1))
        path, done = self.run_decks({"sudden": deck}, ranks=2)["sudden"]
        mode, time, kind, predicted, half = read(path, *(f"ignitions/{n}" for n in ("mode", "time", "kind", "predicted_time", "half_value")))
        np.testing.assert_array_equal(mode, np.arange(5))
        np.testing.assert_array_equal(kind, np.ones(5))
        np.testing.assert_allclose(half, 0.5, rtol=1e-12)
        exact = np.log(1e5 - 1) / np.array([2.0, 0.8, 0.3, 0.1, 0.03])
        np.testing.assert_allclose(predicted, exact, rtol=1e-13)
        np.testing.assert_allclose(time, exact, rtol=1e-6)
        np.testing.assert_allclose(exact, expected, rtol=1e-4)
        t, loss, lit = read(path, "series/time", "series/loss", "series/lit_modes")
        self.assertAlmostEqual(loss[0], start_loss, delta=6e-6)
        self.assertLess(loss[-1], 1e-9)
        np.testing.assert_array_equal(lit, np.sum(t[:, None] >= time, axis=1))
        for k, ignition in enumerate(exact):  # the table on the terminal
            self.assertRegex(done.out, rf"(?m)^ +{k} +lit +{re.escape(f'{ignition:.8g}')} +")

    def test_uncoupled_modes_ignite_within_1e_6_of_the_formula(self):
        rng = np.random.default_rng(7)
        growth = rng.uniform(0.05, 3.0, 40)
        saturation = rng.uniform(0.1, 10.0, 40)
        log_initial = -rng.uniform(5.0, 2000.0, 40)
        ignition = np.log(saturation) - log_initial  # ln(z*/z0 − 1) where z0 is tiny
        small = ignition < 30
        ignition[small] = np.log(saturation[small] / np.exp(log_initial[small]) - 1)
        ignition /= growth
        end = float(1.1 * ignition.max())
        tables = dict(system={"kind": "modes"}, modes={"growth_rate": growth, "saturation": saturation},
                      initial={"log_value": log_initial}, time={"end": end, "outputs": 200})
        path, _ = self.run_decks({"random": toml(**tables)}, ranks=3)["random"]
        mode, time, kind = read(path, "ignitions/mode", "ignitions/time", "ignitions/kind")
        self.assertEqual(len(mode), 40)
        np.testing.assert_array_equal(mode, np.argsort(ignition))
        np.testing.assert_allclose(time, np.sort(ignition), rtol=1e-6)

    def test_modes_that_start_above_their_threshold_are_lit_without_an_event(self):
        tables = dict(system={"kind": "modes"}, modes={"growth_rate": [1.0, 1.0, 1.0], "saturation": 1.0},
                      initial={"value": [0.6, 0.4, 2.0]}, time={"end": 10.0, "outputs": 10})
        path, _ = self.run_decks({"lit": toml(**tables)})["lit"]
        mode, time, lit = read(path, "ignitions/mode", "ignitions/time", "series/lit_modes")
        np.testing.assert_array_equal(mode, [1])
        np.testing.assert_allclose(time, np.log(1.5), rtol=1e-6)
        self.assertEqual((lit[0], lit[-1]), (2, 3))

    def check_coupled(self, path):
        with h5py.File(REFERENCE / "modes_coupled.h5") as file:
            expected = {name: item[()] for name, item in file["expected"].items()}
        t, loss, log_value, zeta = read(path, "series/time", "series/loss", "modes/log_value", "theory/growth_rate")
        np.testing.assert_allclose(t, expected["time"], rtol=1e-14, atol=1e-12)
        np.testing.assert_allclose(loss, expected["loss"], rtol=1e-6)
        np.testing.assert_allclose(zeta, expected["growth_rate"], rtol=1e-12)
        np.testing.assert_allclose(log_value, expected["log_value"], rtol=0, atol=1e-5)
        events = read(path, *(f"ignitions/{n}" for n in ("mode", "kind", "time", "half_value")))
        path_events = expected["path"]
        lit = path_events[:, 2] == 1
        order = np.argsort(expected["ignition_time"])
        is_lit = events[1] == 1
        np.testing.assert_array_equal(events[0][is_lit], path_events[lit, 1][order])
        np.testing.assert_allclose(events[2][is_lit], expected["ignition_time"][order], rtol=1e-6)
        np.testing.assert_allclose(events[3][is_lit], 0.5 * path_events[lit, 3][order], rtol=1e-7)
        np.testing.assert_array_equal(events[0][~is_lit], path_events[~lit, 1])

    def test_coupled_modes_match_arrays_of_other_software_on_1_2_3_and_5_ranks(self):
        deck = self.write("coupled.toml", coupled_modes())
        ranks = (0, 1, 2, 3, 5)
        done = together(*(lambda r=r: nqf("run", deck, "--output", self.folder / f"coupled{r}", ranks=r) for r in ranks))
        for r, one in zip(ranks, done):
            with self.subTest(ranks=r):
                self.good(one)
                self.check_coupled(self.folder / f"coupled{r}/result.h5")
        self.assert_same_bits(self.folder / "coupled0/result.h5", self.folder / "coupled1/result.h5")

    def test_krylov_and_direct_newton_agree(self):
        results = self.run_decks({n: coupled_modes(solver={"newton": n}) for n in ("direct", "krylov")}, ranks=2)
        for path, _ in results.values():
            self.check_coupled(path)

    def test_features_targets_and_dense_coupling_are_the_same_system(self):
        with h5py.File(REFERENCE / "modes_coupled.h5") as file:
            features, targets, initial = (file[n][()] for n in ("features", "targets", "initial"))
            coupling, growth = file["expected/coupling"][()], file["expected/growth_rate"][()]
            end = float(file["expected/time"][-1])
        common = dict(initial={"value": initial}, time={"end": end, "outputs": 40})
        results = self.run_decks({
            "lists": toml(system={"kind": "modes"}, modes={"features": features, "targets": targets}, **common),
            "dense": toml(system={"kind": "modes"}, modes={"growth_rate": growth, "coupling": coupling}, **common)})
        self.check_coupled(results["lists"][0])
        one = read(results["lists"][0], "modes/log_value", "ignitions/time", "series/loss")
        two = read(results["dense"][0], "modes/log_value", "ignitions/time", "series/loss")
        np.testing.assert_allclose(one[0], two[0], atol=1e-5)
        np.testing.assert_allclose(one[1], two[1], rtol=1e-6)
        drop = one[2][:-1] - one[2][1:]  # without targets the loss is known up to a constant
        np.testing.assert_allclose(two[2][:-1] - two[2][1:], drop, rtol=1e-5, atol=1e-8)

    def test_arrays_of_any_number_type_and_byte_order(self):
        growth, coupling, initial = [3, 2, 1], [[4, 1, 0], [1, 3, 1], [0, 1, 2]], [-20, -25, -30]
        plain = toml(system={"kind": "modes"}, modes={"growth_rate": growth, "coupling": coupling},
                     initial={"log_value": initial}, time={"end": 60.0, "outputs": 20})
        kinds = {"bytes": ("<i1", ">i2", ">i8"), "halves": ("<f2", ">f4", "<i4"), "unsigned": (">u8", "<u2", ">f8")}
        decks = {"plain": plain}
        for name, (a, b, c) in kinds.items():
            with h5py.File(self.folder / f"{name}.h5", "w") as file:
                file.create_dataset("growth_rate", data=np.array(growth, dtype=a), chunks=(2,), compression="gzip")
                file.create_dataset("coupling", data=np.array(coupling, dtype=b))
                file.create_dataset("log_initial", data=np.array(initial, dtype=c))
            # A relative file name starts in the deck's folder.
            decks[name] = toml(system={"kind": "modes"}, modes={"file": f"{name}.h5"}, time={"end": 60.0, "outputs": 20})
        results = self.run_decks(decks)
        for name in kinds:
            self.assert_same_bits(results["plain"][0], results[name][0])

    def test_closed_form_agrees_with_integration(self):
        samples = dict(system={"kind": "samples"}, time={"end": 60.0, "outputs": 30})
        systems = {
            "modes": three_modes, 
            "definite": lambda **c: toml(**{**samples, "samples": {"kind": "definite", "target": [1.0, 0.5], "growth_rate": [2.0, 0.7]},
                                            "initial": {"epsilon": 1e-6}, **c}),
            "signed": lambda **c: toml(**{**samples, "samples": {"kind": "signed", "target": [1.0, -0.5, 0.3], "growth_rate": [2.0, 0.7, 0.4]},
                                          "initial": {"epsilon": 1e-6}, **c}),
            "single": lambda **c: toml(**{**samples, "system": {"kind": "single_sample"},
                                          "single_sample": {"eigenvalues": [1.0, 0.5, -0.7], "target": 1.5},
                                          "initial": {"epsilon": 1e-6}, **c})}
        decks = {f"{name}_{form}": make(solver={"form": form}) for name, make in systems.items() for form in ("integrate", "closed")}
        results = self.run_decks(decks)
        for name in systems:
            with self.subTest(name):
                pair = [read(results[f"{name}_{form}"][0], "series/loss", "modes/log_value", "ignitions/time", "ignitions/mode",
                             "series/time") for form in ("integrate", "closed")]
                np.testing.assert_array_equal(pair[0][4], pair[1][4])
                np.testing.assert_allclose(pair[0][0], pair[1][0], rtol=1e-5, atol=1e-10)
                np.testing.assert_allclose(pair[0][1], pair[1][1], rtol=0, atol=3e-6)
                if name == "single":
                    continue  # its modes ignite together, a saddle path of one step: integration alone measures it
                np.testing.assert_array_equal(pair[0][3], pair[1][3])
                self.assertGreaterEqual(len(pair[0][2]), 2)
                np.testing.assert_allclose(pair[0][2], pair[1][2], rtol=1e-6)

    def test_orthogonal_samples_follow_the_reference_outputs(self):
        """samples_*.h5 give A_n, y_n and W0 of a network and its outputs f_n(t); their modes follow from THEORY 4.3."""
        for kind in ("definite", "signed"):
            with self.subTest(kind), h5py.File(REFERENCE / f"samples_{kind}.h5") as file:
                a, w, y = file["A"][()], file["W0"][()], file["y"][()]
                t, f = file["expected/time"][()], file["expected/f"][()]
            m, n = w @ w.T, len(y)
            eigenvalues = np.linalg.eigvalsh(a)
            kappa = eigenvalues.max(axis=1)
            initial = np.einsum("nij,ij->n", a, m)
            samples = {"kind": kind, "target": y, "growth_rate": 4 * kappa * (y if kind == "definite" else np.abs(y)) / n}
            start = {"value": initial}
            if kind == "signed":
                plus = (np.einsum("nij,ij->n", a @ a, m) / kappa + initial) / 2  # κz± = (Tr[MA²]/κ ± Tr[MA])/2
                start = {"value": plus, "minus_ratio": (plus - initial) / plus}
            deck = toml(system={"kind": "samples"}, samples=samples, initial=start,
                        time={"end": float(t[-1]), "times": t[t > 0]})
            path, _ = self.run_decks({f"samples_{kind}": deck}, ranks=3)[f"samples_{kind}"]
            times, loss = read(path, "series/time", "series/loss")
            np.testing.assert_allclose(times, t)
            np.testing.assert_allclose(loss, 0.5 * np.mean((y - f) ** 2, axis=1), rtol=1e-6, atol=1e-12)

    def test_more_ranks_than_modes(self):
        tables = dict(modes={"growth_rate": [2.0, 1.0], "saturation": 1.0})
        coupled = dict(system={"kind": "modes"}, modes={"growth_rate": [2.0, 1.0], "coupling": [[2.0, 0.5], [0.5, 1.0]]},
                       initial={"epsilon": 1e-9}, time={"end": 60.0, "outputs": 20})
        decks = {"two": three_modes(**tables), "two_coupled": toml(**coupled),
                 "two_closed": three_modes(**tables, solver={"form": "closed"})}
        many, one = self.run_decks(decks, ranks=5), self.run_decks({f"{n}_serial": d for n, d in decks.items()})
        for name in decks:
            self.assert_same_values(many[name][0], one[f"{name}_serial"][0])
        self.assertEqual(len(read(many["two"][0], "ignitions/time")[0]), 2)

    def test_power_law_exponent_of_a_shortened_deck(self):
        cut = ("--set", "modes.count=200000", "--set", "solver.form=\"closed\"")
        done = self.good(nqf("run", INPUTS / "power_law.toml", *cut, "--output", self.folder / "law", ranks=2))
        exponent, error, window, predicted = read(self.folder / "law/result.h5", "fit/exponent", "fit/standard_error", "fit/window", "fit/predicted")
        self.assertAlmostEqual(predicted[0], -1.25, delta=1e-12)
        self.assertRegex(done.out, r"power law: exponent -1\.\d+ \+- ")
        self.assertLess(abs(exponent[0] / -1.25 - 1), 0.01)  # the deck's million modes reach 0.005
        self.assertLess(error[0], 0.01)
        self.assertGreater(window[1], window[0])

    def test_diagonal_network_on_idx_images(self):
        rng = np.random.default_rng(3)
        images = rng.integers(0, 256, (50, 2, 3)).astype(np.uint8)
        labels = rng.integers(0, 3, 50).astype(np.uint8)
        header = lambda dims: struct.pack(">BBBB", 0, 0, 8, len(dims)) + struct.pack(f">{len(dims)}I", *dims)
        (self.folder / "images.gz").write_bytes(gzip.compress(header(images.shape) + images.tobytes()))
        (self.folder / "labels").write_bytes(header(labels.shape) + labels.tobytes())
        deck = toml(system={"kind": "diagonal_network"},
                    diagonal_network={"images": "images.gz", "labels": "labels", "class": 1, "scale": 1 / 255},
                    initial={"epsilon": 1e-20}, time={"end": 2000.0, "outputs": 20})
        path, _ = self.run_decks({"pixels": deck}, ranks=3)["pixels"]
        x = images.reshape(50, 6) / 255.0
        x, y = x - x.mean(axis=0), (labels == 1) - (labels == 1).mean()
        x = np.hstack([x, -x])
        zeta, loss, log_value = read(path, "theory/growth_rate", "series/loss", "modes/log_value")
        np.testing.assert_allclose(zeta, 4 * x.T @ y / 50, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(loss[0], 0.5 * np.mean(y ** 2), rtol=1e-10)
        np.testing.assert_allclose(loss, [0.5 * np.mean((y - x @ np.exp(v)) ** 2) for v in log_value.T], rtol=1e-9)
        with h5py.File(path) as file:
            self.assertEqual((file["modes"].attrs["image_rows"], file["modes"].attrs["image_columns"], file["modes"].attrs["signed"]), (2, 3, 1))


if __name__ == "__main__":
    main()
