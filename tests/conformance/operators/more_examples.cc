// more_examples.cc: see more_examples.h.
#include "conformance/operators/more_examples.h"

#include <map>
#include <numeric>

#include "collage/ir/infer_type.h"
#include "collage/ir/type.h"

namespace collage::conformance {
namespace {

using V = std::vector<int64_t>;

Type Floats(const Shape& shape) { return TensorType(shape, kFloat32); }
Type Of(const Shape& shape, DataType dtype) { return TensorType(shape, dtype); }

/// Regions [batch, x1, y1, x2, y2] of two images of 12 by 16 pixels at half scale: inside, across an edge, small.
Constant Regions() {
  const std::vector<float> values{0, 2, 3, 14, 19, 1, 0, 0, 30, 22, 1, 9.5F, 8.25F, 10.5F, 9.75F, 0, 20, 10, 40, 30};
  const Tensor rows = Tensor::Empty({4, 5}, kFloat32);
  std::copy(values.begin(), values.end(), rows.data<float>());
  return MakeConstant(rows);
}

Function Region(const std::string& op, Attrs attrs) {
  attrs.Set("pooled_size", V{3, 4});
  attrs.Set("spatial_scale", 0.5);
  const Var data = Input("data", {2, 3, 12, 16});
  return MakeFunction({data}, MakeCall(op, {data, Regions()}, attrs));
}

Function BestBoxes(int64_t most, double overlap, double score) {
  const Var boxes = Input("boxes", {2, 9, 4}), scores = Input("scores", {2, 3, 9});
  const auto constant = [](double value, DataType dtype) { return MakeScalar(value, dtype); };
  return MakeFunction({boxes, scores}, MakeCall("vision.all_class_non_max_suppression",
                                                {boxes, scores, constant(static_cast<double>(most), kInt64),
                                                 constant(overlap, kFloat32), constant(score, kFloat32)}));
}

/// Whole numbers as floats: quotients that are whole as well must not become a little less.
Function OfWholeNumbers(const std::string& op, bool constant_divisor) {
  const Var x = Input("x", {19, 49}, kInt32), y = Input("y", {49}, kInt32);
  const auto floats = [](const Expr& e) { return MakeCall("cast", {e}, {{"dtype", "float32"}}); };
  if (!constant_divisor) return MakeFunction({x, y}, MakeCall(op, {floats(x), floats(y)}));
  const Tensor divisors = Tensor::Empty({49}, kFloat32);
  std::iota(divisors.data<float>(), divisors.data<float>() + 49, 1.0F);
  return MakeFunction({x}, MakeCall(op, {floats(x), MakeConstant(divisors)}));
}

using Table = std::map<std::string, std::vector<OpExample>>;

const Table& FirstExamples() {
  static const Table examples{
      {"argmax",
       {{{Floats({3, 5, 7})}, {}},
        {{Floats({3, 5, 7})}, {{"axis", V{0, 2}}, {"keepdims", true}}},
        {{Floats({3, 5, 7})}, {{"axis", V{1}}, {"exclude", true}}},
        {{Of({3, 5, 7}, kInt32)}, {{"axis", V{2}}, {"select_last_index", true}}}}},
      {"argmin", {{{Floats({3, 5, 7})}, {}}, {{Of({4, 9}, kInt32)}, {{"axis", V{1}}, {"select_last_index", true}}}}},
      {"cast",
       {{{Floats({3, 5})}, {{"dtype", "float16"}}},
        {{Of({3, 5}, kInt32)}, {{"dtype", "float32"}}, -9, 9},
        {{Of({3, 5}, kFloat16)}, {{"dtype", "bfloat16"}}}}},
      {"copy", {{{Floats({3, 5})}, {}}, {{Of({3, 5}, kInt64)}, {}, -9, 9}}},
      {"cumsum", {{{Of({3, 5}, kInt32)}, {{"axis", 1}, {"dtype", "int64"}}, -9, 9}}},
      {"einsum",
       {{{TupleType({Floats({4, 4})})}, {{"equation", "ii->i"}}},
        {{TupleType({Floats({2, 3, 5}), Floats({5, 7})})}, {{"equation", "...ij, ...jk -> ...ik"}}},
        {{TupleType({Floats({3, 5}), Floats({5, 7})})}, {{"equation", "ij,jk"}}},
        {{TupleType({Floats({2}), Floats({3}), Floats({4})})}, {{"equation", "a,b,c->cab"}}},
        {{TupleType({Floats({2, 3, 4}), Floats({2, 3, 4})})}, {{"equation", "bij,bij->b"}}}}},
      {"full", {{{Of({}, kInt32)}, {{"shape", V{3, 7}}, {"dtype", "float32"}}, -9, 9}}},
      {"image.grid_sample",
       {{{Floats({2, 3, 5, 6}), Floats({2, 2, 4, 7})}, {{"method", "nearest"}, {"align_corners", false}}, -1.2, 1.2},
        {{Floats({2, 3, 5, 6}), Floats({2, 2, 4, 7})}, {{"method", "bicubic"}, {"padding_mode", "border"}}, -1.2, 1.2},
        {{Floats({2, 3, 5, 6}), Floats({2, 2, 4, 7})},
         {{"padding_mode", "reflection"}, {"align_corners", false}},
         -1.2,
         1.2}}},
      {"image.resize1d", {{{Floats({1, 4, 9})}, {{"size", V{14}}}}}},
      {"image.resize2d",
       {{{Floats({1, 3, 5, 7})}, {{"size", V{9, 12}}, {"method", "cubic"}, {"cubic_alpha", -0.75}}},
        {{Floats({1, 3, 5, 7})}, {{"size", V{3, 4}}, {"coordinate_transformation_mode", "align_corners"}}},
        {{Floats({1, 3, 5, 7})}, {{"size", V{9, 12}}, {"method", "nearest_neighbor"}}}}},
      {"image.resize3d", {{{Floats({1, 2, 4, 5, 6})}, {{"size", V{8, 7, 9}}}}}},
  };
  return examples;
}

const Table& NeuralExamples() {
  const auto pool = [](size_t rank, const Shape& shape, bool counts) {
    Attrs attrs{{"pool_size", V(rank, 3)}, {"strides", V(rank, 2)}, {"padding", V(rank, 1)}};
    if (counts) attrs.Set("count_include_pad", true);
    return OpExample{{Floats(shape)}, attrs};
  };
  const Shape line{2, 5, 13};
  const Shape volume{1, 4, 7, 8, 9};
  const Shape image{1, 5, 13, 12};
  static const Table examples{
      {"nn.avg_pool1d", {pool(1, line, false), pool(1, line, true)}},
      {"nn.avg_pool2d",
       {pool(2, image, true),
        {{Floats({1, 9, 8, 3})}, {{"pool_size", V{2, 2}}, {"layout", "NHWC"}}},
        {{Floats({1, 3, 9, 8})}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}, {"ceil_mode", true}}}}},
      {"nn.avg_pool3d", {pool(3, volume, false), pool(3, volume, true)}},
      {"nn.conv2d",
       {{{Floats({1, 9, 8, 3}), Floats({3, 3, 3, 6})},
         {{"data_layout", "NHWC"}, {"kernel_layout", "HWIO"}, {"padding", V{1, 1}}}},
        {{Floats({1, 3, 9, 8}), Floats({6, 3, 3, 3})}, {{"out_layout", "NHWC"}}},
        {{Floats({1, 4, 4, 4}), Floats({4, 4, 1, 1})}, {{"data_layout", "NHWC"}}}}},
      {"nn.conv1d_transpose",
       {{{Floats({1, 4, 9}), Floats({4, 6, 3})}, {{"strides", V{2}}, {"output_padding", V{1}}}}}},
      {"nn.conv3d_transpose",
       {{{Floats({1, 4, 5, 6, 7}), Floats({4, 3, 3, 3, 3})}, {{"strides", V{2, 1, 2}}, {"padding", V{1, 1, 1}}}}}},
      {"nn.batch_norm",
       {{{Floats({2, 5, 7, 3}), Floats({5}), Floats({5}), Floats({5}), Floats({5})}, {}, 0.1, 1},
        {{Floats({2, 5}), Floats({5}), Floats({5}), Floats({5}), Floats({5})}, {{"scale", false}}, 0.1, 1}}},
      {"left_shift", {{{Of({2, 9}, kInt32), Of({9}, kInt32)}, {}, 0, 20}}},
      {"right_shift", {{{Of({2, 9}, kInt32), Of({9}, kInt32)}, {}, 0, 20}}},
      {"nn.deformable_conv2d",
       {{{Floats({1, 4, 7, 6}), Floats({1, 18, 7, 6}), Floats({3, 4, 3, 3})}, {{"padding", V{1, 1}}}, -1.5, 1.5},
        {{Floats({2, 4, 7, 6}), Floats({2, 36, 5, 4}), Floats({6, 2, 3, 3}), Floats({2, 18, 5, 4})},
         {{"groups", 2}, {"deformable_groups", 2}},
         -1.5,
         1.5}}},
      {"nn.dropout", {{{Floats({3, 5})}, {}}}},
      {"nn.global_avg_pool1d", {{{Floats(line)}, {}}}},
      {"nn.global_avg_pool3d", {{{Floats(volume)}, {}}}},
      {"nn.global_max_pool1d", {{{Floats(line)}, {}}}},
      {"nn.global_max_pool2d", {{{Floats({2, 5, 7, 3})}, {{"layout", "NHWC"}}}}},
      {"nn.global_max_pool3d", {{{Floats(volume)}, {}}}},
      {"nn.max_pool1d", {pool(1, line, false)}},
      {"nn.max_pool1d_indices", {pool(1, line, false)}},
      {"nn.max_pool2d_indices", {pool(2, image, false), pool(2, {2, 3, 8, 8}, false)}},
      {"nn.max_pool3d", {pool(3, volume, false)}},
      {"nn.max_pool3d_indices", {pool(3, volume, false)}},
  };
  return examples;
}

const Table& LastExamples() {
  static const Table examples{
      {"nn.relu", {{{Of({3, 5}, kInt32)}, {}, -9, 9}}},
      {"ones", {{{}, {{"shape", V{3, 7}}, {"dtype", "int64"}}}}},
      {"reverse_sequence", {{{Floats({5, 3, 2}), Of({3}, kInt64)}, {{"seq_axis", 0}, {"batch_axis", 1}}, 0, 5}}},
      {"scatter_elements",
       {{{Floats({9, 7}), Of({1, 7}, kInt64), Floats({1, 7})}, {}, 0, 8},
        {{Floats({5, 7}), Of({4, 7}, kInt64), Floats({4, 7})}, {{"reduction", "max"}}, 0, 4}}},
      {"scatter_nd", {{{Floats({9, 9, 3}), Of({2, 1}, kInt64), Floats({1, 3})}, {}, 0, 8}}},
      {"sort", {{{Floats({7, 4})}, {{"axis", 0}, {"is_ascend", false}}}, {{Of({3, 9}, kInt32)}, {}, -9, 9}}},
      {"argsort", {{{Of({3, 9}, kInt32)}, {{"is_ascend", false}}, -3, 3}}},
      {"topk",
       {{{Floats({3, 9})}, {{"k", 0}, {"ret_type", "values"}}},
        {{Floats({3, 9})}, {{"k", 2}, {"ret_type", "indices"}, {"dtype", "int64"}}}}},
      {"variance",
       {{{Floats({3, 5, 7})}, {{"axis", V{1}}, {"unbiased", true}}}, {{Floats({3, 5})}, {{"unbiased", true}}}}},
      {"zeros", {{{}, {{"shape", V{}}, {"dtype", "int32"}}}}},
  };
  return examples;
}

}  // namespace

std::vector<OpExample> MoreExamples(const std::string& op) {
  for (const Table* table : {&FirstExamples(), &NeuralExamples(), &LastExamples()}) {
    const auto found = table->find(op);
    if (found != table->end()) return found->second;
  }
  return {};
}

std::vector<std::pair<Function, Options>> MoreFunctions(const std::string& op) {
  std::vector<std::pair<Function, Options>> all;
  if (op == "vision.roi_align") {
    for (bool aligned : {false, true}) {
      for (const char* mode : {"avg", "max"}) {
        for (int64_t ratio : {-1, 2}) {
          all.emplace_back(Region(op, {{"aligned", aligned}, {"mode", mode}, {"sample_ratio", ratio}}), Options{});
        }
      }
    }
  }
  if (op == "mod" || op == "floor_mod" || op == "floor_divide") {
    for (bool constant : {false, true}) all.emplace_back(OfWholeNumbers(op, constant), Options{.low = 1, .high = 200});
  }
  if (op == "vision.roi_pool") all.emplace_back(Region(op, {}), Options{});
  if (op == "vision.all_class_non_max_suppression") {
    all.emplace_back(BestBoxes(3, 0.4, 0.2), Options{.low = 0});
    all.emplace_back(BestBoxes(20, 0.1, 0.6), Options{.low = 0});
  }
  return all;
}

}  // namespace collage::conformance
