"""Every mistake is named, on every rank, within seconds, and nothing is overwritten."""

import gzip
import os
import re
import resource
import struct
import subprocess
from pathlib import Path

import h5py
import numpy as np

from nqf_program import NQF, Case, coupled_modes, main, nqf, three_modes, together, toml


def idx(array):
    return struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()


class Refusals(Case):
    """A table of mistakes, each on three ranks: exit status 2 on each, one message, no output folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bad = cls.folder / "inputs"
        cls.bad.mkdir()
        rng = np.random.default_rng(1)
        (cls.bad / "text.h5").write_text("this is no HDF5 file\n" * 50)
        (cls.bad / "empty.h5").write_bytes(b"")
        with h5py.File(cls.bad / "modes.h5", "w") as file:
            file["growth_rate"] = [1.0, 2.0, 3.0]
            file["coupling"] = np.eye(3)
            file["nan"] = [1.0, np.nan, 3.0]
            file["lopsided"] = [[1.0, 0.5, 0.0], [0.25, 1.0, 0.0], [0.0, 0.0, 1.0]]
            file["words"] = ["a", "b", "c"]
            file["none"] = np.zeros(0)
            file["features"] = rng.normal(size=(10, 3))
            file["targets"] = rng.normal(size=9)
            file.create_group("group")
        images = rng.integers(0, 255, (30, 4, 4))
        (cls.bad / "images").write_bytes(idx(images))
        (cls.bad / "labels").write_bytes(idx(np.arange(30) % 10))
        (cls.bad / "labels.short").write_bytes(idx(np.arange(29) % 10))
        (cls.bad / "images.cut").write_bytes(idx(images)[:200])
        (cls.bad / "images.gz").write_bytes(gzip.compress(idx(images))[:-60])
        (cls.bad / "images.text").write_text("no images\n" * 30)

    def refused(self, cases):
        """cases: name → (deck text or path, further arguments, pattern of the message)."""
        def one(name, deck, arguments):
            path = deck if isinstance(deck, Path) else self.write(f"{name}.toml", deck)
            return nqf("run", path, "--output", self.folder / f"out_{name}", *arguments, ranks=3, each_rank=True, timeout=15)
        done = together(*(lambda n=n, c=c: one(n, c[0], c[1]) for n, c in cases.items()))
        for (name, (_, _, pattern)), result in zip(cases.items(), done):
            with self.subTest(name):
                self.assertEqual(result.rank_statuses, [2, 2, 2], result)
                self.assertRegex(result.err, pattern)
                self.assertEqual(result.err.count("nqf: "), 1, result)
                self.assertFalse((self.folder / f"out_{name}").exists(), "made an output folder")

    def test_decks(self):
        modes = lambda **keys: three_modes(modes=keys)
        path = re.escape(str(self.folder))
        matrix = lambda c, growth=(1.0, 1.0): toml(system={"kind": "modes"}, modes={"growth_rate": growth, "coupling": c},
                                                   initial={"epsilon": 1e-5}, time={"end": 5.0})
        self.refused({
            "unknown_key": (three_modes(solver={"rtoll": 1e-3}), (), rf"nqf: {path}/unknown_key\.toml:12: \[solver\] rtoll: unknown key, did you mean rtol\?"),
            "unknown_table": (three_modes(solvr={"rtol": 1e-3}), (), r"unknown_table\.toml:\d+: \[solvr\]: unknown table, did you mean solver\?"),
            "wrong_type": (three_modes(time={"end": "late"}), (), r"wrong_type\.toml:9: \[time\] end: expected a number, got a? ?string: \"?late"),
            "wrong_choice": (three_modes(solver={"newton": "kryloff"}), (), r"newton: no such choice: \"kryloff\", did you mean \"krylov\"\?"),
            "nan": (three_modes().replace("end = 40.0", "end = nan"), (), r"nan\.toml:9: \[time\] end: must be finite, got nan"),
            "nan_in_list": (three_modes().replace("[2.0, 1.0", "[2.0, nan"), (), r"nan_in_list\.toml:4: \[modes\] growth_rate: entry 2 must be finite"),
            "negative_rate": (modes(growth_rate=[2.0, -1.0, 0.5]), (), r"negative_rate\.toml:4: \[modes\] growth_rate: entry 1: growth rate -1 is not positive"),
            "negative_atol": (three_modes(solver={"atol": -1.0}), (), r"negative_atol\.toml:12: \[solver\] atol: must be positive, got -1"),
            "not_symmetric": (matrix([[1.0, 0.5], [0.2, 1.0]]), (), r"not_symmetric\.toml:5: \[modes\] coupling: is not symmetric: entries (\(0, 1\) and \(1, 0\)|\(1, 0\) and \(0, 1\)) differ by 0\.3 "),
            "not_square": (matrix([[1.0, 0.5]]), (), r"not_square\.toml:5: \[modes\] coupling: is 1 × 2, not square"),
            "ragged": (matrix([[1.0, 0.5], [0.5]]), (), r"ragged\.toml:5: \[modes\] coupling: row 2 has 1 entries, row 1 has 2"),
            "negative_diagonal": (matrix([[1.0, 0.0], [0.0, -1.0]]), (), r"coupling: is not positive semidefinite: diagonal entry 1 is -1"),
            "unbounded": (matrix([[1.0, 0.0], [0.0, 0.0]]), (), r"diagonal entry 1 is 0 while its growth rate 1 is positive"),
            "no_modes": (modes(growth_rate=[]), (), r"no_modes\.toml:4: \[modes\] growth_rate: must not be empty"),
            "count_0": (toml(system={"kind": "modes"}, modes={"count": 0, "growth_rate": 1.0, "saturation": 1.0}, initial={"epsilon": 1e-5}, time={"end": 5.0}),
                        (), r"count_0\.toml:4: \[modes\] count: must be at least 1, got 0"),
            "no_count": (toml(system={"kind": "modes"}, modes={"growth_rate": 1.0, "saturation": 1.0}, initial={"epsilon": 1e-5}, time={"end": 5.0}),
                         (), r"\[modes\] count: missing, but needed"),
            "lengths": (modes(saturation=[1.0, 2.0]), (), r"lengths\.toml:5: \[modes\] saturation: has 2 entries where 3 are needed"),
            "initial_length": (three_modes(initial={"shape": [1.0]}), (), r"\[initial\] shape: has 1 entr(y|ies) where 3 are needed"),
            "end_before_start": (three_modes(time={"end": -3.0}), (), r"end_before_start\.toml:9: \[time\] end: end is before the start \(0\): -3"),
            "epsilon_0": (three_modes(initial={"epsilon": 0.0}), (), r"epsilon: must be positive, got 0"),
            "two_initials": (three_modes(initial={"value": 1e-3}), (), r"\[initial\] (value|epsilon): cannot be given together with (value|epsilon)"),
            "not_toml": ("[system\nkind = 1\n", (), r"not_toml\.toml:1: not valid TOML"),
            "bad_case": (three_modes(case=[{"name": "a"}, {"name": "b", "solver": {"atoll": 1.0}}]), (), r"bad_case\.toml:\d+: \[solver\] atoll: unknown key, did you mean atol\? \(case \"b\"\)"),
            "closed_coupled": (coupled_modes(solver={"form": "closed"}), (), r"form.*closed.*coupled"),
        })

    def test_overrides_and_files(self):
        deck = lambda **keys: toml(system={"kind": "modes"}, modes=keys, initial={"epsilon": 1e-5}, time={"end": 5.0})
        at = lambda name: {"file": self.bad / "modes.h5", "dataset": name}
        pixels = lambda **keys: toml(system={"kind": "diagonal_network"}, diagonal_network={
            "images": self.bad / "images", "labels": self.bad / "labels", "class": 3, **keys}, initial={"epsilon": 1e-5}, time={"end": 5.0})
        self.refused({
            "set_without_value": (three_modes(), ("--set", "time.end"), r"--set time\.end: expected table\.key=value"),
            "set_unknown": (three_modes(), ("--set", "time.ende=3"), r"--set time\.ende=3: \[time\] ende: unknown key, did you mean end\?"),
            "set_no_toml": (three_modes(), ("--set", "solver.form=closed"), r"closed is not a TOML value; a string needs quotes: --set 'solver\.form=\"closed\"'"),
            "set_bad_value": (three_modes(), ("--set", "time.end=-3"), r"--set time\.end=-3: \[time\] end: end is before the start"),
            "no_deck": (self.folder / "no_such.toml", (), r"no_such\.toml: cannot be read: No such file"),
            "folder_as_deck": (self.bad, (), r"inputs: is a directory, not a deck"),
            "no_file": (deck(file=self.bad / "missing.h5"), (), r"missing\.h5: No such file or directory"),
            "not_hdf5": (deck(file=self.bad / "text.h5"), (), r"text\.h5: is not an HDF5 file"),
            "empty_file": (deck(file=self.bad / "empty.h5"), (), r"empty\.h5: is empty, not an HDF5 file"),
            "no_data_set": (deck(growth_rate=at("growth_rates"), saturation=1.0), (), r"modes\.h5, data set 'growth_rates': does not exist; did you mean 'growth_rate'\?"),
            "group": (deck(growth_rate=at("group"), saturation=1.0), (), r"modes\.h5, data set 'group': is not a data set but a group"),
            "words": (deck(growth_rate=at("words"), saturation=1.0), (), r"data set 'words': holds strings; numbers are needed"),
            "none": (deck(growth_rate=at("none"), saturation=1.0), (), r"data set 'none': (is empty|has 0 entries)"),
            "nan_in_file": (deck(growth_rate=at("nan"), saturation=1.0), (), r"modes\.h5, data set 'nan': entry 1 is nan"),
            "lopsided": (deck(growth_rate=at("growth_rate"), coupling=at("lopsided")), (), r"modes\.h5, data set 'lopsided': is not symmetric: entries (\(0, 1\) and \(1, 0\)|\(1, 0\) and \(0, 1\)) differ"),
            "targets": (deck(features=at("features"), targets=at("targets")), (), r"modes\.h5, data set 'targets'.*(9|10).*(9|10)"),
            "labels_short": (pixels(labels=self.bad / "labels.short"), (), r"inputs/images: has 30 images, but .*labels\.short has 29 labels"),
            "swapped": (pixels(images=self.bad / "labels", labels=self.bad / "images"), (), r"inputs/(labels|images): holds .*(images|labels) have \d"),
            "images_cut": (pixels(images=self.bad / "images.cut"), (), r"images\.cut: .*(short|end|truncated|missing|bytes)"),
            "gzip_cut": (pixels(images=self.bad / "images.gz"), (), r"images\.gz: "),
            "no_images": (pixels(images=self.bad / "images.text"), (), r"images\.text: "),
            "missing_images": (pixels(images=self.bad / "nowhere.gz"), (), r"nowhere\.gz: No such file or directory"),
            "no_such_class": (pixels(**{"class": 12}), (), r"inputs/labels: none of the 30 labels is 12 \(key \[diagonal_network\] class\); they lie between 0 and 9"),
        })

    def test_fashion_mnist_has_ten_classes(self):
        where = Path("/usr/share/datasets/fashion-mnist")
        if not where.is_dir():
            self.skipTest("the Debian package dataset-fashion-mnist is not installed")
        deck = toml(system={"kind": "diagonal_network"}, initial={"epsilon": 1e-5}, time={"end": 1.0}, diagonal_network={
            "images": next(where.rglob("t10k-images*")), "labels": next(where.rglob("t10k-labels*")), "class": 10})
        self.refused({"class_10": (deck, (), r"none of the 10000 labels is 10 .*between 0 and 9")})


class Output(Case):
    def fails(self, status, pattern, *arguments, ranks=3, **options):
        done = nqf("run", *arguments, ranks=ranks, each_rank=True, timeout=20, **options)
        self.assertEqual(done.rank_statuses, [status] * ranks, done)
        self.assertRegex(done.err, pattern)
        return done

    def test_output_folder_that_cannot_be_one(self):
        deck = self.write("deck.toml", three_modes())
        file = self.write("in_the_way", "precious")
        for where, pattern in ((file, r"in_the_way': Not a directory"), (file / "below", r"below': Not a directory"),
                               ("/proc/nqf", r"'/proc/nqf': "), ("/proc", r"cannot write to the output folder '/proc'")):
            self.fails(2, pattern, deck, "--output", where)
        self.assertEqual(file.read_text(), "precious")

    def test_folder_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become another user")
        folder = self.folder / "foreign"
        folder.mkdir(mode=0o755)
        self.folder.chmod(0o755)
        deck = self.write("foreign.toml", three_modes())
        words = ["setpriv", "--reuid=65534", "--clear-groups", NQF, "run", str(deck), "--output", str(folder)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=20, env={**os.environ, "HOME": "/tmp"})
        except FileNotFoundError:
            self.skipTest("no setpriv")
        if "failed to execute" in done.stderr:
            self.skipTest("the other user cannot reach the binary")
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr, r"cannot write to the output folder '.*foreign': Permission denied")

    def test_disk_full(self):
        """On a file system of 3 MB; and, since mounting one takes root, with a limit on the size of files."""
        deck = self.write("large.toml", three_modes(modes={"growth_rate": [2.0] * 600}, output={"modes_limit": 1000},
                                                    time={"outputs": 1500}, checkpoint={"every_outputs": 50}))
        disk, limited = self.folder / "disk", self.folder / "limited"
        disk.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk],
                                                       stderr=subprocess.DEVNULL).returncode == 0
        try:
            if mounted:
                self.assertRegex(self.fails_in_the_run(deck, disk / "out").err, r"No space left on device")
                self.good(nqf("show", disk / "out/checkpoint.h5"))  # what was saved is good
        finally:
            if mounted:
                subprocess.run(["umount", disk], check=True)
        size = 6 << 20  # more than Open MPI needs for its shared memory, less than the result
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        self.assertRegex(self.fails_in_the_run(deck, limited, preexec_fn=limit).err, r"File too large")
        # With space again, the same line goes on from the last checkpoint.
        done = self.good(nqf("run", deck, "--output", limited, "--restart", ranks=3))
        self.assertRegex(done.out, r"going on from .*checkpoint\.h5 at t = [1-9]")
        self.assert_no_gap_no_duplicate(limited / "result.h5", 40.0 * np.arange(1501) / 1500)

    def fails_in_the_run(self, deck, output, **options):
        """Status 1 of mpirun (an MPI_Abort may take the other ranks along), what was saved, and no hang."""
        done = nqf("run", deck, "--output", output, ranks=3, timeout=30, **options)
        self.assertEqual(done.status, 1, done)
        self.assertRegex(done.err, r"nqf: .*(result\.h5|checkpoint).*Saved: the checkpoint at t = \S+ and the rows before it in .*result\.h5; --restart")
        return done

    def test_indefinite_coupling_is_found_in_the_run(self):
        # Not positive semidefinite: two modes feed each other and the loss is not bounded below.
        deck = self.write("indefinite.toml", toml(system={"kind": "modes"}, modes={
            "growth_rate": [1.0, 1.0], "coupling": [[1.0, -3.0], [-3.0, 1.0]]}, initial={"epsilon": 1e-5}, time={"end": 50.0, "outputs": 50}))
        done = nqf("run", deck, "--output", self.folder / "indefinite", ranks=3, each_rank=True, timeout=30)
        self.assertEqual(len(set(done.rank_statuses)), 1, done)
        self.assertIn(done.rank_statuses[0], (1, 2), done)
        self.assertRegex(done.err, r"positive semidefinite|not finite")

    def test_too_many_steps_says_so_and_what_is_saved(self):
        deck = self.write("steps.toml", three_modes(solver={"max_steps": 3}))
        done = self.fails(1, r"3 steps since the last output did not reach t = .*raise solver\.max_steps", deck, "--output", self.folder / "steps")
        self.assertRegex(done.err, r"Saved: the checkpoint at t = \S+ and the rows before it in .*result\.h5")
        self.assertEqual(done.err.count("nqf: "), 1, done)


class Accepted(Case):
    def test_bom_and_crlf(self):
        text = three_modes()
        decks = {"plain": text, "bom": "\ufeff" + text, "crlf": text.replace("\n", "\r\n"), "both": "\ufeff" + text.replace("\n", "\r\n")}
        done = together(*(lambda n=n: nqf("run", self.write(f"{n}.toml", decks[n]), "--output", self.folder / n) for n in decks))
        for name, one in zip(decks, done):
            self.good(one)
            self.assert_same_bits(self.folder / "plain/result.h5", self.folder / name / "result.h5")
            with h5py.File(self.folder / name / "result.h5") as file:
                self.assertEqual(file["input/deck"].asstr()[()], decks[name], "as given, byte for byte")

    def test_overrides(self):
        deck = self.write("set.toml", three_modes())
        self.good(nqf("run", "--set", "time.outputs=8", deck, "--set", "modes.growth_rate=[2.0, 1.0]", "--set=solver.form=\"closed\"",
                      "--output", self.folder / "set"))
        with h5py.File(self.folder / "set/result.h5") as file:
            self.assertEqual((len(file["series/time"]), len(file["modes/index"])), (9, 2))
            self.assertRegex(file["input/resolved"].asstr()[()], r'(?m)^form = "closed"')

    def test_petsc_options(self):
        deck = self.write("petsc.toml", three_modes())
        run = lambda name, *options: nqf("run", deck, "--output", self.folder / name, "--quiet", "--", *options, ranks=2)
        unknown, known = together(lambda: run("unknown", "-no_such_option", "3", "-another"), lambda: run("known", "-log_view", ":petsc.log"))
        self.good(unknown)
        self.assertRegex(unknown.err, r"PETSc does not know the option -no_such_option")
        self.assertRegex(unknown.err, r"PETSc does not know the option -another")
        self.good(known)
        self.assertEqual(known.err, "")

    def test_petsc_options_that_are_none(self):
        # What is meant for nqf but stands behind the dashes must not be dropped without a word.
        deck = self.write("dashes.toml", three_modes())
        for words in (["deck.toml"], ["--restart"], ["--output", "elsewhere"]):
            done = nqf("run", deck, "--output", self.folder / "dashes", "--force", "--", *words)
            if done.status == 0:
                self.assertRegex(done.err, re.escape(words[0].lstrip("-")), done)
            else:
                self.good(done, 2)
                self.assertIn(words[0], done.err)


class Usage(Case):
    def test_usage(self):
        deck = self.write("deck.toml", three_modes())
        for words, pattern in ((("rum", deck), r"no subcommand 'rum', valid are run, check"), (("run", deck, "--outptu", "x"), r"--outptu"),
                               (("run",), r"DECK"), ((), r"subcommand"), (("run", deck, "--restart", "--force"), r"--restart.*--force|--force.*--restart"),
                               (("run", deck, "--wall-time", "1h"), r"--wall-time 1h: write hh:mm:ss, such as 23:50:00"),
                               (("run", deck, "--wall-time", "-5"), r"--wall-time"), (("run", deck, deck), r"deck\.toml"),
                               (("describe", "solvr"), r"no table \[solvr\]"), (("show",), r"FILE")):
            with self.subTest(words):
                done = nqf(*words, folder=self.folder)
                self.assertEqual(done.status, 2, done)
                self.assertRegex(done.err, pattern)
                self.assertEqual(done.out, "")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["deck.toml"])

    def test_usage_errors_are_said_once_and_on_every_rank(self):
        done = nqf("rum", ranks=3, each_rank=True, timeout=15)
        self.assertEqual(done.rank_statuses, [2, 2, 2], done)
        self.assertEqual(done.err.count("'rum'"), 1, done)


if __name__ == "__main__":
    main()
