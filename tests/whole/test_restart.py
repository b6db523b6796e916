"""Stopped, killed, damaged, extended: a restarted run is the run, and nothing is lost on the way."""

import os
import random
import shutil
import signal
import time

import h5py
import numpy as np

from nqf_program import (Case, bytes_of, contents, coupled_modes, finish, kill_all, kill_ranks, main, nqf, processes_of, start,
                         three_modes, together, wait_until)

OUTPUTS = 1000  # long enough to be interrupted


def long_deck(**changes):
    return three_modes(**{"time": {"outputs": OUTPUTS}, "checkpoint": {"every_outputs": 25}, **changes})


def schedule(end=40.0, outputs=OUTPUTS):
    return end * np.arange(outputs + 1) / outputs


def rows(folder, group="/"):
    with h5py.File(folder / "result.h5", "r") as file:
        return len(file[group]["series/time"])


class Interrupted(Case):
    def begin(self, deck, folder, ranks, at_least=110, *options):
        """Starts a run and returns once it has written some rows."""
        run = start("run", deck, "--output", folder, *options, ranks=ranks)
        self.addCleanup(lambda: (kill_all(run), run.wait()))
        wait_until(lambda: rows(folder) >= at_least, "first rows")
        return run

    def stopped(self, run, folder, reason, group="/"):
        self.assertEqual(finish(run), 85)
        with h5py.File(folder / "result.h5", "r") as file:
            self.assertEqual(file.attrs["complete"], 0)
            self.assertEqual(file.attrs["finished"], "")
            self.assertIn(reason, file.attrs["termination_reason"])
            self.assertEqual(file[group].attrs["complete"], 0)
        self.assertEqual(self.good(nqf("show", folder / "checkpoint.h5")).err, "")


class StoppedRuns(Interrupted):
    """All against one uninterrupted run on two ranks."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.deck = cls.folder / "deck.toml"
        cls.deck.write_text(long_deck())
        cls.straight = cls.folder / "straight"
        done = nqf("run", cls.deck, "--output", cls.straight, ranks=2)
        assert done.status == 0, done
        cls.seconds = done.seconds

    def go_on(self, folder, ranks=2, deck=None, *options):
        return self.good(nqf("run", deck or self.deck, "--output", folder, "--restart", *options, ranks=ranks))

    def assert_is_the_straight_run(self, folder, straight=None):
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule())
        self.assert_same_bits(straight or self.straight / "result.h5", folder / "result.h5")
        with h5py.File(folder / "result.h5", "r") as file:
            self.assertEqual(file.attrs["complete"], 1)
            self.assertRegex(file.attrs["finished"], r"^\d{4}-")

    def stop_and_go(self, name, stop, reason, ranks=2, then=2, deck=None):
        folder = self.folder / name
        run = self.begin(deck or self.deck, folder, ranks)
        stop(run, folder)
        self.stopped(run, folder, reason)
        self.assertLess(rows(folder), OUTPUTS + 1)
        self.go_on(folder, then, deck)
        return folder

    def test_the_straight_run_has_every_row_once(self):
        self.assert_is_the_straight_run(self.straight)

    def test_usr1_to_mpirun_and_on_again_is_bit_for_bit_the_run(self):
        self.assert_is_the_straight_run(self.stop_and_go("usr1", lambda run, _: run.send_signal(signal.SIGUSR1), "a signal"))

    def test_a_signal_that_reaches_one_rank_stops_all(self):
        for which in (0, -1):
            one = lambda run, _: os.kill(sorted(processes_of(run))[which], signal.SIGUSR1)
            self.assert_is_the_straight_run(self.stop_and_go(f"one_rank{which}", one, "a signal"))

    def test_term_without_mpirun_stops_with_a_checkpoint(self):
        straight = self.folder / "serial"
        self.good(nqf("run", self.deck, "--output", straight))
        folder = self.stop_and_go("term", lambda run, _: run.terminate(), "a signal", ranks=0, then=0)
        self.assert_is_the_straight_run(folder, straight / "result.h5")

    def test_stop_file_and_on_again_is_bit_for_bit_the_run(self):
        folder = self.stop_and_go("stop_file", lambda _, folder: (folder / "stop").touch(), "stop")
        self.assertFalse((folder / "stop").exists(), "an old stop file does not stop the next run")
        self.assert_is_the_straight_run(folder)

    def test_kill_at_random_moments_and_on_again_is_bit_for_bit_the_run(self):
        seed = random.randrange(1 << 30)
        moments = random.Random(seed)
        folder = self.folder / "killed"
        kills, length = 0, self.seconds
        with self.subTest(seed=seed):
            for _ in range(20):
                run = start("run", self.deck, "--output", folder, "--restart", ranks=2)
                try:
                    time.sleep(moments.uniform(0.1, 0.7) * length)
                    kills += run.poll() is None
                    kill_ranks(run)
                finally:
                    kill_all(run)
                if kills >= 4:
                    break
                if run.returncode == 0 and kills < 2:  # faster than the first run was: begin anew, kill sooner
                    shutil.rmtree(folder)
                    kills, length = 0, 0.5 * length
                elif run.returncode == 0:
                    break
            self.assertGreaterEqual(kills, 2)
            self.go_on(folder)
            self.assert_is_the_straight_run(folder)

    def test_killed_before_the_first_checkpoint_the_same_line_starts(self):
        folder = self.folder / "early"
        for _ in range(3):
            run = start("run", self.deck, "--output", folder, "--restart", ranks=2)
            wait_until(lambda: (folder / "result.h5").exists() or run.poll() is not None, "result.h5")
            self.assertIsNone(run.poll(), "the line starts again")
            kill_ranks(run)
        self.go_on(folder)
        self.assert_is_the_straight_run(folder)

    def test_result_with_its_first_row_but_no_checkpoint_starts(self):
        # As left by a kill between the row of t = 0 and the first checkpoint.
        folder = self.folder / "first_row"
        done = nqf("run", self.deck, "--output", folder, "--wall-time", "0", ranks=2)
        self.good(done, 85)
        self.assertEqual(rows(folder), 1)
        for path in folder.glob("checkpoint*"):
            path.unlink()
        self.go_on(folder)
        self.assert_is_the_straight_run(folder)

    def test_result_with_rows_but_no_checkpoint_is_not_touched(self):
        folder = self.folder / "no_checkpoint"
        shutil.copytree(self.straight, folder)
        for path in folder.glob("checkpoint*"):
            path.unlink()
        before = bytes_of(folder)
        done = self.good(nqf("run", self.deck, "--output", folder, "--restart", ranks=3, each_rank=True), 0)
        self.assertEqual(done.rank_statuses, [2, 2, 2], done)
        self.assertRegex(done.err, r"no checkpoint.*--force")
        self.assertEqual(bytes_of(folder), before)

    def test_other_ranks_go_on_to_the_tolerance(self):
        usr1 = lambda run, _: run.send_signal(signal.SIGUSR1)
        for before, after in ((1, 3), (3, 2)):
            folder = self.stop_and_go(f"ranks{before}{after}", usr1, "a signal", before, after)
            self.assert_no_gap_no_duplicate(folder / "result.h5", schedule())
            self.assert_same_values(self.straight / "result.h5", folder / "result.h5")

    def test_checkpoints_by_steps(self):
        deck = self.write("steps.toml", long_deck(checkpoint={"every_outputs": 0, "every_steps": 20}))
        straight = self.folder / "steps_straight"
        self.good(nqf("run", deck, "--output", straight, ranks=2))
        folder = self.stop_and_go("steps", lambda run, _: run.send_signal(signal.SIGUSR1), "a signal", deck=deck)
        self.assert_is_the_straight_run(folder, straight / "result.h5")

    def test_newest_checkpoint_bad_the_previous_one_is_used_and_the_bad_one_named(self):
        folder = self.folder / "for_damage"
        run = self.begin(self.deck, folder, 2)
        run.send_signal(signal.SIGUSR1)
        self.stopped(run, folder, "a signal")
        def flip(path):
            data = bytearray(path.read_bytes())
            for at in range(len(data) // 2, len(data) // 2 + 4000, 7):
                data[at % len(data)] ^= 0x40
            path.write_bytes(data)
        damages = {"flipped": flip, "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
                   "empty": lambda path: os.truncate(path, 0), "gone": lambda path: path.unlink()}
        def go_on(name):
            copy = self.folder / f"damaged_{name}"
            shutil.copytree(folder, copy)
            damages[name](copy / "checkpoint.h5")
            shown = nqf("show", copy / "checkpoint.h5")
            return copy, shown, self.go_on(copy)
        for name, (copy, shown, done) in zip(damages, together(*(lambda n=n: go_on(n) for n in damages))):
            with self.subTest(name):
                self.assertNotEqual(shown.status, 0, shown)
                self.assertIn("checkpoint.previous.h5", done.out, done)
                if name != "gone":
                    self.assertRegex(done.err, r"warning: .*checkpoint\.h5")
                self.assert_is_the_straight_run(copy)
        both = self.folder / "damaged_both"
        shutil.copytree(folder, both)
        flip(both / "checkpoint.h5")
        os.truncate(both / "checkpoint.previous.h5", 5000)
        before = bytes_of(both)
        done = nqf("run", self.deck, "--output", both, "--restart", ranks=3, each_rank=True)
        self.assertEqual(len(set(done.rank_statuses)), 1, done)
        self.assertIn(done.rank_statuses[0], (1, 2), done)
        self.assertRegex(done.err, r"checkpoint\.h5")
        self.assertRegex(done.err, r"checkpoint\.previous\.h5")
        self.assertEqual(bytes_of(both), before)

    def test_checkpoint_without_its_result_is_refused(self):
        folder = self.folder / "no_result"
        shutil.copytree(self.straight, folder)
        (folder / "result.h5").unlink()
        before = bytes_of(folder)
        done = nqf("run", self.deck, "--output", folder, "--restart")
        self.good(done, 2)
        self.assertIn("no result.h5", done.err)
        self.assertEqual(bytes_of(folder), before)

    def test_wall_time_stops_and_on_again_gives_the_same_rows(self):
        deck = self.write("endless.toml", long_deck(time={"outputs": 2000000, "end": 4e4}))
        a, b = self.folder / "wall_a", self.folder / "wall_b"
        def twice():
            first = nqf("run", deck, "--output", a, "--restart", "--wall-time", "3", ranks=2)
            between = rows(a)
            return first, nqf("run", deck, "--output", a, "--restart", "--wall-time", "00:00:03", ranks=2), between
        (first, second, between), once = together(
            twice, lambda: nqf("run", deck, "--output", b, "--wall-time", "0:5", ranks=2))
        for done, limit in ((first, 3), (second, 3), (once, 5)):
            self.good(done, 85)
            self.assertLess(done.seconds, limit + 2)
            self.assertRegex(done.out, r"stopped by the wall time at t = .*checkpoint at t = .*--restart")
        n = min(rows(a), rows(b))
        self.assertGreater(rows(a), between)
        self.assertGreater(n, 25)
        one, two = contents(a / "result.h5"), contents(b / "result.h5")
        for name in ("series/time", "series/loss", "series/steps", "series/step_size"):
            self.assertEqual(one[name][:n].tobytes(), two[name][:n].tobytes(), name)

    def test_coupled_modes_on_other_ranks(self):
        changes = dict(time={"outputs": OUTPUTS}, checkpoint={"every_outputs": 25})
        deck = self.write("coupled.toml", coupled_modes(**changes))
        straight = self.folder / "coupled_straight"
        self.good(nqf("run", deck, "--output", straight, ranks=1))
        for before, after in ((1, 3), (3, 2), (2, 2)):
            folder = self.folder / f"coupled{before}{after}"
            run = self.begin(deck, folder, before, 400)
            run.send_signal(signal.SIGUSR1)
            self.stopped(run, folder, "a signal")
            self.go_on(folder, after, deck)
            self.assert_same_values(straight / "result.h5", folder / "result.h5", tolerance=2e-5)
            self.assertEqual(rows(folder), OUTPUTS + 1)


class Cases(Interrupted):
    def deck(self, **changes):
        return long_deck(case=[{"name": "first", "time": {"outputs": 100}}, {"name": "second"},
                               {"name": "third", "time": {"outputs": 60}}], **changes)

    def test_restart_within_the_second_case(self):
        deck = self.write("cases.toml", self.deck())
        straight, folder = self.folder / "straight", self.folder / "stopped"
        self.good(nqf("run", deck, "--output", straight, ranks=2))
        run = start("run", deck, "--output", folder, ranks=2)
        self.addCleanup(lambda: (kill_all(run), run.wait()))
        wait_until(lambda: rows(folder, "case/second") > 60, "rows of the second case")
        run.send_signal(signal.SIGUSR1)
        self.stopped(run, folder, "a signal", "case/second")
        with h5py.File(folder / "result.h5") as file:
            self.assertEqual(file["case/first"].attrs["complete"], 1)
            self.assertNotIn("third", file["case"])
        done = self.good(nqf("run", deck, "--output", folder, "--restart", ranks=2))
        self.assertRegex(done.out, r"(?m)^first +finished before")
        self.assert_same_bits(straight / "result.h5", folder / "result.h5")
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule(), "case/second")

    def test_killed_while_a_later_case_starts(self):
        # The second case has written rows, but the newest good checkpoint is the end of the first.
        deck = self.write("cases_short.toml", long_deck(time={"outputs": 100}, case=[{"name": "a"}, {"name": "b"}]))
        straight, folder = self.folder / "short_straight", self.folder / "short"
        self.good(nqf("run", deck, "--output", straight))
        shutil.copytree(straight, folder)
        only_first = self.write("only_a.toml", long_deck(time={"outputs": 100}, case=[{"name": "a"}]))
        self.good(nqf("run", only_first, "--output", self.folder / "only_first"))
        for path in folder.glob("checkpoint*"):
            path.unlink()
        shutil.copy(self.folder / "only_first/checkpoint.h5", folder)
        self.good(nqf("run", deck, "--output", folder, "--restart"))
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule(outputs=100), "case/b")
        self.assert_same_bits(straight / "result.h5", folder / "result.h5")

    def test_a_case_that_is_gone_or_changed_is_refused(self):
        deck = self.write("three.toml", three_modes(case=[{"name": "a"}, {"name": "b", "solver": {"atol": 1e-9}}]))
        folder = self.folder / "three"
        self.good(nqf("run", deck, "--output", folder))
        before = bytes_of(folder)
        gone = nqf("run", self.write("gone.toml", three_modes(case=[{"name": "a"}])), "--output", folder, "--restart")
        self.good(gone, 2)
        self.assertRegex(gone.err, r"case 'b'")
        changed = nqf("run", self.write("changed.toml", three_modes(case=[{"name": "a"}, {"name": "b", "solver": {"atol": 1e-7}}])),
                      "--output", folder, "--restart")
        self.good(changed, 2)
        self.assertRegex(changed.err, r"solver\.atol was 1e-09, is 1e-07")
        self.assertEqual(bytes_of(folder), before)


class FinishedRuns(Interrupted):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.deck = cls.folder / "deck.toml"
        cls.deck.write_text(three_modes())
        cls.finished = cls.folder / "finished"
        done = nqf("run", cls.deck, "--output", cls.finished, ranks=2)
        assert done.status == 0, done

    def copy(self, name):
        folder = self.folder / name
        shutil.copytree(self.finished, folder)
        return folder

    def refused(self, folder, pattern, *arguments, deck=None):
        before = bytes_of(folder)
        done = nqf("run", deck or self.deck, "--output", folder, *arguments, ranks=3, each_rank=True)
        self.assertEqual(done.rank_statuses, [2, 2, 2], done)
        self.assertRegex(done.err, pattern)
        self.assertEqual(done.err.count("nqf: "), 1, "said once")
        self.assertEqual(bytes_of(folder), before)

    def test_already_complete_is_done_and_nothing_changes(self):
        folder = self.copy("complete")
        before = bytes_of(folder)
        done = self.good(nqf("run", self.deck, "--output", folder, "--restart", ranks=2))
        self.assertIn("already complete at t = 40", done.out)
        self.assertEqual(bytes_of(folder), before)

    def test_neither_force_nor_restart_leaves_the_result_alone(self):
        self.refused(self.copy("neither"), r"holds a result already; --restart .*--force ")

    def test_force_replaces(self):
        folder = self.copy("force")
        deck = self.write("force.toml", three_modes(time={"outputs": 7}))
        self.good(nqf("run", deck, "--output", folder, "--force"))
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule(outputs=7))
        self.good(nqf("run", deck, "--output", folder, "--restart"))

    def test_restart_in_a_new_or_empty_folder_starts(self):
        (self.folder / "empty").mkdir()
        for name in ("empty", "new/below/new"):
            self.good(nqf("run", self.deck, "--output", self.folder / name, "--restart", ranks=2))
            self.assert_same_bits(self.finished / "result.h5", self.folder / name / "result.h5")

    def test_another_deck_is_refused_and_the_key_named(self):
        folder = self.copy("another")
        for changes, pattern in (({"modes": {"growth_rate": [2.0, 1.0, 0.25]}}, r"modes\.growth_rate was \[2\.0, 1\.0, 0\.5\], is \[2\.0, 1\.0, 0\.25\]"),
                                 ({"solver": {"atol": 1e-7}}, r"solver\.atol was 1e-08, is 1e-07"),
                                 ({"initial": {"epsilon": "1e-6"}}, r"initial\.epsilon was 1e-05, is \"1e-6\"")):
            self.refused(folder, pattern, "--restart", deck=self.write("another.toml", three_modes(**changes)))

    def test_earlier_end_is_refused(self):
        self.refused(self.copy("earlier"), r"time\.end = 30 is before the time 40", "--restart", "--set", "time.end=30")

    def test_later_end_extends_to_the_tolerance(self):
        folder, straight = self.copy("later"), self.folder / "later_straight"
        deck = self.write("later.toml", three_modes(time={"end": 80.0, "outputs": 80}))
        self.good(nqf("run", deck, "--output", straight, ranks=2))
        self.good(nqf("run", deck, "--output", folder, "--restart", ranks=2))
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule(80.0, 80))
        self.assert_same_values(straight / "result.h5", folder / "result.h5")
        with h5py.File(folder / "result.h5") as file:  # the file says what it holds now
            self.assertEqual(file.attrs["complete"], 1)
            self.assertRegex(file["input/resolved"].asstr()[()], r"(?m)^end = 80\.0 ")
            self.assertEqual(file["input/deck"].asstr()[()], deck.read_text())
            self.assertIn("--restart", file.attrs["command"])

    def test_what_may_change_may_change(self):
        folder = self.copy("may")
        deck = self.write("may.toml", "title = \"another title\"\n" + three_modes(
            time={"end": 50.0, "outputs": 50}, fit={"enabled": False}, checkpoint={"every_outputs": 5, "stop_grace": 1.0}))
        self.good(nqf("run", deck, "--output", folder, "--restart", ranks=1))
        self.assert_no_gap_no_duplicate(folder / "result.h5", schedule(50.0, 50))

    def test_one_run_at_a_time_in_a_folder(self):
        deck = self.write("endless.toml", three_modes(time={"end": 1e5, "outputs": 1000000}))
        folder = self.folder / "locked"
        first = self.begin(deck, folder, 2, 5)
        for options in ((), ("--restart",), ("--force",)):
            done = nqf("run", deck, "--output", folder, *options, ranks=3, each_rank=True)
            self.assertEqual(done.rank_statuses, [2, 2, 2], done)
            self.assertRegex(done.err, r"in use by another run \(process \d+ on ")
        n = rows(folder)
        wait_until(lambda: rows(folder) > n, "the first run goes on")
        kill_ranks(first)
        done = nqf("run", deck, "--output", folder, "--restart", "--wall-time", "2", ranks=2)  # its lock died with it
        self.good(done, 85)
        self.assertGreaterEqual(rows(folder), 1)


if __name__ == "__main__":
    main()
