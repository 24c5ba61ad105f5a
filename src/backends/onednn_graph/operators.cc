// operators.cc: the rows, and what all their functions ask.
#include "backends/onednn_graph/operators.h"

#include <algorithm>

#include "backends/onednn_graph/translations.h"

namespace collage::onednn_graph {
namespace {

constexpr OperatorRow kOperators[] = {
    {"abs", Unary, "Abs"},
    {"add", AddOrBias, "Add"},
    {"cast", Cast, "TypeCast"},
    {"clip", Clip, "Clamp"},
    {"concatenate", Concatenate, "Concat"},
    {"divide", Binary, "Divide"},
    {"exp", Unary, "Exp"},
    {"log", Unary, "Log"},
    {"max", Reduce, "ReduceMax"},
    {"maximum", Binary, "Maximum"},
    {"mean", Reduce, "ReduceMean"},
    {"min", Reduce, "ReduceMin"},
    {"minimum", Binary, "Minimum"},
    {"multiply", Binary, "Multiply"},
    {"nn.avg_pool1d", Pool, "AvgPool"},
    {"nn.avg_pool2d", Pool, "AvgPool"},
    {"nn.avg_pool3d", Pool, "AvgPool"},
    {"nn.batch_matmul", BatchMatMul, "MatMul"},
    {"nn.bias_add", BiasAdd, "Add"},
    {"nn.conv1d", Convolution, "Convolution"},
    {"nn.conv1d_transpose", Convolution, "ConvTranspose"},
    {"nn.conv2d", Convolution, "Convolution"},
    {"nn.conv2d_transpose", Convolution, "ConvTranspose"},
    {"nn.conv3d", Convolution, "Convolution"},
    {"nn.conv3d_transpose", Convolution, "ConvTranspose"},
    {"nn.dense", Dense, "MatMul"},
    {"nn.global_avg_pool1d", GlobalPool, "AvgPool"},
    {"nn.global_avg_pool2d", GlobalPool, "AvgPool"},
    {"nn.global_avg_pool3d", GlobalPool, "AvgPool"},
    {"nn.global_max_pool1d", GlobalPool, "MaxPool"},
    {"nn.global_max_pool2d", GlobalPool, "MaxPool"},
    {"nn.global_max_pool3d", GlobalPool, "MaxPool"},
    {"nn.layer_norm", LayerNorm, "LayerNorm"},
    {"nn.leaky_relu", LeakyRelu, "LeakyReLU"},
    {"nn.log_softmax", Softmax, "LogSoftmax"},
    {"nn.matmul", MatMul, "MatMul"},
    {"nn.max_pool1d", Pool, "MaxPool"},
    {"nn.max_pool2d", Pool, "MaxPool"},
    {"nn.max_pool3d", Pool, "MaxPool"},
    {"nn.prelu", Prelu, "PReLU"},
    {"nn.relu", Unary, "ReLU"},
    {"nn.softmax", Softmax, "SoftMax"},
    {"prod", Reduce, "ReduceProd"},
    {"qnn.dequantize", Dequantize, "Dequantize"},
    {"qnn.quantize", Quantize, "Quantize"},
    {"round", Unary, "Round"},
    {"sigmoid", Unary, "Sigmoid"},
    {"sqrt", Unary, "Sqrt"},
    {"subtract", Binary, "Subtract"},
    {"sum", Reduce, "ReduceSum"},
    {"tanh", Unary, "Tanh"},
    {"transpose", Transpose, "StaticTranspose"},
};

}  // namespace

std::span<const OperatorRow> Operators() { return kOperators; }

bool IsFloat(DataType dtype) { return dtype == kFloat32 || dtype == kBFloat16 || dtype == kFloat16; }

bool IsByte(DataType dtype) { return dtype == kInt8 || dtype == kUInt8; }

DataType RequireFloats(const Call& call) {
  const DataType dtype = DTypeOf(call);
  bool is_same = IsFloat(dtype);
  for (const Expr& argument : call->args()) {
    for (const Type& type : FlattenTensorTypes(argument->checked_type())) {
      is_same = is_same && AsTensorType(type)->dtype() == dtype;
    }
  }
  if (!is_same) throw Refusal{"computes float32, bfloat16 and float16, one of them at a time"};
  return dtype;
}

int64_t NormalAxis(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

bool KeepsLast(const Value& value, const Shape& own) {
  return !value.shape.empty() && !own.empty() && value.shape.back() == own.back();
}

void Translate(Builder& graph, const Call& call) {
  const OpDef* op = call->op();
  if (op->is_reshape) return Reshape(graph, call, "StaticReshape");
  const auto row = std::ranges::lower_bound(Operators(), std::string_view(op->name), {}, &OperatorRow::name);
  if (row == Operators().end() || row->name != op->name) throw Refusal{"has no operation for '" + op->name + "'"};
  row->translate(graph, call, row->kind);
}

}  // namespace collage::onednn_graph
