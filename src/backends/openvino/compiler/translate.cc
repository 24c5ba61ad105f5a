// translate.cc: walks a function in post-dfs order and applies each operator's row; checks every result's shape and
// type.
#include "backends/openvino/compiler/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <openvino/op/identity.hpp>
#include <openvino/opsets/opset13.hpp>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/layout.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;

const RowMap& Rows() {
  static const RowMap rows = [] {
    RowMap result;
    AddElementwiseRows(result);
    AddContractionRows(result);
    AddNormalisationRows(result);
    AddPoolRows(result);
    AddReduceRows(result);
    AddSortRows(result);
    AddCreationRows(result);
    AddVisionRows(result);
    AddShapeRows(result);
    AddIndexRows(result);
    AddQuantisedRows(result);
    AddRecurrentRows(result);
    AddDynamicRows(result);
    return result;
  }();
  return rows;
}

const TensorTypeNode& ResultTensor(const Type& type, size_t index) {
  return *AsTensorType(FlattenTensorTypes(type).at(index));
}

ov::Shape ToOvShape(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// `shape`, in which symbolic sizes are open.
ov::PartialShape ToPartialShape(const std::vector<Dim>& shape) {
  ov::PartialShape partial;
  for (const Dim& dim : shape) {
    partial.push_back(dim.is_any() ? ov::Dimension::dynamic() : ov::Dimension(dim.size()));
  }
  return partial;
}

ov::Output<ov::Node> ToConstant(const Tensor& tensor) {
  auto owner = std::make_shared<Tensor>(tensor);  // keeps the elements alive as long as the model
  return std::make_shared<ops::Constant>(ElementType(tensor.dtype()), ToOvShape(tensor.shape()), tensor.raw(),
                                         std::static_pointer_cast<void>(owner));
}

/// Values of the nodes of one function body. Inner functions are inlined: the walk recurses per nesting, not per node.
class BodyTranslator {
 public:
  using Values = std::unordered_map<const ExprNode*, ov::OutputVector>;

  static ov::OutputVector Run(const Function& function, const std::vector<ov::OutputVector>& args) {
    BodyTranslator body;
    for (size_t i = 0; i < function->params().size(); ++i) body.values_[function->params()[i].get()] = args.at(i);
    PostOrderInScope(function->body(), [&](const Expr& expr) { body.Visit(expr); });
    return body.values_.at(function->body().get());
  }

 private:
  void Visit(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kConstant: values_[expr.get()] = {ToConstant(As<ConstantNode>(expr)->value())}; return;
      case ExprKind::kTuple: values_[expr.get()] = Gather(As<TupleNode>(expr)->fields()); return;
      case ExprKind::kTupleGetItem: VisitProjection(*As<TupleGetItemNode>(expr)); return;
      case ExprKind::kCall: VisitCall(*As<CallNode>(expr)); return;
      case ExprKind::kVar:
        if (!values_.contains(expr.get())) throw Untranslatable{"a free variable '" + As<VarNode>(expr)->name() + "'"};
        return;
      case ExprKind::kOp:
      case ExprKind::kFunction: return;  // has meaning as a callee only
      default: throw Untranslatable{"control flow has no translation"};
    }
  }

  ov::OutputVector Gather(const std::vector<Expr>& parts) const {
    ov::OutputVector result;
    for (const Expr& part : parts) {
      const ov::OutputVector& values = values_.at(part.get());
      result.insert(result.end(), values.begin(), values.end());
    }
    return result;
  }

  void VisitProjection(const TupleGetItemNode& item) {
    const auto& fields = AsTupleType(item.tuple()->checked_type())->fields();
    size_t begin = 0;
    for (int i = 0; i < item.index(); ++i) begin += FlattenTensorTypes(fields[static_cast<size_t>(i)]).size();
    const size_t count = FlattenTensorTypes(fields.at(static_cast<size_t>(item.index()))).size();
    const ov::OutputVector all = values_.at(item.tuple().get());
    const auto first = all.begin() + static_cast<ptrdiff_t>(begin);
    values_[&item] = ov::OutputVector(first, first + static_cast<ptrdiff_t>(count));
  }

  void VisitCall(const CallNode& call) {
    if (const Function function = AsShared<FunctionNode>(call.callee())) {
      std::vector<ov::OutputVector> args;
      for (const Expr& arg : call.args()) args.push_back(values_.at(arg.get()));
      values_[&call] = Run(function, args);
      return;
    }
    const OpDef* op = call.op();
    if (op == nullptr) throw Untranslatable{"a call of neither operator nor function"};
    const auto row = Rows().find(op->name);
    if (row == Rows().end()) throw Untranslatable{"no translation of '" + op->name + "'"};
    const ov::OutputVector inputs = Gather(call.args());
    std::vector<Type> types;
    for (const Expr& arg : call.args()) {
      for (const Type& type : FlattenTensorTypes(arg->checked_type())) types.push_back(type);
    }
    const OpArgs given{call.attrs(), inputs, call.checked_type(), types};
    ov::OutputVector results = InOwnOrder(*op, given, row->second);
    CheckResults(op->name, call.checked_type(), results);
    for (ov::Output<ov::Node>& result : results) {
      if (!call.span().source.empty()) result.get_node()->set_friendly_name(call.span().source);
    }
    values_[&call] = std::move(results);
  }

  /// A mistranslated attribute nearly always shows in the shape: better a refusal than a wrong result. OpenVINO may
  /// know fewer sizes than the type does, and more.
  static void CheckResults(const std::string& name, const Type& type, const ov::OutputVector& results) {
    const std::vector<Type> expected = FlattenTensorTypes(type);
    if (expected.size() != results.size()) throw Untranslatable{"'" + name + "' has another number of results"};
    for (size_t i = 0; i < results.size(); ++i) {
      const ov::PartialShape& got = results[i].get_partial_shape();
      const ov::PartialShape want = ToPartialShape(ResultTensor(type, i).shape());
      const ov::element::Type dtype = ElementType(ResultTensor(type, i).dtype());
      const bool fits =
          want.is_static() && got.is_static() ? got == want : got.rank().is_static() && got.compatible(want);
      if (fits && results[i].get_element_type() == dtype) continue;
      throw Untranslatable{fmt::format("OpenVINO computes {} {} for '{}', not {}", got.to_string(),
                                       results[i].get_element_type().to_string(), name, ToString(expected[i]))};
    }
  }

  Values values_;
};

std::vector<int64_t> InverseAxes(const std::vector<int>& axes) {
  std::vector<int64_t> inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) inverse[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  return inverse;
}

/// Whether `value` is a parameter, unchanged but for the order of its dimensions: as a result the plugin would read it
/// from the memory that the result was bound to.
bool IsInput(const ov::Output<ov::Node>& value) {
  const ov::Node* node = value.get_node();
  while (ov::is_type<ops::Transpose>(node)) node = node->input_value(0).get_node();
  return ov::is_type<ops::Parameter>(node);
}

}  // namespace

ov::Shape OpArgs::result_shape(size_t index) const { return ToOvShape(ResultTensor(result, index).static_shape()); }

bool OpArgs::is_dynamic() const {
  const auto is_open = [](const Type& type) { return !AsTensorType(type)->is_static(); };
  return std::ranges::any_of(types, is_open) || std::ranges::any_of(FlattenTensorTypes(result), is_open);
}

int64_t OpArgs::result_dim(size_t index, size_t axis) const {
  const Dim& dim = ResultTensor(result, index).shape().at(axis);
  if (dim.is_any()) throw Untranslatable{"a size of its result that must be a number is symbolic"};
  return dim.size();
}

ov::element::Type OpArgs::result_type(size_t index) const { return ElementType(ResultTensor(result, index).dtype()); }

ov::element::Type ElementType(DataType dtype) {
  if (dtype.is_bool()) return ov::element::boolean;
  if (dtype == kFloat16) return ov::element::f16;
  if (dtype == kFloat32) return ov::element::f32;
  if (dtype == kFloat64) return ov::element::f64;
  if (dtype == kBFloat16) return ov::element::bf16;
  const bool is_signed = dtype.code == DataType::Code::kInt;
  switch (dtype.bits) {
    case 8: return is_signed ? ov::element::i8 : ov::element::u8;
    case 16: return is_signed ? ov::element::i16 : ov::element::u16;
    case 32: return is_signed ? ov::element::i32 : ov::element::u32;
    case 64: return is_signed ? ov::element::i64 : ov::element::u64;
    default: throw Untranslatable{"no element type for " + dtype.ToString()};
  }
}

ov::Output<ov::Node> Ints(const std::vector<int64_t>& values) {
  return ops::Constant::create(ov::element::i64, ov::Shape{values.size()}, values);
}

ov::Output<ov::Node> Scalar(ov::element::Type type, double value) {
  return ops::Constant::create(type, ov::Shape{}, std::vector<double>{value});
}

int64_t NormalAxis(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

ov::Output<ov::Node> Reshaped(const ov::Output<ov::Node>& value, const ov::Shape& shape) {
  ov::Output<ov::Node> source = value;
  while (source.get_shape() != shape && ov::is_type<ops::Reshape>(source.get_node())) {
    source = source.get_node()->input_value(0);
  }
  if (source.get_shape() == shape) return source;
  return std::make_shared<ops::Reshape>(value, Ints({shape.begin(), shape.end()}), false);
}

ov::Output<ov::Node> AsType(const ov::Output<ov::Node>& value, ov::element::Type type) {
  return value.get_element_type() == type ? value : ov::Output<ov::Node>(std::make_shared<ops::Convert>(value, type));
}

ov::Output<ov::Node> AlongAxis(const ov::Output<ov::Node>& value, int64_t axis, size_t rank) {
  ov::Shape shape(rank, 1);
  shape.at(static_cast<size_t>(NormalAxis(axis, rank))) = ov::shape_size(value.get_shape());
  return Reshaped(value, shape);
}

ov::Output<ov::Node> Transposed(const ov::Output<ov::Node>& value, const std::vector<int64_t>& axes) {
  return std::make_shared<ops::Transpose>(value, Ints(axes));
}

Window::Window(const Attrs& attrs, size_t spatial_rank) {
  const auto per_dimension = [&](std::string_view name) {
    std::vector<int64_t> values = attrs.Ints(name);
    if (values.size() == 1) values.resize(spatial_rank, values[0]);
    return values;
  };
  const std::vector<int64_t> steps = per_dimension("strides");
  const std::vector<int64_t> distances = per_dimension("dilation");
  strides.assign(steps.begin(), steps.end());
  dilation.assign(distances.begin(), distances.end());
  const std::vector<int64_t> padding = per_dimension("padding");
  const auto middle = padding.begin() + static_cast<ptrdiff_t>(spatial_rank);
  before.assign(padding.begin(), middle);
  after.assign(padding.size() > spatial_rank ? middle : padding.begin(),
               padding.size() > spatial_rank ? padding.end() : middle);
}

std::shared_ptr<ov::Model> Translate(const Function& function, const BoundaryLayouts& layouts) {
  ov::ParameterVector parameters;
  std::vector<ov::OutputVector> args;
  for (const Var& param : function->params()) {
    ov::OutputVector parts;
    for (const Type& type :
         FlattenTensorTypes(param->checked_type() ? param->checked_type() : param->type_annotation())) {
      const TensorTypeNode& tensor = *AsTensorType(type);
      const Layout layout = layouts.inputs.at(parameters.size());
      const ov::PartialShape shape = layout == Layout::kPlain
                                         ? ToPartialShape(tensor.shape())
                                         : ov::PartialShape(ToOvShape(PhysicalShape(tensor.static_shape(), layout)));
      parameters.push_back(std::make_shared<ops::Parameter>(ElementType(tensor.dtype()), shape));
      ov::Output<ov::Node> value = parameters.back();
      if (layout != Layout::kPlain) value = Transposed(value, InverseAxes(PhysicalAxes(layout, tensor.rank())));
      parts.push_back(value);
    }
    args.push_back(std::move(parts));
  }
  const ov::OutputVector values = BodyTranslator::Run(function, args);
  ov::ResultVector results;
  for (ov::Output<ov::Node> value : values) {
    if (IsInput(value)) value = std::make_shared<ov::op::v16::Identity>(value);
    const Layout layout = layouts.outputs.at(results.size());
    const std::vector<int> axes = PhysicalAxes(layout, static_cast<int>(RankOf(value)));
    results.push_back(std::make_shared<ops::Result>(
        layout == Layout::kPlain ? value : Transposed(value, {axes.begin(), axes.end()})));
  }
  return std::make_shared<ov::Model>(results, parameters, "partition");
}

}  // namespace collage::openvino
