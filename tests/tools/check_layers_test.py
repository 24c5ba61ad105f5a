"""tools/check_layers passes on the tree, and finds each kind of violation in a made-up one, with file and line."""

import subprocess
import sys
import unittest

from made_up_tree import SOURCE, MadeUpTreeTest

sys.path.insert(0, str(SOURCE / "tools"))
from layers.functions import cpp_functions
from layers.source_text import SourceText

BASELINE = "tools/check_layers.baseline"


class ThisTree(unittest.TestCase):
    def test_has_no_new_violation(self) -> None:
        done = subprocess.run([SOURCE / "tools/check_layers"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_has_figures(self) -> None:
        done = subprocess.run([SOURCE / "tools/check_layers", "--counts"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"\nsrc/ir +\d+ +\d+ +\d+ +\d+ +\d+\n")
        self.assertRegex(done.stdout, r"\ngtest cases +\d{4}\n")


class CheckLayers(MadeUpTreeTest):
    def finds(self, message: str) -> None:
        self.assert_finds(message, "tools/check_layers")

    def passes(self) -> None:
        self.assert_passes("tools/check_layers")

    def test_made_up_tree_passes(self) -> None:
        self.passes()

    def test_upward_include(self) -> None:
        self.append("src/ir/node.h", '#include "collage/find.h"\n')
        self.finds(
            "src/ir/node.h:2: error: includes \"collage/find.h\": 'search' is below 'ir' in src/stages.txt",
        )

    def test_include_of_a_later_library(self) -> None:
        self.write("src/stages.txt", "support rt\nir irlib\nbackends compiler\nsearch compiler find.h\nvm irlib\n")
        self.write("src/vm/run.cc", '#include "collage/find.h"\n')
        self.finds("src/vm/run.cc:1: error: includes \"collage/find.h\": 'search' is in collage_compiler, which")

    def test_include_in_a_comment_is_none(self) -> None:
        self.append("src/ir/node.h", '// #include "collage/find.h"\n/*\n#include "collage/find.h"\n*/\n')
        self.passes()

    def test_cycle(self) -> None:
        self.append("src/support/text.h", '#include "support/words.h"\n')
        self.write("src/support/words.h", '\n#include "support/text.h"\n')
        self.finds("src/support/words.h:2: error: include cycle: src/support/text.h -> src/support/words.h -> src/sup")

    def test_core_includes_a_toolchain(self) -> None:
        self.append("src/search/find.cc", '#include "backends/shared/engine.h"\n')
        self.finds(
            "src/search/find.cc:4: error: includes \"backends/shared/engine.h\": 'search' may not include a tool"
        )

    def test_toolchain_includes_another(self) -> None:
        self.write("src/backends/emca/toolchain.cc", '#include "backends/acme/acme.h"\n')
        self.write("src/backends/acme/acme.h", "")
        self.finds("src/backends/emca/toolchain.cc:1: error: includes \"backends/acme/acme.h\": 'emca' and 'acme' are")

    def test_public_header_includes_a_private_one(self) -> None:
        self.append("include/collage/find.h", '#include "ir/node.h"\n')
        self.finds(
            'include/collage/find.h:2: error: includes "ir/node.h": a public header includes public headers only'
        )

    def test_public_header_that_is_none(self) -> None:
        self.append("src/search/find.cc", '#include "collage/seek.h"\n')
        self.finds('src/search/find.cc:4: error: includes "collage/seek.h": there is no such public header')

    def test_file_of_no_stage(self) -> None:
        self.write("src/misc/all.cc", "")
        self.write("include/collage/all.h", "")
        self.finds("src/misc/all.cc:1: error: the file belongs to no stage")
        self.finds("include/collage/all.h:1: error: the file belongs to no stage")

    def test_stage_without_a_folder(self) -> None:
        self.append("src/stages.txt", "report compiler\n")
        self.finds("src/stages.txt: error: there is no folder 'src/report'")

    def test_test_that_links_upwards(self) -> None:
        self.write("tests/CMakeLists.txt", "# tests\ncollage_unit_test(ir collage_irlib collage_search)\n")
        self.finds("tests/CMakeLists.txt:2: error: the test of 'ir' links 'collage_search': 'search' is below 'ir'")

    def test_library_that_links_upwards(self) -> None:
        self.write("src/CMakeLists.txt", "\ntarget_link_libraries(collage_rt PRIVATE fmt::fmt collage_irlib)\n")
        self.finds("src/CMakeLists.txt:2: error: 'collage_rt' links 'collage_irlib': collage_rt must not need")

    def test_module_that_includes_more_than_it_links(self) -> None:
        self.write(
            "src/backends/acme/CMakeLists.txt",
            "file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/loader/*.cc)\n"
            "collage_module(collage_rt_acme ${sources})\n"
            "target_link_libraries(collage_rt_acme PRIVATE collage_rt fmt::fmt)\n",
        )
        self.write("src/backends/acme/loader/loader.cc", '#include "support/text.h"\n#include "ir/node.h"\n')
        self.finds(
            "src/backends/acme/loader/loader.cc:2: error: module 'collage_rt_acme' includes \"ir/node.h\" without"
        )

    def compile(self, source: str, stage: str) -> None:
        """Compiles a source to where a build puts the objects of a stage."""
        made = self.root / f"build/src/CMakeFiles/collage_{stage}.dir" / f"{source.removeprefix('src/')}.o"
        made.parent.mkdir(parents=True)
        subprocess.run(["g++", "-c", self.root / source, "-o", made], check=True)

    def test_symbol_that_is_defined_upwards(self) -> None:
        self.write("src/support/words.cc", "int Find();\nint Words() { return Find(); }\n")
        self.write("src/search/words.cc", "int Find() { return 1; }\n")
        self.compile("src/support/words.cc", "support")
        self.compile("src/search/words.cc", "search")
        command = ("tools/check_layers", "--objects", str(self.root / "build"))
        self.assert_finds("src/support/words.cc: error: needs of 'search', which is below 'support'", *command)
        self.assert_finds(": Find()\n", *command)
        self.assert_passes(*command, "--update")
        self.assertIn("\nsymbols src/support/words.cc:search 1\n", (self.root / BASELINE).read_text())
        self.assert_passes(*command)
        self.passes()
        self.assert_passes("tools/check_layers", "--update")
        self.assert_passes(*command)

    def test_object_whose_source_is_gone(self) -> None:
        self.test_symbol_that_is_defined_upwards()
        (self.root / "src/support/words.cc").unlink()
        command = ("tools/check_layers", "--objects", str(self.root / "build"))
        self.assert_finds("'symbols src/support/words.cc:search' is gone", *command)

    def test_objects_of_no_build(self) -> None:
        code, output = self.run_tool("tools/check_layers", "--objects", str(self.root / "src"))
        self.assertEqual(code, 2)
        self.assertIn("there are no object files of the stages; build first", output)

    def test_name_of_a_toolchain_in_the_core(self) -> None:
        self.append("src/search/find.cc", '// as acme does\nbool kIs = name == "Acme.conv2d";\n')
        self.finds("src/search/find.cc:5: error: names toolchain 'acme', which only src/backends may do")

    def test_role_that_has_the_name_of_a_toolchain(self) -> None:
        self.write("src/backends/native/toolchain.cc", "")
        self.append("src/search/find.cc", "bool is_native();\n")
        self.passes()
        self.append("src/search/find.cc", 'bool kIs = name == "native";\n')
        self.finds("src/search/find.cc:5: error: names toolchain 'native'")

    def test_name_of_an_operator_in_the_core(self) -> None:
        self.write("src/ir/ops/nn.cc", 'OpDef Pad() { op.name = "nn.pad"; }\nOpDef Sum() { return Reduction("sum"); }\n')
        self.append("src/search/find.cc", '// as "nn.pad" does\nExpr pad = MakeCall("nn.pad", {x}, {{"sum", 1}});\n')
        self.write("src/backends/acme/pad.cc", 'bool kIs = name == "nn.pad";\n')
        self.passes()
        self.append("src/search/find.cc", 'bool kIs = name == "sum";\n')
        self.finds("src/search/find.cc:6: error: names operator 'sum': what it must know is a trait in the row (OpDef)")

    def test_list_of_operators_in_the_core(self) -> None:
        self.write("src/ir/ops/nn.cc", 'OpDef Pad() { op.name = "nn.pad"; }\nOpDef Sum() { return Reduction("sum"); }\n')
        self.append("src/search/find.cc", 'std::set<std::string> kNames{"sum",\n"nn.conv1d"};\n')
        self.finds("src/search/find.cc:4: error: names operator 'sum'")
        self.assert_passes("tools/check_layers", "--update")
        self.assertIn("\noperator src/search/find.cc 2\n", (self.root / BASELINE).read_text())

    def test_long_file(self) -> None:
        self.append("src/search/find.cc", "\n" * 497)
        self.passes()
        self.append("src/search/find.cc", "\n")
        self.finds("src/search/find.cc:501: error: the file has 501 lines, more than 500")

    def test_long_header(self) -> None:
        self.append("src/ir/node.h", "\n" * 200)
        self.finds("src/ir/node.h:201: error: the header has 201 lines, more than 200")

    def test_long_function(self) -> None:
        self.append("src/search/find.cc", "\nint\nLong(int x) {\n" + "\n" * 48 + "}\n")
        self.passes()
        self.append("src/search/find.cc", "int Longer(int x) {\n" + "\n" * 49 + "}\n")
        self.finds("src/search/find.cc:56: error: function 'Longer' has 51 lines, more than 50")

    def test_long_python_function(self) -> None:
        self.write("tools/long.py", 'def long():\n    """Says.\n\n    More."""\n' + "    pass\n" * 50)
        self.finds("tools/long.py:1: error: function 'long' has 51 lines, more than 50")

    def test_full_folder(self) -> None:
        for i in range(29):
            self.write(f"src/search/file_{i}.cc", "")
        self.passes()
        self.write("src/search/file_29.cc", "")
        self.finds("src/search: error: the folder has 31 files, more than 30")

    def test_braces_that_do_not_balance(self) -> None:
        self.append("src/search/find.cc", "}\n")
        self.finds(
            "src/search/find.cc: error: cannot find the functions: line 4: a closing brace without an opening one"
        )

    def test_known_violation_passes_until_it_grows(self) -> None:
        self.append("src/search/find.cc", "\n" * 500)
        self.assert_passes("tools/check_layers", "--update")
        self.assertIn("\nfile src/search/find.cc 503\n", (self.root / BASELINE).read_text())
        self.passes()
        self.append("src/search/find.cc", "\n")
        self.finds(
            "src/search/find.cc:504: error: the file has 504 lines, more than 500 (tools/check_layers.baseline allows 503)"
        )

    def test_known_violation_that_shrank_must_be_taken_down(self) -> None:
        self.write(BASELINE, "file src/search/find.cc 600\n")
        self.append("src/search/find.cc", "\n" * 500)
        self.finds(
            f"{BASELINE}: error: 'file src/search/find.cc' is down from 600 to 503: run tools/check_layers --update"
        )

    def test_known_violation_that_is_gone_must_be_taken_out(self) -> None:
        self.write(BASELINE, "# known\nfile src/search/find.cc 600\n")
        self.finds(f"{BASELINE}: error: 'file src/search/find.cc' is gone: run tools/check_layers --update")
        self.assert_passes("tools/check_layers", "--update")
        self.passes()

    def test_malformed_baseline(self) -> None:
        self.write(BASELINE, "# known\nfile src/search/find.cc\n")
        code, output = self.run_tool("tools/check_layers")
        self.assertEqual(code, 2)
        self.assertIn(
            "check_layers.baseline:2: error: expected 'KIND PLACE FIGURE', got 'file src/search/find.cc'", output
        )


class Functions(unittest.TestCase):
    def test_definitions_of_every_form(self) -> None:
        text = r"""
#define OPEN {
namespace a::b {
enum class Kind : int { kOne, kTwo };
const std::map<int, int> kTable = {{1, 2}, {3, 4}};
std::vector<int> other{1, 2};
template <typename T, int N = (1 > 0 ? 2 : 3)>
struct alignas(64) Box : Base<T> {
 public:
  explicit Box(int x) : x_{x}, y_(1) { Set({1, 2}); }
  ~Box() { const char* text = "}{"; char quote = '{'; }
  bool operator()(int x = {}) const { return x == 1'000 && R"x(}}")x"[0]; }
  Box& operator=(const Box&) = default;
  int declared(int x);
  int x_ = 0;
};
template <>
int Box<int, 2>::declared(int x) {
  auto twice = [](int y) { return 2 * y; };
  return twice(x);
}
[[nodiscard]] auto Trailing(std::span<const int> x) -> std::vector<int> { return {}; }
extern "C" {
void plain(void) {}
}
TEST_F(BoxTest, Holds) {
}
}  // namespace a::b
"""
        names = ["Box", "~Box", "operator()", "Box<int,2>::declared", "Trailing", "plain", "BoxTest.Holds"]
        found = cpp_functions(SourceText(text))
        self.assertEqual([function.name for function in found], names)
        self.assertEqual([(function.line, function.length) for function in found[3:5]], [(18, 4), (22, 1)])


if __name__ == "__main__":
    unittest.main()
