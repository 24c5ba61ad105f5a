// stages.cc: the table of operators that need loops of their own.
#include "backends/native/compiler/emit/stages.h"

#include <map>
#include <unordered_set>

#include "backends/native/compiler/kernels/determinant.h"
#include "backends/native/operators.h"
#include "collage/ir/visitor.h"

namespace collage::native {

const StageRow* FindStage(std::string_view name) {
  static const std::map<std::string, StageRow, std::less<>> rows = [] {
    std::map<std::string, StageRow, std::less<>> made;
    const auto add = [&](std::initializer_list<const char*> names, StageRow row) {
      for (const char* each : names) made[each] = row;
    };
    add({"nn.dense", "nn.matmul", "nn.batch_matmul"}, {EmitMatrixProduct, true, ResultLanes::kLast});
    add({"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"},
        {EmitConvolution, true, ResultLanes::kChannels});
    add({"nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.l2_normalize"},
        {EmitNormalisation});
    add({"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d",
         "nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d", "nn.adaptive_max_pool1d",
         "nn.adaptive_max_pool2d", "nn.adaptive_max_pool3d"},
        {EmitPool});
    add({"sum", "mean", "max", "min", "prod", "all", "any", "variance", "nn.global_avg_pool1d", "nn.global_avg_pool2d",
         "nn.global_avg_pool3d", "nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d"},
        {EmitReduction});
    add({"argmax", "argmin"}, {EmitArgReduction});
    add({"cumsum", "cumprod"}, {EmitCumulativeSum, true, ResultLanes::kLast});
    add({"concatenate", "stack"}, {EmitConcatenate});
    add({"sort", "argsort", "topk"}, {EmitSort});
    add({"linalg.det"}, {EmitDeterminant});
    add({"scatter_elements", "scatter_nd"}, {EmitScatter, /*fuses_epilogue=*/false});
    return made;
  }();
  const auto it = rows.find(name);
  return it == rows.end() ? nullptr : &it->second;
}

bool IsEpilogue(const Expr& root, const Expr& anchor) {
  const Shape shape = ShapeOf(root);
  if (ShapeOf(anchor) != shape) return false;
  std::unordered_set<const ExprNode*> above;  // of the anchor
  PostOrder(root, [&](const Expr& expr) {
    const std::vector<Expr> children = Children(expr);
    const bool is_above = expr == anchor || std::any_of(children.begin(), children.end(),
                                                        [&](const Expr& child) { return above.contains(child.get()); });
    if (is_above) above.insert(expr.get());
  });
  // Below the anchor nothing contains it; on the way to it, only what keeps every element in its place.
  for (const ExprNode* node : above) {
    if (node == anchor.get()) continue;
    if (node->kind() != ExprKind::kCall) return false;
    const auto& call = static_cast<const CallNode&>(*node);
    if (call.op() == nullptr || !KeepsPlaces(*call.op())) return false;
    if (AsTensorType(call.checked_type()) == nullptr || AsTensorType(call.checked_type())->static_shape() != shape)
      return false;
  }
  return true;
}

std::string NumberBuffers(const PartitionState& state, int outputs) {
  const std::string text = state.emitter.Module();
  const int constants = static_cast<int>(state.constants.size());
  std::string result;
  constexpr std::string_view kSlot = "getelementptr %ctx[";
  size_t from = 0;
  for (size_t at = text.find(kSlot); at != std::string::npos; at = text.find(kSlot, from)) {
    const size_t begin = at + kSlot.size();
    const size_t end = text.find(']', begin);
    int number = std::stoi(text.substr(begin, end - begin));
    if (number >= kWorkspace) {
      number = state.num_inputs + constants + outputs;
    } else if (number >= kFirstOutput) {
      number = number - kFirstOutput + state.num_inputs + constants;
    } else if (number >= kFirstConstant) {
      number = number - kFirstConstant + state.num_inputs;
    }
    result += text.substr(from, begin - from) + std::to_string(number);
    from = end;
  }
  return result + text.substr(from);
}

void EmitShares(
    PartitionState& state, int64_t slots, int64_t units,
    const std::function<void(const std::string& slot, const std::string& unit, const std::string& first)>& body) {
  Emitter& e = state.emitter;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& slot) {
      const auto share = [&](const std::string& of) { return e.IntOp("divui", e.MulInt(of, units), e.Int(slots)); };
      const std::string first = share(slot);
      e.For(first, share(e.Plus(slot, 1)), 1, [&](const std::string& unit) { body(slot, unit, first); });
    });
  });
  e.Call(name, slots, slots > 1);
}

}  // namespace collage::native
