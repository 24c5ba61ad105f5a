// toolchain.cc: the native toolchain's description: kernels generated through MLIR and LLVM. It mimics FuseOps: an anchor
// and the element-wise operators behind it, or chains of operators that move and compute element by element.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/ir/visitor.h"
#include "collage/target/toolchain.h"

namespace collage::native {
namespace {

const std::set<std::string>& Operators() {
  static const std::set<std::string> names{
      "abs", "acos", "add", "asin", "atan", "broadcast_to", "cast", "ceil", "clip", "concatenate", "copy", "cos", "cosh",
      "divide", "equal", "erf", "exp", "floor", "greater", "greater_equal", "less", "less_equal", "log", "logical_and",
      "logical_not", "logical_or", "max", "maximum", "mean", "min", "minimum", "multiply", "negative", "nn.avg_pool2d",
      "nn.batch_matmul", "nn.bias_add", "nn.conv2d", "nn.dense", "nn.global_avg_pool1d", "nn.global_avg_pool2d",
      "nn.global_avg_pool3d", "nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d", "nn.layer_norm",
      "nn.leaky_relu", "nn.log_softmax", "nn.max_pool2d", "nn.relu", "nn.softmax", "not_equal", "power", "prod", "round",
      "rsqrt", "sigmoid", "sign", "sin", "sinh", "split", "sqrt", "strided_slice", "subtract", "sum", "take", "tan", "tanh",
      "transpose", "trunc", "where", "reshape", "expand_dims", "squeeze", "nn.batch_flatten"};
  return names;
}

bool IsSupportedType(DataType dtype) {
  return dtype == kFloat32 || dtype == kInt64 || dtype == kInt32 || dtype == kBool;
}

class Native : public Toolchain {
 public:
  std::string name() const override { return "native"; }
  std::string description() const override { return "kernels generated through MLIR and LLVM"; }
  int priority() const override { return 0; }
  bool is_native() const override { return true; }
  FusionStyle fusion_style() const override { return FusionStyle::kTVMFusion; }
  int max_depth() const override { return 8; }

  Availability Probe() const override {
    Availability result;
    result.version = COLLAGE_NATIVE_VERSION;
    result.available = !result.version.empty();
    if (!result.available) {
      result.reason = "this build was made without MLIR";
      result.hint = "run ./setup and build again";
    }
    return result;
  }

  Result<void> SupportsCall(const CallNode& call) const override {
    const std::string& op = call.op()->name;
    if (!Operators().contains(op)) return Reason{fmt::format("'{}' has no native lowering", op), name()};
    std::vector<Type> types{call.checked_type()};
    for (const Expr& arg : call.args()) types.push_back(arg->checked_type());
    for (const Type& type : types) {
      for (const Type& leaf : FlattenTensorTypes(type)) {
        const TensorTypeNode* tensor = AsTensorType(leaf);
        if (!tensor->is_static()) return Reason{"dynamic shapes", name()};
        if (!IsSupportedType(tensor->dtype())) return Reason{tensor->dtype().ToString() + " tensors", name()};
        if (NumElements(tensor->static_shape()) == 0) return Reason{"empty tensors", name()};
      }
    }
    if (op == "nn.softmax" || op == "nn.log_softmax" || op == "nn.layer_norm") {
      const int64_t axis = call.attrs().Int("axis");
      const int rank = AsTensorType(call.args()[0]->checked_type())->rank();
      if (axis != -1 && axis != rank - 1) return Reason{"normalises the last axis only", name()};
    }
    if (op == "nn.conv2d" || op == "nn.dense") return SupportsWeights(call);
    return {};
  }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    if (plain == last) return {plain};
    bool has_convolution = false;
    PostOrder(function->body(), [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      if (call == nullptr || call->op() == nullptr) return;
      has_convolution = has_convolution || call->op()->name == "nn.conv2d";
    });
    if (has_convolution) {
      // Data is read one element at a time: it may lie in any order.
      BoundaryLayouts mixed = last;
      std::fill(mixed.inputs.begin(), mixed.inputs.end(), Layout::kPlain);
      if (mixed == last) return {last};
      return {last, mixed};
    }
    return {last, plain};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<CompiledPartition> result = Reason{"the compiler module gave no answer", name()};
    OpenCompilerModule(name())(request, result);
    return result;
  }

 private:
  Result<void> SupportsWeights(const CallNode& call) const {
    const ConstantNode* weight = As<ConstantNode>(call.args()[1]);
    if (weight == nullptr) return Reason{"the weight is not constant", name()};
    if (call.op()->name == "nn.dense") return {};
    const int64_t groups = call.attrs().Int("groups");
    const Shape& shape = weight->value().shape();
    if (groups == 1 || (shape[0] == groups && shape[1] == 1)) return {};
    return Reason{"grouped convolutions that are not depthwise", name()};
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<Native>(); }

}  // namespace collage::native
