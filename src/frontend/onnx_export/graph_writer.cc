// graph_writer.cc: the walk over a function, and what ONNX calls things.
#include "frontend/onnx_export/graph_writer.h"

#include <fmt/format.h>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

// The IR version that came with ai.onnx 21, and the one of 26.
constexpr int64_t kIrVersion = 10;
constexpr int64_t kNewIrVersion = 13;
constexpr int64_t kOpset = 21;

[[noreturn]] void ThrowUnsupported(const std::string& what, const Span& span) {
  throw Error(ErrorCategory::kUnsupported, "ONNX has no words for " + what, span.source);
}

size_t CountTensors(const Type& type) { return FlattenTensorTypes(type).size(); }

}  // namespace

/// A scope for as long as it lives.
class OnnxGraphWriter::Entered {
 public:
  Entered(OnnxGraphWriter& writer, onnx::GraphProto* graph) : writer_(writer) {
    Scope scope;
    scope.graph = graph != nullptr ? graph : writer.scopes_.back().graph;
    writer_.scopes_.push_back(std::move(scope));
  }
  ~Entered() { writer_.scopes_.pop_back(); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  OnnxGraphWriter& writer_;
};

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
  ThrowUnsupported("a call of what is no operator and no function that is known here", callee->span());
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
      ThrowUnsupported(fmt::format("variable '{}', which nothing binds to a tensor", As<VarNode>(expr)->name()),
                       expr->span());
    case ExprKind::kMatch:
    case ExprKind::kConstructor: ThrowUnsupported("values of algebraic data types", expr->span());
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite: ThrowUnsupported("references", expr->span());
    default: ThrowUnsupported("functions as values", expr->span());
  }
}

OnnxNames OnnxGraphWriter::ConvertCall(const CallNode& call) {
  if (call.op() != nullptr) return ConvertOperator(call);
  if (call.callee()->kind() == ExprKind::kConstructor) {
    ThrowUnsupported("values of algebraic data types", call.span());
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
  if (row == rows.end()) ThrowUnsupported(fmt::format("operator '{}'", call.op()->name), call.span());
  OnnxExportCall conversion(*this, call, NamesOf(call.args()));
  OnnxNames names = row->second(conversion);
  COLLAGE_CHECK(names.size() == CountTensors(call.checked_type()))
      << "the export row of " << call.op()->name << " gives " << names.size() << " tensors";
  return names;
}

OnnxNames OnnxGraphWriter::Inline(const FunctionNode& function, const std::vector<OnnxNames>& args) {
  if (std::find(being_inlined_.begin(), being_inlined_.end(), &function) != being_inlined_.end()) {
    ThrowUnsupported("a recursion that is no loop", function.span());
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

OnnxNames OnnxGraphWriter::ConvertIf(const IfNode& node) {
  const std::vector<Type> types = FlattenTensorTypes(node.then_branch()->checked_type());
  onnx::NodeProto made;
  for (const auto& [attribute, branch] :
       {std::pair{"then_branch", node.then_branch()}, {"else_branch", node.else_branch()}}) {
    onnx::AttributeProto& proto = *made.add_attribute();
    proto.set_name(attribute);
    proto.set_type(onnx::AttributeProto::GRAPH);
    proto.mutable_g()->set_name(FreshName(attribute));
    const Entered scope(*this, proto.mutable_g());
    AddOutputs(Convert(branch), FlattenTensorTypes(branch->checked_type()), {});
  }
  made.set_op_type("If");
  made.add_input(FindNames(node.condition().get())->at(0));
  OnnxNames results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(FreshName("if"));
    made.add_output(results.back());
  }
  made.set_name(FreshName("If"));
  *graph().add_node() = std::move(made);
  return results;
}

/// `fn (v…) { if (c(v)) { self(next(v)…) } else { done(v) } }`, called with `args`: Loop carries v, and computes the
/// condition of the next turn at the end of each.
OnnxNames OnnxGraphWriter::ConvertLoop(const Expr& var, const FunctionNode& function,
                                       const std::vector<OnnxNames>& args) {
  if (std::find(being_inlined_.begin(), being_inlined_.end(), &function) != being_inlined_.end()) {
    ThrowUnsupported("a recursion that is no loop: the function calls itself elsewhere than last", function.span());
  }
  const auto* choice = As<IfNode>(function.body());
  const auto turn = [&](const Expr& branch) -> const CallNode* {
    const auto* call = As<CallNode>(branch);
    if (call == nullptr) return nullptr;
    const auto* global = As<GlobalVarNode>(var);
    const auto* also = As<GlobalVarNode>(call->callee());
    const bool same_global = global != nullptr && also != nullptr && global->name() == also->name();
    return call->callee() == var || same_global ? call : nullptr;
  };
  const CallNode* again = choice == nullptr ? nullptr : turn(choice->then_branch());
  const bool goes_on_if_true = again != nullptr;
  if (choice != nullptr && again == nullptr) again = turn(choice->else_branch());
  if (again == nullptr) {
    ThrowUnsupported("a recursion that is no loop: `if (…) { itself(…) } else { … }` is one", function.span());
  }
  const Expr& done = goes_on_if_true ? choice->else_branch() : choice->then_branch();
  being_inlined_.push_back(&function);

  const auto condition_for = [&](const std::vector<OnnxNames>& values) {
    const Entered scope(*this, nullptr);
    for (size_t i = 0; i < values.size(); ++i) Bind(function.params()[i], values[i]);
    const std::string holds = Convert(choice->condition()).at(0);
    return goes_on_if_true ? holds : AddNode("Not", {holds}, {}, 1, function.span())[0];
  };
  std::vector<Type> types;
  for (const Var& param : function.params()) {
    for (const Type& type : FlattenTensorTypes(param->checked_type())) types.push_back(type);
  }

  onnx::NodeProto made;
  made.add_input("");  // no limit but the condition
  made.add_input(condition_for(args));
  for (const OnnxNames& names : args) {
    for (const std::string& name : names) made.add_input(name);
  }
  onnx::AttributeProto& proto = *made.add_attribute();
  proto.set_name("body");
  proto.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *proto.mutable_g();
  body.set_name(FreshName("body"));
  Describe(*body.add_input(), FreshName("turn"), TensorType(Shape{}, kInt64));
  Describe(*body.add_input(), FreshName("go_on"), TensorType(Shape{}, kBool));
  {
    const Entered scope(*this, &body);
    for (const Var& param : function.params()) {
      OnnxNames names;
      for (const Type& type : FlattenTensorTypes(param->checked_type())) {
        names.push_back(FreshName(param->name()));
        Describe(*body.add_input(), names.back(), type);
      }
      Bind(param, names);
    }
    std::vector<OnnxNames> next;
    for (const Expr& arg : again->args()) next.push_back(Convert(arg));
    OnnxNames outputs{condition_for(next)};
    for (const OnnxNames& names : next) outputs.insert(outputs.end(), names.begin(), names.end());
    std::vector<Type> output_types{TensorType(Shape{}, kBool)};
    output_types.insert(output_types.end(), types.begin(), types.end());
    AddOutputs(outputs, output_types, {});
  }
  made.set_op_type("Loop");
  made.set_name(FreshName("Loop"));
  std::vector<OnnxNames> last;
  for (const Var& param : function.params()) {
    last.emplace_back();
    for (size_t i = 0; i < CountTensors(param->checked_type()); ++i) {
      last.back().push_back(FreshName("last_" + param->name()));
      made.add_output(last.back().back());
    }
  }
  *graph().add_node() = std::move(made);

  OnnxNames results;
  {
    const Entered scope(*this, nullptr);
    for (size_t i = 0; i < last.size(); ++i) Bind(function.params()[i], last[i]);
    results = Convert(done);
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

  model.set_ir_version(opset_ > kOpset ? kNewIrVersion : kIrVersion);
  model.set_producer_name("collage");
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(opset_);
  return model;
}

}  // namespace collage
