"""nqf spectrum: eigenvalues, rates, drops, fits and predictions against numpy and closed forms; what it leaves, what it refuses."""

import re

import h5py
import numpy as np

from nqf_program import REFERENCE, Case, bytes_of, contents, coupled_modes, datasets, main, nqf, three_modes, together, toml

POWER_LAW = {"system": {"kind": "modes"},
             "modes": {"count": 1000, "growth_rate": {"coefficient": 1.0, "exponent": 0.8},
                       "drop": {"coefficient": 1.0, "exponent": 2.0}},
             "initial": {"epsilon": 1e-5, "shape": {"coefficient": 1.0, "exponent": 1.2}},
             "time": {"end": 10.0, "outputs": 2}}


class Spectrum(Case):
    def spectrum(self, name, deck, *options, ranks=0):
        """Writes a deck, runs, and gives back what is in the file and what was printed."""
        path = self.write(f"{name}.toml", deck)
        done = self.good(nqf("spectrum", path, "--output", self.folder / name, *options, ranks=ranks))
        return contents(self.folder / name / "spectrum.h5"), done

    def test_a_power_law_is_found_and_its_exponent_predicted(self):
        found, done = self.spectrum("law", toml(**POWER_LAW))
        k = np.arange(1, 1001)
        np.testing.assert_allclose(found["spectrum/growth_rate"], k ** -0.8, rtol=1e-13)
        np.testing.assert_allclose(found["spectrum/drop"], k ** -2.0, rtol=1e-12)
        # ln(z*/z(0) − 1)/ζ with z* = 8V/ζ
        times = np.log(8 * k ** -1.2 / (1e-5 * k ** -1.2) - 1) / k ** -0.8
        np.testing.assert_allclose(found["spectrum/ignition_time"], times, rtol=1e-11)
        for name, exponent in (("growth_rate", 0.8), ("drop", 2.0)):
            np.testing.assert_allclose(found[f"fit/{name}/exponent"], exponent, atol=1e-10)
            np.testing.assert_array_equal(found[f"fit/{name}/window"], [5, 178])
        np.testing.assert_allclose(found["prediction/exponent"], -1.25, atol=1e-9)
        np.testing.assert_allclose(found["spectrum/growth_local_exponent"], 0.8, atol=1e-7)
        self.assertNotIn("moment/eigenvalue", found)  # modes by themselves have no matrix
        self.assertRegex(done.out, r"V ~ k\^-2 \+- .* over k = 5 \.\.\. 178")
        self.assertRegex(done.out, r"predicted power law: .* = -1\.25 ")
        self.assertIn("... 980 more", done.out)
        window, _ = self.spectrum("window", toml(**POWER_LAW), "--window", 20, 400)
        np.testing.assert_array_equal(window["fit/drop/window"], [20, 400])

    def test_coupled_modes_have_the_eigenvalues_of_their_interaction(self):
        with h5py.File(REFERENCE / "modes_coupled.h5") as file:
            features, targets = file["features"][()], file["targets"][()]
        coupling = 4 * features.T @ features / len(targets)
        rates = 4 * features.T @ targets / len(targets)
        expected = np.sort(np.linalg.eigvalsh(coupling))[::-1]
        runs = together(*(lambda ranks=ranks: self.spectrum(f"coupled{ranks}", coupled_modes(), ranks=ranks)
                          for ranks in (0, 3)))
        order = np.argsort(-rates, kind="stable")
        for found, done in runs:
            np.testing.assert_allclose(found["moment/eigenvalue"], expected, atol=1e-13 * expected[0])
            np.testing.assert_array_equal(found["spectrum/mode"], order)
            np.testing.assert_allclose(found["spectrum/drop"],
                                       np.maximum(rates, 0)[order] ** 2 / 8 / np.diag(coupling)[order], rtol=1e-13)
            self.assertIn("each mode by itself", done.out)

    def test_a_large_matrix_is_left_to_slepc(self):
        # 60 samples of 1,200 features: 2,400 signed modes, C = 4 (x, −x)ᵀ(x, −x)/N, of rank 60.
        rng = np.random.default_rng(3)
        x = rng.standard_normal((60, 1200)) * np.arange(1, 1201) ** -0.5
        y = x @ rng.standard_normal(1200)
        with h5py.File(self.folder / "large.h5", "w") as file:
            file.update({"x": x, "y": y})
        deck = toml(system={"kind": "diagonal_network"},
                    diagonal_network={"file": self.folder / "large.h5", "centre": False, "signed": True},
                    initial={"epsilon": 1e-6}, time={"end": 1.0, "outputs": 1})
        expected = 8 * np.linalg.svd(x, compute_uv=False)[:12] ** 2 / 60
        for ranks in (0, 2):
            found, done = self.spectrum(f"large{ranks}", deck, "--modes", 12, ranks=ranks)
            np.testing.assert_allclose(found["moment/eigenvalue"], expected, rtol=1e-10)
            self.assertIn("SLEPc Krylov-Schur, order 2400", done.out)
            rates = 4 * y @ x / 60
            np.testing.assert_allclose(found["spectrum/growth_rate"], np.sort(np.concatenate([rates, -rates]))[::-1],
                                       atol=1e-12 * np.abs(rates).max())

    def test_a_perceptron_has_the_singular_values_of_its_cross_moment(self):
        # Anisotropic inputs in a file, identity activation: A_c = ½ bipartite(x, e_c).
        rng = np.random.default_rng(5)
        n, m, samples, epsilon = 12, 10, 400, 1e-4
        x = rng.standard_normal((samples, n)) * np.arange(1, n + 1) ** -0.6
        y = x @ rng.standard_normal((n, m)) * np.arange(1, m + 1) ** -0.5
        with h5py.File(self.folder / "perceptron.h5", "w") as file:
            file.update({"x": x, "y": y})
        deck = toml(system={"kind": "module"}, module={"kind": "perceptron", "activation": "tanh"},
                    data={"kind": "hdf5", "file": self.folder / "perceptron.h5"},
                    weights={"width": 100, "epsilon": epsilon}, time={"end": 10.0, "outputs": 2})
        u, s, vt = np.linalg.svd(x.T @ y / samples)
        # e = (u, v)/√2: λ = s/2, a_c = v_c (u·x)/2, C = 4 E Σ_c a_c² = E (u·x)²
        coupling = np.array([np.mean((x @ u[:, k]) ** 2) for k in range(m)])
        rates = 2 * s
        for ranks in (0, 3):
            found, done = self.spectrum(f"perceptron{ranks}", deck, ranks=ranks)
            np.testing.assert_allclose(found["spectrum/growth_rate"], rates, rtol=1e-11)
            np.testing.assert_allclose(found["spectrum/self_coupling"], coupling, rtol=1e-9)
            np.testing.assert_allclose(found["spectrum/drop"], rates ** 2 / 8 / coupling, rtol=1e-9)
            times = np.log(rates / coupling / epsilon ** 2 - 1) / rates
            np.testing.assert_allclose(found["spectrum/ignition_time"], times, rtol=1e-9)
            np.testing.assert_allclose(found["moment/eigenvalue"],
                                       np.sort(np.linalg.eigvalsh(x.T @ x / samples))[::-1], rtol=1e-11)
            self.assertIn("second moment of the inputs", done.out)

    def test_every_data_set_says_what_it_is(self):
        self.spectrum("says", coupled_modes(), ranks=2)
        with h5py.File(self.folder / "says" / "spectrum.h5") as file:
            self.assertTrue(file.attrs["complete"])
            for name, item in datasets(file).items():
                self.assertIn("units", item.attrs, name)
                self.assertTrue(item.attrs["description"], name)
            for group, axis in (("spectrum", "spectrum/index"), ("moment", "moment/index")):
                self.assertTrue(h5py.h5ds.is_scale(file[axis].id))
                for name, item in file[group].items():
                    if f"{group}/{name}" != axis:
                        self.assertEqual(item.dims[0][0].name, "/" + axis, name)
        shown = self.good(nqf("show", self.folder / "says" / "spectrum.h5"))
        self.assertIn("intact", shown.out)

    def test_too_few_modes_get_a_table_but_no_law(self):
        found, done = self.spectrum("few", three_modes())
        self.assertTrue(np.isnan(found["fit/drop/exponent"]).all())
        self.assertIn("less than a decade", done.out)
        self.assertIn("predicted power law: none", done.out)
        np.testing.assert_allclose(found["spectrum/ignition_time"], np.log(1e5 - 1) / np.array([2.0, 1.0, 0.5]))

    def test_cases_go_into_groups(self):
        deck = three_modes(case=[{"name": "a"}, {"name": "b", "modes": {"growth_rate": [4.0, 2.0, 1.0]}}])
        found, done = self.spectrum("cases", deck)
        np.testing.assert_allclose(found["case/b/spectrum/growth_rate"], 2 * found["case/a/spectrum/growth_rate"])
        self.assertIn("case b", done.out)

    def test_a_result_is_replaced_only_when_asked(self):
        deck = self.write("twice.toml", three_modes())
        run = lambda *options, ranks=0: nqf("spectrum", deck, "--output", self.folder / "twice", *options, ranks=ranks)
        self.good(run())
        before = bytes_of(self.folder / "twice")
        refused = self.good(run(ranks=2), 2)
        self.assertIn("--force replaces it", refused.err)
        self.assertIn("already complete", self.good(run("--restart")).out)
        self.assertEqual(bytes_of(self.folder / "twice"), before)
        self.good(run("--restart", "--set", "modes.growth_rate=[3.0, 1.0, 0.5]"))  # another deck: computed anew
        self.assertEqual(contents(self.folder / "twice" / "spectrum.h5")["spectrum/growth_rate"][0], 3.0)
        self.assertEqual(self.good(run("--force", "--quiet")).out, "")
        self.assertEqual(contents(self.folder / "twice" / "spectrum.h5")["spectrum/growth_rate"][0], 2.0)

    def test_mistakes_are_named(self):
        deck = self.write("bad.toml", three_modes())
        for options, text in ((("--modes", "0"), "--modes"), (("--window", "3"), "--window"), (("--modes", "x"), "--modes"),
                              (("--set", "modes.grow=1"), "growth_rate")):
            done = self.good(nqf("spectrum", deck, "--output", self.folder / "bad", *options), 2)
            self.assertIn(text, done.err)
        self.assertFalse((self.folder / "bad" / "spectrum.h5").exists())

    def test_figure(self):
        self.spectrum("law_figure", toml(**POWER_LAW))
        self.spectrum("coupled_figure", coupled_modes())
        law, coupled = (self.folder / name / "spectrum.h5" for name in ("law_figure", "coupled_figure"))
        for name, files in (("law.svg", [law]), ("both.png", [law, coupled])):
            self.good(nqf("plot", *files, "-o", self.folder / name))
        text = (self.folder / "law.svg").read_text()
        for word in ("growth rate", "drop V", "ignition time", "predicted loss"):
            self.assertIn(word, text)
        wrong = nqf("plot", law, "-o", self.folder / "x.png", "--kind", "loss")
        self.good(wrong, 2)
        self.assertRegex(wrong.err, re.escape(str(law)))


if __name__ == "__main__":
    main()
