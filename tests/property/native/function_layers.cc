// function_layers.cc: random steps with loops of their own: reductions, normalisations, windows, products, layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "property/native/function_generator.h"

namespace collage {

FunctionGenerator::Made FunctionGenerator::Reduction() {
  const Value x = Any();
  static const std::vector<std::string> ops{"sum", "sum", "mean", "max", "min", "prod", "variance"};
  std::string op = random_.Pick(ops);
  Ints axes;
  for (int d = 0; d < x.rank(); ++d) {
    if (OneIn(2)) axes.push_back(OneIn(4) ? d - x.rank() : d);
  }
  Attrs attrs{{"keepdims", OneIn(2)}};
  if (axes.empty()) {
    attrs.Set("axis", AttrValue());
  } else {
    attrs.Set("axis", axes);
    if (OneIn(5)) attrs.Set("exclude", true);
  }
  if (x.dtype.is_bool()) return Call(OneIn(2) ? "all" : "any", {x.expr}, attrs, 0, 1, x.is_exact);
  const auto count = static_cast<double>(std::max<int64_t>(NumElements(x.shape), 1));
  const double large = x.magnitude();
  const bool is_empty = NumElements(x.shape) == 0;
  if (op == "max" || op == "min") {
    return is_empty ? std::nullopt : Call(op, {x.expr}, attrs, x.low, x.high, x.is_exact);
  }
  const bool is_whole = !x.dtype.is_floating();
  if (op == "sum") return Call(op, {x.expr}, attrs, -large * count, large * count, x.is_exact && is_whole);
  if (is_empty) return std::nullopt;
  if (op == "prod") {
    if (count > 9 || large > 3) return std::nullopt;
    return Call(op, {x.expr}, attrs, -std::pow(large, count), std::pow(large, count), x.is_exact && is_whole);
  }
  if (is_whole && (op == "variance" || large * count > 100)) return std::nullopt;
  if (op == "mean") return Call(op, {x.expr}, attrs, x.low, x.high, x.is_exact && is_whole);
  return Call(op, {x.expr}, attrs, 0, 4 * large * large, false);
}

FunctionGenerator::Made FunctionGenerator::ArgReduction() {
  const Value x = Any();
  if (x.dtype.is_bool() || !x.is_exact || NumElements(x.shape) == 0) return std::nullopt;
  Attrs attrs{{"keepdims", OneIn(2)}, {"select_last_index", OneIn(2)}};
  attrs.Set("axis", x.rank() == 0 || OneIn(4) ? AttrValue() : AttrValue(Ints{Axis(x)}));
  return Call(OneIn(2) ? "argmax" : "argmin", {x.expr}, attrs, 0, 8000, true);
}

FunctionGenerator::Made FunctionGenerator::Cumulative() {
  const Value x = Any();
  if (x.rank() == 0 || x.dtype.is_bool()) return std::nullopt;
  const int axis = Axis(x);
  if (OneIn(4) && x.size(axis) <= 9 && x.magnitude() <= 2) {
    const double product = std::pow(std::max(x.magnitude(), 1.0), x.size(axis));
    return Call("cumprod", {x.expr}, {{"axis", axis}, {"exclusive", OneIn(2)}}, -product, product,
                x.is_exact && !x.dtype.is_floating());
  }
  const double large = x.magnitude() * static_cast<double>(x.size(axis));
  return Call("cumsum", {x.expr}, {{"axis", axis}, {"exclusive", OneIn(2)}}, -large, large,
              x.is_exact && !x.dtype.is_floating());
}

FunctionGenerator::Made FunctionGenerator::Softmax() {
  const Value x = AnyFloats();
  if (x.rank() == 0 || x.magnitude() > 50) return std::nullopt;
  const Attrs attrs{{"axis", OneIn(2) ? -1 : Axis(x)}};
  return OneIn(3) ? Call("nn.log_softmax", {x.expr}, attrs, -2 * x.magnitude() - 8, 0, false)
                  : Call("nn.softmax", {x.expr}, attrs, 0, 1, false);
}

FunctionGenerator::Made FunctionGenerator::Normalisation() {
  const Value x = AnyFloats();
  // The mean of squares must neither drown in epsilon nor be nothing but rounding errors.
  if (x.rank() == 0 || x.magnitude() > 50) return std::nullopt;
  const int kind = Below(5);
  const double root = std::sqrt(static_cast<double>(NumElements(x.shape)) + 1);
  const auto channels = [&](int axis) { return Fresh({x.size(axis)}, x.dtype, -1, 1).expr; };
  const double epsilon = random_.Pick<double>({0.1, 1e-2});
  if (kind == 0) {
    const int axis = OneIn(2) ? x.rank() - 1 : Axis(x);
    return Call("nn.layer_norm", {x.expr, channels(axis), channels(axis)},
                {{"axis", axis}, {"epsilon", epsilon}, {"scale", !OneIn(4)}, {"center", !OneIn(4)}}, -root, root,
                false);
  }
  if (kind == 1) {
    const double eps = random_.Pick<double>({1e-2, 1.0});
    return Call("nn.l2_normalize", {x.expr}, {{"eps", eps}, {"axis", Ints{Axis(x)}}}, -10, 10, false);
  }
  if (x.rank() < 3) return std::nullopt;
  if (kind == 2) {
    return Call("nn.instance_norm", {x.expr, channels(1), channels(1)}, {{"epsilon", epsilon}}, -root, root, false);
  }
  if (kind == 3) {
    const int64_t groups = x.size(1) % 2 == 0 && OneIn(2) && x.size(1) > 0 ? 2 : 1;
    return Call("nn.group_norm", {x.expr, channels(1), channels(1)}, {{"num_groups", groups}, {"epsilon", epsilon}},
                -root, root, false);
  }
  return Call("nn.lrn", {x.expr}, {{"size", random_.Pick<int64_t>({1, 3, 5})}, {"alpha", 0.1}}, -x.magnitude(),
              x.magnitude(), false);
}

FunctionGenerator::Made FunctionGenerator::Pool() {
  const int rank = 1 + Below(3);
  const Value x = Any(rank + 2);
  if (x.dtype.is_bool() || NumElements(x.shape) == 0) return std::nullopt;
  const bool is_max = OneIn(2);
  const bool is_whole = !x.dtype.is_floating();
  if (is_whole && !is_max && x.magnitude() > 20) return std::nullopt;
  if (rank == 2 && OneIn(4)) {
    return Call(is_max ? "nn.adaptive_max_pool2d" : "nn.adaptive_avg_pool2d", {x.expr},
                {{"output_size", Ints{Between(1, 4), Between(1, 4)}}}, x.low, x.high,
                x.is_exact && (is_max || is_whole));
  }
  Ints size, strides, dilation, before, after;
  for (int d = 0; d < rank; ++d) {
    size.push_back(Between(1, 4));
    strides.push_back(Between(1, 3));
    dilation.push_back(OneIn(4) ? 2 : 1);
    // Each window must have something in it.
    const int64_t most = std::min<int64_t>(size.back() - 1, OneIn(2) ? 0 : 2);
    before.push_back(dilation.back() > 1 ? 0 : Between(0, most));
    after.push_back(dilation.back() > 1 ? 0 : Between(0, most));
    const int64_t whole = x.size(d + 2) + before.back() + after.back();
    if ((size.back() - 1) * dilation.back() + 1 > whole) return std::nullopt;
  }
  before.insert(before.end(), after.begin(), after.end());
  Attrs attrs{{"pool_size", size}, {"strides", strides}, {"dilation", dilation}, {"padding", before}};
  // With dilation a last, partial window may lie in the padding alone.
  if (OneIn(4) && *std::max_element(strides.begin(), strides.end()) == 1) attrs.Set("ceil_mode", true);
  if (is_max && x.is_exact && OneIn(4)) {
    attrs.Set("column_major", OneIn(2));
    return Call(fmt::format("nn.max_pool{}d_indices", rank), {x.expr}, attrs, -1,
                static_cast<double>(NumElements(x.shape)), true);
  }
  if (!is_max) attrs.Set("count_include_pad", OneIn(2));
  return Call(fmt::format("nn.{}_pool{}d", is_max ? "max" : "avg", rank), {x.expr}, attrs, std::min(x.low, 0.0),
              std::max(x.high, 0.0), x.is_exact && (is_max || is_whole));
}

FunctionGenerator::Made FunctionGenerator::GlobalPool() {
  const int rank = 1 + Below(3);
  const Value x = Any(rank + 2);
  if (!x.dtype.is_floating() || NumElements(x.shape) == 0) return std::nullopt;
  const bool is_max = OneIn(2);
  return Call(fmt::format("nn.global_{}_pool{}d", is_max ? "max" : "avg", rank), {x.expr}, {}, x.low, x.high,
              x.is_exact && is_max);
}

FunctionGenerator::Made FunctionGenerator::Convolution() {
  const int rank = OneIn(2) ? 2 : 1 + Below(3);
  const Value x = Any(rank + 2);
  if (x.dtype.is_bool() || x.dtype == kUInt8) return std::nullopt;
  const int64_t channels = x.size(1);
  int64_t groups = 1;
  if (OneIn(3) && channels > 0) {
    groups = OneIn(2) ? channels : channels % 2 == 0 ? 2 : channels % 3 == 0 ? 3 : 1;
  }
  if (channels == 0 && x.size(0) == 0) return std::nullopt;
  const int64_t results = groups * (groups == channels ? Between(1, 2) : Between(1, 5 + Below(30)) / groups + 1);
  Shape weight{results, channels / groups};
  Ints strides, dilation, before, after;
  const bool is_plain = OneIn(2);
  const int64_t side = random_.Pick<int64_t>({1, 1, 3, 3, 3, 5, 2});
  int64_t taps = 1;
  for (int d = 0; d < rank; ++d) {
    weight.push_back(OneIn(6) ? Between(1, 4) : side);
    taps *= weight.back();
    strides.push_back(is_plain ? 1 : Between(1, 3));
    dilation.push_back(is_plain || OneIn(2) ? 1 : Between(1, 2));
    before.push_back(is_plain ? weight.back() / 2 : Between(0, 2));
    after.push_back(is_plain ? weight.back() / 2 : Between(0, 2));
    const int64_t whole = x.size(d + 2) + before.back() + after.back();
    if ((weight.back() - 1) * dilation.back() + 1 > whole) return std::nullopt;
  }
  before.insert(before.end(), after.begin(), after.end());
  const double terms = static_cast<double>(taps) * static_cast<double>(channels / groups) + 1;
  const bool is_whole = !x.dtype.is_floating();
  const double each = is_whole ? 2 : std::min(1.0, 8 / terms);
  const Value w = OneIn(4) ? Fresh(weight, x.dtype, -each, each) : FreshConstant(weight, x.dtype, -each, each);
  const double large = terms * each * x.magnitude();
  Attrs attrs{{"groups", groups}, {"strides", strides}, {"dilation", dilation}, {"padding", before}};
  if (is_whole && x.dtype != kInt64) attrs.Set("out_dtype", kInt32);
  return Call(fmt::format("nn.conv{}d", rank), {x.expr, w.expr}, attrs, -large, large, x.is_exact && is_whole);
}

FunctionGenerator::Made FunctionGenerator::TransposedConvolution() {
  const int rank = OneIn(2) ? 2 : 1 + Below(3);
  const Value x = AnyFloats(rank + 2);
  const int64_t channels = x.size(1);
  if (NumElements(x.shape) == 0) return std::nullopt;
  const int64_t groups = OneIn(4) ? channels : channels % 2 == 0 && OneIn(3) ? 2 : 1;
  Shape weight{channels, Between(1, 9)};
  Ints strides, dilation, before, after, added;
  int64_t taps = 1, results = x.size(0) * weight[1] * groups;
  for (int d = 0; d < rank; ++d) {
    weight.push_back(Between(1, 4));
    taps *= weight.back();
    strides.push_back(Between(1, 3));
    dilation.push_back(OneIn(3) ? 2 : 1);
    before.push_back(Between(0, std::min<int64_t>(2, weight.back() - 1)));
    after.push_back(Between(0, std::min<int64_t>(2, weight.back() - 1)));
    added.push_back(strides.back() > 1 && OneIn(3) ? Between(0, strides.back() - 1) : 0);
    const int64_t size = (x.size(d + 2) - 1) * strides.back() + (weight.back() - 1) * dilation.back() + 1 -
                         before.back() - after.back() + added.back();
    if (size < 1) return std::nullopt;
    results *= size;
  }
  if (results > most_elements_) return std::nullopt;
  before.insert(before.end(), after.begin(), after.end());
  const double terms = static_cast<double>(taps) * static_cast<double>(channels / groups);
  const double each = std::min(1.0, 8 / terms);
  const Value w = FreshConstant(weight, x.dtype, -each, each);
  const double large = terms * each * x.magnitude();
  return Call(fmt::format("nn.conv{}d_transpose", rank), {x.expr, w.expr},
              {{"groups", groups},
               {"strides", strides},
               {"dilation", dilation},
               {"padding", before},
               {"output_padding", added}},
              -large, large, false);
}

FunctionGenerator::Made FunctionGenerator::Dense() {
  const Value x = Any(2);
  if (x.dtype.is_bool() || x.dtype == kUInt8) return std::nullopt;
  const bool is_whole = !x.dtype.is_floating();
  const double terms = static_cast<double>(x.size(1)) + 1;
  const double each = is_whole ? 2 : std::min(1.0, 8 / terms);
  const Shape shape{Size(), x.size(1)};
  const Value w = OneIn(4) ? Fresh(shape, x.dtype, -each, each) : FreshConstant(shape, x.dtype, -each, each);
  Attrs attrs;
  if (is_whole && x.dtype != kInt64) attrs.Set("out_dtype", kInt32);
  const double large = terms * each * x.magnitude();
  return Call("nn.dense", {x.expr, w.expr}, attrs, -large, large, x.is_exact && is_whole);
}

FunctionGenerator::Made FunctionGenerator::Matmul() {
  const bool is_batch = OneIn(2);
  const Value x = Any(is_batch ? 3 : 2);
  if (x.dtype.is_bool() || x.dtype == kUInt8) return std::nullopt;
  const bool is_whole = !x.dtype.is_floating();
  const bool transposes_a = OneIn(3), transposes_b = OneIn(2);
  const int64_t depth = x.size(x.rank() - (transposes_a ? 2 : 1));
  const int64_t columns = Size();
  Shape shape = transposes_b ? Shape{columns, depth} : Shape{depth, columns};
  if (is_batch) shape.insert(shape.begin(), OneIn(4) ? 1 : x.size(0) == 1 ? Between(1, 4) : x.size(0));
  const double terms = static_cast<double>(depth) + 1;
  const double each = is_whole ? 2 : std::min(1.0, 8 / terms);
  const Value w = OneIn(2) ? Fresh(shape, x.dtype, -each, each) : FreshConstant(shape, x.dtype, -each, each);
  Attrs attrs{{"transpose_a", transposes_a}, {"transpose_b", transposes_b}};
  if (is_whole && x.dtype != kInt64) attrs.Set("out_dtype", kInt32);
  const double large = terms * each * x.magnitude();
  return Call(is_batch ? "nn.batch_matmul" : "nn.matmul", {x.expr, w.expr}, attrs, -large, large,
              x.is_exact && is_whole);
}

FunctionGenerator::Made FunctionGenerator::SumOfProducts() {
  const Value x = Any();
  if (x.dtype.is_bool() || x.dtype == kUInt8 || x.rank() > 4) return std::nullopt;
  const bool is_whole = !x.dtype.is_floating();
  std::string labels, other, result;
  std::map<char, int64_t> sizes;
  for (int d = 0; d < x.rank(); ++d) {
    char label = static_cast<char>('a' + d);
    for (const auto& [known, size] : sizes) {
      if (size == x.size(d) && OneIn(4)) label = known;  // a diagonal
    }
    sizes[label] = x.size(d);
    labels += label;
  }
  Shape shape;
  for (const auto& [label, size] : std::map(sizes)) {
    if (OneIn(2)) continue;
    other.insert(static_cast<size_t>(Below(static_cast<int>(other.size()) + 1)), 1, label);
  }
  for (char label : {'x', 'y'}) {
    if (!OneIn(2)) continue;
    sizes[label] = Between(1, 6);
    other.insert(static_cast<size_t>(Below(static_cast<int>(other.size()) + 1)), 1, label);
  }
  double terms = 1;
  for (const auto& [label, size] : sizes) {
    if (OneIn(2)) {
      result.insert(static_cast<size_t>(Below(static_cast<int>(result.size()) + 1)), 1, label);
    } else {
      terms *= static_cast<double>(size);
    }
  }
  for (char label : other) shape.push_back(OneIn(8) ? 1 : sizes[label]);
  if (NumElements(shape) > most_elements_ || terms > 1e5) return std::nullopt;
  const double each = is_whole ? 2 : std::min(1.0, 8 / (terms + 1));
  const Value w = Fresh(shape, x.dtype, -each, each);
  const double large = (terms + 1) * each * x.magnitude();
  return Call("einsum", {MakeTuple({x.expr, w.expr})}, {{"equation", labels + "," + other + "->" + result}}, -large,
              large, x.is_exact && is_whole);
}

FunctionGenerator::Made FunctionGenerator::Recurrent() {
  const Value x = AnyFloats(3);
  if (x.dtype != kFloat32 || NumElements(x.shape) == 0 || x.magnitude() > 50) return std::nullopt;
  const bool is_batch_first = OneIn(2);
  const int64_t steps = x.size(is_batch_first ? 1 : 0), batch = x.size(is_batch_first ? 0 : 1), features = x.size(2);
  if (steps > 9) return std::nullopt;
  const std::string op = random_.Pick<std::string>({"nn.lstm", "nn.gru", "nn.rnn"});
  const int64_t gates = op == "nn.lstm" ? 4 : op == "nn.gru" ? 3 : 1;
  const std::string direction = random_.Pick<std::string>({"forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t hidden = random_.Pick<int64_t>({1, 3, 8, 16, 17});
  const double each = 0.4;
  const auto weights = [&](Shape shape) { return FreshConstant(shape, kFloat32, -each, each).expr; };
  const auto state = [&] {
    return Fresh(is_batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden}, kFloat32, -1, 1)
        .expr;
  };
  std::vector<Expr> args{x.expr, weights({directions, gates * hidden, features}),
                         weights({directions, gates * hidden, hidden}), weights({directions, 2 * gates * hidden}),
                         state()};
  if (gates == 4) args.push_back(state());
  Attrs attrs{{"hidden_size", hidden}, {"direction", direction}, {"layout", is_batch_first ? 1 : 0}};
  if (gates == 3) attrs.Set("linear_before_reset", OneIn(2));
  if (gates == 4 && OneIn(4)) attrs.Set("input_forget", true);
  const auto steps_as_double = static_cast<double>(steps);
  const Value result{nullptr, {}, kFloat32, -1, 1, false},
      cell{nullptr, {}, kFloat32, -1 - steps_as_double, 1 + steps_as_double, false};
  return Fields(op, args, attrs,
                gates == 4 ? std::vector<Value>{result, result, cell} : std::vector<Value>{result, result});
}

FunctionGenerator::Made FunctionGenerator::Resize() {
  const int rank = OneIn(2) ? 2 : 1 + Below(3);
  const Value x = AnyFloats(rank + 2);
  if (NumElements(x.shape) == 0) return std::nullopt;
  Ints size;
  int64_t results = x.size(0) * x.size(1);
  for (int d = 0; d < rank; ++d) {
    size.push_back(OneIn(3) ? 2 * x.size(d + 2) : Between(1, 9));
    results *= size.back();
  }
  if (results > most_elements_) return std::nullopt;
  const std::string method = random_.Pick<std::string>({"nearest_neighbor", "linear", "cubic"});
  // Doubled sizes and these transformations have no positions at which the nearest pixel is a matter of rounding.
  const std::string mode =
      random_.Pick<std::string>({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"});
  return Call(fmt::format("image.resize{}d", rank), {x.expr},
              {{"size", size}, {"method", method}, {"coordinate_transformation_mode", mode}}, -2 * x.magnitude(),
              2 * x.magnitude(), x.is_exact && method == "nearest_neighbor");
}

FunctionGenerator::Made FunctionGenerator::GridSample() {
  const Value x = AnyFloats(4);
  if (NumElements(x.shape) == 0 || x.dtype != kFloat32) return std::nullopt;
  const Value grid = Fresh({x.size(0), 2, Between(1, 7), Between(1, 7)}, kFloat32, -1.5, 1.5);
  return Call("image.grid_sample", {x.expr, grid.expr},
              {{"method", random_.Pick<std::string>({"bilinear", "bicubic"})},
               {"padding_mode", random_.Pick<std::string>({"zeros", "border", "reflection"})},
               {"align_corners", OneIn(2)}},
              -4 * x.magnitude(), 4 * x.magnitude(), false);
}

FunctionGenerator::Made FunctionGenerator::Sort() {
  const Value x = Any();
  if (x.rank() == 0 || x.dtype.is_bool()) return std::nullopt;
  const int axis = Axis(x);
  const bool ascends = OneIn(2);
  const double last = static_cast<double>(x.size(axis));
  switch (Below(3)) {
    case 0: return Call("sort", {x.expr}, {{"axis", axis}, {"is_ascend", ascends}}, x.low, x.high, x.is_exact);
    case 1:
      if (!x.is_exact) return std::nullopt;
      return Call("argsort", {x.expr}, {{"axis", axis}, {"is_ascend", ascends}}, 0, last, true);
    default: {
      if (!x.is_exact || x.size(axis) == 0) return std::nullopt;
      const int64_t k = OneIn(4) ? 0 : Between(1, x.size(axis));
      const Value position{nullptr, {}, kInt32, 0, last, true};
      return Fields("topk", {x.expr}, {{"k", k}, {"axis", axis}, {"is_ascend", ascends}}, {x, position});
    }
  }
}

}  // namespace collage
