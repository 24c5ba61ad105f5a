// alter_op_layout.cc: convolutions go where processors are fast: channels innermost. In plain NHWC with weights that
// are packed in advance, vectorised kernels reach the peak; in NCHW they fall to a third of it or less. Grouped ones
// that are not depthwise gain nothing, since their channels are read in small pieces either way.
#include "collage/ir/infer_type.h"
#include "transform/passes.h"
#include "transform/passes/convert_layout.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

// Fewer channels than a vector register holds leave lanes empty.
constexpr int64_t kFewestChannels = 8;

std::optional<DesiredLayouts> Alter(const CallNode& call) {
  const std::string& name = call.op()->name;
  const bool is_conv = name == "nn.conv1d" || name == "nn.conv2d" || name == "nn.conv3d";
  if (!is_conv) return std::nullopt;
  const Attrs& attrs = call.attrs();
  const std::string own = *call.op()->FindAttr("data_layout")->default_value.as_string();
  const std::string weight = *call.op()->FindAttr("kernel_layout")->default_value.as_string();
  if (attrs.String("data_layout") != own || attrs.String("kernel_layout") != weight) return std::nullopt;
  const TensorTypeNode* type = AsTensorType(InferType(call.args()[1]));
  if (!type->is_static()) return std::nullopt;
  const Shape shape = type->static_shape();
  const bool is_depthwise = attrs.Int("groups") == shape[0] && shape[1] == 1;
  if ((attrs.Int("groups") != 1 && !is_depthwise) || shape[0] < kFewestChannels) return std::nullopt;
  const std::string data = "N" + own.substr(2) + "C";
  return DesiredLayouts{data, MatchingWeightLayout(data, weight)};
}

}  // namespace

Function AlterOpLayout(const Function& function) { return ConvertLayouts(function, Alter); }

}  // namespace collage
