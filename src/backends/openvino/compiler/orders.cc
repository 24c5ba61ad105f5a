// orders.cc: windows whose data or weights are in another order of dimensions than the operator's own (NHWC, HWIO):
// their row makes them in its own order, between transpositions that the plugin turns into changes of strides.
#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

/// For each dimension of layout `to`, which one of `from` it is.
std::vector<int64_t> Permutation(const std::string& from, const std::string& to) {
  std::vector<int64_t> axes;
  for (char letter : to) {
    const size_t at = from.find(letter);
    if (at == std::string::npos || from.size() != to.size()) {
      throw Untranslatable{"cannot order the dimensions of '" + from + "' as '" + to + "'"};
    }
    axes.push_back(static_cast<int64_t>(at));
  }
  return axes;
}

}  // namespace

ov::OutputVector InOwnOrder(const OpDef& op, const OpArgs& call, const TranslateFn& row) {
  const bool has_kernel = op.FindAttr("kernel_layout") != nullptr;
  const std::string data = has_kernel ? "data_layout" : "layout";
  // Recurrent layers have a number of that name.
  if (op.FindAttr(data) == nullptr || (!has_kernel && op.name.find("_pool") == std::string::npos)) return row(call);
  Attrs attrs = call.attrs;
  ov::OutputVector inputs = call.inputs;
  // Whether `value`, in the order that attribute `name` says, was put into the operator's own.
  const auto to_own = [&](const std::string& name, ov::Output<ov::Node>& value) {
    const std::string own = *op.FindAttr(name)->default_value.as_string();
    const std::string given = attrs.String(name);
    if (given == own) return;
    value = Transposed(value, Permutation(given, own));
    attrs.Set(name, own);
  };
  const std::string own = *op.FindAttr(data)->default_value.as_string();
  std::string result = call.attrs.StringOr("out_layout", "");
  if (result.empty()) result = call.attrs.String(data);
  to_own(data, inputs[0]);
  // A deformable convolution's second argument is its offsets.
  if (has_kernel) to_own("kernel_layout", inputs.at(op.args[1] == "offset" ? 2 : 1));
  if (attrs == call.attrs && result == own) return row(call);
  if (attrs.Has("out_layout")) attrs.Set("out_layout", "");
  ov::OutputVector values = row(OpArgs{attrs, inputs, call.result, call.types});
  if (result != own) values[0] = Transposed(values[0], Permutation(own, result));
  return values;
}

}  // namespace collage::openvino
