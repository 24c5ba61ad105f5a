// open_graph_movement.cc: random steps that move, cut and stretch, with bounds that sizes make.
#include <algorithm>

#include "property/open/open_graph_generator.h"

namespace collage {

using onnx::TensorProto;

OpenGraphGenerator::Made OpenGraphGenerator::Slice() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  const std::string size = SizeOf(x->name, x->rank(), axis);
  const auto slice = [&](const std::string& begin, const std::string& end, int64_t step = 1) {
    Names inputs{x->name, begin, end, List({OneIn(3) ? axis - x->rank() : axis})};
    if (step != 1) inputs.push_back(List({step}));
    return Made{Node("Slice", inputs)};
  };
  constexpr int64_t kAll = INT64_MAX;
  switch (Below(11)) {
    case 0: return slice(AsList(Node("Sub", {size, Number(1)})), AsList(size));
    case 1: return slice(AsList(Node("Sub", {size, Number(Between(1, 3))})), List({kAll}));
    case 2: return slice(List({0}), AsList(Node("Div", {size, Number(Between(2, 8))})));
    case 3: return slice(List({0}), AsList(Node("Min", {size, Number(Between(1, 64))})));
    case 4: return slice(List({-1}), List({kAll}));
    case 5: return slice(List({Between(0, 2)}), List({-1 - Below(2)}));
    case 6: return slice(List({0}), List({kAll}), Between(2, 4));
    case 7: return slice(List({-1}), List({-kAll}), -Between(1, 2));
    case 8: return slice(AsList(Derived(size)), List({kAll}));
    case 9: return slice(List({0}), AsList(Derived(AnySize())));
    default: return slice(AsList(Node("Neg", {Derived(AnySize())})), List({kAll}));
  }
}

OpenGraphGenerator::Made OpenGraphGenerator::Reshape() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int rank = x->rank();
  const int64_t last = FixedSize(*x, rank - 1);
  switch (Below(6)) {
    case 0: return {Node("Reshape", {x->name, List({0, -1})})};
    case 1: return {Node("Reshape", {x->name, List({-1})})};
    case 2: return {Node("Reshape", {x->name, List({-1, last > 0 ? last : 1})})};
    case 3: return {Node("Reshape", {x->name, List({0, 0, -1})})};
    case 4: return {Node("Reshape", {x->name, List({1, -1, last > 0 ? last : 1})})};
    default: return {Node("Reshape", {x->name, List({0, 1, -1})})};
  }
}

/// The new shape put together from sizes: copied, multiplied, one of them -1.
OpenGraphGenerator::Made OpenGraphGenerator::ReshapeComputed() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() < 1) return {};
  const int rank = x->rank();
  const auto size = [&](int axis) { return SizeOf(x->name, rank, axis); };
  if (OneIn(5)) {  // flat, and back again
    const std::string flat = Node("Reshape", {x->name, List({-1})});
    return {Node("Reshape", {Node("Relu", {flat}), Node("Shape", {x->name})})};
  }
  if (OneIn(6)) {  // as large as another value
    const Value* y = Floats();
    return {Node("Reshape", {x->name, Node("Shape", {y->name})})};
  }
  std::vector<std::variant<std::string, int64_t>> sizes;
  const int merged = rank > 1 ? Below(rank - 1) : -1;  // with the one behind it
  for (int axis = 0; axis < rank; ++axis) {
    if (axis == merged) {
      sizes.emplace_back(Node("Mul", {size(axis), size(axis + 1)}));
      ++axis;
    } else if (FixedSize(*x, axis) > 0 && OneIn(2)) {
      sizes.emplace_back(FixedSize(*x, axis));
    } else {
      sizes.emplace_back(size(axis));
    }
  }
  if (OneIn(3)) sizes[static_cast<size_t>(Below(static_cast<int>(sizes.size())))] = int64_t{-1};
  if (OneIn(4)) sizes.insert(sizes.begin() + Below(static_cast<int>(sizes.size()) + 1), int64_t{1});
  return {Node("Reshape", {x->name, Join(sizes)})};
}

/// [B, S, heads * D] → [B, heads, S, D], and back as a rule.
OpenGraphGenerator::Made OpenGraphGenerator::SplitHeads() {
  const Value* x = Floats(3);
  const int64_t width = x == nullptr ? -1 : FixedSize(*x, 2);
  if (width < 2 || width % 2 != 0) return {};
  const std::string batch = SizeOf(x->name, 3, 0), steps = SizeOf(x->name, 3, 1);
  const std::string shape = OneIn(2)   ? Join({batch, steps, int64_t{2}, width / 2})
                            : OneIn(2) ? Join({batch, int64_t{-1}, int64_t{2}, width / 2})
                                       : List({0, 0, 2, -1});
  const std::string heads = Node("Transpose", {Node("Reshape", {x->name, shape})}, {{"perm", Ints{0, 2, 1, 3}}});
  if (OneIn(3)) return {heads};
  const std::string back = Node("Transpose", {Node("Tanh", {heads})}, {{"perm", Ints{0, 2, 1, 3}}});
  return {Node("Reshape", {back, OneIn(2) ? Join({batch, steps, width}) : Join({batch, int64_t{-1}, width})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Flatten() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  return {Node("Flatten", {x->name}, {{"axis", int64_t{OneIn(2) ? 1 : Below(x->rank() + 1)}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Squeeze() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  Ints ones;
  for (int axis = 0; axis < x->rank(); ++axis) {
    if (FixedSize(*x, axis) == 1) ones.push_back(axis);
  }
  if (ones.empty()) return {};
  return {WithAxes("Squeeze", x->name, {random_.Pick(ones)}, 13)};
}

OpenGraphGenerator::Made OpenGraphGenerator::Unsqueeze() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() > 4) return {};
  return {WithAxes("Unsqueeze", x->name, {Below(x->rank() + 1)}, 13)};
}

OpenGraphGenerator::Made OpenGraphGenerator::Transpose() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() < 2) return {};
  Ints perm = AllAxes(*x);
  for (size_t i = perm.size(); i-- > 1;) std::swap(perm[i], perm[static_cast<size_t>(Below(static_cast<int>(i) + 1))]);
  return {Node("Transpose", {x->name}, {{"perm", perm}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Expand() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  if (OneIn(3)) {  // a row for each of a size
    return {Node("Expand", {Weights({1, Between(1, 4)}), Join({Derived(AnySize()), int64_t{1}})})};
  }
  const Value* like = Floats();
  if (OneIn(2)) {
    const std::string mean = WithAxes("ReduceMean", like->name, AllAxes(*like), 18, {{"keepdims", int64_t{1}}});
    return {Node("Expand", {mean, Node("Shape", {like->name})})};
  }
  return {Node("Expand", {x->name, Node("Shape", {like->name})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Tile() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  std::vector<std::variant<std::string, int64_t>> reps(static_cast<size_t>(x->rank()), int64_t{1});
  const std::string size = OneIn(2) ? Derived(AnySize()) : AnySize();
  reps[static_cast<size_t>(Axis(*x))] = OneIn(3) ? size : Node("Min", {size, Number(Between(1, 4))});
  if (OneIn(4)) reps[static_cast<size_t>(Axis(*x))] = int64_t{2};
  return {Node("Tile", {x->name, Join(reps)})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Pad() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  static const Names modes{"constant", "constant", "edge", "reflect"};
  const auto rank = static_cast<size_t>(x->rank());
  std::vector<std::variant<std::string, int64_t>> pads(2 * rank, int64_t{0});
  const auto axis = static_cast<size_t>(Axis(*x));
  pads[axis] = int64_t{Below(3)};
  pads[axis + rank] = OneIn(2) ? std::variant<std::string, int64_t>(Node("Min", {Derived(AnySize()), Number(3)}))
                               : std::variant<std::string, int64_t>(int64_t{Below(4) - 1});
  return {Node("Pad", {x->name, Join(pads)}, {{"mode", random_.Pick(modes)}})};
}

/// As much behind an axis as makes its size a multiple.
OpenGraphGenerator::Made OpenGraphGenerator::PadToMultiple() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  const int64_t by = Between(2, 8);
  const std::string size = SizeOf(x->name, x->rank(), axis);
  const std::string missing = Node("Mod", {Node("Sub", {Number(by), Node("Mod", {size, Number(by)})}), Number(by)});
  std::vector<std::variant<std::string, int64_t>> pads(2 * static_cast<size_t>(x->rank()), int64_t{0});
  pads[static_cast<size_t>(x->rank() + axis)] = missing;
  const std::string padded = Node("Pad", {x->name, Join(pads)}, {{"mode", std::string("constant")}});
  if (x->rank() > 4 || OneIn(2)) return {padded};
  // Windows of that length, as local attention has them.
  std::vector<std::variant<std::string, int64_t>> shape;
  for (int i = 0; i < x->rank(); ++i) {
    if (i == axis) {
      shape.insert(shape.end(), {int64_t{-1}, by});
    } else {
      shape.emplace_back(SizeOf(x->name, x->rank(), i));
    }
  }
  return {Node("Reshape", {padded, Join(shape)})};
}

OpenGraphGenerator::Made OpenGraphGenerator::ResizeByScales() {
  const Value* x = Floats(OneIn(3) ? 3 : 4);
  if (x == nullptr) return {};
  static const Names modes{"nearest", "nearest", "linear", "cubic"};
  static const Names coordinates{"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  static const Names nearest{"floor", "round_prefer_floor"};
  std::vector<float> scales{1, 1};
  for (int i = 2; i < x->rank(); ++i) scales.push_back(random_.Pick(std::vector<float>{2, 2, 0.5, 1.5, 1}));
  const std::string list = Constant(Tensor::Of<float>({x->rank()}, kFloat32, scales));
  return {Node("Resize", {x->name, "", list},
               {{"mode", random_.Pick(modes)},
                {"coordinate_transformation_mode", random_.Pick(coordinates)},
                {"nearest_mode", random_.Pick(nearest)}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::ResizeBySizes() {
  const Value* x = Floats(OneIn(3) ? 3 : 4);
  if (x == nullptr) return {};
  std::vector<std::variant<std::string, int64_t>> sizes{SizeOf(x->name, x->rank(), 0), SizeOf(x->name, x->rank(), 1)};
  for (int i = 2; i < x->rank(); ++i) {
    const std::string size = SizeOf(x->name, x->rank(), i);
    if (OneIn(4)) {
      sizes.emplace_back(Between(1, 9));
    } else {
      sizes.emplace_back(OneIn(2) ? Node("Mul", {size, Number(2)}) : DerivedOnce(size));
    }
  }
  return {Node("Resize", {x->name, "", "", Join(sizes)},
               {{"mode", std::string(OneIn(2) ? "nearest" : "linear")},
                {"coordinate_transformation_mode", std::string(OneIn(2) ? "asymmetric" : "half_pixel")},
                {"nearest_mode", std::string("floor")}})};
}

/// As feature pyramids do: to the size of an earlier value.
OpenGraphGenerator::Made OpenGraphGenerator::ResizeLike() {
  const Value* x = Floats(OneIn(3) ? 3 : 4);
  if (x == nullptr) return {};
  const Value* like = Floats(x->rank());
  const std::string spatial = Node("Slice", {Node("Shape", {like->name}), List({2}), List({x->rank()}), List({0})});
  const std::string own = Node("Slice", {Node("Shape", {x->name}), List({0}), List({2}), List({0})});
  return {Node("Resize", {x->name, "", "", Node("Concat", {own, spatial}, {{"axis", int64_t{0}}})},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Split() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  if (OneIn(2) && opset_ >= 13) {  // sizes from the size
    const std::string size = SizeOf(x->name, x->rank(), axis);
    const std::string half = Node("Div", {size, Number(2)});
    const std::string both = Join({half, Node("Sub", {size, half})});
    const std::string parts = Node("Split", {x->name, both}, {{"axis", int64_t{axis}}}, 2);
    return {parts, parts + "_1"};
  }
  Attributes attributes{{"axis", int64_t{axis}}};
  if (opset_ >= 18) attributes.emplace_back("num_outputs", int64_t{2});
  const std::string parts = Node("Split", {x->name}, attributes, 2);
  return {parts, parts + "_1"};
}

OpenGraphGenerator::Made OpenGraphGenerator::Concat() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  std::vector<const Value*> fit;
  for (const Value& value : values_) {
    if (value.is_float() && value.rank() == x->rank()) fit.push_back(&value);
  }
  return {Node("Concat", {x->name, random_.Pick(fit)->name}, {{"axis", int64_t{Axis(*x)}}})};
}

/// One step of an axis, by an index that a size makes, or all in another order.
OpenGraphGenerator::Made OpenGraphGenerator::GatherStep() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  const std::string size = SizeOf(x->name, x->rank(), axis);
  std::string index;
  switch (Below(4)) {
    case 0: index = Node("Sub", {size, Number(1)}); break;
    case 1: index = Node("Div", {size, Number(2)}); break;
    case 2: index = Number(-1); break;
    default: index = Node("Range", {Node("Sub", {size, Number(1)}), Number(-1), Number(-1)});
  }
  return {Node("Gather", {x->name, index}, {{"axis", int64_t{axis}}})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Blocks() {
  const Value* x = Floats(4);
  if (x == nullptr) return {};
  return {Node(OneIn(2) ? "SpaceToDepth" : "DepthToSpace", {x->name}, {{"blocksize", int64_t{2}}})};
}

/// Cuts to the size of another value, around the middle or from the start.
OpenGraphGenerator::Made OpenGraphGenerator::Crop() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const Value* like = Floats(x->rank());
  const int axis = Axis(*x);
  const std::string own = SizeOf(x->name, x->rank(), axis), wanted = SizeOf(like->name, x->rank(), axis);
  if (OneIn(2)) return {Node("Slice", {x->name, List({0}), AsList(wanted), List({axis})})};
  const std::string begin = Node("Div", {Node("Sub", {own, wanted}), Number(2)});
  return {Node("Slice", {x->name, AsList(begin), AsList(Node("Add", {begin, wanted})), List({axis})})};
}

}  // namespace collage
