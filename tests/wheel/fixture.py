"""Shared by the tests of installing without a build: wheels of this environment's packages, models, and skipping with a reason."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = Path(__file__).with_name("use_collage.py")


def skip(reason: str) -> NoReturn:
    print(f"skipped: {reason}")
    sys.exit(77)


def fail(message: str) -> NoReturn:
    print(f"FAILED: {message}")
    sys.exit(1)


def run(command: Sequence[str | Path], environment: dict[str, str], folder: Path) -> str:
    """Returns the command's output, from a run in `folder` with these variables and no others."""
    done = subprocess.run(
        list(command), env=environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        fail(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}")
    return done.stdout


def small_model() -> tuple[Path, Path]:
    """A model and its values, as tools/models/prepare-tests writes them."""
    folder = Path(os.environ.get("COLLAGE_MODELS", Path.home() / ".cache/collage/models")) / "small"
    model, values = folder / "mnist.onnx", folder / "mnist.npz"
    if not model.exists() or not values.exists():
        skip("tools/models/prepare-tests has not written its models")
    return model, values


def repack(environment: Path, name: str, folder: Path) -> Path:
    """Writes the wheel again that a package was installed from, as its RECORD lists it, so that pip needs no index."""
    info = next(environment.glob(f"lib/python3*/site-packages/{name}-*.dist-info"), None)
    if info is None:
        skip(f"the wheel '{name}' is not installed: run ./setup first")
    tags = Parser().parsestr((info / "WHEEL").read_text()).get_all("Tag") or []
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*(tag.split("-") for tag in tags)))
    file = folder / f"{info.stem}-{tag}.whl"
    written_by_pip = ("INSTALLER", "REQUESTED", "direct_url.json")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as wheel:
        for line in (info / "RECORD").read_text().splitlines():
            place = line.rsplit(",", 2)[0].strip('"')
            is_installed_only = place.startswith("../") or place.endswith(".pyc") or place.endswith(written_by_pip)
            if not is_installed_only and place != f"{info.name}/RECORD":
                wheel.write(info.parent / place, place)
        wheel.writestr(f"{info.name}/RECORD", "")
    return file


def make_files(build: Path, folder: Path, *options: str) -> None:
    """tools/make_wheel, of what is built."""
    if not (build / "lib/portable/libcollage_native_compiler.so").exists():
        skip("this build has no MLIR, or not its static libraries")
    if not list((build / "python/collage").glob("_core*.so")):
        skip("this build has no Python package")
    tool = [sys.executable, ROOT / "tools/make_wheel", "--build", build, "--out", folder, "--no-build", *options]
    print(run(tool, dict(os.environ), folder), end="")
