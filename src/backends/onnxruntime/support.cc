// support.cc: which calls may be offloaded: those that can be exported, of types that the CPU provider has kernels for.
#include "backends/onnxruntime/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "collage/frontend/onnx_export.h"
#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::onnxruntime {
namespace {

/// Types of tensors at boundaries. The provider has kernels for others, but few.
constexpr std::string_view kTypes = "float32 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool";

/// Operators, and the types of data for which the provider has kernels of them that compute what Relay does.
struct Kernels {
  std::string_view types;
  std::string_view operators;
};

/// Operators that are not listed have kernels for all of kTypes, such as those that move values. A test compiles each
/// operator for each type that is taken.
constexpr std::array kKernels{
    Kernels{"float32",
            "acos acosh asin asinh atan atanh ceil cos cosh dyn.image.resize2d erf exp floor image.grid_sample "
            "image.resize1d image.resize2d image.resize3d isfinite isinf isnan linalg.det log "
            "nn.adaptive_avg_pool2d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.batch_norm nn.conv1d "
            "nn.conv1d_transpose nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.deformable_conv2d "
            "nn.global_avg_pool1d nn.global_avg_pool2d nn.global_avg_pool3d nn.global_max_pool1d "
            "nn.global_max_pool2d nn.global_max_pool3d nn.group_norm nn.gru nn.instance_norm nn.l2_normalize "
            "nn.layer_norm nn.leaky_relu nn.log_softmax nn.lrn nn.lstm nn.rnn nn.softmax round rsqrt sigmoid sin "
            "sinh sqrt tan tanh variance vision.all_class_non_max_suppression vision.roi_align vision.roi_pool"},
    Kernels{"float32 int64", "dyn.one_hot one_hot"},
    Kernels{"float32 int8 int64", "unique"},
    Kernels{"float32 int8 int32", "nn.relu"},
    Kernels{"float32 int8 uint8",
            "nn.adaptive_max_pool2d nn.depth_to_space nn.max_pool1d nn.max_pool1d_indices nn.max_pool2d "
            "nn.max_pool2d_indices nn.max_pool3d nn.max_pool3d_indices nn.space_to_depth"},
    Kernels{"float32 int8 uint8 int32 int64", "argmax argmin max min"},
    Kernels{"float32 int8 uint8 int32 uint32 int64", "where"},
    Kernels{"float32 int8 uint8 int32 uint32 int64 uint64", "clip maximum minimum"},
    Kernels{"float32 int8 uint8 int32 uint32 int64 uint64 bool", "dyn.nn.pad nn.pad"},
    Kernels{"float32 int8 uint8 int16 int32 int64", "argsort dyn.topk sort topk"},
    Kernels{"float32 int8 uint8 int16 uint16 int32 uint32 int64 uint64",
            "abs add divide floor_divide floor_mod greater greater_equal less less_equal mod multiply nn.bias_add sign "
            "subtract"},
    Kernels{"float32 int8 int16 int32 int64", "negative"},
    Kernels{"float32 uint8 int32 int64 bool", "argwhere"},
    Kernels{"float32 int16 int32 int64", "arange"},
    Kernels{"float32 int32 int64", "cumsum einsum mean power prod sum"},
    Kernels{"float32 int32 int64 bool", "trilu"},
    Kernels{"float32 int32 uint32 int64", "nn.prelu"},
    Kernels{"float32 int32 uint32 int64 uint64", "nn.batch_matmul nn.dense nn.matmul"},
    Kernels{"int8 uint8 int16 uint16 int32 uint32 int64 uint64", "bitwise_and bitwise_not bitwise_or bitwise_xor"},
    Kernels{"uint8 uint32 uint64", "left_shift right_shift"},
};

/// Operators whose first argument is no data: their result has its type.
constexpr std::string_view kOfResult = "dyn.one_hot one_hot where";

struct Refusal {
  std::string_view op;
  const char* why;
};
constexpr std::array kRefused{
    Refusal{"cumprod", "many releases have no kernel of CumProd"},
    Refusal{"random.normal", "its numbers are drawn between partitions"},
    Refusal{"random.uniform", "its numbers are drawn between partitions"},
    Refusal{"reinterpret", "many releases have no kernel of BitCast"},
};

bool IsAmong(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

/// Adds the names of the element types of the tensors in `type`.
void AddDTypes(const Type& type, std::vector<std::string>& dtypes) {
  if (const TensorTypeNode* tensor = AsTensorType(type)) dtypes.push_back(tensor->dtype().ToString());
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    for (const Type& field : tuple->fields()) AddDTypes(field, dtypes);
  }
}

/// The names of all element types: those of the arguments in their order, then those of the result.
std::vector<std::string> DTypesOf(const CallNode& call) {
  std::vector<std::string> dtypes;
  for (const Expr& arg : call.args()) AddDTypes(arg->checked_type(), dtypes);
  AddDTypes(call.checked_type(), dtypes);
  return dtypes;
}

}  // namespace

Result<void> Supports(const CallNode& call) {
  const auto no = [](std::string why) { return Reason{std::move(why), "onnxruntime"}; };
  if (call.op() == nullptr) return no("calls no operator");
  const std::string& name = call.op()->name;
  const auto refused = std::ranges::find(kRefused, name, &Refusal::op);
  if (refused != kRefused.end()) return no(refused->why);
  const std::vector<std::string> dtypes = DTypesOf(call);
  for (const std::string& dtype : dtypes) {
    if (!IsAmong(kTypes, dtype)) return no(fmt::format("its kernels are not for {}", dtype));
  }
  const auto row = std::ranges::find_if(kKernels, [&](const Kernels& one) { return IsAmong(one.operators, name); });
  if (row != kKernels.end() && !dtypes.empty()) {
    const std::string& data = IsAmong(kOfResult, name) ? dtypes.back() : dtypes.front();
    if (!IsAmong(row->types, data)) return no(fmt::format("it has no kernel of '{}' for {}", name, data));
  }
  const Result<void> exported = CanExportOnnx(call);
  if (!exported.ok()) return no(exported.reason().text);
  return {};
}

}  // namespace collage::onnxruntime
