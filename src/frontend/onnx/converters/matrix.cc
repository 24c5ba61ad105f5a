// matrix.cc: products of matrices in ONNX, under their several names.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// The operand of a transpose that exchanges the last two dimensions only; null for anything else.
Expr UndoneTranspose(const Expr& x) {
  const CallNode* call = As<CallNode>(x);
  if (call == nullptr || call->op() == nullptr || call->op()->name != "transpose") return nullptr;
  const std::vector<int64_t> axes = call->attrs().Ints("axes");
  const auto rank = static_cast<int64_t>(axes.size());
  if (rank < 2) return nullptr;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t wanted = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
    if (axes[static_cast<size_t>(i)] != wanted) return nullptr;
  }
  return call->args()[0];
}

/// `matrix` with its two dimensions exchanged; constants are exchanged now, dequantised ones before they are
/// dequantised.
Expr TransposeMatrix(NodeContext& node, const Expr& matrix) {
  if (const Expr plain = UndoneTranspose(matrix)) return plain;
  const V axes{1, 0};
  const CallNode* call = As<CallNode>(matrix);
  if (call != nullptr && call->op() != nullptr && call->op()->name == "qnn.dequantize" &&
      As<ConstantNode>(call->args()[0])) {
    Attrs attrs = call->attrs();
    const int64_t axis = attrs.Int("axis");
    if (axis >= 0) attrs.Set("axis", 1 - axis);
    return node.Op("qnn.dequantize", {Transpose(node, call->args()[0], axes), call->args()[1], call->args()[2]}, attrs);
  }
  return Transpose(node, matrix, axes);
}

Results ConvertGemm(NodeContext& node) {
  Expr a = node.Input(0);
  Expr b = node.Input(1);
  if (node.Int("transA", 0) != 0) a = TransposeMatrix(node, a);
  if (node.Int("transB", 0) == 0) b = TransposeMatrix(node, b);
  const double alpha = node.Float("alpha", 1);
  const double beta = node.Float("beta", 1);
  if (alpha != 1) b = node.Op("multiply", {b, node.ScalarLike(alpha, b)});
  Expr result = node.Op("nn.dense", {a, b});
  if (node.HasInput(2) && beta != 0) {
    Expr c = node.Input(2);
    if (beta != 1) c = node.Op("multiply", {c, node.ScalarLike(beta, c)});
    result = node.Op("add", {result, c});
  }
  return {result};
}

/// A rank-3 view [batch, rows, columns] of `x` after broadcasting its leading dimensions to `batch`.
Expr BatchOf(NodeContext& node, Expr x, const Sizes& batch) {
  const Sizes shape = node.SizesOf(x);
  Sizes wanted = batch;
  wanted.insert(wanted.end(), shape.end() - 2, shape.end());
  const SymbolicSize count = Sizes(shape.begin(), shape.end() - 2).Product();
  const SymbolicSize all = batch.Product();
  if (!(count == 1) && !(count == all)) x = node.BroadcastTo(x, wanted);
  return node.Reshape(x, {count == 1 ? count : all, *(shape.end() - 2), shape.back()});
}

/// The leading dimensions of a batch of matrices of rank `rank`, with ones in front of those that there are.
Sizes LeadingOf(const Sizes& shape, size_t rank) {
  Sizes leading(rank - shape.size(), 1);
  leading.insert(leading.end(), shape.begin(), shape.end() - 2);
  return leading;
}

/// The leading dimensions of a product of batches; nothing where a run decides which of two sizes is the one that is 1.
std::optional<Sizes> BatchOfProduct(NodeContext& node, const Sizes& a, const Sizes& b) {
  const size_t rank = std::max(a.size(), b.size());
  const Sizes left = LeadingOf(a, rank), right = LeadingOf(b, rank);
  Sizes batch;
  for (size_t i = 0; i < left.size(); ++i) {
    const SymbolicSize &x = left[i], &y = right[i];
    if (x.is_known() && y.is_known()) {
      if (!(x == y) && x.known() != 1 && y.known() != 1) {
        node.Invalid(fmt::format("batches of {} and {} do not broadcast", a.ToString(), b.ToString()));
      }
      batch.push_back(x.known() == 1 ? y : x);
    } else if (const std::optional<SymbolicSize> both = NodeContext::Broadcast(x, y)) {
      batch.push_back(*both);
    } else {
      return std::nullopt;
    }
  }
  return batch;
}

/// Gives both batches of matrices the leading dimensions of their product, which a run computes.
void StretchBatches(NodeContext& node, Expr& a, Expr& b) {
  const Sizes a_shape = node.SizesOf(a), b_shape = node.SizesOf(b);
  const size_t rank = std::max(a_shape.size(), b_shape.size());
  const Expr left = node.Compute(LeadingOf(a_shape, rank)), right = node.Compute(LeadingOf(b_shape, rank));
  const Expr both = node.Op("where", {node.Op("equal", {left, MakeScalar(1, kInt64)}), right, left});
  const auto stretched = [&](const Expr& x, const Sizes& shape) {
    const Sizes matrix(shape.end() - 2, shape.end());
    const Expr wanted = Concatenate(node, {both, node.Compute(matrix)}, 0);
    PartialSizes sizes(rank - 2);
    sizes.insert(sizes.end(), matrix.begin(), matrix.end());
    return node.WithSizes(node.Op("dyn.broadcast_to", {x, wanted}), sizes);
  };
  a = stretched(a, a_shape);
  b = stretched(b, b_shape);
  const Sizes batch = node.SizesOf(a);
  PartialSizes shared(batch.begin(), batch.end() - 2);
  shared.insert(shared.end(), b_shape.end() - 2, b_shape.end());
  b = node.WithSizes(b, shared);
}

Results ConvertMatMul(NodeContext& node) { return {MultiplyMatrices(node, node.Input(0), node.Input(1))}; }

/// Whether `labels` has `label`.
bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// Labels of an einsum of two terms, by where they occur.
struct ProductLabels {
  std::string left, right, out;
  std::string batch;    ///< in both terms and the result
  std::string summed;   ///< in both terms only
  std::string rows;     ///< in the left term and the result
  std::string columns;  ///< in the right term and the result
};

/// Nothing where the equation is no product of two matrices, or batches of them, whose shapes are these.
std::optional<ProductLabels> LabelsOfProduct(const std::string& equation, const Sizes& a_shape, const Sizes& b_shape) {
  std::string text;
  for (char c : equation) {
    if (c != ' ') text += c;
  }
  const size_t comma = text.find(',');
  const size_t arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || Has(text, '.')) return std::nullopt;
  ProductLabels labels;
  labels.left = text.substr(0, comma);
  labels.right = text.substr(comma + 1, arrow - comma - 1);
  labels.out = text.substr(arrow + 2);
  const auto& [left, right, out, batch, summed, rows, columns] = labels;
  if (left.size() != a_shape.size() || right.size() != b_shape.size()) return std::nullopt;
  for (const std::string& term : {left, right, out}) {
    if (std::set<char>(term.begin(), term.end()).size() != term.size()) return std::nullopt;
  }
  for (char label : left) {
    if (Has(right, label)) {
      (Has(out, label) ? labels.batch : labels.summed) += label;
      if (!(a_shape[left.find(label)] == b_shape[right.find(label)])) return std::nullopt;
    } else if (Has(out, label)) {
      labels.rows += label;
    } else {
      return std::nullopt;
    }
  }
  for (char label : right) {
    if (Has(left, label)) continue;
    if (!Has(out, label)) return std::nullopt;
    labels.columns += label;
  }
  return labels;
}

/// "bij,bjk->bik" and its like as transpositions around one batched product; null when a label is repeated in a term,
/// is summed over in one term alone, or is hidden in an ellipsis.
Expr EinsumAsProduct(NodeContext& node, const std::string& equation, const Expr& a, const Expr& b) {
  const Sizes a_shape = node.SizesOf(a);
  const Sizes b_shape = node.SizesOf(b);
  const std::optional<ProductLabels> labels = LabelsOfProduct(equation, a_shape, b_shape);
  if (!labels) return nullptr;
  const auto& [left, right, out, batch, summed, rows, columns] = *labels;
  const auto size = [&, &left = left, &right = right](char label) {
    return Has(left, label) ? a_shape[left.find(label)] : b_shape[right.find(label)];
  };
  const auto count = [&](const std::string& some) {
    SymbolicSize product = 1;
    for (char label : some) product *= size(label);
    return product;
  };
  const auto arranged = [&](const Expr& x, const std::string& from, const std::string& to) {
    V axes;
    for (char label : to) axes.push_back(static_cast<int64_t>(from.find(label)));
    return std::is_sorted(axes.begin(), axes.end()) ? x : Transpose(node, x, axes);
  };
  const Expr x = node.Reshape(arranged(a, left, batch + rows + summed), {count(batch), count(rows), count(summed)});
  const Expr y =
      node.Reshape(arranged(b, right, batch + columns + summed), {count(batch), count(columns), count(summed)});
  const Expr product = node.Op("nn.batch_matmul", {x, y}, {{"transpose_b", true}});
  const std::string order = batch + rows + columns;
  Sizes shape;
  for (char label : order) shape.push_back(size(label));
  for (char label : out) {
    if (!Has(order, label)) return nullptr;
  }
  return arranged(node.Reshape(product, shape), order, out);
}

/// A product of two matrices (or batches of them) under other names is one; anything else stays an einsum.
Results ConvertEinsum(NodeContext& node) {
  std::vector<Expr> terms;
  for (size_t i = 0; i < node.num_inputs(); ++i) terms.push_back(node.Input(i));
  const std::string equation = node.String("equation", "");
  if (terms.size() == 2) {
    if (Expr product = EinsumAsProduct(node, equation, terms[0], terms[1])) return {product};
  }
  return {node.Op("einsum", {node.Tuple(std::move(terms))}, {{"equation", equation}})};
}

}  // namespace

Expr MultiplyMatrices(NodeContext& node, Expr a, Expr b) {
  const bool a_is_vector = node.Rank(a) == 1;
  const bool b_is_vector = node.Rank(b) == 1;
  if (a_is_vector) a = node.Reshape(a, {1, node.SizesOf(a)[0]});
  if (b_is_vector) b = node.Reshape(b, {node.SizesOf(b)[0], 1});
  Sizes result_shape;
  Expr result;
  if (node.Rank(b) == 2) {
    // Rows of all batches times one matrix: a dense layer.
    const Sizes a_shape = node.SizesOf(a);
    const SymbolicSize rows = Sizes(a_shape.begin(), a_shape.end() - 1).Product();
    const Expr flat = node.Reshape(a, {rows, a_shape.back()});
    result = node.Op("nn.dense", {flat, TransposeMatrix(node, b)});
    result_shape.assign(a_shape.begin(), a_shape.end() - 1);
    result_shape.push_back(node.SizesOf(b).back());
  } else {
    std::optional<Sizes> batch = BatchOfProduct(node, node.SizesOf(a), node.SizesOf(b));
    if (!batch) {
      StretchBatches(node, a, b);
      const Sizes shape = node.SizesOf(a);
      batch = Sizes(shape.begin(), shape.end() - 2);
    }
    const Sizes a_shape = node.SizesOf(a), b_shape = node.SizesOf(b);
    const Expr plain = UndoneTranspose(b);
    result = node.Op("nn.batch_matmul", {BatchOf(node, a, *batch), BatchOf(node, plain ? plain : b, *batch)},
                     {{"transpose_b", plain != nullptr}});
    result_shape = *batch;
    result_shape.push_back(*(a_shape.end() - 2));
    result_shape.push_back(b_shape.back());
  }
  if (b_is_vector) result_shape.pop_back();
  if (a_is_vector) result_shape.erase(result_shape.end() - (b_is_vector ? 1 : 2));
  return node.Reshape(result, result_shape);
}

void AddMatrixConverters(OnnxConverters& converters) {
  converters.Add("Einsum", ConvertEinsum, "Inputs+: number -> Output");
  converters.Add("Gemm", ConvertGemm, "A: number[2], B: same[2], C?: same[0..2] -> Y");
  converters.Add("MatMul", ConvertMatMul, "A: number[1..], B: same[1..] -> Y");
}

}  // namespace collage
