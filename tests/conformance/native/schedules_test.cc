// native_schedules_test.cc: schedules of native kernels: their text, that they do what they say, and that every one
// that is listed computes the right thing, wherever a search may get.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "backends/native/description/schedule.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using native::Schedule;
using V = std::vector<int64_t>;

const Toolchain& Native() { return BuiltinToolchain("native"); }

// ---- text ----

TEST(NativeScheduleTest, TextIsReadBack) {
  EXPECT_EQ(Schedule().ToString(), "");
  EXPECT_EQ(Schedule::Parse(""), Schedule());
  const Schedule some{.algorithm = Schedule::kWinograd4, .rows = 6, .block = 48, .parallel = Schedule::kNo};
  EXPECT_EQ(some.ToString(), "algorithm=winograd4,rows=6,block=48,parallel=no");
  EXPECT_EQ(Schedule::Parse("block=48,parallel=no,rows=6,algorithm=winograd4"), some);
  std::mt19937 random(5);
  const auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  for (int i = 0; i < 200; ++i) {
    const Schedule any{draw(4),    4 * (draw(1) << draw(2)),
                       draw(256),  draw(8),
                       draw(16),   draw(1000),
                       draw(1024), draw(2),
                       draw(2),    draw(8),
                       draw(8)};
    EXPECT_EQ(Schedule::Parse(any.ToString()), any) << any.ToString();
  }
}

TEST(NativeScheduleTest, WhatIsWrongIsNamed) {
  const auto message = [](const char* text) {
    try {
      static_cast<void>(Schedule::Parse(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput);
      return error.message() + (error.hint().empty() ? "" : "; " + error.hint());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("rowz=3"),
            "a schedule has no 'rowz'; there are: algorithm, lanes, rows, width, unroll, block, parts, parallel, pack, "
            "warps, stages");
  EXPECT_EQ(message("rows"), "'rows' is no part of a schedule; write NAME=VALUE,NAME=VALUE");
  EXPECT_EQ(message("rows=6,"), "',' is no part of a schedule; write NAME=VALUE,NAME=VALUE");
  EXPECT_EQ(message("rows=0"), "'rows' of a schedule is from 1 to 256, got '0'");
  EXPECT_EQ(message("rows=6x"), "'rows' of a schedule is from 1 to 256, got '6x'");
  EXPECT_EQ(message("width=9"), "'width' of a schedule is from 1 to 8, got '9'");
  EXPECT_EQ(message("rows=6,rows=6"), "'rows' of a schedule is given twice");
  EXPECT_EQ(message("lanes=6"), "'lanes' of a schedule is one of 4, 8, 16, got '6'");
  EXPECT_EQ(message("algorithm=fft"),
            "'algorithm' of a schedule is one of direct, winograd2, winograd4, strassen, warpgroups, got 'fft'");
}

TEST(NativeScheduleTest, WhatIsSaidGoesFirst) {
  const Schedule all = Schedule::Parse("rows=4,width=3");
  EXPECT_EQ(all.With(Schedule::Parse("rows=6,block=2")).ToString(), "rows=6,width=3,block=2");
}

// ---- kernels ----

/// Something that is compiled.
struct Case {
  std::string name;
  Function function;
  Options options = {};
};

PartitionRequest RequestOf(const Case& one, const std::string& schedule = "") {
  InferType(one.function);
  BoundaryLayouts layouts = one.options.layouts;
  if (layouts == BoundaryLayouts{}) layouts = PlainLayouts(one.function->params().size(), 1);
  return {one.function, layouts, one.options.num_threads, schedule};
}

std::string LoopsOf(const Toolchain& toolchain, const PartitionRequest& request) {
  const Result<LoweredPartition> lowered = toolchain.RelayToTIR(request);
  EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
  return lowered.ok() ? lowered->mlir : "";
}

/// A 0 in the shape of the weight: the data's channels.
Case Convolution(const std::string& name, const Shape& data, Shape weight, Attrs attrs, Options options = {},
                 const char* op = "nn.conv2d") {
  const Var x = Input("x", data);
  for (int64_t& channels : weight) {
    if (channels == 0) channels = data[1];
  }
  const Expr result = MakeCall(op, {x, RandomConstant(weight, 3, -0.2, 0.2)}, std::move(attrs));
  return {name, MakeFunction({x}, MakeCall("nn.relu", {result})), std::move(options)};
}

Case Product(int64_t rows, int64_t depth, int64_t columns, int threads) {
  const Var x = Input("x", {rows, depth});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({columns, depth}, 4, -0.3, 0.3)});
  return {fmt::format("dense {}x{}x{}", rows, depth, columns),
          MakeFunction({x}, Plus(dense, RandomConstant({columns}, 5))),
          {.num_threads = threads}};
}

/// Products and convolutions of every form, sizes drawn at random: odd ones, vectors that are not full, single rows.
std::vector<Case> Cases(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const Layout last = Layout::kChannelsLast;
  const Options both{.layouts = {{last}, {last}}, .num_threads = 2};
  std::vector<Case> cases;
  cases.push_back(Product(draw(1, 70), draw(1, 90), draw(1, 90), 1));
  cases.push_back(Product(1, 8 * draw(1, 12), draw(20, 90), 2));
  const int64_t size = draw(5, 15);
  cases.push_back(
      Convolution("3x3", {1, draw(3, 40), size, draw(5, 15)}, {draw(3, 70), 0, 3, 3}, {{"padding", V{1, 1}}}, both));
  cases.push_back(Convolution("strided", {2, draw(3, 20), size, 9}, {draw(3, 50), 0, 3, 2}, {{"strides", V{2, 1}}}));
  cases.push_back(Convolution("1x1", {1, draw(3, 80), size, size}, {draw(3, 80), 0, 1, 1}, {}, both));
  cases.push_back(Convolution("depthwise", {1, 37, size, 11}, {37, 1, 3, 3}, {{"groups", 37}, {"padding", V{1, 1}}}));
  cases.push_back(Convolution("groups", {1, 48, size, 7}, {80, 24, 3, 3}, {{"groups", 2}}, both));
  cases.push_back(Convolution("transposed", {1, draw(3, 20), size, 6}, {0, draw(3, 40), 3, 3}, {{"strides", V{2, 2}}},
                              {}, "nn.conv2d_transpose"));
  const int64_t m = draw(1, 40), k = draw(1, 40), n = draw(1, 60);
  const Var a = Input("a", {3, m, k}), b = Input("b", {3, k, n});
  cases.push_back({"batches", MakeFunction({a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", false}}))});
  const Var c = Input("c", {m, k}, kFloat64), d = Input("d", {k, n}, kFloat64);
  cases.push_back({"doubles", MakeFunction({c, d}, MakeCall("nn.matmul", {c, d}))});
  const Var x = Input("x", {m, k, n});
  cases.push_back({"sums", MakeFunction({x}, MakeCall("sum", {x}, {{"axis", V{2}}})), {.num_threads = 2}});
  return cases;
}

/// The schedules one step from `from`.
std::vector<std::string> Listed(const Case& one, const std::string& from) {
  const Result<std::vector<std::string>> listed = Native().Schedules(RequestOf(one, from));
  EXPECT_TRUE(listed.ok()) << listed.reason().text;
  return listed.ok() ? *listed : std::vector<std::string>{};
}

TEST(NativeScheduleTest, EveryScheduleThatIsListedIsRight) {
  std::set<std::string> names;  // of the numbers that were tried
  for (const Case& one : Cases(1)) {
    std::string from;
    for (int step = 0; step < 2; ++step) {
      SCOPED_TRACE(fmt::format("{}, from '{}'", one.name, from));
      const std::vector<std::string> listed = Listed(one, from);
      const std::string loops = LoopsOf(Native(), RequestOf(one, from));
      for (const std::string& schedule : listed) {
        SCOPED_TRACE(schedule);
        EXPECT_NE(schedule, from);
        EXPECT_EQ(Schedule::Parse(schedule).ToString(), schedule);
        EXPECT_NE(LoopsOf(Native(), RequestOf(one, schedule)), loops) << "measured in vain";
        Options options = one.options;
        options.schedule = schedule;
        ExpectAgrees(Native(), one.function, options);
        for (size_t at = 0; at < schedule.size(); at = std::min(schedule.find(',', at), schedule.size() - 1) + 1) {
          names.insert(schedule.substr(at, schedule.find('=', at) - at));
        }
      }
      if (!listed.empty()) from = listed[1 % listed.size()];
    }
  }
  for (const char* name : {"algorithm", "rows", "width", "unroll", "block", "parallel", "pack"}) {
    EXPECT_TRUE(names.contains(name)) << "no schedule said '" << name << "'";
  }
}

TEST(NativeScheduleTest, AnyScheduleIsRight) {
  std::mt19937 random(9);
  const auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
  for (const Case& one : Cases(3)) {
    for (int i = 0; i < 4; ++i) {
      const Schedule any{draw(4), 4 * (draw(1) << draw(2)), draw(9), draw(4), draw(5), draw(30), draw(3), draw(2),
                         draw(2)};
      SCOPED_TRACE(one.name + ": " + any.ToString());
      Options options = one.options;
      options.schedule = any.ToString();
      ExpectAgrees(Native(), one.function, options);
    }
  }
}

TEST(NativeScheduleTest, TargetsMayForceOne) {
  const Case one = Convolution("3x3", {1, 32, 12, 12}, {64, 0, 3, 3}, {{"padding", V{1, 1}}});
  const auto with = [](const char* schedule) {
    return Native().WithOptions({{"accuracy", "standard"}, {"winograd_tile", 0}, {"schedule", schedule}});
  };
  const std::string direct = LoopsOf(*with("algorithm=direct"), RequestOf(one));
  EXPECT_EQ(direct, LoopsOf(Native(), RequestOf(one, "algorithm=direct")));
  EXPECT_NE(direct, LoopsOf(*with("algorithm=winograd4"), RequestOf(one)));
  EXPECT_EQ(direct, LoopsOf(*with("algorithm=winograd4"), RequestOf(one, "algorithm=direct"))) << "the request's first";
  EXPECT_EQ(LoopsOf(*with(""), RequestOf(one)), LoopsOf(Native(), RequestOf(one)));
  EXPECT_EQ(LoopsOf(*with("pack=yes"), RequestOf(one)), LoopsOf(Native(), RequestOf(one))) << "nothing to pack";
  EXPECT_NE(with("rows=3")->Probe().version, Native().Probe().version) << "its times are others";
  EXPECT_THROW(with("rows=x"), Error);
  const Result<LoweredPartition> wrong = Native().RelayToTIR(RequestOf(one, "rows=x"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.reason().text, "'rows' of a schedule is from 1 to 256, got 'x'");
}

TEST(NativeScheduleTest, WhatIsExactHasNoOtherAlgorithms) {
  const auto exact = Native().WithOptions({{"accuracy", "exact"}, {"winograd_tile", 0}});
  const Case one = Convolution("3x3", {1, 64, 28, 28}, {64, 0, 3, 3}, {{"padding", V{1, 1}}});
  const Result<std::vector<std::string>> listed = exact->Schedules(RequestOf(one));
  ASSERT_TRUE(listed.ok()) << listed.reason().text;
  EXPECT_FALSE(listed->empty());
  for (const std::string& schedule : *listed) EXPECT_EQ(Schedule::Parse(schedule).algorithm, 0) << schedule;
  EXPECT_EQ(LoopsOf(*exact, RequestOf(one, "algorithm=winograd4")), LoopsOf(*exact, RequestOf(one)));
}

}  // namespace
}  // namespace collage
