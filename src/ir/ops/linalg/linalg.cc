// linalg.cc: sums over indices, and determinants.
#include <cmath>
#include <map>

#include "ir/ops/families.h"
#include "ir/ops/linalg/einsum.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

std::vector<int> Ranks(const std::vector<std::vector<Dim>>& shapes) {
  std::vector<int> ranks;
  for (const auto& shape : shapes) ranks.push_back(static_cast<int>(shape.size()));
  return ranks;
}

void EinsumReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  std::vector<std::vector<Dim>> shapes;
  for (const Tensor& input : inputs) shapes.emplace_back(input.shape().begin(), input.shape().end());
  const Einsum einsum(attrs.String("equation"), Ranks(shapes));
  // The loop nest: the result's labels outside, summed ones inside.
  std::string labels = einsum.output;
  Shape space;
  const std::map<char, Dim> sizes = einsum.Sizes(shapes);
  for (const auto& [label, size] : sizes) {
    if (labels.find(label) == std::string::npos) labels += label;
  }
  for (char label : labels) space.push_back(sizes.at(label).size());
  // Step of each tensor along each label; a label that occurs twice in a term walks its diagonal.
  std::vector<V> steps;
  for (size_t t = 0; t < inputs.size(); ++t) {
    const V strides = Strides(inputs[t].shape());
    V step(labels.size(), 0);
    for (size_t d = 0; d < einsum.inputs[t].size(); ++d) {
      if (inputs[t].shape()[d] != 1) step[labels.find(einsum.inputs[t][d])] += strides[d];
    }
    steps.push_back(std::move(step));
  }
  std::vector<double> sums(static_cast<size_t>(outputs[0].num_elements()), 0);
  const int64_t terms = NumElements(space) / std::max<int64_t>(outputs[0].num_elements(), 1);
  int64_t i = 0;
  ForEachIndex(space, [&](const V& index) {
    double product = 1;
    for (size_t t = 0; t < inputs.size(); ++t) product *= inputs[t].At(Offset(index, steps[t]));
    sums[i++ / terms] += product;
  });
  for (size_t o = 0; o < sums.size(); ++o) outputs[0].Set(static_cast<int64_t>(o), sums[o]);
}

OpDef EinsumOp() {
  OpDef op;
  op.name = "einsum";
  op.doc = "Products of the tensors of a tuple, summed over the labels that the result does not have.";
  op.args = {"data"};
  op.attrs = {{"equation", AttrKind::kString, {}, "labels of dimensions, as in ij,jk->ik", true}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    const TupleTypeNode* tuple = call.args.empty() ? nullptr : AsTupleType(call.args[0]);
    if (tuple == nullptr || tuple->fields().empty()) throw RelationFailure{"expects a tuple of tensors"};
    std::vector<std::vector<Dim>> shapes;
    const TensorTypeNode* first = AsTensorType(tuple->fields()[0]);
    for (const Type& field : tuple->fields()) {
      const TensorTypeNode* tensor = AsTensorType(field);
      if (tensor == nullptr || tensor->dtype() != first->dtype()) {
        throw RelationFailure{"expects tensors of one dtype, got " + ToString(call.args[0])};
      }
      shapes.push_back(tensor->shape());
    }
    const Einsum einsum(call.attrs.String("equation"), Ranks(shapes));
    const std::map<char, Dim> sizes = einsum.Sizes(shapes);
    std::vector<Dim> shape;
    for (char label : einsum.output) shape.push_back(sizes.at(label));
    return TensorType(shape, first->dtype());
  });
  op.reference = EinsumReference;
  op.examples = {{{TupleType({F32({3, 5}), F32({5, 7})})}, {{"equation", "ij,jk->ik"}}},
                 {{TupleType({F32({2, 3, 4}), F32({2, 5, 4})})}, {{"equation", "bid,bjd->bij"}}}};
  return op;
}

OpDef Det() {
  OpDef op;
  op.name = "linalg.det";
  op.doc = "Determinants of square matrices.";
  op.args = {"data"};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const auto rank = static_cast<size_t>(data.rank());
    if (rank < 2 || data.shape()[rank - 1] != data.shape()[rank - 2]) {
      throw RelationFailure{"expects square matrices, got " + ToString(call.args[0])};
    }
    return TensorType(std::vector<Dim>(data.shape().begin(), data.shape().end() - 2), data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const auto n = static_cast<size_t>(inputs[0].shape().back());
    for (int64_t m = 0; m < outputs[0].num_elements(); ++m) {
      std::vector<double> a(n * n);
      for (size_t i = 0; i < n * n; ++i) a[i] = inputs[0].At(m * static_cast<int64_t>(n * n) + static_cast<int64_t>(i));
      // Elimination with the largest pivot of each column.
      double det = 1;
      for (size_t c = 0; c < n && det != 0; ++c) {
        size_t pivot = c;
        for (size_t r = c + 1; r < n; ++r) {
          if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
        }
        if (pivot != c) {
          std::swap_ranges(a.begin() + static_cast<int64_t>(pivot * n), a.begin() + static_cast<int64_t>(pivot * n + n),
                           a.begin() + static_cast<int64_t>(c * n));
          det = -det;
        }
        det *= a[c * n + c];
        if (det == 0) break;
        for (size_t r = c + 1; r < n; ++r) {
          const double factor = a[r * n + c] / a[c * n + c];
          for (size_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
        }
      }
      outputs[0].Set(m, det);
    }
  };
  op.examples = {{{F32({2, 3, 3})}, {}}};
  return op;
}

}  // namespace

void AddLinearAlgebraOps(std::vector<OpDef>& rows) {
  rows.push_back(EinsumOp());
  rows.push_back(Det());
}

}  // namespace collage
