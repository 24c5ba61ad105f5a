// open_graph_sizes.cc: random arithmetic on sizes, and tensors that sizes make.
#include <algorithm>

#include "property/open/open_graph_generator.h"

namespace collage {

using onnx::TensorProto;

/// Size `axis` of `x`, in one of the ways in which exporters write it.
std::string OpenGraphGenerator::SizeOf(const std::string& x, int rank, int axis) {
  const std::string shape = Node("Shape", {x});
  switch (Below(opset_ >= 15 ? 7 : 6)) {
    case 0: return Node("Gather", {shape, Number(axis)}, {{"axis", int64_t{0}}});
    case 1: return Node("Gather", {shape, Number(axis - rank)}, {{"axis", int64_t{0}}});
    case 2: return WithAxes("Squeeze", Node("Gather", {shape, List({axis})}, {{"axis", int64_t{0}}}), {0}, 13);
    case 3: return WithAxes("Squeeze", Node("Slice", {shape, List({axis}), List({axis + 1}), List({0})}), {0}, 13);
    case 4: {  // as TensorFlow has it
      const std::string ints = Cast(shape, TensorProto::INT32);
      const std::string one = Node("Slice", {ints, List({axis}), List({axis + 1}), List({0}), List({1})});
      return Cast(WithAxes("Squeeze", one, {0}, 13), TensorProto::INT64);
    }
    case 5: {
      const std::string parts =
          Node("Split", {shape}, {{"axis", int64_t{0}}, {"split", Ints(static_cast<size_t>(rank), 1)}}, rank);
      // From opset 13 on the sizes are an input, and equal by default.
      if (opset_ >= 13) target_->mutable_node()->rbegin()->mutable_attribute()->RemoveLast();
      if (opset_ >= 18) {
        auto& count = *target_->mutable_node()->rbegin()->add_attribute();
        count.set_name("num_outputs");
        count.set_type(onnx::AttributeProto::INT);
        count.set_i(rank);
      }
      return Node("Reshape", {axis == 0 ? parts : parts + "_" + std::to_string(axis), List({})});
    }
    default: {
      const std::string part = Node("Shape", {x}, {{"start", int64_t{axis}}, {"end", int64_t{axis} + 1}});
      return Node("Squeeze", {part});
    }
  }
}

/// A size, mostly one that is not the same in all worlds, or what follows from several.
std::string OpenGraphGenerator::AnySize() {
  std::vector<const Value*> known, others;
  for (const Value& value : values_) {
    const bool is_size = value.constants && value.rank() == 0 && value.dtype == kInt64;
    if (is_size) known.push_back(&value);
    if (value.rank() > 0) others.push_back(&value);
  }
  if (!known.empty() && OneIn(4)) return random_.Pick(known)->name;
  const Value& x = OneIn(2) ? *others.back() : *random_.Pick(others);
  if (OneIn(12)) return Node("Size", {x.name});
  if (OneIn(12)) {
    const std::string shape = Node("Shape", {x.name});
    static const Names ops{"ReduceProd", "ReduceMax", "ReduceMin"};
    return Node(random_.Pick(ops), {shape}, {{"keepdims", int64_t{0}}});
  }
  int axis = Axis(x);
  for (int i = 0; i < 3 && FixedSize(x, axis) >= 0; ++i) axis = Axis(x);
  return SizeOf(x.name, x.rank(), axis);
}

std::string OpenGraphGenerator::AsList(const std::string& size) {
  if (OneIn(3)) return Node("Reshape", {size, List({1})});
  return WithAxes("Unsqueeze", size, {0}, 13);
}

std::string OpenGraphGenerator::Join(const std::vector<std::variant<std::string, int64_t>>& sizes) {
  Names parts;
  for (const auto& size : sizes) {
    const auto* name = std::get_if<std::string>(&size);
    parts.push_back(name == nullptr ? List({std::get<int64_t>(size)}) : AsList(*name));
  }
  return parts.size() == 1 ? parts[0] : Node("Concat", parts, {{"axis", int64_t{0}}});
}

std::string OpenGraphGenerator::Condition(const std::string& size) {
  static const Names ops{"Greater", "Less", "Equal"};
  const std::string limit = OneIn(4) ? AnySize() : Number(random_.Pick(Ints{1, 2, 3, 5, 8, 16, 64, 100}));
  const std::string condition = Node(random_.Pick(ops), {size, limit});
  if (OneIn(5)) return Node("Not", {condition});
  if (OneIn(6)) return Node(OneIn(2) ? "And" : "Or", {condition, Node("Less", {size, Number(Between(2, 70))})});
  return condition;
}

std::string OpenGraphGenerator::DerivedOnce(const std::string& size) {
  const auto number = [&](int64_t low, int64_t high) { return Number(Between(low, high)); };
  switch (Below(22)) {
    case 0: return Node("Add", {size, number(1, 3)});
    case 1: return Node("Sub", {size, number(1, 3)});
    case 2: return Node("Mul", {size, number(2, 3)});
    case 3: return Node("Div", {size, number(2, 8)});
    case 4: return Node("Mod", {size, number(2, 8)});
    case 5: {  // rounded up
      const int64_t by = Between(2, 8);
      return Node("Div", {Node("Add", {size, Number(by - 1)}), Number(by)});
    }
    case 6: {  // what is missing to a multiple
      const int64_t by = Between(2, 8);
      return Node("Mod", {Node("Sub", {Number(by), Node("Mod", {size, Number(by)})}), Number(by)});
    }
    case 7: {  // by floats, rounded
      const std::string scaled =
          Node("Mul", {AsFloat(size), Scalar(random_.Pick(std::vector<double>{0.5, 0.25, 1.5, 2}))});
      static const Names ops{"Floor", "Ceil"};
      return Cast(OneIn(3) ? scaled : Node(random_.Pick(ops), {scaled}), TensorProto::INT64);
    }
    case 8: return Cast(Node("Ceil", {Node("Div", {AsFloat(size), Scalar(2.0 + Below(3))})}), TensorProto::INT64);
    case 9: return Cast(Node("Floor", {Node("Sqrt", {AsFloat(size)})}), TensorProto::INT64);
    case 10: return Node(OneIn(2) ? "Min" : "Max", {size, number(1, 64)});
    case 11: return Node(OneIn(2) ? "Min" : "Max", {size, AnySize()});
    case 12: return Node("Where", {Condition(size), size, number(1, 9)});
    case 13: return Node("Mul", {size, Cast(Condition(size), TensorProto::INT64)});
    case 14: return Node("Abs", {Node("Sub", {size, number(2, 9)})});
    case 15: return Node("Neg", {Node("Neg", {size})});
    case 16:
      if (opset_ < 12) return size;
      return Node("Clip", {size, number(1, 3), number(4, 40)});
    case 17: return Node("Add", {size, AnySize()});
    case 18: return Node("Sub", {Node("Add", {size, AnySize()}), Number(1)});
    case 19: {
      const std::string list = Join({size, Between(1, 4), AnySize()});
      if (OneIn(2)) return Node("Gather", {list, Number(Below(3))});
      return Node(OneIn(2) ? "ReduceMax" : "ReduceMin", {list}, {{"keepdims", int64_t{0}}});
    }
    case 20: return Node("Gather", {List({3, 1, 5, 2}), Node("Mod", {size, Number(4)})});
    default: return Node("Div", {Node("Mul", {size, AnySize()}), number(2, 4)});
  }
}

std::string OpenGraphGenerator::Derived(std::string size) {
  for (int steps = static_cast<int>(Between(0, 2)); steps > 0; --steps) size = DerivedOnce(size);
  return size;
}

std::string OpenGraphGenerator::Counting(const std::string& size) {
  if (OneIn(6)) {  // as torch had it once: the places of as many ones
    const Tensor one = Tensor::Of<int64_t>({1}, kInt64, Ints{1});
    const std::string places = Node("NonZero", {Node("ConstantOfShape", {AsList(size)}, {{"value", one}})});
    return WithAxes("Squeeze", Node("Transpose", {places}, {{"perm", Ints{1, 0}}}), {1}, 13);
  }
  if (OneIn(5)) {
    const Tensor one = Tensor::Of<int64_t>({1}, kInt64, Ints{1});
    const std::string ones = Node("ConstantOfShape", {AsList(size)}, {{"value", one}});
    return Node("Sub", {Node("CumSum", {ones, Number(0)}), Number(1)});
  }
  if (OneIn(5)) return Cast(Node("Range", {Scalar(0), AsFloat(size), Scalar(1)}), TensorProto::INT64);
  return Node("Range", {Number(0), size, Number(1)});
}

// ---- steps ----

/// The size as a result, for steps to come.
OpenGraphGenerator::Made OpenGraphGenerator::SizeItself() { return {Derived(AnySize())}; }

/// Computes with the size as with any other number.
OpenGraphGenerator::Made OpenGraphGenerator::SizeAsNumber() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  const std::string size = Derived(AnySize());
  std::string number = OneIn(4) ? Cast(Condition(size), TensorProto::FLOAT) : AsFloat(size);
  if (OneIn(4)) number = Node("Sqrt", {Node("Max", {number, Scalar(1)})});
  static const Names ops{"Add", "Mul", "Sub"};
  if (OneIn(3)) return {Node("Div", {x->name, Node("Max", {number, Scalar(1)})})};
  return {Node(random_.Pick(ops), {x->name, Node("Mul", {number, Scalar(0.125)})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::MeanBySum() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  const std::string sum = WithAxes("ReduceSum", x->name, {axis}, 13, {{"keepdims", int64_t{Below(2)}}});
  return {Node("Div", {sum, AsFloat(SizeOf(x->name, x->rank(), axis))})};
}

OpenGraphGenerator::Made OpenGraphGenerator::Chosen() {
  const Value* x = Floats();
  if (x == nullptr) return {};
  return {Node("Where", {Condition(Derived(AnySize())), x->name, Node("Neg", {x->name})})};
}

OpenGraphGenerator::Made OpenGraphGenerator::FilledWithShape() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const std::string shape = OneIn(2) ? Node("Shape", {x->name}) : Join({Derived(AnySize()), Between(1, 3)});
  const Tensor value = Tensor::Of<float>({1}, kFloat32, std::vector<float>{0.5});
  const std::string filled = Node("ConstantOfShape", {shape}, {{"value", value}});
  if (OneIn(3)) return {filled};
  return {Node("Add", {x->name, filled})};
}

/// x + 0, 1, 2, … along one axis.
OpenGraphGenerator::Made OpenGraphGenerator::CountingAdded() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0) return {};
  const int axis = Axis(*x);
  std::string range = Node("Mul", {AsFloat(Counting(SizeOf(x->name, x->rank(), axis))), Scalar(0.0625)});
  Ints axes;
  for (int i = 0; i + axis + 1 < x->rank(); ++i) axes.push_back(i + 1);
  if (!axes.empty()) range = WithAxes("Unsqueeze", range, axes, 13);
  return {Node("Add", {x->name, range})};
}

/// x [.., S, D] + table[0 .. S].
OpenGraphGenerator::Made OpenGraphGenerator::FromTable() {
  const Value* x = Floats(OneIn(2) ? 3 : 2);
  if (x == nullptr) return {};
  const int64_t width = FixedSize(*x, x->rank() - 1);
  if (width < 0) return {};
  const std::string places = Counting(SizeOf(x->name, x->rank(), x->rank() - 2));
  return {Node("Add", {x->name, Node("Gather", {Weights({700, width}), places})})};
}

/// A table cut to a size: added where it is that of `x`, else a result.
OpenGraphGenerator::Made OpenGraphGenerator::TableCut() {
  const Value* x = Floats();
  if (x == nullptr || x->rank() == 0 || x->rank() > 4) return {};
  const int axis = Axis(*x);
  Shape shape(static_cast<size_t>(x->rank()), 1);
  shape[static_cast<size_t>(axis)] = 700;
  const int last = x->rank() - 1;
  if (axis != last && FixedSize(*x, last) > 0) shape[static_cast<size_t>(last)] = FixedSize(*x, last);
  const std::string size = SizeOf(x->name, x->rank(), axis);
  std::string begin = List({0}), end = AsList(size);
  if (OneIn(4)) {  // the last rows of the table, as relative positions have them
    begin = AsList(Node("Sub", {Number(700), size}));
    end = List({700});
  }
  const std::string cut = Node("Slice", {Weights(shape), begin, end, List({axis})});
  return {OneIn(4) ? cut : Node("Add", {x->name, cut})};
}

/// Scores [.., S, S] masked above the diagonal, by themselves or in a softmax.
OpenGraphGenerator::Made OpenGraphGenerator::TriangularMask() {
  const Value* x = Floats(OneIn(2) ? 3 : 2);
  if (x == nullptr) return {};
  Ints perm = AllAxes(*x);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const std::string scores = Node("MatMul", {x->name, Node("Transpose", {x->name}, {{"perm", perm}})});
  const std::string size = SizeOf(x->name, x->rank(), x->rank() - 2);
  std::string mask;
  switch (Below(opset_ >= 14 ? 4 : 2)) {
    case 0: {
      const std::string range = Counting(size);
      mask = Node("Less", {WithAxes("Unsqueeze", range, {1}, 13), range});
      break;
    }
    case 1: {  // a stored triangle, cut to size
      constexpr int64_t kLargest = 64;
      const Tensor triangle = Tensor::Zeros({kLargest, kLargest}, kBool);
      for (int64_t i = 0; i < kLargest * kLargest; ++i) triangle.Set(i, i % kLargest > i / kLargest ? 1 : 0);
      const std::string end = AsList(size);
      mask = Node("Slice",
                  {Constant(triangle), List({0, 0}), Node("Concat", {end, end}, {{"axis", int64_t{0}}}), List({0, 1})});
      break;
    }
    default: {
      const Tensor one = Tensor::Of<float>({1}, kFloat32, std::vector<float>{1});
      const std::string square = Node("ConstantOfShape", {Join({size, size})}, {{"value", one}});
      mask = Cast(Node("Trilu", {square, Number(1)}, {{"upper", int64_t{1}}}), TensorProto::BOOL);
    }
  }
  const std::string masked = Node("Where", {mask, Scalar(OneIn(2) ? -1e9 : 0.0), scores});
  return {OneIn(2) ? masked : Node("Softmax", {masked}, {{"axis", int64_t{x->rank()} - 1}})};
}

/// Positions by a sum over a mask of ones, as text models without a mask get them.
OpenGraphGenerator::Made OpenGraphGenerator::PositionsOfOnes() {
  const Value* x = Floats(OneIn(2) ? 3 : 2);
  if (x == nullptr) return {};
  const int64_t width = FixedSize(*x, x->rank() - 1);
  if (width < 0 || x->rank() != 3) return {};
  const std::string shape = Join({SizeOf(x->name, 3, 0), SizeOf(x->name, 3, 1)});
  const std::string ones = Node("ConstantOfShape", {shape}, {{"value", Tensor::Of<int64_t>({1}, kInt64, Ints{1})}});
  const std::string places = Node("Mul", {Node("CumSum", {ones, Number(1)}), ones});
  return {Node("Add", {x->name, Node("Gather", {Weights({700, width}), places})})};
}

}  // namespace collage
