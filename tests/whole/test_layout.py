"""The layout of result.h5, as DESIGN.md promises it to scripts."""

import re

import h5py
import numpy as np

from nqf_program import Case, coupled_modes, datasets, kill_all, main, nqf, start, three_modes, together, wait_until

ROOT_ATTRIBUTES = {
    "title": str, "nqf_version": str, "git_revision": str, "command": str, "ranks": np.integer, "mpi_version": str,
    "petsc_version": str, "sundials_version": str, "hdf5_version": str, "format_version": np.integer, "created": str,
    "finished": str, "complete": np.uint8, "termination_reason": str}
SERIES = {"time": float, "loss": float, "lit_modes": np.int64, "step_size": float, "order": np.int64, "steps": np.int64,
          "rhs_evaluations": np.int64, "newton_iterations": np.int64}
IGNITIONS = {"mode": np.int64, "time": float, "kind": np.int64, "predicted_time": float, "half_value": float}
THEORY = ("growth_rate", "saturation", "drop", "log_initial")
PATH = {"tau": float, "mode": np.int64, "kind": np.int64, "value": float}
FIT = ("exponent", "standard_error", "window", "predicted", "local_slope")


class Layout(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.uncoupled = cls.folder / "uncoupled"
        cls.coupled = cls.folder / "coupled"
        decks = {"uncoupled": "title = \"Drei Moden: ζ, z*\"\n" + three_modes(output={"snapshot_every": 3}), "coupled": coupled_modes()}
        for name, text in decks.items():
            (cls.folder / f"{name}.toml").write_text(text, encoding="utf-8")
        done = together(*(lambda n=n: nqf("run", cls.folder / f"{n}.toml", "--output", cls.folder / n, ranks=2) for n in decks))
        for one in done:
            assert one.status == 0, one
        # file, modes, outputs, snapshots
        cls.files = [(h5py.File(cls.uncoupled / "result.h5", "r"), 3, 41, 14), (h5py.File(cls.coupled / "result.h5", "r"), 6, 41, 41)]

    @classmethod
    def tearDownClass(cls):
        for file, *_ in cls.files:
            file.close()
        super().tearDownClass()

    def test_root_attributes_say_what_made_the_file_and_how_it_ended(self):
        for file, *_ in self.files:
            for name, kind in ROOT_ATTRIBUTES.items():
                self.assertIsInstance(file.attrs[name], kind, name)
                self.assertNotEqual(file.attrs[name], "" if kind is str and name != "title" else None, name)
            self.assertEqual(file.attrs["ranks"], 2)
            self.assertEqual(file.attrs["complete"], 1)
            self.assertEqual(file.attrs["format_version"], 1)
            self.assertIn(" run ", file.attrs["command"])
            self.assertIn("end time", file.attrs["termination_reason"])
            for name in ("created", "finished"):
                self.assertRegex(file.attrs[name], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        with h5py.File(self.uncoupled / "result.h5") as file:
            self.assertEqual(file.attrs["title"], "Drei Moden: ζ, z*")

    def test_strings_are_variable_length_utf8_and_booleans_uint8(self):
        for file, *_ in self.files:
            objects = [file, *datasets(file).values(), file["fit"], file["theory/path"]]
            for item in objects:
                for name in item.attrs:
                    kind = item.attrs.get_id(name).dtype
                    if name in ("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"):
                        continue  # HDF5's own, of the dimension scales
                    if kind.kind == "O":
                        string = h5py.check_string_dtype(kind)
                        self.assertEqual((string.encoding, string.length), ("utf-8", None), (item.name, name))
                    else:
                        self.assertIn(kind, (np.uint8, np.int64, np.float64), (item.name, name))
            self.assertEqual(file["fit"].attrs.get_id("accepted").dtype, np.uint8)
            self.assertEqual(file.attrs.get_id("complete").dtype, np.uint8)
            for name in ("deck", "resolved"):
                string = h5py.check_string_dtype(file[f"input/{name}"].dtype)
                self.assertEqual((file[f"input/{name}"].shape, string.encoding, string.length), ((), "utf-8", None))
            self.assertFalse([name for name, item in datasets(file).items() if item.dtype.names], "compound types")

    def test_every_data_set_has_units_and_a_description(self):
        for file, *_ in self.files:
            for name, item in datasets(file).items():
                self.assertIsInstance(item.attrs.get("units"), str, name)
                self.assertGreater(len(item.attrs.get("description", "")), 2, name)
                if not name.startswith("input/"):
                    self.assertNotEqual(item.attrs["units"], "", name)
            for name in ("series/time", "modes/time", "ignitions/time", "ignitions/predicted_time", "theory/time"):
                if name in file:
                    self.assertEqual(file[name].attrs["units"], "time")
            self.assertEqual(file["theory/growth_rate"].attrs["units"], "1/time")

    def test_shapes_and_types(self):
        for file, modes, outputs, snapshots in self.files:
            for name, kind in SERIES.items():
                self.assertEqual((file[f"series/{name}"].shape, file[f"series/{name}"].dtype), ((outputs,), kind), name)
            events = file["ignitions/time"].shape[0]
            self.assertGreaterEqual(events, 3)
            for name, kind in IGNITIONS.items():
                self.assertEqual((file[f"ignitions/{name}"].shape, file[f"ignitions/{name}"].dtype), ((events,), kind), name)
            self.assertEqual(file["modes/index"].dtype, np.int64)
            np.testing.assert_array_equal(file["modes/index"], np.arange(modes))
            self.assertEqual(file["modes/time"].shape, (snapshots,))
            self.assertEqual((file["modes/log_value"].shape, file["modes/log_value"].dtype), ((modes, snapshots), float))
            for name in THEORY:
                self.assertEqual((file[f"theory/{name}"].shape, file[f"theory/{name}"].dtype), ((modes,), float), name)
            rows = file["theory/path/tau"].shape
            for name, kind in PATH.items():
                self.assertEqual((file[f"theory/path/{name}"].shape, file[f"theory/path/{name}"].dtype), (rows, kind), name)
            for name in FIT:
                self.assertEqual(file[f"fit/{name}"].dtype, float)
            self.assertEqual(file["fit/window"].shape, (2,))
            self.assertEqual(file["fit/local_slope"].shape, (outputs,))
            self.assertEqual("theory/loss" in file, modes == 3, "closed form where one exists")

    def test_loss_says_what_it_is_measured_from(self):
        # With features and targets the loss is known absolutely; of rates and saturations only the excess is.
        for folder, offset in ((self.uncoupled, "excess"), (self.coupled, "absolute")):
            with h5py.File(folder / "result.h5") as file:
                self.assertEqual(file["series/loss"].attrs["loss_offset"], offset)

    def test_axes_are_dimension_scales(self):
        for file, *_ in self.files:
            self.assertTrue(h5py.h5ds.is_scale(file["series/time"].id))
            for name in SERIES:
                if name != "time":
                    self.assertEqual(file[f"series/{name}"].dims[0][0].name, "/series/time", name)
            values = file["modes/log_value"]
            self.assertEqual([values.dims[0][0].name, values.dims[1][0].name], ["/modes/index", "/modes/time"])
            if "theory/loss" in file:
                self.assertEqual(file["theory/loss"].dims[0][0].name, "/theory/time")

    def test_deck_is_kept_as_given_and_resolved(self):
        for folder in (self.uncoupled, self.coupled):
            with h5py.File(folder / "result.h5") as file:
                self.assertEqual(file["input/deck"].asstr()[()], folder.with_suffix(".toml").read_text(encoding="utf-8"))
                resolved = file["input/resolved"].asstr()[()]
            self.assertRegex(resolved, r"(?m)^atol = 1e-08 +#")
            self.assertRegex(resolved, r"(?m)^every_outputs = 100 +#")

    def test_resolved_deck_runs_to_the_same_bits(self):
        def again(folder):
            with h5py.File(folder / "result.h5") as file:
                deck = self.write(f"{folder.name}_resolved.toml", file["input/resolved"].asstr()[()])
            return nqf("run", deck, "--output", self.folder / f"{folder.name}_again", ranks=2)
        for folder, done in zip((self.uncoupled, self.coupled), together(*(lambda f=f: again(f) for f in (self.uncoupled, self.coupled)))):
            self.good(done)
            again_in = self.folder / f"{folder.name}_again"
            self.assert_same_bits(folder / "result.h5", again_in / "result.h5")
            texts = []
            for one in (folder, again_in):
                with h5py.File(one / "result.h5") as file:
                    texts.append(file["input/resolved"].asstr()[()])
            self.assertEqual(*texts)

    def test_cases_have_the_layout_in_groups_and_a_table_is_printed(self):
        deck = three_modes(case=[{"name": "small", "initial": {"epsilon": "1e-100"}, "time": {"end": 500.0}},
                                 {"name": "plain"},
                                 {"name": "slow.0", "modes": {"growth_rate": [0.5]}}])
        done = self.good(nqf("run", self.write("cases.toml", deck), "--output", self.folder / "cases"))
        for name in ("small", "plain", "slow.0"):
            self.assertRegex(done.out, rf"(?m)^{re.escape(name)} +\S+ +\S+ +[13] +\S+ ")
        with h5py.File(self.folder / "cases/result.h5") as file:
            self.assertEqual(sorted(file["case"]), ["plain", "slow.0", "small"])
            self.assertNotIn("series", file)
            for name in file["case"]:
                group = file[f"case/{name}"]
                for member in ("series/loss", "modes/log_value", "ignitions/time", "theory/path/tau", "fit/exponent"):
                    self.assertIn(member, group)
                self.assertEqual(group.attrs["complete"], 1)
                self.assertEqual(group["series/loss"].dims[0][0].name, f"/case/{name}/series/time")
            self.assertEqual(file["case/small/series/time"][-1], 500.0)
            self.assertLess(file["case/small/modes/log_value"][0, 0], -230)
        # A case is the run its overrides make of the deck.
        self.good(nqf("run", self.write("plain.toml", three_modes()), "--output", self.folder / "plain"))
        with h5py.File(self.folder / "cases/result.h5") as many, h5py.File(self.folder / "plain/result.h5") as one:
            for name, item in datasets(one).items():
                if not name.startswith("input/"):
                    self.assertEqual(item[()].tobytes(), many[f"case/plain/{name}"][()].tobytes(), name)
            resolved = self.write("cases_resolved.toml", many["input/resolved"].asstr()[()])
        self.good(nqf("run", resolved, "--output", self.folder / "cases_again"))
        self.assert_same_bits(self.folder / "cases/result.h5", self.folder / "cases_again/result.h5")

    def test_readable_while_the_run_goes_on(self):
        deck = self.write("long.toml", three_modes(time={"outputs": 1000000, "end": 1e5}, checkpoint={"every_outputs": 50}))
        run = start("run", deck, "--output", self.folder / "long", ranks=2)
        try:
            path = self.folder / "long/result.h5"
            seen = []
            def rows():
                with h5py.File(path, "r") as file:
                    seen.append((len(file["series/time"]), file.attrs["complete"], file.attrs["termination_reason"]))
                    loss = file["series/loss"][:]
                    self.assertTrue(np.all(np.isfinite(loss)) and np.all(loss > 0))
                return seen[-1][0] > 120 and seen[-1][0] > seen[0][0]
            wait_until(rows, "rows of a running run")
            self.assertIsNone(run.poll(), "the run goes on while it is read")
            self.assertEqual(seen[-1][1:], (0, "still running, or killed"))
            shown = nqf("show", self.folder / "long")
            self.assertIn("still running", shown.out, shown)
        finally:
            kill_all(run)
            run.wait()


if __name__ == "__main__":
    main()
