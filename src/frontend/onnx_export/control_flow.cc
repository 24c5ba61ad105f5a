// control_flow.cc: branches and loops, which hold graphs of their own.
#include <algorithm>
#include <utility>

#include "frontend/onnx_export/graph_writer.h"

namespace collage {

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

OnnxGraphWriter::LoopForm OnnxGraphWriter::LoopFormOf(const Expr& var, const FunctionNode& function) {
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
    ThrowNoWords("a recursion that is no loop: `if (…) { itself(…) } else { … }` is one", function.span());
  }
  return {&function, choice, again, goes_on_if_true};
}

std::string OnnxGraphWriter::LoopCondition(const LoopForm& loop, const std::vector<OnnxNames>& values) {
  const Entered scope(*this, nullptr);
  for (size_t i = 0; i < values.size(); ++i) Bind(loop.function->params()[i], values[i]);
  const std::string holds = Convert(loop.choice->condition()).at(0);
  return loop.goes_on_if_true ? holds : AddNode("Not", {holds}, {}, 1, loop.function->span())[0];
}

void OnnxGraphWriter::WriteLoopBody(const LoopForm& loop, onnx::GraphProto& body) {
  body.set_name(FreshName("body"));
  Describe(*body.add_input(), FreshName("turn"), TensorType(Shape{}, kInt64));
  Describe(*body.add_input(), FreshName("go_on"), TensorType(Shape{}, kBool));
  const Entered scope(*this, &body);
  std::vector<Type> output_types{TensorType(Shape{}, kBool)};
  for (const Var& param : loop.function->params()) {
    OnnxNames names;
    for (const Type& type : FlattenTensorTypes(param->checked_type())) {
      names.push_back(FreshName(param->name()));
      Describe(*body.add_input(), names.back(), type);
      output_types.push_back(type);
    }
    Bind(param, names);
  }
  std::vector<OnnxNames> next;
  for (const Expr& arg : loop.again->args()) next.push_back(Convert(arg));
  OnnxNames outputs{LoopCondition(loop, next)};
  for (const OnnxNames& names : next) outputs.insert(outputs.end(), names.begin(), names.end());
  AddOutputs(outputs, output_types, {});
}

/// `fn (v…) { if (c(v)) { self(next(v)…) } else { done(v) } }`, called with `args`: Loop carries v, and computes the
/// condition of the next turn at the end of each.
OnnxNames OnnxGraphWriter::ConvertLoop(const Expr& var, const FunctionNode& function,
                                       const std::vector<OnnxNames>& args) {
  if (std::find(being_inlined_.begin(), being_inlined_.end(), &function) != being_inlined_.end()) {
    ThrowNoWords("a recursion that is no loop: the function calls itself elsewhere than last", function.span());
  }
  const LoopForm loop = LoopFormOf(var, function);
  being_inlined_.push_back(&function);
  onnx::NodeProto made;
  made.add_input("");  // no limit but the condition
  made.add_input(LoopCondition(loop, args));
  for (const OnnxNames& names : args) {
    for (const std::string& name : names) made.add_input(name);
  }
  onnx::AttributeProto& proto = *made.add_attribute();
  proto.set_name("body");
  proto.set_type(onnx::AttributeProto::GRAPH);
  WriteLoopBody(loop, *proto.mutable_g());
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
    results = Convert(loop.done());
  }
  being_inlined_.pop_back();
  return results;
}

}  // namespace collage
