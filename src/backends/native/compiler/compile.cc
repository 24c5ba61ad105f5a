// compile.cc: splits a partition into stages and puts the kernel together.
#include <algorithm>

#include "backends/native/compiler/codegen.h"
#include "backends/native/compiler/stages.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"

namespace collage::native {
namespace {

bool IsContraction(const std::string& name) {
  return name == "nn.conv2d" || name == "nn.dense" || name == "nn.batch_matmul";
}
bool IsRowNormalisation(const std::string& name) {
  return name == "nn.softmax" || name == "nn.log_softmax" || name == "nn.layer_norm";
}
bool IsPool(const std::string& name) { return name == "nn.max_pool2d" || name == "nn.avg_pool2d"; }
bool IsReduction(const std::string& name) {
  return name == "sum" || name == "mean" || name == "max" || name == "min" || name == "prod" ||
         name.starts_with("nn.global_");
}
bool IsAnchor(const std::string& name) {
  return IsContraction(name) || IsRowNormalisation(name) || IsPool(name) || IsReduction(name);
}

const CallNode* AsOp(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr ? call : nullptr;
}

/// Compiles one request.
class PartitionCompiler {
 public:
  explicit PartitionCompiler(const PartitionRequest& request)
      : request_(request), state_(ThisTarget().vector_lanes, request.num_threads) {}

  CompiledPartition Run() {
    AddInputs();
    const Expr& body = request_.function->body();
    if (const CallNode* call = AsOp(body); call != nullptr && call->op()->name == "split") {
      CompileSplit(*call);
    } else if (call != nullptr && call->op()->name == "concatenate") {
      CompileConcatenate(*call, OutputBuffer(0, body->checked_type()));
    } else {
      CompileBody(body, OutputBuffer(0, body->checked_type()));
    }
    CompiledPartition compiled;
    compiled.source = NumberBuffers(state_.emitter.Module());
    compiled.blob = CompileMlir(compiled.source);
    compiled.loader = "object";
    compiled.constants = state_.constants;
    compiled.workspace_bytes = static_cast<size_t>(state_.workspace_bytes);
    return compiled;
  }

 private:
  void AddInputs() {
    for (const Var& param : request_.function->params()) {
      const TensorTypeNode* type = AsTensorType(param->checked_type());
      if (type == nullptr) throw Error(ErrorCategory::kUnsupported, "a parameter that is no tensor");
      const Shape shape = type->static_shape();
      const Layout layout = request_.layouts.inputs.at(static_cast<size_t>(state_.num_inputs));
      state_.expressions.SetBuffer(param, {state_.num_inputs++, 0, type->dtype(), shape, LayoutStrides(shape, layout)});
    }
  }

  Buffer OutputBuffer(int number, const Type& type) const {
    const TensorTypeNode* tensor = AsTensorType(type);
    if (tensor == nullptr) throw Error(ErrorCategory::kUnsupported, "a result that is no tensor");
    const Shape shape = tensor->static_shape();
    return {kFirstOutput + number, 0, tensor->dtype(), shape,
            LayoutStrides(shape, request_.layouts.outputs.at(static_cast<size_t>(number)))};
  }

  /// The anchor whose value becomes `body` by element-wise operators of the same shape alone; null when there is none.
  static const CallNode* EpilogueAnchor(const Expr& body, const CallNode* last_anchor) {
    if (last_anchor == nullptr) return nullptr;
    const Shape shape = ShapeOf(body);
    std::vector<Expr> work{body};
    bool reaches = false;
    while (!work.empty()) {
      const Expr current = work.back();
      work.pop_back();
      if (current.get() == last_anchor) {
        reaches = true;
        continue;
      }
      const CallNode* call = AsOp(current);
      if (call == nullptr) continue;
      if (IsAnchor(call->op()->name)) continue;
      const bool contains = Contains(current, last_anchor);
      if (!contains) continue;
      if (ShapeOf(current) != shape || call->op()->pattern > OpPatternKind::kBroadcast || call->op()->is_reshape) return nullptr;
      work.insert(work.end(), call->args().begin(), call->args().end());
    }
    return reaches && ShapeOf(Shared(body, last_anchor)) == shape ? last_anchor : nullptr;
  }

  static bool Contains(const Expr& root, const ExprNode* node) {
    bool found = false;
    PostOrder(root, [&](const Expr& expr) { found = found || expr.get() == node; });
    return found;
  }
  static Expr Shared(const Expr& root, const ExprNode* node) {
    Expr result;
    PostOrder(root, [&](const Expr& expr) {
      if (expr.get() == node) result = expr;
    });
    return result;
  }

  void AddConstants(const Expr& body) {
    std::unordered_map<const ExprNode*, bool> only_weight;  // used as a packed weight and nowhere else
    PostOrder(body, [&](const Expr& expr) {
      const CallNode* call = AsOp(expr);
      if (call == nullptr) return;
      for (size_t i = 0; i < call->args().size(); ++i) {
        const Expr& arg = call->args()[i];
        if (arg->kind() != ExprKind::kConstant) continue;
        const bool packed = i == 1 && IsContraction(call->op()->name) && call->op()->name != "nn.batch_matmul";
        auto [it, is_new] = only_weight.emplace(arg.get(), packed);
        if (!is_new) it->second = it->second && packed;
      }
    });
    PostOrder(body, [&](const Expr& expr) {
      const ConstantNode* constant = As<ConstantNode>(expr);
      if (constant == nullptr || constant->value().num_elements() == 1 || only_weight[expr.get()]) return;
      state_.expressions.SetBuffer(expr, state_.AddConstant(constant->value()));
    });
  }

  void CompileBody(const Expr& body, const Buffer& out) {
    AddConstants(body);
    std::vector<Expr> anchors;
    PostOrder(body, [&](const Expr& expr) {
      const CallNode* call = AsOp(expr);
      if (call != nullptr && IsAnchor(call->op()->name)) anchors.push_back(expr);
    });
    const CallNode* fused = EpilogueAnchor(body, anchors.empty() ? nullptr : As<CallNode>(anchors.back()));
    for (const Expr& anchor : anchors) {
      const CallNode& call = *As<CallNode>(anchor);
      if (&call == fused) {
        EmitAnchor(call, {anchor, body, out});
        return;
      }
      const Layout layout = NaturalLayout(call);
      const Buffer buffer = state_.AddWorkspace(ShapeOf(anchor), layout);
      EmitAnchor(call, {anchor, anchor, buffer});
      state_.expressions.SetBuffer(anchor, buffer);
    }
    if (const CallNode* call = AsOp(body); call != nullptr && call->op()->name == "take") return EmitTake(state_, *call, out);
    EmitPointwise(state_, body, out);
  }

  static Layout NaturalLayout(const CallNode& call) {
    return call.op()->name == "nn.conv2d" ? Layout::kChannelsLast : Layout::kPlain;
  }

  void EmitAnchor(const CallNode& call, const StageOutput& output) {
    const std::string& name = call.op()->name;
    if (IsContraction(name)) return EmitContraction(state_, call, output);
    if (IsRowNormalisation(name)) return EmitRowNormalisation(state_, call, output);
    if (IsPool(name)) return EmitPool(state_, call, output);
    EmitReduction(state_, call, output);
  }

  void CompileSplit(const CallNode& call) {
    AddConstants(call.args()[0]);
    const auto& fields = AsTupleType(call.checked_type())->fields();
    const Shape shape = ShapeOf(call.args()[0]);
    const int64_t raw = call.attrs().Int("axis");
    const auto axis = static_cast<size_t>(raw < 0 ? raw + static_cast<int64_t>(shape.size()) : raw);
    int64_t at = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Buffer buffer = OutputBuffer(static_cast<int>(i), fields[i]);
      EmitPointwiseFrom(state_, call.args()[0], buffer, [&](const Indices& indices) {
        Indices source = indices;
        source[axis].base = state_.emitter.Plus(indices[axis].base, at);
        return source;
      });
      at += buffer.shape[axis];
    }
  }

  void CompileConcatenate(const CallNode& call, const Buffer& out) {
    const TupleNode* tuple = As<TupleNode>(call.args()[0]);
    if (tuple == nullptr) throw Error(ErrorCategory::kUnsupported, "a concatenation of a tuple that is computed");
    const int64_t raw = call.attrs().Int("axis");
    const auto axis = static_cast<size_t>(raw < 0 ? raw + static_cast<int64_t>(out.shape.size()) : raw);
    int64_t at = 0;
    for (const Expr& field : tuple->fields()) {
      AddConstants(field);
      if (const ConstantNode* constant = As<ConstantNode>(field); constant != nullptr && state_.expressions.FindBuffer(field) == nullptr &&
          constant->value().num_elements() != 1) {
        state_.expressions.SetBuffer(field, state_.AddConstant(constant->value()));
      }
      // A piece is a smaller tensor with the whole one's strides, from its position on.
      Buffer piece = out;
      piece.shape = ShapeOf(field);
      piece.offset_bytes += at * out.strides[axis] * static_cast<int64_t>(out.dtype.size_bytes());
      at += piece.shape[axis];
      EmitPointwiseFrom(state_, field, piece, [](const Indices& indices) { return indices; });
    }
  }

  /// Gives buffers their final numbers: inputs, constants, outputs, workspace.
  std::string NumberBuffers(const std::string& text) const {
    const int constants = static_cast<int>(state_.constants.size());
    const int outputs = static_cast<int>(request_.layouts.outputs.size());
    std::string result;
    constexpr std::string_view kSlot = "getelementptr %ctx[";
    size_t from = 0;
    for (size_t at = text.find(kSlot); at != std::string::npos; at = text.find(kSlot, from)) {
      const size_t begin = at + kSlot.size();
      const size_t end = text.find(']', begin);
      int number = std::stoi(text.substr(begin, end - begin));
      if (number >= kWorkspace) {
        number = state_.num_inputs + constants + outputs;
      } else if (number >= kFirstOutput) {
        number = number - kFirstOutput + state_.num_inputs + constants;
      } else if (number >= kFirstConstant) {
        number = number - kFirstConstant + state_.num_inputs;
      }
      result += text.substr(from, begin - from) + std::to_string(number);
      from = end;
    }
    return result + text.substr(from);
  }

  const PartitionRequest& request_;
  PartitionState state_;
};

}  // namespace
}  // namespace collage::native

extern "C" void collage_compile_partition(const collage::PartitionRequest& request,
                                          collage::Result<collage::CompiledPartition>& result) {
  try {
    result = collage::native::PartitionCompiler(request).Run();
  } catch (const collage::Error& error) {
    result = collage::Reason{error.message(), "native"};
  }
}
