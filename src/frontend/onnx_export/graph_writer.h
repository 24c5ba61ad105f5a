// graph_writer.h: a function of Relay as a graph of ONNX: names, scopes, nested graphs.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/frontend/onnx_export.h"
#include "frontend/onnx_export/exporter.h"
#include "frontend/onnx_export/usual_forms.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {

/// Writes one model. Names of Relay expressions in the graph are known per scope: a nested graph sees the names of the
/// graphs around it, they do not see its own; the body of a function that is inlined is a scope of the same graph.
class OnnxGraphWriter {
 public:
  explicit OnnxGraphWriter(const IRModule& module) : module_(module) {}

  /// The model of a typed function.
  onnx::ModelProto Write(const Function& function, const OnnxExportOptions& options);

  // ---- for rows ----
  OnnxNames AddNode(const std::string& op_type, const OnnxNames& inputs, const Attrs& attributes, size_t num_results,
                    const Span& span);
  std::string AddConstant(const Tensor& value);
  /// Returns the name of a converted tensor.
  const std::string& NameOf(const Expr& expr) const { return FindNames(expr.get())->at(0); }
  /// A name that nothing has yet: `wanted`, or that with a number.
  std::string FreshName(const std::string& wanted);
  void NeedsOpset(int64_t opset) { opset_ = std::max(opset_, opset); }

 private:
  /// Names of expressions, and the graph that nodes are added to.
  struct Scope {
    std::unordered_map<const ExprNode*, OnnxNames> names;
    std::unordered_map<const ExprNode*, Expr> functions;  ///< variables that are bound to functions
    onnx::GraphProto* graph = nullptr;
  };
  /// A scope for as long as it lives: of a nested graph, or (null) of the one that is being written.
  class Entered {
   public:
    Entered(OnnxGraphWriter& writer, onnx::GraphProto* graph);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    OnnxGraphWriter& writer_;
  };

  onnx::GraphProto& graph() { return *scopes_.back().graph; }
  const OnnxNames* FindNames(const ExprNode* expr) const;
  Expr FindFunction(const Expr& callee) const;

  /// The names of `root`'s flattened value; adds nodes for what has none. Goes down chains without recursion, into
  /// nested graphs and functions by recursion.
  OnnxNames Convert(const Expr& root);
  /// Converts one expression whose operands have names.
  OnnxNames ConvertOne(const Expr& expr);
  OnnxNames ConvertCall(const CallNode& call);
  OnnxNames ConvertOperator(const CallNode& call);
  OnnxNames Inline(const FunctionNode& function, const std::vector<OnnxNames>& args);
  OnnxNames ConvertIf(const IfNode& node);
  OnnxNames ConvertLoop(const Expr& var, const FunctionNode& function, const std::vector<OnnxNames>& args);
  /// A function that calls itself last, as the loop that it is.
  struct LoopForm {
    const FunctionNode* function;
    const IfNode* choice;
    const CallNode* again;  ///< the call of the next turn
    bool goes_on_if_true;

    const Expr& done() const { return goes_on_if_true ? choice->else_branch() : choice->then_branch(); }
  };
  static LoopForm LoopFormOf(const Expr& var, const FunctionNode& function);
  /// Returns the name of whether a turn with these values follows.
  std::string LoopCondition(const LoopForm& loop, const std::vector<OnnxNames>& values);
  void WriteLoopBody(const LoopForm& loop, onnx::GraphProto& body);
  /// The operands of `expr` that must have names first.
  static std::vector<Expr> Operands(const Expr& expr);
  std::vector<OnnxNames> NamesOf(const std::vector<Expr>& exprs) const;
  void Bind(const Expr& var, OnnxNames names) { scopes_.back().names[var.get()] = std::move(names); }

  /// Remembers the shapes of values that are static.
  void NoteShapes(const OnnxNames& names, const std::vector<Type>& types);
  /// Adds a value of `type` to the graph's inputs or outputs.
  static void Describe(onnx::ValueInfoProto& info, const std::string& name, const Type& type);
  /// Outputs need names of their own, each its own node.
  void AddOutputs(const OnnxNames& values, const std::vector<Type>& types, const std::vector<std::string>& wanted);

  const IRModule& module_;
  onnx::GraphProto* main_ = nullptr;
  std::vector<Scope> scopes_;
  std::set<std::string> taken_;
  std::map<std::string, int> next_;  ///< suffixes tried, by name
  std::vector<const ExprNode*> being_inlined_;
  OnnxShapes shapes_;
  /// The oldest that has what nearly every model consists of: engines that know no newer one can read it, too.
  int64_t opset_ = 17;
};

/// Throws kUnsupported: "ONNX has no words for …".
[[noreturn]] void ThrowNoWords(const std::string& what, const Span& span);
/// Returns the number of tensors in a type, tuples flattened.
size_t CountTensors(const Type& type);

/// Fills `proto` with a tensor's shape, dtype and bytes.
void WriteTensor(const Tensor& tensor, onnx::TensorProto& proto);

}  // namespace collage
