"""The subcommands beside run, and what run says while it runs."""

import os
import pty
import re
import subprocess

import h5py
import numpy as np

from nqf_program import (INPUTS, Case, bytes_of, command, coupled_modes, finish, kill_all, main, nqf, start, three_modes, together)

SUBCOMMANDS = ("run", "check", "predict", "audit", "spectrum", "show", "plot", "describe")
IGNITIONS = ("5.7564577", "11.512915", "23.025831")  # ln(1e5 − 1)/ζ of three_modes()


class Commands(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.deck = cls.folder / "deck.toml"
        cls.deck.write_text(three_modes())
        cls.result = cls.folder / "result"
        done = nqf("run", cls.deck, "--output", cls.result)
        assert done.status == 0, done
        cls.run_done = done

    def test_help_of_everything_has_an_example(self):
        done = together(*(lambda words=words: nqf(*words, "--help") for words in ((), *((s,) for s in SUBCOMMANDS))))
        for name, one in zip(("nqf", *SUBCOMMANDS), done):
            with self.subTest(name):
                self.good(one)
                self.assertEqual(one.err, "")
                self.assertRegex(one.out, rf"Example: .*nqf {name if name != 'nqf' else 'run'}")
        for name in SUBCOMMANDS:
            self.assertIn(name, done[0].out)
        self.assertIn("85", done[0].out)
        for option in ("--set", "--output", "--restart", "--force", "--wall-time", "--quiet"):
            self.assertIn(option, done[1].out)

    def test_examples_of_the_help_name_decks_that_exist(self):
        for name in ("run", "check", "predict"):
            for deck in re.findall(r"inputs/(\w+\.toml)", nqf(name, "--help").out):
                self.assertTrue((INPUTS / deck).exists(), deck)

    def test_version_and_help_under_mpirun_are_printed_once(self):
        version, short = together(lambda: nqf("--version", ranks=3), lambda: nqf("describe", "--help", ranks=3))
        self.assertRegex(self.good(version).out, r"^nqf \d+\.\d+\.\d+ \(\S+\)\n$")
        self.assertEqual(self.good(short).out.count("Example"), 1)

    def test_check_runs_nothing_and_prints_deck_sizes_and_ignitions(self):
        folder = self.folder / "check"
        folder.mkdir()
        done = self.good(nqf("check", self.deck, "--set", "solver.rtol=1e-9", folder=folder, ranks=2))
        self.assertEqual(list(folder.iterdir()), [])
        self.assertRegex(done.out, r"(?m)^rtol = 1e-09 ")
        self.assertRegex(done.out, r"on 2 ranks: memory about \d+.* MB a rank; result about .*B, each checkpoint about .*B")
        for time_ in IGNITIONS:
            self.assertIn(time_, done.out)
        self.assertIn("deck.toml: good", done.out)
        # The deck that it prints runs.
        resolved = done.out[:done.out.index("system: ")]
        self.good(nqf("check", self.write("printed.toml", resolved)))

    def test_estimated_sizes_are_about_right(self):
        deck = self.write("sizes.toml", three_modes(modes={"growth_rate": [1.0] * 200}, time={"outputs": 2000}))
        check, run = together(lambda: nqf("check", deck), lambda: nqf("run", deck, "--output", self.folder / "sizes"))
        self.good(run)
        unit = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
        estimates = [float(n) * unit[u] for n, u in re.findall(r"(?:result|checkpoint) about ([\d.]+) (\w+)", self.good(check).out)]
        for estimate, name in zip(estimates, ("result.h5", "checkpoint.h5")):
            size = (self.folder / "sizes" / name).stat().st_size
            self.assertLess(abs(np.log(size / estimate)), np.log(2.5), (name, size, estimate))

    def test_predict_integrates_nothing_and_agrees_with_check_and_run(self):
        plain, coupled = together(lambda: nqf("predict", self.deck, folder=self.folder),
                                  lambda: nqf("predict", self.write("coupled.toml", coupled_modes()), ranks=3))
        for time_ in IGNITIONS:
            self.assertIn(time_, self.good(plain).out)
            self.assertIn(time_, self.run_done.out)
        self.assertRegex(self.good(coupled).out, r"(?m)^ +3 +52\.\d+ .* extinct ")
        law = self.good(nqf("predict", INPUTS / "power_law.toml", "--set", "modes.count=1000"))
        self.assertIn("t^{-1.25}" if "t^{-" in law.out else "t^-1.25", law.out)

    def test_describe_names_every_key_of_the_resolved_deck(self):
        everything = self.good(nqf("describe")).out
        with h5py.File(self.result / "result.h5") as file:
            resolved = file["input/resolved"].asstr()[()]
        for key in re.findall(r"(?m)^#? ?(\w+) = ", resolved):
            self.assertRegex(everything, rf"\b{key}\b")
        for table in ("system", "modes", "diagonal_network", "samples", "single_sample", "initial", "time", "solver", "output", "fit", "checkpoint", "case"):
            self.assertIn(f"[{table}]", everything)
        one = self.good(nqf("describe", "solver")).out
        self.assertRegex(one, r"atol +number +\S+ +1e-0?8 +absolute tolerance")
        self.assertNotIn("[time]", one)

    def test_show(self):
        (self.folder / "cut").mkdir()
        for name in ("result.h5", "checkpoint.h5"):
            data = (self.result / name).read_bytes()
            (self.folder / "cut" / name).write_bytes(data[:-100])
            (self.folder / "cut" / f"few_{name}").write_bytes(data[:100])
        self.write("text", "not a result\n")
        before = bytes_of(self.folder)
        good = {"result": self.result / "result.h5", "folder": self.result, "checkpoint": self.result / "checkpoint.h5"}
        bad = {"cut result": self.folder / "cut/result.h5", "cut folder": self.folder / "cut", "cut checkpoint": self.folder / "cut/checkpoint.h5",
               "few": self.folder / "cut/few_result.h5", "few checkpoint": self.folder / "cut/few_checkpoint.h5",
               "text": self.folder / "text", "missing": self.folder / "missing", "empty folder": self.folder / "cut/.."}
        done = dict(zip([*good, *bad], together(*(lambda p=p: nqf("show", p, timeout=10) for p in (*good.values(), *bad.values())))))
        for name in good:
            self.assertTrue(self.good(done[name]).out.endswith("intact\n"), done[name])
        self.assertEqual(done["result"].out.replace("/result.h5", ""), done["folder"].out.replace("/result.h5", ""))
        for text in ("complete ", "end time reached", "/series/loss", "/ignitions/time", "[time]", "3 × 41"):
            self.assertIn(text, done["result"].out)
        for text in ("time  ", "40", "/distributed/state"):
            self.assertIn(text, done["checkpoint"].out)
        for name in bad:
            with self.subTest(name):
                self.assertIn(done[name].status, (1, 2), done[name])
                self.assertRegex(done[name].err + done[name].out, r"DAMAGED|cannot be opened|neither a result nor")
        both = nqf("show", self.result, self.folder / "cut/checkpoint.h5", ranks=2)
        self.assertNotEqual(both.status, 0, both)
        self.assertEqual(bytes_of(self.folder), before)

    def test_plot(self):
        folder = self.folder / "figures"
        folder.mkdir()
        def draw(name, ranks=0):
            return nqf("plot", self.result / "result.h5", "-o", name, folder=folder, ranks=ranks)
        for one in together(lambda: draw("loss.png"), lambda: draw("loss.svg"), lambda: draw("once.pdf", 3)):
            self.good(one)
        for name, magic in (("loss.png", b"\x89PNG"), ("loss.svg", b"<?xml"), ("once.pdf", b"%PDF")):
            self.assertTrue((folder / name).read_bytes().startswith(magic))
        done = nqf("plot", self.folder / "missing.h5", "-o", "x.png", folder=folder)
        self.assertEqual(done.status, 2, done)
        self.assertIn("missing.h5", done.err)


class Saying(Case):
    """What run prints: a line at most every 10 s into a log, one updated line on a terminal, nothing when quiet."""

    def long(self):
        return self.write("long.toml", three_modes(time={"outputs": 10000000, "end": 1e6}))

    def test_a_log_gets_few_whole_lines(self):
        deck = self.long()
        logs = [self.folder / f"log{ranks}" for ranks in (0, 2)]
        runs = []
        try:
            for ranks, log in zip((0, 2), logs):
                with open(log, "wb") as out:
                    runs.append(start("run", deck, "--output", self.folder / f"long{ranks}", "--wall-time", "14", ranks=ranks, out=out))
            for run in runs:
                self.assertEqual(finish(run), 85)
        finally:
            for run in runs:
                kill_all(run)
        for log in logs:
            text = log.read_bytes()
            self.assertNotIn(b"\r", text)
            self.assertNotIn(b"\033", text)
            progress = re.findall(rb"(?m)^t = .*%.*loss .*$", text)
            self.assertIn(len(progress), (1, 2), text)  # after 10 s, and the last
            self.assertRegex(progress[0], rb"left (\d+:\d\d:\d\d|\?)|took ")

    def test_a_terminal_gets_one_updated_line(self):
        master, slave = pty.openpty()
        run = subprocess.Popen(command(["run", self.long(), "--output", self.folder / "terminal", "--wall-time", "4"], 2),
                               stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        text = b""
        try:
            while True:
                try:
                    piece = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                if not piece:
                    break
                text += piece
            self.assertEqual(finish(run), 85)
        finally:
            kill_all(run)
            os.close(master)
        self.assertGreaterEqual(text.count(b"\r\033[K"), 3, text)
        self.assertLess(text.count(b"\n"), 30)

    def test_quiet_prints_errors_only(self):
        deck = self.write("deck.toml", three_modes(case=[{"name": "a"}, {"name": "b"}]))
        run = lambda *options: nqf("run", deck, "--output", self.folder / "quiet", "--quiet", *options, ranks=2)
        done = self.good(run())
        self.assertEqual((done.out, done.err), ("", ""))
        done = self.good(run("--restart"))
        self.assertEqual((done.out, done.err), ("", ""))
        done = self.good(run(), 2)
        self.assertEqual(done.out, "")
        self.assertIn("holds a result already", done.err)
        done = self.good(nqf("check", deck, "--quiet"))
        self.assertEqual((done.out, done.err), ("", ""))

    def test_run_says_blas_system_events_and_where_the_result_is(self):
        done = self.good(nqf("run", self.write("say.toml", three_modes()), folder=self.folder))
        for pattern in (r"^nqf \d", r"BLAS: \S+", r"system: uncoupled modes, K = 3", r"predicted +measured", r"results: say/result\.h5"):
            self.assertRegex(done.out, re.compile(pattern, re.M))
        self.assertTrue((self.folder / "say/result.h5").exists(), "the deck's name is the default folder")


if __name__ == "__main__":
    main()
