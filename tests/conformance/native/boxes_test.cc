// native_boxes_test.cc: native non-maximum suppression, samples and largest pixels of regions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/conformance.h"

namespace collage {
namespace {

using conformance::Input;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

Expr Suppression(const Expr& boxes, const Expr& scores, int64_t most, double overlap, double score) {
  return MakeCall("vision.all_class_non_max_suppression", {boxes, scores, MakeScalar(static_cast<double>(most), kInt64),
                                                           MakeScalar(overlap, kFloat32), MakeScalar(score, kFloat32)});
}

TEST(NativeBoxesTest, BoxesThatOverlapBetterOnesAreLeftOut) {
  // Corners in any order: random ones are low or high first.
  for (const int64_t boxes : {1, 2, 15, 16, 17, 100}) {
    const Var x = Input("boxes", {2, boxes, 4}), scores = Input("scores", {2, 3, boxes});
    for (const int64_t most : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{1} << 40}) {
      for (const double overlap : {0.0, 0.1, 0.5}) {
        SCOPED_TRACE(fmt::format("{} boxes, at most {}, overlapping by {}", boxes, most, overlap));
        const Expr kept = Suppression(x, scores, most, overlap, 0.2);
        conformance::ExpectAgrees(Native(), MakeFunction({x, scores}, kept), {.low = 0, .high = 1});
      }
    }
  }
}

TEST(NativeBoxesTest, OfEqualScoresTheFirstBoxIsKept) {
  const Var x = Input("boxes", {1, 40, 4}), scores = Input("scores", {1, 2, 40}, kInt32);
  const Expr few = MakeCall("cast", {scores}, {{"dtype", kFloat32}});
  const Expr kept = Suppression(x, few, 10, 0.3, 0.5);
  conformance::ExpectAgrees(Native(), MakeFunction({x, scores}, kept), {.low = 0, .high = 2});
  const Expr rows = MakeCall("add", {MakeTupleGetItem(kept, 0), MakeScalar(7, kInt64)});
  conformance::ExpectAgrees(Native(), MakeFunction({x, scores}, rows), {.low = 0, .high = 2});
}

TEST(NativeBoxesTest, NothingOverTheThresholdAndNoBoxes) {
  for (const int64_t boxes : {0, 9}) {
    const Var x = Input("boxes", {1, boxes, 4}, kFloat64), scores = Input("scores", {1, 2, boxes}, kFloat64);
    conformance::ExpectAgrees(Native(), MakeFunction({x, scores}, Suppression(x, scores, 3, 0.5, 2)),
                              {.low = 0, .high = 1});
  }
}

/// Regions of `x` with corners that are parameters, by a call of `op`, in both layouts and with an epilogue; from
/// outside of the data to outside of it, some of no size.
void ExpectRegionsAgree(const char* op, const Attrs& attrs, DataType dtype = kFloat32) {
  const Var x = Input("x", {3, 5, 14, 17}, dtype), corners = Input("corners", {7, 4});
  const Tensor batches = conformance::RandomTensor({7, 1}, kInt32, 0, 2, 5);
  const Expr regions =
      MakeCall("concatenate", {MakeTuple({MakeConstant(batches.Cast(kFloat32)), corners})}, {{"axis", 1}});
  const Function function = MakeFunction({x, corners}, MakeCall(op, {x, regions}, attrs));
  const Layout last = Layout::kChannelsLast;
  const double tolerance = dtype == kFloat16 ? 1e-2 : 1e-4;
  conformance::ExpectAgrees(Native(), function, {.tolerance = tolerance, .low = -3, .high = 25});
  conformance::ExpectAgrees(
      Native(), function,
      {.layouts = {{last, Layout::kPlain}, {last}}, .num_threads = 2, .tolerance = tolerance, .low = -3, .high = 25});
  // Computed on the way in and out, and turned.
  const Expr bias = MakeConstant(conformance::RandomTensor({5}, dtype, -3, 3, 6));
  const Expr inside = MakeCall(op, {MakeCall("abs", {MakeCall("nn.bias_add", {x, bias})}), regions}, attrs);
  const Expr both =
      MakeCall("add", {inside, MakeCall("reshape", {bias}, {{"newshape", std::vector<int64_t>{5, 1, 1}}})});
  const Expr turned = MakeCall("transpose", {both}, {{"axes", std::vector<int64_t>{0, 2, 3, 1}}});
  conformance::ExpectAgrees(Native(), MakeFunction({x, corners}, turned),
                            {.tolerance = tolerance, .low = -3, .high = 25});
}

TEST(NativeBoxesTest, RegionsAreSampled) {
  for (const char* mode : {"avg", "max"}) {
    for (const bool aligned : {false, true}) {
      // As many as a part has pixels: -1 and 0.
      for (const int samples : {1, 2, 3, 7, 0, -1}) {
        SCOPED_TRACE(fmt::format("{} of {} samples{}", mode, samples, aligned ? ", aligned" : ""));
        ExpectRegionsAgree("vision.roi_align", {{"pooled_size", std::vector<int64_t>{4, 3}},
                                                {"spatial_scale", 0.7},
                                                {"sample_ratio", samples},
                                                {"mode", mode},
                                                {"aligned", aligned}});
      }
    }
  }
}

TEST(NativeBoxesTest, LargestPixelsOfRegions) {
  for (const DataType dtype : {kFloat32, kFloat64, kFloat16, kInt8, kInt64}) {
    for (const double scale : {0.7, 0.2}) {
      SCOPED_TRACE(fmt::format("{} by {}", dtype.ToString(), scale));
      ExpectRegionsAgree("vision.roi_pool", {{"pooled_size", std::vector<int64_t>{4, 3}}, {"spatial_scale", scale}},
                         dtype);
    }
  }
}

}  // namespace
}  // namespace collage
