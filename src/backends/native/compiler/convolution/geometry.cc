// geometry.cc: reads a call of a convolution.
#include "backends/native/compiler/convolution/geometry.h"

#include "backends/native/compiler/emit/expressions.h"

namespace collage::native {

ConvolutionGeometry::ConvolutionGeometry(const CallNode& call, const Expr& out)
    : rank(ShapeOf(out).size() - 2),
      groups(call.attrs().Int("groups")),
      data(ShapeOf(call.args()[0])),
      weight(ShapeOf(call.args()[1])),
      result(ShapeOf(out)) {
  const auto per_dimension = [&](const char* name) {
    std::vector<int64_t> values = call.attrs().Ints(name);
    while (values.size() < rank) values.push_back(values[0]);
    return values;
  };
  stride = per_dimension("strides");
  dilation = per_dimension("dilation");
  std::vector<int64_t> pad = per_dimension("padding");
  if (pad.size() == rank) pad.insert(pad.end(), pad.begin(), pad.end());
  pad_before.assign(pad.begin(), pad.begin() + static_cast<int64_t>(rank));
  pad_after.assign(pad.begin() + static_cast<int64_t>(rank), pad.end());
}

int64_t ConvolutionGeometry::taps() const { return NumElements(Shape(weight.begin() + 2, weight.end())); }

double ConvolutionGeometry::flops() const {
  return 2.0 * static_cast<double>(NumElements(result)) * static_cast<double>(taps() * weight[1]);
}

}  // namespace collage::native
