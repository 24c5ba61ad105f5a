"""Every public name is documented, what is listed exists, and examples run."""

import doctest
import importlib
import inspect
import os
import pkgutil
import types
import typing
import unittest

import collage
from own_folder import setUpModule, tearDownModule  # noqa: F401

MODULES = ["collage"] + [
    one.name for one in pkgutil.walk_packages(collage.__path__, "collage.") if not one.name.rpartition(".")[2][0] == "_"
]
EXAMPLES = ["collage." + name for name in ("_arguments", "_compile", "_executable", "_pictures", "_ports", "_timings")]
SOURCE = os.environ["COLLAGE_SOURCE"]


def public_members(owner):
    return [name for name in vars(owner) if not name.startswith("_")]


class Documentation(unittest.TestCase):
    def test_public_names_are_documented(self):
        missing = []
        for module_name in MODULES:
            module = importlib.import_module(module_name)
            for name in getattr(module, "__all__", public_members(module)):
                value = getattr(module, name)
                if isinstance(value, (types.ModuleType, str)) or typing.get_origin(value) is not None:
                    continue  # a module, the version, a name for a type
                if not inspect.getdoc(value):
                    missing.append(f"{module_name}.{name}")
                if inspect.isclass(value) and value.__module__.startswith("collage"):
                    for member in public_members(value):
                        found = vars(value)[member]
                        is_data = not callable(found) and not isinstance(found, (property, staticmethod, classmethod))
                        fields = getattr(value, "__dataclass_fields__", {})
                        if member not in fields and not is_data and not inspect.getdoc(getattr(value, member)):
                            missing.append(f"{module_name}.{name}.{member}")
            self.assertTrue(module.__doc__, module_name)
        self.assertEqual(missing, [])

    def test_members_of_the_core_are_documented(self):
        missing = []
        for name in public_members(collage._core):
            value = getattr(collage._core, name)
            if not inspect.getdoc(value):
                missing.append(name)
            for member in public_members(value) if inspect.isclass(value) else []:
                if not inspect.getdoc(getattr(value, member)):
                    missing.append(f"{name}.{member}")
        self.assertEqual(missing, [])

    def test_lists_are_sorted_and_complete(self):
        for module_name in MODULES:
            module = importlib.import_module(module_name)
            names = getattr(module, "__all__", [])
            self.assertEqual(list(names), sorted(names), module_name)
            for name in names:
                self.assertTrue(hasattr(module, name), f"{module_name}.{name}")

    def test_examples_in_docstrings(self):
        examples = 0
        for module_name in [*MODULES, *EXAMPLES]:
            module = importlib.import_module(module_name)
            results = doctest.testmod(module)
            self.assertEqual(results.failed, 0, module_name)
            examples += results.attempted
        self.assertGreater(examples, 40)

    def test_examples_in_the_guide(self):
        path = os.path.join(SOURCE, "docs", "python.md")
        results = doctest.testfile(path, module_relative=False, optionflags=doctest.ELLIPSIS)
        self.assertGreater(results.attempted, 20)
        self.assertEqual(results.failed, 0)

    def test_version_is_that_of_the_build(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt")) as file:
            self.assertIn(f"project(Collage VERSION {collage.__version__} ", file.read())


if __name__ == "__main__":
    unittest.main()
