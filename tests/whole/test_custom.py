"""Modules of one's own: the user's perceptron is the built-in one, and what breaks a hypothesis is refused by name."""

import numpy as np

from module_decks import STEPS, merged, perceptron
from nqf_program import Case, contents, main, nqf, together

CUSTOM = {"kind": "custom", "name": "tanh_perceptron"}
# Samples, not moments, in both: they differ in rounding otherwise, which a flow's step sizes see.
SMALL = {"data": {"samples": 48}, "weights": {"width": 12, "epsilon": 0.05}, "time": {"end": 8.0, "outputs": 16}}


def small(**changes):
    return perceptron(**merged(SMALL, changes))


class Custom(Case):
    def run_deck(self, name, text, ranks=0):
        folder = self.folder / name
        done = self.good(nqf("run", self.write(f"{name}.toml", text), "--output", folder, ranks=ranks))
        return contents(folder / "result.h5"), done

    def test_the_users_perceptron_is_the_built_in_one(self):
        beside = {"network": {"side_by_side": True}}
        steps = {"training": STEPS["training"], "time": {"unit": "steps", "end": 200, "outputs": 20}}
        runs = together(lambda: self.run_deck("flow", small(**beside)),
                        lambda: self.run_deck("custom_flow", small(module=CUSTOM, **beside), ranks=2),
                        lambda: self.run_deck("steps", small(**beside, **steps), ranks=2),
                        lambda: self.run_deck("custom_steps", small(module=CUSTOM, **beside, **steps)))
        for (known, _), (custom, done) in (runs[:2], runs[2:]):
            self.assertLess(known["series/loss"][-1], 0.9 * known["series/loss"][0])  # something is learnt
            for name in ("series/time", "series/loss", "series/original_loss"):
                np.testing.assert_allclose(custom[name], known[name], rtol=1e-10, err_msg=name)
            self.assertRegex(done.out, r"custom module tanh_perceptron: relabelling two units changes f by 0; .*to order 3 at least")

    def test_every_command_takes_it(self):
        deck = self.write("commands.toml", small(module=CUSTOM))
        audited = self.write("audited.toml", small(module=CUSTOM, audit={"width": [4, 64], "outputs": 40, "fit_from": 4}))
        known = self.write("known.toml", small(audit={"width": [4, 64], "outputs": 40, "fit_from": 4}))
        out = [self.folder / name for name in ("spectrum", "custom_audit", "known_audit")]
        check, predict, spectrum, audit, other = together(
            lambda: nqf("check", deck), lambda: nqf("predict", deck), lambda: nqf("spectrum", deck, "--output", out[0]),
            lambda: nqf("audit", audited, "--output", out[1], ranks=2), lambda: nqf("audit", known, "--output", out[2]))
        for done in (check, predict, spectrum, audit, other):
            self.good(done)
        self.assertIn("(ZGZ; |g| = 0, |B| = 0, |A| = ", check.out)
        self.assertIn("ignition time", check.out)
        a, b = (contents(path / "result.h5", "audit") for path in out[1:])
        self.assertEqual(set(a["module"].astype(str)), {"custom tanh_perceptron"})
        for name in ("t1", "remainder", "gap", "laws/width_exponent"):  # fit_from: two widths are in the fit
            np.testing.assert_allclose(a[name], b[name], rtol=1e-5, err_msg=name)

    def test_what_commutes_is_followed_as_modes_with_its_diagnosis(self):
        # One input: every A is a multiple of one bipartite matrix.
        _, done = self.run_deck("commuting", small(module=CUSTOM, data={"shape": [1], "outputs": 1, "spectrum": [1.0]}))
        self.assertIn("they commute", done.out)
        self.assertIn("custom module tanh_perceptron: relabelling", done.out)

    def test_what_breaks_a_hypothesis_is_refused_by_name(self):
        refused = {"refused_bias": ("bias", "|g| = 0.762", "sum_terms = true"),
                   "refused_normalisation": ("normalisation", "not finite"),
                   "refused_relu": ("not C3", "order 2 differ at zero by"),
                   "softmax_experts": ("bias", "nonlinearity after the sum", "|B| = ", "sum_terms = true")}

        def one(name):
            return nqf("check", self.write(f"{name}.toml", small(module={"kind": "custom", "name": name}, data={"outputs": 1, "spectrum": [1.0]})))
        for (name, words), done in zip(refused.items(), together(*(lambda name=name: one(name) for name in refused))):
            self.assertEqual(done.status, 2, done)
            for word in words + (f'name = "{name}"', "toml:5"):
                self.assertIn(word, done.err)

    def test_sum_terms_are_carried_on_request(self):
        one = {"outputs": 1, "spectrum": [1.0]}
        flow = {"time": {"end": 3.0, "outputs": 6}, "data": one}
        custom = {"kind": "custom", "name": "softmax_experts", "sum_terms": True}
        runs = together(lambda: self.run_deck("known_experts", small(module={"kind": "experts_softmax_linear"}, **flow)),
                        lambda: self.run_deck("custom_experts", small(module=custom, **flow), ranks=3))
        np.testing.assert_allclose(runs[1][0]["series/loss"], runs[0][0]["series/loss"], rtol=1e-9)

    def test_mistakes_are_named(self):
        mistakes = [({"kind": "custom", "name": "tanh_preceptron"}, "did you mean tanh_perceptron?"),
                    ({"kind": "custom"}, "name: missing, but needed by kind"),
                    ({"kind": "perceptron", "name": "gated_tanh"}, "name: belongs to kind"),
                    ({**CUSTOM, "scale": 2.0}, "write this one into its function"),
                    ({"kind": "costum"}, 'did you mean "custom"?')]
        stack = {"side_by_side": True, "widths": [4, 4], "outputs": [3]}
        texts = [(small(module=module), words) for module, words in mistakes]
        texts.append((small(module=CUSTOM, network=stack), "layer 2 of the stack"))
        texts.append((small(module=CUSTOM, data={"shape": [46400], "samples": 4, "covariance": 1.0}), "beyond PETSc's 32-bit indices"))
        for (text, words), done in zip(texts, together(*(lambda i=i, text=text: nqf("check", self.write(f"mistake{i}.toml", text))
                                                         for i, (text, _) in enumerate(texts)))):
            self.assertEqual(done.status, 2, (text, done))
            self.assertIn(words, done.err)


if __name__ == "__main__":
    main()
