// typed_ways.cc: operators, constructors, and the least that has a type.
#include "collage/ir/op.h"
#include "property/expression_generator.h"

namespace collage {
namespace {

const collage::DataType kUInt16 = collage::DataType::UInt(16);

}  // namespace

Constructor ExpressionGenerator::ConstructorNamed(const std::string& name) const {
  for (const auto& [type, data] : prelude_.types()) {
    for (const Constructor& constructor : data.constructors) {
      if (constructor->name() == name) return constructor;
    }
  }
  return nullptr;
}

Type ExpressionGenerator::DataTypeNamed(const std::string& name, std::vector<Type> args) const {
  return std::make_shared<TypeCallNode>(prelude_.types().at(name).header, std::move(args));
}

Tensor ExpressionGenerator::TensorOf(const Type& type) {
  const TensorTypeNode& tensor_type = *AsTensorType(type);
  Tensor tensor = Tensor::Empty(tensor_type.static_shape(), tensor_type.dtype());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor_type.dtype().is_bool() ? random_.Below(2) : random_.Below(9) - 4;
    tensor.Set(i, tensor_type.dtype().is_floating() ? value / 4 : value);
  }
  return tensor;
}

Expr ExpressionGenerator::Smallest(const Type& type) {
  switch (type->kind()) {
    case TypeKind::kTensor: return MakeConstant(TensorOf(type));
    case TypeKind::kTuple: {
      std::vector<Expr> fields;
      for (const Type& field : AsTupleType(type)->fields()) fields.push_back(Leaf(field));
      return MakeTuple(std::move(fields));
    }
    case TypeKind::kFunc: return FunctionOf(type, 0, /*annotated=*/true);
    default: {
      const char* const empty = AsDataType(type, "List") ? "Nil" : AsDataType(type, "Maybe") ? "Nothing" : "Point";
      const Var var = MakeVar("empty", type);
      return std::make_shared<LetNode>(var, MakeCall(Expr(ConstructorNamed(empty)), {}), Expr(var));
    }
  }
}

void ExpressionGenerator::AddTypedWays(const Type& type, int fuel, std::vector<Make>* ways) {
  switch (type->kind()) {
    case TypeKind::kTensor: AddTensorWays(type, fuel, ways); return;
    case TypeKind::kTuple:
      ways->push_back([=, this] {
        std::vector<Expr> fields;
        for (const Type& field : AsTupleType(type)->fields()) fields.push_back(Of(field, fuel));
        return MakeTuple(std::move(fields));
      });
      if (AsTupleType(type)->fields().size() == 2) {
        ways->push_back([=, this] {
          const std::vector<Type>& fields = AsTupleType(type)->fields();
          return MakeCall(GlobalNamed("swap"), {Of(TupleType({fields[1], fields[0]}), fuel)});
        });
      }
      return;
    case TypeKind::kFunc:
      if (functions_ < 3) {
        ways->push_back([=, this]() -> Expr { return FunctionOf(type, fuel, /*annotated=*/true); });
      } else {
        ways->push_back([=, this] { return Smallest(type); });
      }
      for (const auto& [name, global] : globals_) {
        if (TypeEqual(global, type)) ways->push_back([this, name = name] { return GlobalNamed(name); });
      }
      if (AsFuncType(type)->args().size() == 1) {
        ways->push_back([=, this] {
          const Type middle = DataType(1);
          return MakeCall(GlobalNamed("compose"), {Of(FuncType({AsFuncType(type)->args()[0]}, middle), fuel),
                                                   Of(FuncType({middle}, AsFuncType(type)->result()), fuel)});
        });
        const TypeCallNode* maybe = AsDataType(AsFuncType(type)->result(), "Maybe");
        if (maybe != nullptr && TypeEqual(maybe->args()[0], AsFuncType(type)->args()[0])) {
          ways->push_back([this]() -> Expr { return ConstructorNamed("Some"); });
        }
      }
      return;
    default: AddDataWays(type, fuel, ways);
  }
}

void ExpressionGenerator::AddDataWays(const Type& type, int fuel, std::vector<Make>* ways) {
  if (const TypeCallNode* list = AsDataType(type, "List")) {
    const Type element = list->args()[0];
    ways->push_back([=, this] {
      Expr head = Of(element, fuel);
      Expr tail = random_.OneIn(3) ? MakeCall(Expr(ConstructorNamed("Nil")), {}) : Of(type, fuel);
      return MakeCall(Expr(ConstructorNamed("Cons")), {std::move(head), std::move(tail)});
    });
    ways->push_back([=, this] {
      const Type from = DataType(1);
      // The parameter's type follows from the list's.
      const bool annotated = random_.OneIn(2) || AsTensorType(element) == nullptr;
      Expr source = Of(DataTypeNamed("List", {from}), fuel - 1);
      return MakeCall(GlobalNamed("map"), {Expr(FunctionOf(FuncType({from}, element), fuel - 1, annotated)), source});
    });
  } else if (const TypeCallNode* maybe = AsDataType(type, "Maybe")) {
    const Type content = maybe->args()[0];
    ways->push_back([=, this] { return MakeCall(Expr(ConstructorNamed("Some")), {Of(content, fuel)}); });
  } else {
    const Type number = TensorType(Shape{}, kFloat32);
    ways->push_back([=, this] { return MakeCall(Expr(ConstructorNamed("Circle")), {Of(number, fuel)}); });
    ways->push_back([=, this] {
      const Type pair = TupleType({TensorType(Shape{}, kInt32), number});
      Expr width = Of(number, fuel);
      return MakeCall(Expr(ConstructorNamed("Box")), {std::move(width), Of(pair, fuel)});
    });
  }
}

// ---- tensors ----

void ExpressionGenerator::AddTensorWays(const Type& type, int fuel, std::vector<Make>* ways) {
  const TensorTypeNode& tensor = *AsTensorType(type);
  const Type integer = TensorType(Shape{}, kInt32);
  const auto unary = [=, this](const char* op) {
    ways->push_back([=, this] { return MakeCall(op, {Of(type, fuel)}); });
  };
  const auto binary = [=, this](const char* op) {
    ways->push_back([=, this] {
      Expr left = Of(type, fuel);
      return MakeCall(op, {std::move(left), Of(type, fuel)});
    });
  };
  for (const char* op : {"add", "subtract", "maximum", "minimum"}) {
    if (!tensor.dtype().is_bool()) binary(op);
  }
  ways->push_back([=, this] {
    const Type element = DataType(1);
    Expr list = Of(DataTypeNamed("List", {element}), fuel - 1);
    Expr start = Of(type, fuel - 1);
    Expr step = FunctionOf(FuncType({type, element}, type), fuel - 1, /*annotated=*/true);
    return MakeCall(GlobalNamed("fold"), {std::move(step), std::move(start), std::move(list)});
  });
  ways->push_back([=, this] {
    Expr maybe = Of(DataTypeNamed("Maybe", {type}), fuel);
    return MakeCall(GlobalNamed("get"), {std::move(maybe), Of(type, fuel - 1)});
  });
  if (tensor.dtype().is_bool()) {
    for (const char* op : {"less", "less_equal", "equal", "not_equal", "greater"}) {
      if (tensor.rank() != 0) break;
      ways->push_back([=, this] {
        Expr left = Of(integer, fuel);
        return MakeCall(op, {std::move(left), Of(integer, fuel)});
      });
    }
    if (tensor.rank() == 0) ways->push_back([=, this] { return MakeCall(GlobalNamed("even"), {Of(integer, fuel)}); });
    for (const char* op : {"logical_and", "logical_or"}) binary(op);
    unary("logical_not");
    return;
  }
  if (!tensor.dtype().is_floating()) {
    ways->push_back([=, this] {
      const Expr tripled = MakeCall("multiply", {Of(type, fuel), MakeScalar(3, tensor.dtype())});
      return MakeCall("floor_mod", {tripled, MakeScalar(101, tensor.dtype())});
    });
    const bool is_64_bits = tensor.dtype() == kInt64;
    const Type other = TensorType(tensor.shape(), is_64_bits ? kInt32 : kInt64);
    ways->push_back([=, this] {
      return MakeCall("cast", {Of(other, fuel)}, {{"dtype", is_64_bits ? "int64" : "int32"}});
    });
    if (tensor.rank() == 0 && !is_64_bits) {
      ways->push_back(
          [=, this] { return MakeCall(GlobalNamed("length"), {Of(DataTypeNamed("List", {DataType(1)}), fuel)}); });
    }
    return;
  }
  for (const char* op : {"nn.relu", "tanh", "sigmoid", "negative", "abs"}) unary(op);
  AddFloatShapeWays(type, fuel, ways);
}

void ExpressionGenerator::AddFloatShapeWays(const Type& type, int fuel, std::vector<Make>* ways) {
  const TensorTypeNode& tensor = *AsTensorType(type);
  const auto floats = [](Shape shape) { return TensorType(shape, kFloat32); };
  const auto way = [&](Make make) { ways->push_back(std::move(make)); };
  way([=, this] {
    Expr left = Of(type, fuel);
    return MakeCall("tanh", {MakeCall("multiply", {std::move(left), Of(floats({}), fuel)})});
  });
  way([=, this] { return PrimitiveCall(type, fuel); });
  way([=, this] {
    Expr condition = Of(TensorType(Shape{}, kBool), fuel);
    Expr left = Of(type, fuel);
    return MakeCall("where", {std::move(condition), std::move(left), Of(type, fuel)});
  });
  way([=, this] {
    const Expr bytes = MakeConstant(TensorOf(TensorType(tensor.shape(), random_.OneIn(2) ? kUInt16 : kFloat16)));
    return MakeCall("cast", {bytes}, {{"dtype", "float32"}});
  });
  const Shape shape = tensor.static_shape();
  if (shape.empty()) {
    way([=, this] { return MakeCall("sum", {Of(floats({2, 3}), fuel)}); });
    way([=, this] { return MakeCall("mean", {Of(floats({4}), fuel)}); });
  }
  if (shape == Shape{3}) {
    way([=, this] { return MakeCall("sum", {Of(floats({2, 3}), fuel)}, {{"axis", std::vector<int64_t>{0}}}); });
    way([=, this] {
      const Expr grown = MakeCall(GlobalNamed("grow"), {Of(floats({2, 3}), fuel)});
      return MakeCall("max", {grown}, {{"axis", std::vector<int64_t>{0}}});
    });
  }
  if (shape == Shape{2}) {
    way([=, this] {
      const Expr halves = MakeCall("split", {Of(floats({4}), fuel)}, {{"indices_or_sections", 2}, {"axis", 0}});
      return MakeTupleGetItem(halves, random_.Below(2));
    });
  }
  if (shape == Shape{4}) {
    way([=, this] {
      Expr left = Of(floats({2}), fuel);
      Expr right = Of(floats({2}), fuel);
      return MakeCall("concatenate", {MakeTuple({std::move(left), std::move(right)})}, {{"axis", 0}});
    });
  }
  if (shape == Shape{2, 3}) {
    way([=, this] { return MakeCall("transpose", {Of(floats({3, 2}), fuel)}); });
    way([=, this] {
      return MakeCall("reshape", {Of(floats({3, 2}), fuel)}, {{"newshape", std::vector<int64_t>{2, -1}}});
    });
    way([=, this] {
      const Expr product = MakeCall("nn.dense", {Of(floats({2, 4}), fuel), MakeConstant(TensorOf(floats({3, 4})))});
      return MakeCall("add", {product, Of(floats({3}), fuel)});
    });
  }
}

/// A call of a function that is one kernel.
Expr ExpressionGenerator::PrimitiveCall(const Type& type, int fuel) {
  const Var a = MakeVar("a", type);
  const Var b = MakeVar("b", type);
  const Expr body = MakeCall("nn.relu", {MakeCall("add", {MakeCall("tanh", {a}), b})});
  const Function primitive = MakeFunction({a, b}, body, random_.OneIn(2) ? type : nullptr, {{"Primitive", 1}});
  Expr left = Of(type, fuel);
  return MakeCall(Expr(primitive), {std::move(left), Of(type, fuel)});
}

}  // namespace collage
