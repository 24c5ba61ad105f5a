"""Classes that answer for others of their kind lose no virtual function: they forward each, or do not compile."""

import re
import unittest

from source import text


def class_body(path: str, name: str) -> str:
    """Returns the class between its braces, without comments."""
    code = re.sub(r"//[^\n]*", "", text(path))
    found = re.search(rf"^class {name}\b[^;{{]*{{(.*?)^}};", code, re.MULTILINE | re.DOTALL)
    if found is None:
        raise AssertionError(f"{path} has no class {name}")
    return found.group(1)


def virtual_functions(body: str) -> list[str]:
    """Declarations of the virtual functions but the destructor, with `= 0` if they have it."""
    found = re.findall(r"\bvirtual\s+([^;{]*?)\s*(?:;|{)", body)
    return [" ".join(declaration.split()) for declaration in found if "~" not in declaration]


def name_of(declaration: str) -> str:
    return re.search(r"(\w+)\(", declaration).group(1)


class Decorators(unittest.TestCase):
    def test_every_virtual_function_of_toolchain_is_forwarded(self):
        declared = sorted(
            map(name_of, virtual_functions(class_body("include/collage/target/toolchain.h", "Toolchain")))
        )
        body = class_body("src/target/forwarding_toolchain.h", "ForwardingToolchain")
        self.assertEqual(
            sorted(re.findall(r"\b(\w+)\([^{};]*\) const override {\s*return inner_\.\1\(", body)), declared
        )
        self.assertGreater(len(declared), 25)

    def test_decorators_of_toolchains_derive_from_the_forwarding_one(self):
        self.assertRegex(
            text("src/target/toolchain_configuration.cc"), r"class ConfiguredToolchain : public ForwardingToolchain"
        )

    def test_cover_costs_have_no_defaults_that_a_decorator_could_inherit(self):
        declared = virtual_functions(class_body("src/search/find_covers.h", "CoverCosts"))
        self.assertGreater(len(declared), 10)
        self.assertEqual([declaration for declaration in declared if not declaration.endswith("= 0")], [])

    def test_a_new_virtual_function_is_noticed(self):
        body = (
            "virtual ~A() = default;\n"
            "virtual int a() const = 0;\n"
            "virtual std::vector<B> b(const C& c,\n d e) const { return {}; }"
        )
        self.assertEqual(list(map(name_of, virtual_functions(body))), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
