// pack_weights.cc: products with dequantised constants of few bits, and rows taken of such, read them packed.
//
// Blocks are rows of what is dequantised, each with a scale of its own, that a reshape joins:
//
//     reshape(qnn.dequantize(numbers [N * K / B, B], scales [N * K / B], zeros, axis=0), newshape=[N, K])
//
// Scales for each channel, or a single one, are blocks as well: of a part of the channel each, so that numbers of few
// bits need not take a byte. Blocks that nothing packs become constants.
#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "ir/eval/evaluate.h"
#include "ir/ops/qnn/packing.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// A matrix [N, K] of dequantised constants.
struct Blocks {
  Tensor numbers;        ///< [N, K], int8 or uint8
  Tensor scales, zeros;  ///< [N, K / block]
  int64_t block;
  bool is_joined;  ///< whether a reshape joins blocks; else scales belong to whole channels
};

/// `parameter`, one value or one for each of `rows`, as [rows, copies].
Tensor RepeatedFor(const Tensor& parameter, int64_t rows, int64_t copies) {
  if (parameter.num_elements() == rows * copies) return parameter.Reshaped({rows, copies});
  const Tensor made = Tensor::Empty({rows, copies}, parameter.dtype());
  for (int64_t i = 0; i < rows * copies; ++i) {
    made.Set(i, parameter.At(parameter.num_elements() == 1 ? 0 : i / copies));
  }
  return made;
}

/// The operands of a qnn.dequantize of constant bytes as float32, with scales along the first axis or a single one;
/// null for others.
const CallNode* AsDequantizedRows(const Expr& expr) {
  const CallNode* call = AsCallOf(expr, "qnn.dequantize");
  if (call == nullptr) return nullptr;
  for (const Expr& arg : call->args()) {
    if (As<ConstantNode>(arg) == nullptr) return nullptr;
  }
  const TensorTypeNode& numbers = *AsTensorType(InferType(call->args()[0]));
  const bool is_per_row = numbers.rank() == 2 && FromFront(call->attrs().Int("axis"), 2) == 0;
  const auto is_single = [&](size_t i) { return As<ConstantNode>(call->args()[i])->value().num_elements() == 1; };
  if (numbers.rank() != 2 || (!is_per_row && !(is_single(1) && is_single(2)))) return nullptr;
  const bool is_float = As<ConstantNode>(call->args()[1])->value().dtype() == kFloat32 &&
                        AsTensorType(InferType(expr))->dtype() == kFloat32;
  return is_float && numbers.dtype().bits == 8 ? call : nullptr;
}

const Tensor& ConstantArg(const CallNode& call, size_t i) { return As<ConstantNode>(call.args()[i])->value(); }

/// The qnn.dequantize whose rows are the blocks that `expr`, a reshape to a matrix, joins; null for others.
const CallNode* AsJoinedBlocks(const Expr& expr) {
  const CallNode* reshape = AsCallOf(expr, "reshape");
  const CallNode* rows = reshape == nullptr ? nullptr : AsDequantizedRows(reshape->args()[0]);
  const TensorTypeNode* type = rows == nullptr ? nullptr : AsTensorType(InferType(expr));
  if (type == nullptr || type->rank() != 2 || !type->is_static()) return nullptr;
  const int64_t block = ConstantArg(*rows, 0).shape()[1];
  return block > 0 && type->static_shape()[1] % block == 0 ? rows : nullptr;
}

/// The matrix that `expr` dequantises; nothing for others. Channels are cut into blocks of one of `sizes`, or stay
/// whole.
std::optional<Blocks> BlocksOf(const Expr& expr, std::span<const int64_t> sizes) {
  const bool is_joined = AsJoinedBlocks(expr) != nullptr;
  const CallNode* call = is_joined ? AsJoinedBlocks(expr) : AsDequantizedRows(expr);
  if (call == nullptr) return std::nullopt;
  const Shape shape = AsTensorType(InferType(expr))->static_shape();
  const Tensor numbers = ConstantArg(*call, 0).Reshaped(shape);
  int64_t block = is_joined ? ConstantArg(*call, 0).shape()[1] : shape[1];
  if (!is_joined) {
    const auto fits = std::ranges::find_if(sizes, [&](int64_t size) { return shape[1] % size == 0; });
    if (fits == sizes.end() && !sizes.empty()) return std::nullopt;
    if (fits != sizes.end()) block = *fits;
  }
  if (NumElements(shape) == 0) return std::nullopt;
  const int64_t rows = is_joined ? shape[0] * shape[1] / block : shape[0];
  const int64_t copies = is_joined ? 1 : shape[1] / block;
  const auto per_block = [&](size_t i) {
    return RepeatedFor(ConstantArg(*call, i), rows, copies).Reshaped({shape[0], shape[1] / block});
  };
  return Blocks{numbers, per_block(1), per_block(2), block, is_joined};
}

/// Whether `expr` is made of dequantised integers, which kernels of 8-bit integers multiply as they are.
bool IsOfIntegers(Expr expr) {
  while (const OpDef* op = CalledOp(expr)) {
    if (op->name == "qnn.dequantize") return true;
    if (!op->moves_elements) return false;
    expr = As<CallNode>(expr)->args()[0];
  }
  return false;
}

class Packer {
 public:
  /// Returns what replaces `expr`, whose children are rewritten already.
  Expr Pack(const Expr& expr) {
    if (const CallNode* product = AsCallOf(expr, "nn.dense")) return PackProduct(expr, *product);
    if (const CallNode* rows = AsCallOf(expr, "take")) return PackRows(expr, *rows);
    return expr;
  }

 private:
  static constexpr int64_t kLanes = 16;  ///< numbers of a block that kernels read at once

  Expr PackProduct(const Expr& expr, const CallNode& product) {
    constexpr std::array<int64_t, 4> kSizes{128, 64, 32, kLanes};
    const Expr& data = product.args()[0];
    const TensorTypeNode* type = AsTensorType(InferType(data));
    if (type == nullptr || type->rank() != 2 || type->dtype() != kFloat32) return expr;
    if (AsTensorType(InferType(expr))->dtype() != kFloat32) return expr;
    const std::optional<Blocks> blocks = BlocksOf(product.args()[1], kSizes);
    if (!blocks || blocks->block % kLanes != 0) return expr;
    const int64_t bits = BitsOf(blocks->numbers);
    // Whole channels of bytes have kernels of their own, which also multiply integers.
    if (!blocks->is_joined && (bits == 8 || IsOfIntegers(data))) return expr;
    const Shape& shape = blocks->numbers.shape();
    const Tensor packed = Packed(product.args()[1], *blocks, bits);
    const Shape in_blocks{shape[0], shape[1] / blocks->block, blocks->block * bits / 8};
    return Call("qnn.matmul_nbits", {data, MakeConstant(packed.Reshaped(in_blocks))}, product, *blocks, bits);
  }

  Expr PackRows(const Expr& expr, const CallNode& rows) {
    const Attrs& attrs = rows.attrs();
    const TensorTypeNode* table = AsTensorType(InferType(rows.args()[0]));
    if (table == nullptr || table->rank() != 2 || attrs.IsNone("axis") || attrs.Int("batch_dims") != 0) return expr;
    if (FromFront(attrs.Int("axis"), 2) != 0 || attrs.String("mode") != "clip") return expr;
    const std::optional<Blocks> blocks = BlocksOf(rows.args()[0], {});
    if (!blocks) return expr;
    const int64_t bits = BitsOf(blocks->numbers);
    if (blocks->numbers.shape()[1] % (8 / bits) != 0 || (!blocks->is_joined && bits == 8)) return expr;
    const Tensor packed = Packed(rows.args()[0], *blocks, bits);
    return Call("qnn.take_nbits", {MakeConstant(packed), rows.args()[1]}, rows, *blocks, bits);
  }

  static Expr Call(const char* op, std::vector<Expr> args, const CallNode& origin, const Blocks& blocks, int64_t bits) {
    args.push_back(MakeConstant(blocks.scales));
    const Tensor zeros = PackedZeros(blocks.zeros, blocks.numbers.dtype(), bits);
    if (zeros.defined()) args.push_back(MakeConstant(zeros));
    return TypedCall(op, std::move(args), origin, {{"bits", bits}, {"block_size", blocks.block}});
  }

  /// [N, bytes of K], made once for all that read `weights`.
  Tensor Packed(const Expr& weights, const Blocks& blocks, int64_t bits) {
    const auto [it, is_new] = packed_.try_emplace(weights.get());
    if (is_new) it->second = {weights, PackedNumbers(blocks.numbers, bits)};
    return it->second.second;
  }

  std::unordered_map<const ExprNode*, std::pair<Expr, Tensor>> packed_;  ///< with the nodes, which so stay alive
};

/// Blocks that nothing packed, as a constant, unless it is large.
Expr Unpacked(const Expr& expr) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const CallNode* call = AsJoinedBlocks(expr);
  if (call == nullptr) return expr;
  const Shape shape = AsTensorType(InferType(expr))->static_shape();
  if (static_cast<size_t>(NumElements(shape)) * kFloat32.size_bytes() > kMostBytes) return expr;
  std::vector<Type> types;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < call->args().size(); ++i) {
    types.push_back(InferType(call->args()[i]));
    inputs.push_back(ConstantArg(*call, i));
  }
  const Expr constant = MakeConstant(EvaluateOp(*call->op(), call->attrs(), types, inputs)[0].Reshaped(shape));
  constant->share_span(*expr);
  return constant;
}

}  // namespace

Function PackWeights(const Function& function) {
  Packer packer;
  const Expr packed = RewriteNodes(function, IsOrdinary, [&](const Expr&, const Expr& rewritten, const Rewritten&) {
    return packer.Pack(rewritten);
  });
  return AsShared<FunctionNode>(RewriteNodes(
      packed, IsOrdinary, [](const Expr&, const Expr& rewritten, const Rewritten&) { return Unpacked(rewritten); }));
}

}  // namespace collage
