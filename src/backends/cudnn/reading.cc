// reading.cc: parameters and constants as values of a graph.
#include "backends/cudnn/reading.h"

#include <utility>

#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode& type = matches::TensorOf(expr);
  const DataType dtype = type.dtype();
  if (dtype != kFloat32 && dtype != kFloat16 && dtype != kBFloat16) {
    throw Refusal{"computes float32, float16 and bfloat16, got " + dtype.ToString()};
  }
  return type;
}

}  // namespace

Shape ShapeOf(const Expr& expr) { return TensorOf(expr).static_shape(); }

DataType DTypeOf(const Expr& expr) { return TensorOf(expr).dtype(); }

Shape StridesOf(const Shape& dims, bool channels_last) {
  Shape strides(dims.size(), 1);
  int64_t next = channels_last ? dims[1] : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (channels_last && i == 1) continue;
    strides[i] = next;
    next *= dims[i];
  }
  return strides;
}

Operand Reading::OperandOf(const Expr& expr) const {
  TensorOf(expr);
  return MatchReader::OperandOf(expr);
}

int Reading::Add(const Operand& operand, Shape dims, Shape strides) {
  if (operand.input < 0) return AddConstant(operand.constant, std::move(dims), std::move(strides));
  graph_.values.push_back({std::move(dims), std::move(strides), operand.dtype, Source::kInput, operand.input});
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddConstant(Tensor tensor, Shape dims, Shape strides) {
  const auto number = static_cast<int64_t>(constants_.size());
  graph_.values.push_back({std::move(dims), std::move(strides), tensor.dtype(), Source::kConstant, number});
  constants_.push_back(std::move(tensor));
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddInside(Shape dims, Shape strides) {
  graph_.values.push_back({std::move(dims), std::move(strides)});
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddNumber(float value, size_t rank) {
  const Shape ones(rank, 1);
  graph_.values.push_back({ones, ones, kFloat32, Source::kNumber, 0, value});
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddScratch(Shape dims) {
  Shape strides = StridesOf(dims, /*channels_last=*/false);
  graph_.values.push_back({std::move(dims), std::move(strides), kFloat32, Source::kScratch});
  return static_cast<int>(graph_.values.size()) - 1;
}

}  // namespace collage::cudnn
