"""packages.hashes has the digests of the wheels in packages.txt, and of nothing else."""

import json
import re
import subprocess
import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

from source import ROOT, text


def pin_wheels():
    loader = SourceFileLoader("pin_wheels", str(ROOT / "tools" / "pin_wheels"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class BillOfMaterials(unittest.TestCase):
    def test_it_has_what_the_notice_says_is_used(self):
        printed = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "sbom")], capture_output=True, text=True, check=True
        ).stdout
        found = json.loads(printed)
        packages = {one["name"]: one for one in found["packages"]}
        table = text("NOTICE").split("Used by what is built")[1].split("Used to build and test only")[0]
        named = re.findall(r"^  (\S+) {2,}\S.*? {2,}\S", table, re.MULTILINE)
        own = found["packages"][0]["name"]
        self.assertEqual(list(packages), [own, *(name for name in named if name != "package")])
        pinned = dict(re.findall(r"^pip (\S+)==(\S+)", text("packages.txt"), re.MULTILINE))
        self.assertEqual(packages["numpy"]["versionInfo"], pinned["numpy"])
        depended_on = {
            one["relatedSpdxElement"] for one in found["relationships"] if one["relationshipType"] == "DEPENDS_ON"
        }
        self.assertEqual(depended_on, {one["SPDXID"] for one in found["packages"][1:]})


class Packages(unittest.TestCase):
    def test_each_release_has_digests(self):
        lines = [line.split() for line in text("packages.hashes").splitlines() if not line.startswith("#")]
        self.assertEqual(
            [line[0] for line in lines], sorted(set(pin_wheels().releases(text("packages.txt"))), key=str.lower)
        )
        for release, *digests in lines:
            self.assertGreater(len(digests), 0, release)
            for digest in digests:
                self.assertRegex(digest, re.compile(r"--hash=sha256:[0-9a-f]{64}$"), release)

    def test_releases_are_those_of_any_kind(self):
        listed = "# pip a==1\napt cmake\n\npip numpy==2.4.6\ngpu triton==3.7.1\n"
        self.assertEqual(pin_wheels().releases(listed), ["numpy==2.4.6", "triton==3.7.1"])

    def test_digests_are_those_of_wheels_for_linux(self):
        def digests(*names: str) -> list[str]:
            files = [{"filename": name, "hashes": {"sha256": name}} for name in names]
            return pin_wheels().digests(files, "1.0")

        wheels = ["a-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "a-1.0-py3-none-any.whl"]
        others = ["a-1.0-cp311-cp311-win_amd64.whl", "a-1.0.1-py3-none-any.whl", "a-1.0.tar.gz", "a-1.0-1.zip"]
        self.assertEqual(digests(*others, *wheels), wheels)
        self.assertEqual(digests("a-1.0.tar.gz", "a-1.0.1.tar.gz"), ["a-1.0.tar.gz"])


if __name__ == "__main__":
    unittest.main()
