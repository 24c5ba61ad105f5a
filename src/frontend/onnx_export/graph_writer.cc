// graph_writer.cc: the walk over a function, and what ONNX calls things.
#include "frontend/onnx_export/graph_writer.h"

#include <fmt/format.h>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "frontend/onnx_export/finish_graph.h"
#include "ir/place.h"

namespace collage {
namespace {

/// The IR version that came with an opset.
int64_t IrVersionOf(int64_t opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 13; }

// From here on reductions have their axes as inputs.
constexpr int64_t kAxesAreInputs = 18;

}  // namespace

void ThrowNoWords(const std::string& what, const Span& span) {
  throw Error(ErrorCategory::kUnsupported, "ONNX has no words for " + what, PlaceOf(span));
}

size_t CountTensors(const Type& type) { return FlattenTensorTypes(type).size(); }

OnnxGraphWriter::Entered::Entered(OnnxGraphWriter& writer, onnx::GraphProto* graph) : writer_(writer) {
  Scope scope;
  scope.graph = graph != nullptr ? graph : writer.scopes_.back().graph;
  writer_.scopes_.push_back(std::move(scope));
}

OnnxGraphWriter::Entered::~Entered() { writer_.scopes_.pop_back(); }

std::string OnnxGraphWriter::FreshName(const std::string& wanted) {
  const std::string base = wanted.empty() ? "value" : wanted;
  std::string name = base;
  while (!taken_.insert(name).second) name = fmt::format("{}_{}", base, ++next_[base]);
  return name;
}

const OnnxNames* OnnxGraphWriter::FindNames(const ExprNode* expr) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->names.find(expr);
    if (it != scope->names.end()) return &it->second;
  }
  return nullptr;
}

Expr OnnxGraphWriter::FindFunction(const Expr& callee) const {
  if (callee->kind() == ExprKind::kFunction) return callee;
  if (const auto* global = As<GlobalVarNode>(callee)) return module_.Lookup(global->name());
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->functions.find(callee.get());
    if (it != scope->functions.end()) return it->second;
  }
  ThrowNoWords("a call of what is no operator and no function that is known here", callee->span());
}

std::vector<OnnxNames> OnnxGraphWriter::NamesOf(const std::vector<Expr>& exprs) const {
  std::vector<OnnxNames> names;
  for (const Expr& expr : exprs) names.push_back(*FindNames(expr.get()));
  return names;
}

std::vector<Expr> OnnxGraphWriter::Operands(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kCall: return As<CallNode>(expr)->args();
    case ExprKind::kTuple: return As<TupleNode>(expr)->fields();
    case ExprKind::kTupleGetItem: return {As<TupleGetItemNode>(expr)->tuple()};
    case ExprKind::kIf: return {As<IfNode>(expr)->condition()};
    default: return {};
  }
}

OnnxNames OnnxGraphWriter::Convert(const Expr& root) {
  std::vector<Expr> open{root};
  while (!open.empty()) {
    const Expr expr = open.back();
    if (FindNames(expr.get()) != nullptr) {
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    const auto wait_for = [&](const Expr& operand) {
      if (FindNames(operand.get()) == nullptr) open.push_back(operand);
    };
    if (const auto* let = As<LetNode>(expr)) {
      if (let->value()->kind() == ExprKind::kFunction) {
        scopes_.back().functions[let->var().get()] = let->value();
      } else if (const OnnxNames* value = FindNames(let->value().get())) {
        Bind(let->var(), OnnxNames(*value));
      } else {
        open.push_back(let->value());
        continue;
      }
      wait_for(let->body());
      if (open.size() == before) Bind(expr, OnnxNames(*FindNames(let->body().get())));
      continue;
    }
    const std::vector<Expr> operands = Operands(expr);
    for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) wait_for(*operand);
    if (open.size() != before) continue;
    OnnxNames names = ConvertOne(expr);
    // Constants are initializers of the outermost graph, which all others see.
    Scope& scope = expr->kind() == ExprKind::kConstant ? scopes_.front() : scopes_.back();
    scope.names[expr.get()] = std::move(names);
  }
  return *FindNames(root.get());
}

OnnxNames OnnxGraphWriter::ConvertOne(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kConstant: return {AddConstant(As<ConstantNode>(expr)->value())};
    case ExprKind::kCall: return ConvertCall(*As<CallNode>(expr));
    case ExprKind::kIf: return ConvertIf(*As<IfNode>(expr));
    case ExprKind::kTuple: {
      OnnxNames names;
      for (const OnnxNames& field : NamesOf(As<TupleNode>(expr)->fields())) {
        names.insert(names.end(), field.begin(), field.end());
      }
      return names;
    }
    case ExprKind::kTupleGetItem: {
      const auto* item = As<TupleGetItemNode>(expr);
      const OnnxNames& all = *FindNames(item->tuple().get());
      const auto& fields = AsTupleType(item->tuple()->checked_type())->fields();
      size_t first = 0;
      for (int i = 0; i < item->index(); ++i) first += CountTensors(fields[static_cast<size_t>(i)]);
      const size_t count = CountTensors(fields[static_cast<size_t>(item->index())]);
      const auto begin = all.begin() + static_cast<ptrdiff_t>(first);
      return {begin, begin + static_cast<ptrdiff_t>(count)};
    }
    case ExprKind::kVar:
      ThrowNoWords(fmt::format("variable '{}', which nothing binds to a tensor", As<VarNode>(expr)->name()),
                   expr->span());
    case ExprKind::kMatch:
    case ExprKind::kConstructor: ThrowNoWords("values of algebraic data types", expr->span());
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite: ThrowNoWords("references", expr->span());
    default: ThrowNoWords("functions as values", expr->span());
  }
}

OnnxNames OnnxGraphWriter::ConvertCall(const CallNode& call) {
  if (call.op() != nullptr) return ConvertOperator(call);
  if (call.callee()->kind() == ExprKind::kConstructor) {
    ThrowNoWords("values of algebraic data types", call.span());
  }
  const Expr callee = FindFunction(call.callee());
  const auto* function = As<FunctionNode>(callee);
  const std::vector<OnnxNames> args = NamesOf(call.args());
  const auto is_self = [&](const Expr& other) {
    if (other == call.callee()) return true;
    const auto* global = As<GlobalVarNode>(call.callee());
    const auto* also = As<GlobalVarNode>(other);
    return global != nullptr && also != nullptr && global->name() == also->name();
  };
  bool calls_itself = false;
  if (call.callee()->kind() != ExprKind::kFunction) {
    PostOrder(function->body(), [&](const Expr& inner) { calls_itself = calls_itself || is_self(inner); });
  }
  return calls_itself ? ConvertLoop(call.callee(), *function, args) : Inline(*function, args);
}

OnnxNames OnnxGraphWriter::ConvertOperator(const CallNode& call) {
  const OnnxExportRows& rows = AllOnnxExportRows();
  const auto row = rows.find(call.op()->name);
  if (row == rows.end()) ThrowNoWords(fmt::format("operator '{}'", call.op()->name), call.span());
  OnnxExportCall conversion(*this, call, NamesOf(call.args()));
  OnnxNames names = row->second(conversion);
  COLLAGE_CHECK(names.size() == CountTensors(call.checked_type()))
      << "the export row of " << call.op()->name << " gives " << names.size() << " tensors";
  NoteShapes(names, FlattenTensorTypes(call.checked_type()));
  return names;
}

OnnxNames OnnxGraphWriter::Inline(const FunctionNode& function, const std::vector<OnnxNames>& args) {
  if (std::find(being_inlined_.begin(), being_inlined_.end(), &function) != being_inlined_.end()) {
    ThrowNoWords("a recursion that is no loop", function.span());
  }
  being_inlined_.push_back(&function);
  OnnxNames results;
  {
    const Entered scope(*this, nullptr);
    for (size_t i = 0; i < args.size(); ++i) Bind(function.params()[i], args[i]);
    results = Convert(function.body());
  }
  being_inlined_.pop_back();
  return results;
}

OnnxNames OnnxGraphWriter::AddNode(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes,
                                   size_t num_results, const Span& span) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op_type);
  for (const std::string& input : inputs) node.add_input(input);
  while (!inputs.empty() && node.input_size() > 0 && node.input(node.input_size() - 1).empty()) {
    node.mutable_input()->RemoveLast();
  }
  const bool has_name = !span.source.empty() && span.line == 0;  // else it is a place in a text
  OnnxNames results;
  for (size_t i = 0; i < num_results; ++i) {
    results.push_back(FreshName(has_name ? span.source : op_type));
    node.add_output(results.back());
  }
  node.set_name(results.at(0));
  for (const auto& [name, value] : attributes) {
    if (value.is_none()) continue;
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(name);
    if (const auto* list = value.as_list()) {
      const bool has_floats = std::any_of(list->begin(), list->end(), [](const AttrValue& v) { return v.as_double(); });
      const bool has_strings = !list->empty() && list->front().as_string() != nullptr;
      proto.set_type(has_strings  ? onnx::AttributeProto::STRINGS
                     : has_floats ? onnx::AttributeProto::FLOATS
                                  : onnx::AttributeProto::INTS);
      for (const AttrValue& item : *list) {
        if (has_strings) {
          proto.add_strings(*item.as_string());
        } else if (has_floats) {
          proto.add_floats(static_cast<float>(item.as_double() ? *item.as_double() : double(*item.as_int())));
        } else {
          proto.add_ints(*item.as_int());
        }
      }
    } else if (const auto* number = value.as_double()) {
      proto.set_type(onnx::AttributeProto::FLOAT);
      proto.set_f(static_cast<float>(*number));
    } else if (const auto* text = value.as_string()) {
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(*text);
    } else {
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(value.as_bool() != nullptr ? static_cast<int64_t>(*value.as_bool()) : *value.as_int());
    }
  }
  return results;
}

std::string OnnxGraphWriter::AddConstant(const Tensor& value) {
  onnx::TensorProto& proto = *main_->add_initializer();
  WriteTensor(value, proto);
  proto.set_name(FreshName("constant"));
  return proto.name();
}

void OnnxGraphWriter::NoteShapes(const OnnxNames& names, const std::vector<Type>& types) {
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorTypeNode& type = *AsTensorType(types[i]);
    if (type.is_static()) shapes_[names[i]] = type.static_shape();
  }
}

void OnnxGraphWriter::Describe(onnx::ValueInfoProto& info, const std::string& name, const Type& type) {
  const TensorTypeNode& tensor = *AsTensorType(type);
  info.set_name(name);
  auto& proto = *info.mutable_type()->mutable_tensor_type();
  proto.set_elem_type(static_cast<int32_t>(OnnxTypeOf(tensor.dtype())));
  proto.mutable_shape();  // rank 0 is known, too
  for (size_t axis = 0; axis < tensor.shape().size(); ++axis) {
    auto& dim = *proto.mutable_shape()->add_dim();
    if (tensor.shape()[axis].is_any()) {
      dim.set_dim_param(fmt::format("{}_{}", name, axis));
    } else {
      dim.set_dim_value(tensor.shape()[axis].size());
    }
  }
}

void OnnxGraphWriter::AddOutputs(const OnnxNames& values, const std::vector<Type>& types,
                                 const std::vector<std::string>& wanted) {
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string name = FreshName(i < wanted.size() ? wanted[i] : "output");
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type("Identity");
    node.add_input(values[i]);
    node.add_output(name);
    node.set_name(name);
    Describe(*graph().add_output(), name, types[i]);
  }
}

onnx::ModelProto OnnxGraphWriter::Write(const Function& function, const OnnxExportOptions& options) {
  onnx::ModelProto model;
  main_ = model.mutable_graph();
  main_->set_name(options.graph_name);
  scopes_.emplace_back();
  scopes_.back().graph = main_;

  std::vector<std::string> wanted = options.output_names;
  const AttrValue* named = function->attrs().Find("output_names");
  if (wanted.empty() && named != nullptr && named->as_list() != nullptr) {
    for (const AttrValue& name : *named->as_list()) wanted.push_back(name.as_string() ? *name.as_string() : "");
  }
  const std::vector<Type> types = FlattenTensorTypes(function->body()->checked_type());
  if (!options.output_names.empty() && wanted.size() != types.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("{} names for {} results", wanted.size(), types.size()));
  }
  size_t next_input = 0;
  for (const Var& param : function->params()) {
    const std::vector<Type> fields = FlattenTensorTypes(param->checked_type());
    OnnxNames names;
    for (const Type& type : fields) {
      const std::vector<std::string>& given = options.input_names;
      names.push_back(FreshName(next_input < given.size() ? given[next_input] : param->name()));
      ++next_input;
      Describe(*main_->add_input(), names.back(), type);
    }
    NoteShapes(names, fields);
    Bind(param, names);
  }
  // Names that were asked for are not given to anything else.
  std::vector<std::string> reserved;
  for (const std::string& name : wanted) {
    if (taken_.insert(name).second) reserved.push_back(name);
  }
  const OnnxNames values = Convert(function->body());
  for (const std::string& name : reserved) taken_.erase(name);
  AddOutputs(values, types, wanted);
  WriteUsualForms(*this, *main_, shapes_);
  if (opset_ < kAxesAreInputs) WriteAxesAsAttributes(*main_);
  DropUnread(*main_);

  model.set_ir_version(IrVersionOf(opset_));
  model.set_producer_name("collage");
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(opset_);
  return model;
}

}  // namespace collage
