"""NOTICE names every package of packages.txt with its licence; toolchains and wheels report the same licences."""

import importlib.metadata
import re
import unittest

import tomllib
from source import ROOT, files, text


def notice() -> dict[str, tuple[str, str]]:
    """NOTICE's tables: package → its licence and what it is used for."""
    rows = re.findall(r"^  (\S+) {2,}(\S.*?) {2,}(\S.*)$", text("NOTICE"), re.MULTILINE)
    return {name: (licence, use) for name, licence, use in rows if name != "package"}


def packages() -> list[str]:
    return re.findall(r"^(?:test-)?(?:apt|pip) ([^\s=]+)", text("packages.txt"), re.MULTILINE)


class Licences(unittest.TestCase):
    def test_notice_names_every_package_once(self):
        rows = re.findall(r"^  (\S+) {2,}\S.*? {2,}\S", text("NOTICE"), re.MULTILINE)
        self.assertEqual(sorted(name for name in rows if name != "package"), sorted(packages()))

    def test_wheels_have_the_licences_of_the_notice(self):
        checked = 0
        for name, (licence, _) in notice().items():
            try:
                stated = importlib.metadata.metadata(name).get("License-Expression")
            except importlib.metadata.PackageNotFoundError:
                continue
            if stated:
                self.assertEqual(stated, licence, name)
                checked += 1
        self.assertGreater(checked, 0, "no wheel of packages.txt is installed: run ./setup first")

    def test_toolchains_report_the_licences_of_the_notice(self):
        project = tomllib.loads(text("pyproject.toml"))["project"]["license"]
        checked = []
        for path in files("src/backends"):
            stated = re.search(r'std::string license\(\) const override \{ return "(.*?)"', text(path))
            if path.suffix != ".cc" or stated is None:
                continue
            name = path.parent.name
            used = {licence for licence, use in notice().values() if f"toolchain {name}" in use}
            for licence in stated[1].split("; "):
                if name in ("native", "cuda"):  # their kernels need Collage's runtime and nothing else
                    self.assertEqual(licence, project)
                elif ": " in licence:  # of a library that packages.txt does not install
                    library, own = licence.split(": ")
                    self.assertRegex(text("NOTICE"), rf"toolchain {name} .*{library} \({own}\)")
                else:
                    self.assertIn(licence, used, name)
            checked.append(name)
        built_in = re.search(r"set\(COLLAGE_TOOLCHAINS\n([a-z_\s]+)\)", text("src/backends/CMakeLists.txt"))
        self.assertEqual(sorted(checked), sorted(built_in[1].split()))

    def test_the_licence_is_the_one_that_is_named(self):
        self.assertIn("Apache License\n                           Version 2.0", text("LICENSE"))
        project = tomllib.loads(text("pyproject.toml"))["project"]
        self.assertEqual(project["license"], "Apache-2.0")
        for name in project["license-files"]:
            self.assertTrue((ROOT / name).is_file(), name)
            self.assertIn(f"${{CMAKE_SOURCE_DIR}}/{name}", text("cmake/CollageInstall.cmake"))


if __name__ == "__main__":
    unittest.main()
