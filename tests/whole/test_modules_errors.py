"""Mistakes in decks, data and weights of modules: each is named with its place, on every rank, within seconds."""

import gzip
import re
import struct

import h5py
import numpy as np

from module_decks import PERCEPTRON, from_file, merged, perceptron, stepping
from nqf_program import Case, main, nqf, three_modes, together, toml

STEPS = {"algorithm": "sgd", "learning_rate": 0.1}
FILE_DATA = {"samples": None, "shape": None, "outputs": None, "spectrum": None, "covariance": None}


def idx(array, code=8):
    return struct.pack(">BBBB", 0, 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()


class Refusals(Case):
    """Each on one rank without mpirun and on three: exit status 2 on each, one message, no output folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bad = cls.folder / "inputs"
        cls.bad.mkdir()
        rng = np.random.default_rng(1)
        images = rng.integers(0, 255, (30, 4, 4))
        for name, content in {"images": idx(images), "labels": idx(np.arange(30) % 10), "labels.short": idx(np.arange(29) % 10),
                              "images.cut": idx(images)[:200], "images.gz": gzip.compress(idx(images))[:-60], "images.float": idx(images, 13),
                              "images.none": idx(np.zeros((0, 4, 4))), "labels.none": idx(np.zeros(0))}.items():
            (cls.bad / name).write_bytes(content)
        a = rng.normal(size=(6, 3, 3))
        cls.arrays = {"A": a + a.transpose(0, 2, 1), "y": rng.normal(size=6), "W0": 1e-2 * rng.normal(size=(3, 4))}
        cls.samples = {"x": rng.normal(size=(6, 3)), "y": rng.normal(size=6)}

    def file(self, name, arrays, **changes):
        """An HDF5 file of `arrays`, changed; None leaves one out."""
        with h5py.File(self.bad / name, "w") as file:
            for key, value in {**arrays, **changes}.items():
                if value is not None:
                    file[key] = value
        return self.bad / name

    def matrices(self, name, changes=None, **tables):
        return from_file(self.file(f"{name}.h5", self.arrays, **(changes or {})), "matrices", [0.0, 1.0], **tables)

    def pixels(self, tables=None, **data):
        where = {"kind": "idx", "images": self.bad / "images", "labels": self.bad / "labels"}
        return perceptron(**(tables or {}), data={**FILE_DATA, **where, **data})

    def from_samples(self, name, changes=None, data=None, **tables):
        path = self.file(f"{name}.h5", self.samples, **(changes or {}))
        return toml(**merged(PERCEPTRON, {**tables, "data": {**FILE_DATA, "kind": "hdf5", "file": path, **(data or {})}}))

    def refused(self, cases):
        """cases: name → (deck, pattern of the message)."""
        def one(name, ranks):
            return nqf("run", self.folder / f"{name}.toml", "--output", self.folder / f"out_{name}", ranks=ranks, each_rank=ranks > 0, timeout=60)
        for name, (deck, _) in cases.items():
            self.write(f"{name}.toml", deck)
        found = iter(together(*(lambda n=name, r=ranks: one(n, r) for name in cases for ranks in (0, 3))))
        for name, (_, pattern) in cases.items():
            alone, three = next(found), next(found)
            with self.subTest(name):
                self.assertEqual(alone.status, 2, alone)
                self.assertEqual(three.rank_statuses, [2, 2, 2], three)
                for result in (alone, three):
                    self.assertRegex(result.err, pattern)
                    self.assertEqual(result.err.count("nqf: "), 1, result)
                self.assertFalse((self.folder / f"out_{name}").exists(), "made an output folder")

    def test_structure_matrices(self):
        a, y, w0 = self.arrays["A"], self.arrays["y"], self.arrays["W0"]
        changed = lambda array, at, value: np.where(np.arange(array.size).reshape(array.shape) == np.ravel_multi_index(at, array.shape), value, array)
        lopsided = changed(a, (4, 0, 2), a[4, 0, 2] + 0.25)
        m = self.matrices
        self.refused({
            "lopsided": (m("lopsided", {"A": lopsided}), r"lopsided\.h5, data set 'A': the matrix of sample 4 is not symmetric: entry \(2, 0\) is .*\(A \+ A\^T\)/2"),
            "nan": (m("nan", {"A": changed(a, (3, 1, 1), np.nan)}), r"nan\.h5, data set 'A': row 3, column 4 is nan"),
            "not_square": (m("not_square", {"A": a[:, :, :2]}), r"not_square\.h5, data set 'A': is 6 × 3 × 2; N × p × p or N × m × p × p is needed"),
            "flat": (m("flat", {"A": a[:, 0]}), r"data set 'A': is 6 × 3; N × p × p"),
            "no_samples": (m("no_samples", {"A": a[:0], "y": y[:0]}), r"data set 'A': holds no samples \(shape 0 × 3 × 3\)"),
            "name": (m("name", {"A": None, "a": a}), r"name\.h5, data set 'x': does not exist; did you mean 'a'\?"),
            "short_y": (m("short_y", {"y": y[:5]}), r"short_y\.h5, data set 'y': is 5; A needs 6"),
            "infinite_y": (m("infinite_y", {"y": changed(y, (2,), np.inf)}), r"data set 'y': row 2, column 0 is inf"),
            "outputs": (m("outputs", {"A": np.stack([a, a], 1)}), r"data set 'y': has 1 outputs, but A has 2"),
            "lopsided_b": (m("lopsided_b", {"B": lopsided}), r"data set 'B': the matrix of sample 4 is not symmetric"),
            "shape_b": (m("shape_b", {"B": a[:, :, :2]}), r"data set 'B': is 6 × 3 × 2; .* need 6 × 3 × 3"),
            "shape_g": (m("shape_g", {"g": a[:, 0, :2]}), r"data set 'g': is 6 × 2; .* need 6 × 3"),
            "shape_f0": (m("shape_f0", {"f0": y[:5]}), r"data set 'f0': is 5; .* need 6 × 1"),
            "weight": (m("weight", {"weight": -np.ones(6)}), r"data set 'weight': row 0, column 0 is -1; it must not be negative"),
            "shape_w0": (m("shape_w0", {"W0": np.ones((4, 4))}), r"data set 'W0': has the shape 4 × 4; 3 parameters × d units"),
            "nan_w0": (m("nan_w0", {"W0": changed(w0, (1, 1), np.nan)}), r"data set 'W0': entry \(1, 1\) is nan"),
            "no_units": (m("no_units", {"W0": w0[:, :0]}), r"data set 'W0': is 3 × 0; p × d is needed"),
            "no_w0": (m("no_w0", {"W0": None}), r"no_w0\.toml:8: \[weights\] width: is missing, and no file brings W0"),
            "as_perceptron": (m("as_perceptron", module={"kind": "perceptron"}), r"as_perceptron\.toml:4: \[module\] kind = \"perceptron\": needs inputs x of shape \[n\], and the file holds structure matrices A"),
            "taught": (m("taught", data={"target": "module"}), r"taught\.toml:5: \[data\] target: \"module\" needs inputs x; the file holds structure matrices A"),
        })

    def test_images_and_labels(self):
        p = self.pixels
        where = lambda name: self.bad / name
        self.refused({
            "images_cut": (p(images=where("images.cut")), r"images\.cut: expected 496 bytes for 30 × 4 × 4 elements .*, found 200"),
            "images_gz": (p(images=where("images.gz")), r"images\.gz: "),
            "images_float": (p(images=where("images.float")), r"images\.float: expected \d+ bytes for 30 × 4 × 4 elements of type float32, found 496"),
            "swapped": (p(images=where("labels"), labels=where("images")), r"inputs/images: holds 30 × 4 × 4 .*; labels have 1"),
            "labels_short": (p(labels=where("labels.short")), r"inputs/images: has 30 images, but .*labels\.short has 29 labels"),
            "no_labels": (p(labels=where("none")), r"inputs/none: No such file"),
            "class_12": (p(classes=[3, 12]), r"inputs/labels: no label is 12 .*the nearest is 9, there are 0 to 9"),
            "class_twice": (p(classes=[3, 3]), r"class_twice\.toml:5: \[data\] classes: names label 3 twice"),
            "none": (p(images=where("images.none"), labels=where("labels.none")), r"images\.none: holds no images"),
            "too_many": (p(samples=31), r"\[data\] samples: 31 samples asked for, .*images has 30"),
            "empty_test": (p(test_fraction=0.01), r"\[data\] test_fraction: 0\.01 of 30 samples leaves 0 for the test and 30 for training"),
            "empty_train": (p(test_fraction=0.99), r"\[data\] test_fraction: 0\.99 of 30 samples leaves 30 for the test and 0 for training"),
            "test_labels": (p(test_images=where("images")), r"\[data\] test_images: needs test_labels beside it"),
            "shape": (p(shape=[5, 5]), r"\[data\] shape: 5 × 5 has 25 entries, but x has 16 \(4 × 4\)"),
            "online": (p({"training": {**STEPS, "sampling": "online", "batch": 2}}), r"online\.toml:\d+: \[training\] sampling: \"online\" needs synthetic data; \"with_replacement\""),
        })

    def test_architectures(self):
        p = perceptron
        self.refused({
            "relu": (p(module={"activation": "relu"}), r"relu\.toml:4: \[module\] activation: \"relu\" is not three times differentiable at 0.*\"gelu\" and \"softplus\" are smooth"),
            "square": (p(module={"activation": "square"}), r"square\.toml:4: \[module\] activation: \"square\" has phi\(0\) = phi'\(0\) = 0.*phase_retrieval"),
            "width_0": (p(weights={"width": 0}), r"width_0\.toml:14: \[weights\] width: must be at least 1, got 0"),
            "width_1e16": (p(weights={"width": 10**16}), r"\[weights\] width: must be at most 1e15"),
            "no_width": (p(weights={"width": None}), r"\[weights\] width: missing, but needed unless initial = \"file\""),
            "key": (p(module={"activaton": "tanh"}), r"key\.toml:5: \[module\] activaton: unknown key, did you mean activation\?"),
            "kind": (p(module={"kind": "perceptrn"}), r"kind\.toml:4: \[module\] kind: no such choice: \"perceptrn\", did you mean \"perceptron\"\?"),
            "table": (p(weigths={"width": 3}), r"\[weigths\]: unknown table, did you mean weights\?"),
            "modes": (p(modes={"growth_rate": [1.0]}), r"\[modes\]: this table belongs to system\.kind = \"modes\", but the kind is \"module\""),
            "initial": (p(initial={"epsilon": 1e-3}), r"\[initial\] epsilon: belongs to systems of modes; a module starts from \[weights\]"),
            "in_modes": (three_modes(weights={"width": 3}), r"\[weights\]: this table belongs to system\.kind = \"module\", but the kind is \"modes\""),
            "patches": (p(module={"kind": "convolution"}), r"\[module\] kind = \"convolution\": needs x of shape \[patches, n\].* module\.kernel"),
            "tokens": (p(module={"kind": "attention"}), r"\[module\] kind = \"attention\": needs x of shape \[tokens, n\], data give \[6\]; perceptron takes \[n\]"),
            "one_output": (p(module={"kind": "phase_retrieval"}), r"\[module\] kind = \"phase_retrieval\": has one output, data give 3"),
            "spectrum": (p(data={"spectrum": [1.0] * 9}), r"\[data\] spectrum: has 9 entries; a teacher of 3 × 6 has at most 3 singular values"),
            "covariance": (p(data={"covariance": [1.0, 2.0]}), r"\[data\] covariance: has 2 entries; 6 are needed"),
            "identity": (p(weights={"initial": "identity", "width": 3}), r"\[weights\] width: initial = \"identity\" needs .* at least 9, got 3"),
            "no_pairs": (p(module={"kind": "phase_retrieval"}, weights={"initial": "balanced"}, data={"outputs": None, "spectrum": [1.0]}), r"\[weights\] initial: \"balanced\" pairs"),
            "no_file": (p(weights={"initial": "file"}), r"\[weights\] file: missing, but needed by initial = \"file\""),
            "entry_outside": (self.from_samples("entry_outside", {"x": [[0.0, 1], [2, 9]], "y": np.ones(2)}, {"shape": [3, 4]}, module={"kind": "completion"}), r"entry_outside\.h5, data set 'x': sample 1 names column 9; integers from 0 to 3 are needed"),
        })

    def test_training(self):
        p = perceptron
        steps = lambda **more: p(training={**STEPS, **more})
        listed = lambda name, rows: self.from_samples(name, {"batches": rows}, training={**STEPS, "sampling": "file"})
        self.refused({
            "batch_201": (steps(sampling="without_replacement", batch=201), r"batch_201\.toml:\d+: \[training\] batch: 201 samples without replacement from 200; at most 200"),
            "no_batch": (steps(sampling="with_replacement"), r"\[training\] batch: missing, but needed by mini-batches"),
            "flow_batch": (p(training={"sampling": "with_replacement", "batch": 3}), r"\[training\] sampling: a flow takes all samples"),
            "list_far": (listed("list_far", [[0, 1], [2, 6]]), r"list_far\.h5, data set 'batches': entry \(1, 1\) is 6; samples are 0 to 5"),
            "list_none": (listed("list_none", None), r"list_none\.h5, data set 'batches': does not exist"),
            "online_file": (self.from_samples("online_file", training={**STEPS, "sampling": "online", "batch": 2}), r"\[training\] sampling: \"online\" needs synthetic data"),
            "tolerance_0": (p(training={"tolerance": 0.0}), r"tolerance_0\.toml:\d+: \[training\] tolerance: must be positive, got 0"),
            "tolerance_1": (p(training={"tolerance": 1.0}), r"\[training\] tolerance: is a relative error and must be below 1, got 1"),
            "tolerance_nan": (p(training={"tolerance": float("nan")}), r"\[training\] tolerance: must be finite, got nan"),
            "no_rate": (p(training={"algorithm": "sgd"}), r"\[training\] learning_rate: missing, but needed by discrete training"),
            "momentum_1": (steps(momentum=1.0), r"\[training\] momentum: must be below 1, got 1"),
            "steps_flow": (p(time={"unit": "steps"}), r"\[time\] unit: \"steps\" belongs to discrete training"),
            "closed": (p(solver={"form": "closed"}), r"\[solver\] form = \"closed\": this module has no closed form; use \"integrate\""),
            "closed_steps": (stepping(solver={"form": "closed"}), r"closed_steps\.toml:\d+: \[solver\] form: \"closed\": there is no closed form with discrete training"),
            "riccati": (p(training={"form": "riccati"}), r"\[training\] form: \"riccati\": the data are not isotropic: .* by \d"),
            "commuting": (p(training={"form": "modes"}), r"\[training\] form: \"modes\": the structure matrices do not commute: 0\.\d+ exceeds"),
            "gram": (p(training={"form": "gram"}), r"\[training\] form: gram belongs to discrete training"),
            "logistic": (p(training={"loss": "logistic"}), r"\[data\] outputs: training\.loss = \"logistic\" takes one output, data give 3; \"softmax\""),
            "softmax": (p(training={"loss": "softmax"}), r"\[data\] target: sample 0 has y = -?[\d.]+; this loss takes values from 0 to 1"),
            "kernel_201": (p(tangent_kernel={"samples": 201}), r"kernel_201\.toml:\d+: \[tangent_kernel\] samples: 201 asked for, but there are 200"),
            "kernel_file": (self.from_samples("kernel_file", tangent_kernel={"samples": 7}), r"\[tangent_kernel\] samples: 7 asked for, but the data have 6"),
            "kernel_form": (p(tangent_kernel={"samples": 2}, training={"form": "order_parameter"}), r"kernel_form\.toml:\d+: \[tangent_kernel\] samples: needs the weights: training\.form"),
            "kernel_stream": (p(tangent_kernel={"samples": 2}, data={"stream": 50}), r"\[tangent_kernel\] samples: needs stored samples"),
        })


if __name__ == "__main__":
    main()
