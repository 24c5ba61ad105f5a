"""wheel_test.py BUILD ENVIRONMENT: the wheel is what its name says, refers to nothing of this machine, and works in an empty
virtual environment."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from email.parser import Parser
from pathlib import Path

from fixture import ROOT, SCRIPT, fail, make_files, repack, run, small_model

build, environment = (Path(argument).resolve() for argument in sys.argv[1:3])
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}  # of Debian 12, which the wheel's tag names
OF_SYSTEM = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
             "libresolv.so.2", "libstdc++.so.6", "libgcc_s.so.1"}  # fmt: skip
OF_PACKAGES = {
    "libopenvino.so": "$ORIGIN/../../openvino/libs"
}  # by the beginning of the name: where modules look for it
SEARCHED = {"", "$ORIGIN", "$ORIGIN/lib", "$ORIGIN/..", "$ORIGIN/../lib"}


def check_record(wheel: zipfile.ZipFile, info: str) -> None:
    rows = dict(line.split(",", 1) for line in wheel.read(f"{info}/RECORD").decode().splitlines())
    if sorted(rows) != sorted(wheel.namelist()):
        fail(f"RECORD and files differ: {sorted(set(rows) ^ set(wheel.namelist()))}")
    for name in wheel.namelist():
        data = wheel.read(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if name != f"{info}/RECORD" and rows[name] != f"sha256={digest},{len(data)}":
            fail(f"RECORD is wrong about {name}: {rows[name]}")


def check_metadata(wheel: zipfile.ZipFile, info: str) -> None:
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    materials = json.loads(wheel.read(f"{info}/sboms/collage.spdx.json"))
    if metadata["Name"] != materials["packages"][0]["name"]:
        fail("the bill of materials is another distribution's")
    for licence in metadata.get_all("License-File") or []:
        if f"{info}/licenses/{licence}" not in wheel.namelist():
            fail(f"{licence} is missing")
    for place in ("LICENSE", "NOTICE", "compiled_in/libmlir-22-dev", "binutils-x86-64-linux-gnu/copyright"):
        if f"{info}/licenses/{place}" not in wheel.namelist():
            fail(f"there is no licence text {place}")
    pinned = [text for text in metadata.get_all("Requires-Dist") or [] if text.startswith("openvino==")]
    if not pinned:
        fail(f"OpenVINO's version is not pinned: {metadata.get_all('Requires-Dist')}")


def check_images(folder: Path) -> None:
    """Programs and libraries find what they need in the wheel, or where every system has it, and need no newer symbols."""
    images = [path for path in folder.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    inside = {path.name for path in images}
    for path in images:
        text = subprocess.run(["readelf", "-dVW", path], capture_output=True, text=True, check=True).stdout
        search = set((re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", text) or [""])[0].strip(":").split(":"))
        for needed in re.findall(r"NEEDED\).*\[(.*)\]", text):
            package = next((place for name, place in OF_PACKAGES.items() if needed.startswith(name)), None)
            if package in search:
                search.remove(package)
            elif needed not in inside | OF_SYSTEM:
                fail(f"{path.name} needs {needed}")
        if not search <= SEARCHED:
            fail(f"{path.name} looks into {search}")
        for name, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", text):
            if tuple(map(int, version.split("."))) > NEWEST[name]:
                fail(f"{path.name} needs {name}_{version}")


def check_paths(folder: Path) -> None:
    """No file names the tree that it was made from."""
    here = [str(path).encode() for path in {build, ROOT, environment, environment.parent}]
    for path in folder.rglob("*"):
        found = [one for one in here if path.is_file() and one in path.read_bytes()]
        if found:
            fail(f"{path} names {found[0].decode()}")


def use_it(folder: Path, wheels: Path, home: Path) -> None:
    model, values = small_model()
    clean = {"HOME": str(home), "PATH": "", "TMPDIR": str(home)}
    run([environment.joinpath("bin/python").resolve(), "-m", "venv", folder], clean, home)
    install = [folder / "bin/python", "-m", "pip", "install", "--no-index", "--find-links", wheels, "--no-cache-dir",
               "--disable-pip-version-check"]  # fmt: skip
    run([*install, "collage-compiler"], clean, home)
    always = ["native", "dnnl", "onednn_graph", "xnnpack", "xsmm"]
    print(run([folder / "bin/python", SCRIPT, model, values, *always], clean, home), end="")
    command = folder / "bin/collage"
    listed = run([command, "targets"], clean, home)
    if not re.search(r"openvino +no .*'libopenvino.* is not installed in this Python environment", listed):
        fail(f"OpenVINO is not here, and the command says something else:\n{listed}")
    run([command, "compile", model, "-o", "command.clg", "--threads", "1", "--budget", "5s", "--quiet"], clean, home)
    for executable in ("command.clg", "python.clg"):
        run([command, "run", executable, "--inputs", values, "--compare", values], clean, home)
    run([command, "report", "command.clg", "-o", "command.html"], clean, home)
    # The extras.
    run([*install, "collage-compiler[openvino,onnxruntime]"], clean, home)
    print(run([folder / "bin/python", SCRIPT, model, values, *always, "openvino", "onnxruntime"], clean, home), end="")
    for name in ("openvino", "onnxruntime"):
        options = ["--threads", "1", "--partition-for", name, "--quiet"]
        run([command, "compile", model, "-o", f"{name}.clg", *options], clean, home)
        run([command, "run", f"{name}.clg", "--inputs", values, "--compare", values], clean, home)


def main() -> None:
    started = time.monotonic()
    os.environ.pop("COLLAGE_MODULE_PATH", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels, unpacked, home = folder / "wheels", folder / "unpacked", folder / "home"
        for path in (wheels, unpacked, home):
            path.mkdir()
        make_files(build, wheels, "--no-archive")
        file = next(wheels.glob("*.whl"))
        if not re.fullmatch(r"collage_compiler-[0-9.]+-cp(3\d+)-cp\1-manylinux_2_36_x86_64\.whl", file.name):
            fail(f"the file is called {file.name}")
        with zipfile.ZipFile(file) as wheel:
            info = "-".join(file.stem.split("-")[:2]) + ".dist-info"
            check_record(wheel, info)
            check_metadata(wheel, info)
            wheel.extractall(unpacked)
        check_images(unpacked)
        check_paths(unpacked)
        for package in (
            "numpy",
            "openvino",
            "openvino_telemetry",
            "packaging",
            "onnxruntime",
            "flatbuffers",
            "protobuf",
        ):
            repack(environment, package, wheels)
        print(f"checked in {time.monotonic() - started:.0f} s")
        use_it(folder / "venv", wheels, home)
    print(f"installed and used in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
