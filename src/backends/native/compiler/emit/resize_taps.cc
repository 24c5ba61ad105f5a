// resize_taps.cc: asks the operator's own reference, so that no rule about coordinates is written twice. Resizing is
// linear and goes dimension by dimension: the answers to combs (1 at every kTeeth-th element) give the weights, the
// answers to combs scaled by the number of the tooth give which tooth it was.
#include "backends/native/compiler/emit/resize_taps.h"

#include <algorithm>
#include <cmath>

#include "collage/support/error.h"
#include "ir/eval/evaluate.h"

namespace collage::native {
namespace {

constexpr int64_t kTeeth = 64;  // taps lie closer together than this

/// The call's attributes for its dimension `d` alone.
Attrs OneDimension(const CallNode& call, const OpDef& op, size_t d, size_t rank) {
  Attrs attrs;
  for (const AttrField& field : op.attrs) {
    if (field.name == "layout" || call.op()->FindAttr(field.name) == nullptr) continue;
    const AttrValue& value = call.attrs().Get(field.name);
    const AttrValue::List* list = value.as_list();
    if (list != nullptr && list->size() == rank) {
      attrs.Set(field.name, AttrValue::List{(*list)[d]});
    } else {
      attrs.Set(field.name, value);
    }
  }
  return CompleteAttrs(op, attrs);
}

ResizeTaps FindTaps(const OpDef& op, const Attrs& attrs, int64_t in) {
  const int64_t teeth = std::min(in, kTeeth);
  Tensor combs = Tensor::Zeros({1, 2 * teeth, in}, kFloat32);
  for (int64_t i = 0; i < in; ++i) {
    combs.data<float>()[(i % teeth) * in + i] = 1;
    combs.data<float>()[(teeth + i % teeth) * in + i] = static_cast<float>(i / teeth);
  }
  const Type type = TensorType(combs.shape(), kFloat32);
  const Tensor answer = EvaluateOp(op, attrs, {&type, 1}, {&combs, 1}).at(0);
  const int64_t out = answer.shape()[2];
  std::vector<std::vector<std::pair<int64_t, float>>> taps(static_cast<size_t>(out));
  ResizeTaps result;
  for (int64_t o = 0; o < out; ++o) {
    auto& own = taps[static_cast<size_t>(o)];
    for (int64_t tooth = 0; tooth < teeth; ++tooth) {
      const float weight = answer.data<float>()[tooth * out + o];
      if (weight == 0) continue;
      const float turn = answer.data<float>()[(teeth + tooth) * out + o] / weight;
      own.emplace_back(static_cast<int64_t>(std::lround(turn)) * teeth + tooth, weight);
    }
    result.count = std::max(result.count, static_cast<int64_t>(own.size()));
  }
  result.positions = Tensor::Zeros({result.count, out}, kInt64);
  result.weights = Tensor::Zeros({result.count, out}, kFloat32);
  result.is_identity = in == out && result.count == 1;
  for (int64_t o = 0; o < out; ++o) {
    const auto& own = taps[static_cast<size_t>(o)];
    for (size_t t = 0; t < own.size(); ++t) {
      result.positions.data<int64_t>()[static_cast<int64_t>(t) * out + o] = own[t].first;
      result.weights.data<float>()[static_cast<int64_t>(t) * out + o] = own[t].second;
    }
    result.is_identity = result.is_identity && own.size() == 1 && own[0].first == o;
    // A lone tap of another weight than 1, or none at all, needs its factor.
    if (own.empty() || (own.size() == 1 && own[0].second != 1.0F)) result.count = std::max<int64_t>(result.count, 2);
  }
  if (result.positions.shape()[0] == result.count) return result;
  ResizeTaps wider{result.count, false, Tensor::Zeros({result.count, out}, kInt64),
                   Tensor::Zeros({result.count, out}, kFloat32)};
  std::copy_n(result.positions.data<int64_t>(), result.positions.num_elements(), wider.positions.data<int64_t>());
  std::copy_n(result.weights.data<float>(), result.weights.num_elements(), wider.weights.data<float>());
  return wider;
}

}  // namespace

std::vector<ResizeTaps> FindResizeTaps(const CallNode& call) {
  const OpDef& op = GetOp("image.resize1d")->def();
  const Shape in = AsTensorType(call.args()[0]->checked_type())->static_shape();
  std::vector<ResizeTaps> taps;
  for (size_t d = 0; d + 2 < in.size(); ++d) {
    taps.push_back(FindTaps(op, OneDimension(call, op, d, in.size() - 2), in[d + 2]));
  }
  return taps;
}

}  // namespace collage::native
