// translate.h: from a Relay function to OpenVINO's graph. One row per Relay operator, in files by family.
#pragma once

#include <functional>
#include <memory>
#include <openvino/openvino.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/target/toolchain.h"

namespace collage::openvino {

/// Why a partition cannot be translated; becomes the refusal's reason.
struct Untranslatable {
  std::string text;
};

/// Translated values know their ranks, and their sizes unless these are symbolic.
inline size_t RankOf(const ov::Output<ov::Node>& value) {
  return static_cast<size_t>(value.get_partial_shape().rank().get_length());
}

/// A call as a row of the table sees it.
struct OpArgs {
  const Attrs& attrs;
  const ov::OutputVector& inputs;  ///< tuples flattened
  const Type& result;              ///< checked type of the call
  const std::vector<Type>& types;  ///< types of the arguments as the call has them, tuples flattened

  const ov::Output<ov::Node>& operator[](size_t index) const { return inputs.at(index); }
  size_t rank(size_t index = 0) const { return RankOf(inputs.at(index)); }
  /// Whether an input or a result has a dimension that only a run knows.
  bool is_dynamic() const;
  /// Shape of the (only, or `index`-th) result, which is static.
  ov::Shape result_shape(size_t index = 0) const;
  /// Dimension `axis` of the `index`-th result. Throws Untranslatable unless it is known.
  int64_t result_dim(size_t index, size_t axis) const;
  ov::element::Type result_type(size_t index = 0) const;
};

/// Makes the nodes of one call; gives its flattened results.
using TranslateFn = std::function<ov::OutputVector(const OpArgs& call)>;
using RowMap = std::unordered_map<std::string_view, TranslateFn>;

void AddElementwiseRows(RowMap& rows);
void AddContractionRows(RowMap& rows);
void AddNormalisationRows(RowMap& rows);
void AddPoolRows(RowMap& rows);
void AddReduceRows(RowMap& rows);
void AddSortRows(RowMap& rows);
void AddCreationRows(RowMap& rows);
void AddVisionRows(RowMap& rows);
void AddShapeRows(RowMap& rows);
void AddIndexRows(RowMap& rows);
void AddQuantisedRows(RowMap& rows);
void AddRecurrentRows(RowMap& rows);
void AddDynamicRows(RowMap& rows);

/// Parameters and results have the memory order that `layouts` says. Constants wrap the memory of the function's.
/// Throws Untranslatable.
std::shared_ptr<ov::Model> Translate(const Function& function, const BoundaryLayouts& layouts);

ov::element::Type ElementType(DataType dtype);
/// A rank-1 i64 constant.
ov::Output<ov::Node> Ints(const std::vector<int64_t>& values);
/// A rank-0 constant.
ov::Output<ov::Node> Scalar(ov::element::Type type, double value);
/// `value` [C] seen as [1, …, C, …, 1]: C at `axis` of `rank` dimensions.
ov::Output<ov::Node> AlongAxis(const ov::Output<ov::Node>& value, int64_t axis, size_t rank);
/// `value` under another shape; what had that shape before a chain of reshapes is found again, so that reshaping there
/// and back leaves no node.
ov::Output<ov::Node> Reshaped(const ov::Output<ov::Node>& value, const ov::Shape& shape);
/// The first input of `call` under the shape of its result, which may have symbolic sizes. `codes` are those of the
/// attribute `newshape` of reshape, or empty. Throws Untranslatable where sizes do not follow from those of the input.
ov::Output<ov::Node> ReshapedAs(const OpArgs& call, const std::vector<int64_t>& codes = {});
/// Permutes dimensions.
ov::Output<ov::Node> Transposed(const ov::Output<ov::Node>& value, const std::vector<int64_t>& axes);
/// `value` converted, unless it has that type.
ov::Output<ov::Node> AsType(const ov::Output<ov::Node>& value, ov::element::Type type);
/// The axes that a reduction's attributes `axis` and `exclude` mean, from the front.
std::vector<int64_t> ReducedAxes(const OpArgs& call);
/// Translates a call of `op` by `row`, even if layout attributes say another order than the operator's own.
ov::OutputVector InOwnOrder(const OpDef& op, const OpArgs& call, const TranslateFn& row);
/// `axis` from the front.
int64_t NormalAxis(int64_t axis, size_t rank);

/// Spatial attributes of windows, one entry per dimension.
struct Window {
  ov::Strides strides;
  ov::Strides dilation;
  std::vector<int64_t> before;
  std::vector<int64_t> after;

  Window(const Attrs& attrs, size_t spatial_rank);
};

}  // namespace collage::openvino
