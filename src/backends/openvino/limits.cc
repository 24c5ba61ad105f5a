// limits.cc: what single operators cannot do in OpenVINO, one function per family.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/openvino/support.h"
#include "collage/ir/type.h"

namespace collage::openvino {
namespace {

Reason No(std::string text) { return Reason{std::move(text), "openvino"}; }

DataType DTypeOf(const Type& type) { return AsTensorType(FlattenTensorTypes(type).at(0))->dtype(); }

bool IsConstant(const Expr& expr) { return As<ConstantNode>(expr) != nullptr; }

/// Whether some element of a constant is 0 (or is not, with `wanted` false). False for what is no constant.
bool AnyElement(const Expr& expr, bool is_zero) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  for (int64_t i = 0; constant != nullptr && i < constant->value().num_elements(); ++i) {
    if ((constant->value().At(i) == 0) == is_zero) return true;
  }
  return false;
}

Result<void> CheckWindow(const CallNode& call, std::string_view name) {
  const Attrs& attrs = call.attrs();
  const DataType dtype = FirstDType(call);
  if (name.starts_with("nn.avg_pool")) {
    if (attrs.Bool("ceil_mode") && attrs.Bool("count_include_pad")) {
      return No("divides partial windows by another count when padding counts");
    }
    if (std::ranges::any_of(attrs.Ints("dilation"), [](int64_t d) { return d != 1; })) {
      return No("averages windows without dilation only");
    }
  }
  if (name.ends_with("_indices") && dtype == kBFloat16) return No("says no positions in bfloat16");
  if (name.ends_with("_indices") && attrs.Bool("column_major")) return No("counts positions by rows only");
  const DataType result = DTypeOf(call.checked_type());
  if (!name.ends_with("_indices") && result != dtype) {
    return No(fmt::format("its result has the type of its data, {}, not {}", dtype.ToString(), result.ToString()));
  }
  return {};
}

Result<void> CheckArithmetic(const CallNode& call, std::string_view name) {
  const DataType dtype = FirstDType(call);
  const bool divides = name == "divide" || name == "mod" || name == "floor_mod" || name == "floor_divide";
  if (divides && !IsFloat(dtype) && (!IsConstant(call.args()[1]) || AnyElement(call.args()[1], true))) {
    return No("an integer division by zero would end the process");
  }
  if (name == "floor_divide" && IsFloat(dtype)) {
    return No("rounds quotients of floats before it takes their floor, which may be one less");
  }
  constexpr std::array kWrapping{"add", "subtract", "multiply", "nn.bias_add", "sum", "prod", "cumsum"};
  if ((dtype == kInt8 || dtype == kUInt8) && std::ranges::find(kWrapping, name) != kWrapping.end()) {
    return No("saturates where " + dtype.ToString() + " wraps");
  }
  if (name == "negative" && dtype == kUInt8) return No("negates no uint8");
  if ((name == "left_shift" || name == "right_shift") && dtype != kInt32 && dtype != kUInt8) {
    return No("shifts of " + dtype.ToString() + " are computed with other bits");
  }
  return {};
}

Result<void> CheckPad(const CallNode& call) {
  const Attrs& attrs = call.attrs();
  if (!IsConstant(call.args()[1])) return No("its pad value is not constant");
  if (attrs.String("pad_mode") != "reflect") return {};
  const Shape shape = AsTensorType(call.args()[0]->checked_type())->static_shape();
  const AttrValue::List& widths = *attrs.Get("pad_width").as_list();
  for (size_t i = 0; i < shape.size(); ++i) {
    for (const AttrValue& width : *widths[i].as_list()) {
      if (*width.as_int() >= shape[i]) return No("reflects once only, by less than the size");
    }
  }
  return {};
}

Result<void> CheckQuantize(const CallNode& call) {
  if (!IsConstant(call.args()[1]) || !IsConstant(call.args()[2])) {
    return No("quantises with constant scales and zero points only");
  }
  if (FirstDType(call) == kBFloat16) return No("quantises no bfloat16");
  const DataType result = DTypeOf(call.checked_type());
  if (result != kInt8 && result != kUInt8) return No("quantises to int8 and uint8 only, not " + result.ToString());
  return {};
}

Result<void> CheckResize(const Attrs& attrs) {
  constexpr std::array kModes{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                              "tf_half_pixel_for_nn"};
  if (attrs.Bool("antialias") || attrs.Int("cubic_exclude") != 0)
    return No("stretches no filters and leaves out no taps");
  const std::string& mode = attrs.String("coordinate_transformation_mode");
  if (std::ranges::find(kModes, mode) == kModes.end()) return No("has no coordinate mode '" + mode + "'");
  if (attrs.String("layout").find('C') != 1) return No("resizes no data of layout " + attrs.String("layout"));
  return {};
}

/// Activations of a recurrent layer: those with a kernel, the same in both directions.
Result<void> CheckActivations(const Attrs& attrs, size_t count) {
  const AttrValue::List* given = attrs.Get("activations").as_list();
  if (given == nullptr || given->empty()) return {};
  for (const AttrValue& value : *given) {
    const std::string name = value.as_string() == nullptr ? "" : *value.as_string();
    if (name != "Sigmoid" && name != "Tanh" && name != "Relu") return No("has no activation '" + name + "'");
  }
  for (size_t i = count; i < given->size(); ++i) {
    if (!((*given)[i] == (*given)[i - count])) return No("takes the same activations in both directions only");
  }
  return {};
}

Result<void> CheckRecurrent(const CallNode& call, std::string_view name) {
  const Attrs& attrs = call.attrs();
  const bool has_cell = name == "nn.lstm";
  // A constant state would be read as its first row for the whole batch; zeros are all alike.
  if (AnyElement(call.args()[4], false) || (has_cell && AnyElement(call.args()[5], false))) {
    return No("takes constant initial states of 0 only");
  }
  if (call.args().size() > (has_cell ? 6 : 5)) return No("takes no peepholes and no sequence lengths");
  if (!attrs.IsNone("clip") || !attrs.IsNone("activation_alpha") || !attrs.IsNone("activation_beta")) {
    return No("takes no clip and no coefficients of activations");
  }
  if (has_cell && attrs.Bool("input_forget")) return No("couples no gates");
  return CheckActivations(attrs, has_cell ? 3 : name == "nn.gru" ? 2 : 1);
}

}  // namespace

bool IsFloat(DataType dtype) { return dtype == kFloat32 || dtype == kFloat16 || dtype == kBFloat16; }

DataType FirstDType(const CallNode& call) {
  return DTypeOf(call.args().empty() ? call.checked_type() : call.args()[0]->checked_type());
}

Result<void> CheckLimits(const CallNode& call, std::string_view name) {
  const Attrs& attrs = call.attrs();
  constexpr std::array kProducts{"nn.dense", "nn.matmul", "nn.batch_matmul", "einsum"};
  const bool is_window = name.find("_pool") != name.npos || name.find("conv") != name.npos;
  if (is_window || std::ranges::find(kProducts, name) != kProducts.end()) return CheckWindow(call, name);
  if (name.starts_with("image.resize")) return CheckResize(attrs);
  if (name == "nn.lstm" || name == "nn.gru" || name == "nn.rnn") return CheckRecurrent(call, name);
  if (name == "image.grid_sample" && AsTensorType(call.args()[0]->checked_type())->rank() != 4) {
    return No("samples images of two dimensions only");
  }
  if (name == "vision.roi_align" && attrs.String("mode") == "max") {
    return No("takes the largest of sampled values, not of what their corners add");
  }
  if (name == "nn.group_norm" && attrs.IntOr("axis", 1) != 1) return No("normalises groups of axis 1 only");
  if (name == "nn.group_norm" && FirstDType(call) == kBFloat16) return No("normalises groups of no bfloat16");
  if (name == "nn.batch_norm" && attrs.Int("axis") != 1) return No("normalises channels of axis 1 only");
  if (name == "nn.pad") return CheckPad(call);
  if (name == "qnn.quantize") return CheckQuantize(call);
  return CheckArithmetic(call, name);
}

}  // namespace collage::openvino
