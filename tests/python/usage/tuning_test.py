"""Tuning ahead, and the tuning database."""

import os
import subprocess
import sys
import unittest
import warnings

import numpy as np

import collage
from collage import relay, reports
from own_folder import in_folder, setUpModule, tearDownModule  # noqa: F401
from reports_test import differences


def model(channels):
    random = np.random.default_rng(channels)
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.const(random.standard_normal((channels, 3, 3, 3)).astype("float32"))
    return collage.frontend.to_onnx(relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, w, padding=[1, 1]))))


class Tuning(unittest.TestCase):
    def test_compiling_measures_nothing_more(self):
        database, seen = in_folder("tuned.db"), []
        report = collage.tune(model(4), threads=1, toolchains="native", database=database, progress=seen.append)
        self.assertGreater(report["search"]["measured"], 0)
        self.assertEqual((report["winner"], report["p50_seconds"]), ("", None))
        self.assertEqual(differences(report, reports.CompileReport), [])
        self.assertGreater(max(one.done for one in seen if one.phase == "search"), 0)
        exe = collage.compile(model(4), threads=1, toolchains="native", database=database)
        self.assertEqual(exe.report["search"]["measured"], 0)
        again = collage.tune(model(4), threads=1, toolchains="native", database=database)
        self.assertEqual(again["search"]["measured"], 0)

    def test_several_models_share_a_budget(self):
        settings = {"threads": 1, "toolchains": "native"}
        reports_ = collage.tune([model(8), model(9)], database=in_folder("both.db"), max_measurements=5, **settings)
        self.assertEqual(sum(one["search"]["measured"] for one in reports_), 5)
        self.assertGreater(min(one["search"]["measured"] for one in reports_), 0)
        self.assertEqual([differences(one, reports.CompileReport) for one in reports_], [[], []])

    def test_a_model_that_fails_leaves_the_others(self):
        database = in_folder("failing.db")
        with self.assertRaisesRegex(collage.InputError, "not an ONNX model"):
            collage.tune([b"garbage", model(10)], threads=1, toolchains="native", database=database)
        again = collage.tune([model(10)], threads=1, toolchains="native", database=database)
        self.assertEqual(again[0]["search"]["measured"], 0)

    def test_it_can_be_stopped(self):
        report = collage.tune(
            model(5), threads=1, toolchains="native", database=in_folder("s.db"), should_stop=lambda: True
        )
        self.assertEqual(report["search"]["measured"], 0)

    def test_arguments(self):
        with self.assertRaisesRegex(TypeError, "setting 'dump' is of collage.compile only"):
            collage.tune(model(4), dump="folder")
        with self.assertRaisesRegex(TypeError, "there is no setting 'thread'"):
            collage.tune(model(4), thread=1)
        with self.assertRaisesRegex(collage.InputError, "got 'Function'"):
            collage.tune(relay.Function([], relay.const(1.0)))
        self.assertIn("        budget: ", collage.tune.__doc__)
        self.assertNotIn("        dump: ", collage.tune.__doc__)


class Database(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.database = collage.TuningDatabase(in_folder("a.db"))
        collage.compile(model(6), threads=1, toolchains="native", database=cls.database.place)

    def test_counts_are_those_of_the_command(self):
        stats = self.database.stats()
        self.assertEqual(stats["place"], self.database.place)
        self.assertEqual(sum(stats["by_kind"].values()), stats["records"])
        self.assertGreater(stats["by_toolchain"]["native"], 0)
        self.assertEqual(stats["bytes"], os.path.getsize(self.database.place))
        command = [sys.executable, "-m", "collage", "db", "--database", self.database.place, "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f'"records": {stats["records"]}', ran.stdout)

    def test_compilations(self):
        row = self.database.compilations()[-1]
        self.assertEqual((row["model"], row["threads"]), ("model.onnx", 1))
        self.assertGreater(row["p50_seconds"], 0)

    def test_records_are_carried(self):
        file, other = in_folder("records.jsonl"), collage.TuningDatabase(in_folder("new/b.db"))
        records = self.database.stats()["records"]
        self.assertEqual(self.database.export_records(file), records)
        self.assertEqual(other.import_records(file), {"read": records, "taken": records, "dropped": {}})
        self.assertEqual(other.merge(self.database)["taken"], 0)
        self.assertEqual(collage.TuningDatabase(in_folder("c.db")).merge(other.place)["taken"], records)
        self.assertEqual(other.stats()["by_kind"], self.database.stats()["by_kind"])
        self.assertEqual(other.verify(), [])

    def test_missing_and_damaged(self):
        missing = collage.TuningDatabase(in_folder("missing.db"))
        for call in (missing.stats, missing.compilations, missing.verify, lambda: missing.export_records("x")):
            with self.assertRaisesRegex(FileNotFoundError, "missing.db: error: there is no such database"):
                call()
        with self.assertRaises(collage.MissingFileError):
            missing.import_records(in_folder("none.jsonl"))
        with self.assertRaises(collage.MissingFileError):
            missing.merge(in_folder("none.db"))
        self.assertFalse(os.path.exists(missing.place))
        damaged = collage.TuningDatabase(in_folder("damaged.db"))
        content = b"no database " * 1000
        with open(damaged.place, "wb") as file:
            file.write(content)
        for call in (damaged.stats, damaged.compilations, lambda: missing.merge(damaged)):
            with self.assertRaisesRegex(collage.CorruptError, "the tuning database is damaged"):
                call()
        self.assertIn("is damaged", damaged.verify()[0])
        with open(damaged.place, "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertFalse(os.path.exists(missing.place))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(damaged.merge(self.database)["taken"], self.database.stats()["records"])
        self.assertIn("damaged", " ".join(str(one.message) for one in caught))

    def test_records_are_removed(self):
        copy = collage.TuningDatabase(in_folder("gc.db"))
        records = copy.merge(self.database)["taken"]
        with self.assertRaisesRegex(ValueError, "nothing says what to remove"):
            copy.gc()
        with self.assertRaisesRegex(ValueError, "malformed duration 'soon'"):
            copy.gc(older_than="soon")
        self.assertEqual(copy.gc(older_than="90d", other_versions=True), 0)
        self.assertEqual(copy.gc(failures=True), self.database.stats()["failures"])
        self.assertEqual(copy.gc(older_than=-1), records - self.database.stats()["failures"])
        self.assertEqual(copy.stats()["records"], 0)
        with self.assertRaises(collage.MissingFileError):
            collage.TuningDatabase(in_folder("none.db")).gc(failures=True)

    def test_the_default_place(self):
        self.assertEqual(collage.TuningDatabase().place, os.environ["COLLAGE_DATABASE"])
        self.assertEqual(
            repr(collage.TuningDatabase("postgresql://u:secret@h:1/n")), "TuningDatabase('postgresql://u@h:1/n')"
        )


if __name__ == "__main__":
    unittest.main()
