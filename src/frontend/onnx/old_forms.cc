// old_forms.cc: the changes of operators up to opset 7, by ONNX's own list ("Changelog.md").
#include "frontend/onnx/old_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace collage {
namespace {

constexpr int64_t kFirstOfToday = 7;

/// An operator and the first opset whose form is read.
struct FirstForm {
  std::string_view op;
  int64_t opset;
};

constexpr std::array kFirstForms{
    FirstForm{"Pad", 2},  FirstForm{"LpPool", 2}, FirstForm{"GlobalLpPool", 2}, FirstForm{"Split", 2},
    FirstForm{"GRU", 3},  FirstForm{"Concat", 4}, FirstForm{"Cast", 6},         FirstForm{"Tile", 6},
    FirstForm{"LSTM", 7}, FirstForm{"RNN", 7},    FirstForm{"Upsample", 7},
};

constexpr std::array<std::string_view, 11> kBroadcasting{"Add", "And", "Div", "Equal", "Greater", "Less",
                                                         "Mul", "Or",  "Pow", "Sub",   "Xor"};

/// Input 1 with as many dimensions of 1 at its end as make its first one dimension `axis` of input 0.
void AlignTo(NodeContext& node, int64_t axis) {
  const int64_t rank = node.Rank(node.Input(0));
  const int64_t behind = rank - (axis < 0 ? axis + rank : axis) - node.Rank(node.Input(1));
  if (behind < 0) node.Invalid(fmt::format("attribute 'axis' is {}, which does not fit its operands", axis));
  Sizes shape = node.SizesOf(node.Input(1));
  shape.insert(shape.end(), static_cast<size_t>(behind), 1);
  node.ReplaceInput(1, node.Reshape(node.Input(1), shape));
}

}  // namespace

void ReadOldForm(NodeContext& node) {
  if (node.opset() >= kFirstOfToday || node.opset() == 0) return;
  const std::string& op = node.op_type();
  const auto first = std::ranges::find(kFirstForms, op, &FirstForm::op);
  if (first != kFirstForms.end() && node.opset() < first->opset) {
    node.Unsupported(fmt::format("the form that this operator has before opset {}", first->opset));
  }
  if (!node.HasInput(0) || !node.HasInput(1)) return;
  if (op == "PRelu") {
    // A slope for each channel.
    if (node.Rank(node.Input(1)) == 1 && node.Rank(node.Input(0)) > 1) AlignTo(node, 1);
  } else if (std::ranges::find(kBroadcasting, op) != kBroadcasting.end()) {
    if (node.Int("broadcast", 0) != 0 && node.HasAttr("axis")) AlignTo(node, node.Int("axis", 0));
  }
}

}  // namespace collage
