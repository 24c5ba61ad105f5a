// reshape.cc: another shape for the same elements, whose sizes a run may have to find.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"
#include "ir/shapes/reshape_pattern.h"

namespace collage::openvino {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

Value ReshapedAs(const OpArgs& call, const std::vector<int64_t>& codes) {
  if (!call.is_dynamic()) return Reshaped(call[0], call.result_shape());
  const auto pattern =
      FindReshapePattern(AsTensorType(call.types.at(0))->shape(), AsTensorType(call.result)->shape(), codes);
  if (!pattern) throw Untranslatable{"two sizes of a reshape's result do not follow from those of its input"};
  if (!pattern->needs_shape()) {
    return std::make_shared<ops::Reshape>(call[0], Ints(pattern->sizes), /*special_zero=*/true);
  }
  const Value shape = std::make_shared<ops::ShapeOf>(call[0], ov::element::i64);
  ov::OutputVector sizes;
  for (size_t i = 0; i < pattern->sizes.size(); ++i) {
    if (pattern->sizes[i] != ReshapePattern::kFromShape) {
      sizes.push_back(Ints({pattern->sizes[i]}));
    } else {
      sizes.push_back(std::make_shared<ops::Gather>(shape, Ints({pattern->dims[i]}), Scalar(ov::element::i64, 0)));
    }
  }
  return std::make_shared<ops::Reshape>(call[0], std::make_shared<ops::Concat>(sizes, 0), /*special_zero=*/true);
}

}  // namespace collage::openvino
