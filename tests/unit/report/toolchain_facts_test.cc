#include "report/toolchain_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/json.h"
#include "report/text.h"

namespace collage {
namespace {

ToolchainReport MakeToolchain(const std::string& name, const std::string& reason) {
  ToolchainReport toolchain;
  toolchain.name = name;
  toolchain.available = reason.empty();
  toolchain.version = reason.empty() ? "3.1" : "";
  toolchain.reason = reason;
  toolchain.hint = reason.empty() ? "" : "install it";
  toolchain.license = "Apache-2.0";
  return toolchain;
}

std::vector<ToolchainReport> Toolchains() {
  std::vector<ToolchainReport> toolchains{MakeToolchain("acme", ""), MakeToolchain("other", ""),
                                          MakeToolchain("vendor", "no library")};
  toolchains[0].options = {{"level", "an integer", "0", "how hard it tries"}};
  toolchains[0].incompatible = {{"other", "both have a pool"}};
  toolchains[1].incompatible = {{"acme", "both have a pool"}};
  toolchains[1].is_default = false;
  toolchains[1].hooks = {"RelayToRuntime"};
  return toolchains;
}

TEST(ToolchainsFactsTest, Text) {
  EXPECT_EQ(RenderText(ToolchainsFacts(Toolchains(), {{"cuda", "", "no driver"}, {"ext_dev", "a chip", ""}})),
            R"(  toolchain  available   version  why not
  acme       yes             3.1
  other      when named      3.1
  vendor     no                   no library (install it)

  device   available  what    why not
  cuda     no                 no driver
  ext_dev  yes        a chip
`collage targets NAME` has the licence, hooks and options of one.
)");
}

TEST(ToolchainsFactsTest, WholeText) {
  EXPECT_EQ(RenderText(ToolchainsFacts(Toolchains(), {{"cuda", "", "no driver"}, {"ext_dev", "a chip", ""}},
                                       /*is_whole=*/true)),
            R"(  toolchain  available   version  licence     hooks           why not
  acme       yes             3.1  Apache-2.0
  other      when named      3.1  Apache-2.0  RelayToRuntime
  vendor     no                   Apache-2.0                  no library (install it)
never together: acme and other: both have a pool
  device   available  what    why not
  cuda     no                 no driver
  ext_dev  yes        a chip

  option       default  what it means
  acme -level        0  how hard it tries
)");
}

TEST(ToolchainsFactsTest, Json) {
  EXPECT_EQ(RenderJson(ToolchainsFacts({Toolchains()[0]}, {{"cuda", "", "no driver"}})), R"({
  "schema": 1,
  "toolchains": [
    {
      "name": "acme",
      "available": true,
      "version": "3.1",
      "default": true,
      "reason": "",
      "hint": "",
      "license": "Apache-2.0",
      "hooks": [],
      "options": [
        {
          "name": "level",
          "type": "an integer",
          "default": "0",
          "meaning": "how hard it tries"
        }
      ],
      "incompatible": [
        {
          "toolchain": "other",
          "reason": "both have a pool"
        }
      ]
    }
  ],
  "devices": [
    {
      "name": "cuda",
      "available": false,
      "description": "",
      "reason": "no driver"
    }
  ]
})");
}

SupportReport MakeSupport() {
  SupportReport report;
  report.num_calls = 5;
  report.num_outside = 2;
  ToolchainSupport& support = report.toolchains.emplace_back();
  support.toolchain = MakeToolchain("acme", "");
  support.num_taken = 3;
  support.operators = {{"nn.relu", 2, 1, 1, {{"acme.relu", 1}, {"acme.conv_relu", 1}}, {}},
                       {"nn.softmax",
                        3,
                        1,
                        0,
                        {{"acme.softmax", 1}},
                        {{"computes float32, got float64", "acme.softmax", 2, "m.relay:4:8"}}}};
  return report;
}

TEST(SupportFactsTest, Text) {
  EXPECT_EQ(RenderText(SupportFacts(MakeSupport(), "m.relay")), R"(acme takes 3 of 5 calls
  operator    calls  alone  in patterns  taken by, or why not
  nn.relu         2      1            1  acme.conv_relu 1, acme.relu 1
  nn.softmax      3      1            0  acme.softmax 1
                                         not 2: computes float32, got float64 (acme.softmax), at m.relay:4:8

2 more calls are in no region of dataflow of static tensors: reference evaluation
)");
}

TEST(SupportFactsTest, Json) {
  const std::string json = RenderJson(SupportFacts(MakeSupport(), "m.relay"));
  EXPECT_THAT(json, testing::StartsWith(R"({
  "schema": 1,
  "model": "m.relay",
  "calls": 5,
  "toolchains": [
    {
      "name": "acme",)"));
  EXPECT_THAT(json, testing::EndsWith(R"(
        {
          "name": "nn.softmax",
          "calls": 3,
          "alone": 1,
          "in_patterns": 0,
          "patterns": {
            "acme.softmax": 1
          },
          "refused": [
            {
              "calls": 2,
              "reason": "computes float32, got float64",
              "pattern": "acme.softmax",
              "example": "m.relay:4:8"
            }
          ]
        }
      ]
    }
  ],
  "outside": 2
})"));
}

TEST(OperatorTablesFactsTest, MarkdownMergesTypes) {
  const std::vector<OperatorTable> tables{{MakeToolchain("acme", ""),
                                           {{"abs", "float32", "plain", 2, 1e-7, {}},
                                            {"abs", "int8", "plain", 1, 0.5, {"Tensor[(2), int8]: wrong result 0"}}},
                                           4},
                                          {MakeToolchain("vendor", "no library"), {}, 0}};
  EXPECT_EQ(RenderText(OperatorTablesFacts(tables), {.markdown = true}), R"(## acme 3.1

| operator | layouts | dtypes | calls checked | max error |
| --- | --- | --- | --- | --- |
| `abs` | plain | float32 int8 FAILED | 3 | 5.0e-01 |

2 rows; its compiler declined 4 more calls that its predicates take

vendor: not available here: no library (install it)

FAILED acme abs int8 plain Tensor[(2), int8]: wrong result 0
)");
  EXPECT_THAT(RenderJson(OperatorTablesFacts(tables)), testing::HasSubstr(R"("dtype": "int8",
          "layouts": "plain",
          "calls": 1,
          "max_error": 0.5,
          "failures": [
            "Tensor[(2), int8]: wrong result 0"
          ]
        }
      ],
      "declined": 4)"));
}

}  // namespace
}  // namespace collage
