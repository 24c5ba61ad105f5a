"""debian_12_test.py BUILD ENVIRONMENT: a minimal Debian 12, without a network, runs the archive and the wheel.

Needs root, debootstrap, and the mirror of Debian that this machine's apt is configured with; skips where one of them is missing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fixture import SCRIPT, fail, make_files, repack, run, skip, small_model

build, environment = (Path(argument).resolve() for argument in sys.argv[1:3])


def mirror() -> str:
    """Where this machine's apt has Debian 12 from."""
    question = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Codename: bookworm"]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, check=False).stdout.split()
    except OSError:
        answer = []
    if not answer:
        skip("apt knows no mirror of Debian 12")
    return answer[0]


def make_root(root: Path) -> None:
    """Debian's smallest system, and Python with what makes virtual environments."""
    tool = shutil.which("debootstrap", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if tool is None:
        skip("debootstrap is not installed: run ./setup test first")
    if os.geteuid() != 0:
        skip("making a root for Debian needs root")
    command = [tool, "--variant=minbase", "--include=python3-venv", "bookworm", str(root), mirror()]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        skip(f"debootstrap made no Debian here: {done.stdout.splitlines()[-1:]}")


def enter(root: Path, *command: str, timed: str = "") -> str:
    """Runs a command in the root: with its own processes, no network, and hardly any variable."""
    script = 'mount -t proc proc "$0/proc" && mount -t sysfs sys "$0/sys" && exec chroot "$0" "$@"'
    variables = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    began = time.monotonic()
    spaces = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child"]
    output = run([*spaces, "bash", "-c", script, str(root), *command], variables, root)
    if timed:
        print(f"{time.monotonic() - began:6.1f} s  {timed}", flush=True)
    return output


def use_archive(root: Path) -> None:
    enter(root, "sh", "-c", "mkdir /opt/collage && tar -xf /files/*.tar.gz -C /opt/collage --strip-components=1",
          timed="unpack the archive")  # fmt: skip
    command = "/opt/collage/bin/collage"
    listed = enter(root, command, "targets")
    for toolchain in ("native", "dnnl", "openvino"):
        if f"{toolchain} yes" not in " ".join(listed.split()):
            fail(f"{toolchain} is not available:\n{listed}")
    model, values = "/files/mnist.onnx", "/files/mnist.npz"
    compile_it = [command, "compile", model, "-o", "/root/archive.clg", "--threads", "1", "--budget", "10s", "--quiet"]
    enter(root, *compile_it, timed="compile with the archive's command")
    enter(root, command, "run", "/root/archive.clg", "--inputs", values, "--compare", values)
    enter(root, command, "report", "/root/archive.clg", "-o", "/root/archive.html")


def use_wheel(root: Path) -> None:
    enter(root, "python3", "-m", "venv", "/root/venv", timed="make a virtual environment")
    install = ["/root/venv/bin/pip", "install", "--no-index", "--find-links", "/files"]
    enter(root, *install, "collage-compiler[openvino]", timed="install the wheel, and OpenVINO's")
    model, values = "/files/mnist.onnx", "/files/mnist.npz"
    toolchains = ["native", "dnnl", "onednn_graph", "openvino", "xnnpack", "xsmm"]
    script = ["HOME=/root/python", "/root/venv/bin/python", "/files/use_collage.py", model, values, *toolchains]
    print(
        enter(root, "sh", "-c", 'cd /root && exec env "$@"', "-", *script, timed="compile and run with Python"), end=""
    )
    enter(root, "/root/venv/bin/collage", "run", "/root/python.clg", "--inputs", values, "--compare", values)


def main() -> None:
    model, values = small_model()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "debian"
        make_root(root)
        files = root / "files"
        files.mkdir()
        make_files(build, files)
        for package in ("numpy", "openvino", "openvino_telemetry", "packaging"):
            repack(environment, package, files)
        for path in (model, values, SCRIPT):
            shutil.copy(path, files)
        use_archive(root)
        use_wheel(root)


if __name__ == "__main__":
    main()
