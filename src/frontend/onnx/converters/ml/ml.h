// ml.h: operators of ai.onnx.ml, which converters of scikit-learn, LightGBM and XGBoost write. Their rows are called
// "ai.onnx.ml.NAME".
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/importer.h"

namespace collage {

// One function per file.
void AddMlTrees(OnnxConverters& converters);
void AddMlLinear(OnnxConverters& converters);
void AddMlSupportVectors(OnnxConverters& converters);
void AddMlFeatures(OnnxConverters& converters);
void AddMlEncoders(OnnxConverters& converters);

/// Rows of features: [N, F], and [F] as one row.
Expr RowsOfFeatures(NodeContext& node, const Expr& x);

/// `scores` [N, C] as attribute post_transform says: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT.
Expr PostTransformed(NodeContext& node, const Expr& scores, const std::string& transform);
/// Attribute post_transform.
std::string PostTransform(NodeContext& node);

/// The labels that integers of attribute `ints` are, or strings in their place: then output 0 is one of strings.
std::vector<int64_t> ClassLabels(NodeContext& node, const char* ints);
/// For each element of `index` the label at it; [N].
Expr LabelsAt(NodeContext& node, const std::vector<int64_t>& labels, const Expr& index);
/// [N]: one of two labels for each truth value.
Expr LabelsWhere(NodeContext& node, const Expr& is_first, int64_t first, int64_t second);
/// [N, 2]: 1 - `score` and `score` [N, 1]; the opposite of `score` in place of the former where it is no probability.
Expr BothScores(NodeContext& node, const Expr& score, bool is_probability);
/// Column `column` of a matrix, [N, 1].
Expr Column(NodeContext& node, const Expr& matrix, int64_t column);

/// A constant of `shape` with elements of `dtype`.
Expr Numbers(const Shape& shape, DataType dtype, const std::vector<double>& values);

}  // namespace collage
