// native_boxes_test.cc: native non-maximum suppression, and samples of regions.
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

TEST(NativeBoxesTest, RegionsAreSampled) {
  const Var x = Input("x", {3, 5, 14, 17}), corners = Input("corners", {7, 4});
  // Of batches 0 to 2; from outside of the data to outside of it, some of no size.
  const Tensor batches = conformance::RandomTensor({7, 1}, kInt32, 0, 2, 5);
  const Expr regions =
      MakeCall("concatenate", {MakeTuple({MakeConstant(batches.Cast(kFloat32)), corners})}, {{"axis", 1}});
  for (const char* mode : {"avg", "max"}) {
    for (const bool aligned : {false, true}) {
      for (const int samples : {1, 2, 3}) {
        SCOPED_TRACE(fmt::format("{} of {} samples{}", mode, samples, aligned ? ", aligned" : ""));
        const Expr sampled = MakeCall("vision.roi_align", {x, regions},
                                      {{"pooled_size", std::vector<int64_t>{4, 3}},
                                       {"spatial_scale", 0.7},
                                       {"sample_ratio", samples},
                                       {"mode", mode},
                                       {"aligned", aligned}});
        const Function function = MakeFunction({x, corners}, sampled);
        conformance::ExpectAgrees(Native(), function, {.low = -3, .high = 25});
        const Layout last = Layout::kChannelsLast;
        conformance::ExpectAgrees(
            Native(), function, {.layouts = {{last, Layout::kPlain}, {last}}, .num_threads = 2, .low = -3, .high = 25});
      }
    }
  }
}

}  // namespace
}  // namespace collage
