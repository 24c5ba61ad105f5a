// index.cc: rows of operators that read or write at indices.
#include <openvino/opsets/opset13.hpp>
#include <openvino/opsets/opset15.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

ov::OutputVector Take(const OpArgs& call) {
  return {std::make_shared<ops::Gather>(
      call[0], call[1], Scalar(ov::element::i64, static_cast<double>(NormalAxis(call.attrs.Int("axis"), call.rank()))),
      call.attrs.IntOr("batch_dims", 0))};
}

ov::OutputVector Gather(const OpArgs& call) {
  return {std::make_shared<ops::GatherElements>(call[0], call[1], NormalAxis(call.attrs.Int("axis"), call.rank()))};
}

/// Relay keeps an index tuple along the first axis, OpenVINO along the last.
Value TupleLast(const Value& indices) {
  const auto rank = static_cast<int64_t>(RankOf(indices));
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank; ++i) axes.push_back(i);
  axes.push_back(0);
  return Transposed(indices, axes);
}

ov::OutputVector GatherNd(const OpArgs& call) {
  return {std::make_shared<ops::GatherND>(call[0], TupleLast(call[1]),
                                          static_cast<size_t>(call.attrs.IntOr("batch_dims", 0)))};
}

/// How a scatter puts together what is there and what comes: each of its operators has an enumeration of its own.
template <typename Reduction>
Reduction ReductionOf(const std::string& how) {
  if (how == "update") return Reduction::NONE;
  if (how == "add") return Reduction::SUM;
  if (how == "mul") return Reduction::PROD;
  if (how == "min") return Reduction::MIN;
  if (how == "max") return Reduction::MAX;
  throw Untranslatable{"has no scatter reduction '" + how + "'"};
}

ov::OutputVector ScatterElements(const OpArgs& call) {
  using Update = ov::op::v12::ScatterElementsUpdate;
  const std::string how = call.attrs.StringOr("reduction", "update");
  const auto reduction = ReductionOf<Update::Reduction>(how == "none" ? "update" : how);
  const auto axis = static_cast<double>(NormalAxis(call.attrs.IntOr("axis", 0), call.rank()));
  return {std::make_shared<Update>(call[0], call[1], call[2], Scalar(ov::element::i64, axis), reduction, true)};
}

ov::OutputVector ScatterNd(const OpArgs& call) {
  using Update = ov::op::v15::ScatterNDUpdate;
  const std::string how = call.attrs.StringOr("mode", "update");
  const auto reduction = ReductionOf<Update::Reduction>(how);
  return {std::make_shared<Update>(call[0], TupleLast(call[1]), call[2], reduction)};
}

ov::OutputVector OneHot(const OpArgs& call) {
  return {std::make_shared<ops::OneHot>(call[0], Scalar(ov::element::i64, static_cast<double>(call.attrs.Int("depth"))),
                                        call[1], call[2], call.attrs.IntOr("axis", -1))};
}

}  // namespace

void AddIndexRows(RowMap& rows) {
  rows["take"] = Take;
  rows["gather"] = Gather;
  rows["gather_nd"] = GatherNd;
  rows["scatter_elements"] = ScatterElements;
  rows["scatter_nd"] = ScatterNd;
  rows["one_hot"] = OneHot;
}

}  // namespace collage::openvino
