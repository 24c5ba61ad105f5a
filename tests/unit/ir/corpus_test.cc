// Reads every text of tests/corpus/relay, writes it and reads it again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "test_paths.h"

namespace collage {
namespace {

std::vector<std::string> Cases(const std::string& name) {
  std::ifstream file(std::filesystem::path(kTestData) / "corpus/relay" / name);
  EXPECT_TRUE(file) << name;
  std::vector<std::string> cases{""};
  for (std::string line; std::getline(file, line);) {
    if (line == "// -----") {
      cases.emplace_back();
    } else {
      cases.back() += line + "\n";
    }
  }
  return cases;
}

/// Zeros for `meta[relay.Constant][i] /*Tensor[(shape), float32]*/`, which listings show without values.
ParseOptions WithListedConstants(const std::string& text) {
  ParseOptions options;
  if (text.find("#[metadata]") != std::string::npos) return options;
  const std::string reference = "meta[relay.Constant][";
  const std::string type = "/*Tensor[(";
  for (size_t at = 0; (at = text.find(reference, at)) != std::string::npos;) {
    at += reference.size();
    const size_t index = std::stoul(text.substr(at));
    const size_t sizes_at = text.find(type, at);
    if (sizes_at == std::string::npos || sizes_at > text.find('\n', at)) continue;
    Shape shape;
    std::istringstream sizes(text.substr(sizes_at + type.size(), text.find(')', sizes_at) - sizes_at - type.size()));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    options.constants.resize(std::max(options.constants.size(), index + 1));
    options.constants[index] = MakeConstant(Tensor::Zeros(shape, kFloat32));
  }
  return options;
}

void ExpectSame(const IRModule& a, const IRModule& b, const std::string& text) {
  ASSERT_EQ(a.functions().size(), b.functions().size());
  for (const auto& [name, function] : a.functions()) {
    EXPECT_TRUE(StructuralEqual(function, b.Lookup(name))) << name << " in\n" << text;
    EXPECT_EQ(ToString(function->checked_type()), ToString(b.Lookup(name)->checked_type())) << text;
  }
  EXPECT_EQ(a.types().size(), b.types().size());
  EXPECT_EQ(a.attrs, b.attrs);
}

class CorpusTest : public testing::TestWithParam<const char*> {};

TEST_P(CorpusTest, PrintsAndParsesAsItself) {
  int number = 0;
  for (const std::string& text : Cases(GetParam())) {
    const std::string name = std::string(GetParam()) + "#" + std::to_string(number++);
    SCOPED_TRACE(name);
    const ParseOptions options = WithListedConstants(text);
    try {
      if (text.find("def @") == std::string::npos) {
        const Expr expr = ParseExpr(text, name, options);
        const std::string printed = PrintExpr(expr);
        const Expr again = ParseExpr(printed, "printed", {.constants = WithListedConstants(printed).constants});
        EXPECT_TRUE(StructuralEqual(expr, again)) << printed;
        EXPECT_EQ(PrintExpr(again), printed);
        continue;
      }
      const IRModule module = ParseModule(text, name, options);
      for (const bool types : {false, true}) {
        const std::string printed = PrintModule(module, {.types = types, .spans = types});
        const IRModule again = ParseModule(printed, "printed");
        ExpectSame(module, again, printed);
        if (!types) {
          EXPECT_EQ(PrintModule(again), printed);
        }
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.Format();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Relay, CorpusTest,
                         testing::Values("types.relay", "expressions.relay", "control.relay", "functions.relay",
                                         "metadata.relay", "rfc_0_7.relay", "rfc_0_81.relay"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace collage
