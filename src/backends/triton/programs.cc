// programs.cc: matrices by where they begin and how far their rows, columns and copies are apart.
#include "backends/triton/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "backends/triton/tile_code.h"
#include "collage/ir/op.h"

namespace collage::triton {
namespace {

using matches::MatchReader;
using matches::Operand;
using matches::Refusal;
using matches::TensorOf;

/// The most elements of a query, and of a value, which are in registers as a whole.
constexpr int64_t kMostDepth = 256;

/// A factor [batch, rows, columns] as it is multiplied.
struct Matrix {
  int64_t batch, rows, columns;
  int64_t of_batch, of_row, of_column;  ///< distances in elements; 0: there is only one
};

Matrix MatrixOf(Shape shape, bool is_transposed) {
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  Matrix matrix{shape[0], shape[1], shape[2], shape[0] == 1 ? 0 : shape[1] * shape[2], shape[2], 1};
  if (is_transposed) {
    std::swap(matrix.rows, matrix.columns);
    std::swap(matrix.of_row, matrix.of_column);
  }
  return matrix;
}

Matrix AddFactor(const Operand& operand, const std::string& name, bool is_transposed, Description& description) {
  if (operand.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  ReadTensor read{operand.input < 0, operand.input, BytesOf(operand.shape, operand.dtype)};
  if (read.is_constant) {
    read.number = static_cast<int64_t>(description.constants.size());
    description.constants.push_back(operand.constant);
  }
  description.instance.parameters.push_back({name, operand.dtype, read});
  return MatrixOf(operand.shape, is_transposed);
}

/// The type of both factors. Sums are float32, of int8 they are int32, and so is the result.
DataType FactorType(const Call& call, const Operand& a, const Operand& b) {
  if (a.dtype != b.dtype) throw Refusal{"multiplies values of one type only"};
  const DataType made = TensorOf(call).dtype();
  const bool is_float = a.dtype == kFloat32 || a.dtype == kFloat16 || a.dtype == kBFloat16;
  if (!is_float && a.dtype != kInt8) {
    throw Refusal{"multiplies float32, float16, bfloat16 and int8, got " + a.dtype.ToString()};
  }
  const bool is_known = is_float ? made == a.dtype || made == kFloat32 : made == kInt32;
  if (!is_known) throw Refusal{fmt::format("makes no {} of {}", made.ToString(), a.dtype.ToString())};
  return a.dtype;
}

bool IsTransposed(const CallNode& call, const char* attribute) {
  if (call.op()->name == "nn.dense") return std::string_view(attribute) == "transpose_b";
  return call.attrs().Bool(attribute);
}

void AddNumbers(Instance& instance, std::initializer_list<std::pair<const char*, int64_t>> numbers) {
  for (const auto& [name, number] : numbers) instance.constants.emplace_back(name, std::to_string(number));
}

/// Whether `expr` is `source`, reshaped or in another type.
bool IsReshaped(Expr expr, const Call& source) {
  while (expr != source) {
    const CallNode* call = As<CallNode>(expr);
    const bool keeps =
        call != nullptr && call->op() != nullptr && (call->op()->is_reshape || call->op()->name == "cast");
    if (!keeps) return false;
    expr = call->args()[0];
  }
  return true;
}

void CheckSoftmax(const Call& softmax) {
  if (softmax->op()->name != "nn.softmax") throw Refusal{"attends by a softmax only"};
  const auto rank = static_cast<int64_t>(TensorOf(softmax).static_shape().size());
  const int64_t axis = softmax->attrs().Int("axis");
  if ((axis < 0 ? axis + rank : axis) != rank - 1) throw Refusal{"normalises the last axis only"};
}

}  // namespace

bool IsProduct(const CallNode& call) {
  if (call.op() == nullptr) return false;
  const std::string& name = call.op()->name;
  return name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul";
}

void ReadProduct(const MatchReader& reader, const Call& call, Description& description) {
  Operand left = reader.OperandOf(call->args()[0]);
  const Operand right = reader.OperandOf(call->args()[1]);
  Instance& instance = description.instance;
  instance.program = Program::kProduct;
  instance.factor = FactorType(call, left, right);
  const bool is_dense = call->op()->name == "nn.dense";
  if (is_dense) left.shape = {NumElements(left.shape) / left.shape.back(), left.shape.back()};
  Matrix a = AddFactor(left, "a", IsTransposed(*call, "transpose_a"), description);
  const Matrix b = AddFactor(right, "b", IsTransposed(*call, "transpose_b"), description);
  int64_t batch = std::max(a.batch, b.batch);
  // Rows of one matrix more, where all of the batch are multiplied by the same.
  if (b.batch == 1 && a.of_column == 1) {
    a.rows *= batch;
    batch = 1;
    a.of_batch = 0;
  }
  instance.sizes = {.batch = batch, .m = a.rows, .n = b.columns, .k = a.columns};
  AddNumbers(instance, {{"M", a.rows},
                        {"N", b.columns},
                        {"K", a.columns},
                        {"BATCH_A", a.of_batch},
                        {"ROW_A", a.of_row},
                        {"DEPTH_A", a.of_column},
                        {"BATCH_B", b.of_batch},
                        {"DEPTH_B", b.of_row},
                        {"COLUMN_B", b.of_column}});
  instance.constants.emplace_back("SUM", instance.factor == kInt8 ? "tl.int32" : "tl.float32");
}

void DescribeAttention(const MatchReader& reader, const Call& first, const Call& softmax, const Call& second,
                       Description& description) {
  CheckSoftmax(softmax);
  const bool is_last = Expr(second) == reader.root();
  if (!is_last || !IsReshaped(second->args()[0], softmax)) throw Refusal{"computes one product, or attention"};
  for (const Call& call : {first, second}) {
    if (call->op()->name != "nn.batch_matmul") throw Refusal{"attends in batches only"};
    if (IsTransposed(*call, "transpose_a")) throw Refusal{"attends to queries and scores that lie in rows"};
  }
  const Operand q = reader.OperandOf(first->args()[0]), k = reader.OperandOf(first->args()[1]),
                v = reader.OperandOf(second->args()[1]);
  Instance& instance = description.instance;
  instance.program = Program::kAttention;
  instance.factor = FactorType(first, q, k);
  if (v.dtype != instance.factor) throw Refusal{"attends to values of the queries' type only"};
  if (instance.factor == kInt8) throw Refusal{"attends in floats only"};
  const Matrix of_q = AddFactor(q, "q", false, description);
  const Matrix of_k = AddFactor(k, "k", IsTransposed(*first, "transpose_b"), description);
  const Matrix of_v = AddFactor(v, "v", IsTransposed(*second, "transpose_b"), description);
  const Shape scores = TensorOf(first).static_shape(), weights = TensorOf(second->args()[0]).static_shape();
  if (scores != weights) throw Refusal{"attends with one batch size only"};
  if (of_q.columns > kMostDepth || of_v.columns > kMostDepth) {
    throw Refusal{fmt::format("attends to up to {} numbers, got {} and {}", kMostDepth, of_q.columns, of_v.columns)};
  }
  if (TensorOf(second).static_shape()[0] != scores[0]) throw Refusal{"attends with one batch size only"};
  TileCode code(reader, description.constants, scores[0] * scores[1], scores[2]);
  code.Define(first);
  for (const Call& call : reader.calls()) {
    if (call == softmax) break;
    if (call != first) code.Emit(call);
  }
  const Expr& logits = softmax->args()[0];
  if (!code.Has(logits) || code.IsReduced(logits)) throw Refusal{"its operators form no chain"};
  instance.behind = code.Function(logits);
  for (const Parameter& other : code.others()) instance.parameters.push_back(other);
  instance.sizes = {.batch = scores[0], .m = scores[1], .n = scores[2], .k = of_q.columns, .width = of_v.columns};
  AddNumbers(instance, {{"M", scores[1]},
                        {"N", scores[2]},
                        {"DEPTH", of_q.columns},
                        {"WIDTH", of_v.columns},
                        {"BATCH_Q", of_q.of_batch},
                        {"BATCH_K", of_k.of_batch},
                        {"COLUMN_K", of_k.of_column},
                        {"DEPTH_K", of_k.of_row},
                        {"BATCH_V", of_v.of_batch},
                        {"ROW_V", of_v.of_row},
                        {"COLUMN_V", of_v.of_column}});
}

}  // namespace collage::triton
