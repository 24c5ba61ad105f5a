"""A folder of a test module's own, with the tuning database in it, while its tests run:
``from own_folder import in_folder, setUpModule, tearDownModule``."""

import os
import tempfile

_folders = []


def setUpModule():
    folder = tempfile.TemporaryDirectory()
    _folders.append(folder)
    os.environ["COLLAGE_DATABASE"] = os.path.join(folder.name, "tuning.db")


def tearDownModule():
    _folders.pop().cleanup()


def in_folder(name):
    """Where a file of that name is, or will be."""
    return os.path.join(_folders[-1].name, name)
