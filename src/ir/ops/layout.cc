// layout.cc: orders of dimensions. Convolutions and pools are written for one order of their data ([N, C, spatial…])
// and weights; other orders are permuted to it and back, in types and in reference evaluation, so that ConvertLayout
// has something to convert to. layout_transform permutes.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// For each dimension of layout `to`, which one of `from` it is; fails when they are not the same letters.
V Permutation(const std::string& from, const std::string& to) {
  V axes;
  for (char letter : to) {
    const size_t at = from.find(letter);
    if (at == std::string::npos || std::count(to.begin(), to.end(), letter) != 1 || from.size() != to.size()) {
      throw RelationFailure{fmt::format("cannot order the dimensions of '{}' as '{}'", from, to)};
    }
    axes.push_back(static_cast<int64_t>(at));
  }
  return axes;
}

Type Permuted(const Type& type, const V& axes) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr || tensor->rank() != static_cast<int>(axes.size())) {
    throw RelationFailure{fmt::format("expects {} dimensions, got {}", axes.size(), ToString(type))};
  }
  std::vector<Dim> shape;
  for (int64_t axis : axes) shape.push_back(tensor->shape()[axis]);
  return TensorType(std::move(shape), tensor->dtype());
}

Tensor Permuted(const Tensor& tensor, const V& axes) {
  const V own = Strides(tensor.shape());
  Shape shape;
  V strides;
  for (int64_t axis : axes) {
    shape.push_back(tensor.shape()[axis]);
    strides.push_back(own[axis]);
  }
  const Tensor result = Tensor::Empty(shape, tensor.dtype());
  CopyStrided(tensor, strides, result);
  return result;
}

/// The attributes that say in which order an operator's arguments and result are; `weight` and `result` may be empty.
struct LayoutAttrs {
  std::string data, weight, result;
};

/// An operator in its own order, and what must be permuted for a call in others.
class Orders {
 public:
  Orders(const OpDef& op, const LayoutAttrs& names, const Attrs& attrs) : attrs_(attrs) {
    const auto own = [&](const std::string& name) { return *op.FindAttr(name)->default_value.as_string(); };
    const std::string& data = attrs.String(names.data);
    inputs_.push_back(Permutation(data, own(names.data)));
    attrs_.Set(names.data, own(names.data));
    if (!names.weight.empty()) {
      inputs_.push_back(Permutation(attrs.String(names.weight), own(names.weight)));
      attrs_.Set(names.weight, own(names.weight));
    }
    const std::string result = names.result.empty() ? "" : attrs.String(names.result);
    output_ = Permutation(own(names.data), result.empty() ? data : result);
    if (!names.result.empty()) attrs_.Set(names.result, "");
    is_own_ = std::is_sorted(output_.begin(), output_.end());
    for (const V& axes : inputs_) is_own_ = is_own_ && std::is_sorted(axes.begin(), axes.end());
  }

  bool is_own() const { return is_own_; }
  const Attrs& attrs() const { return attrs_; }
  const V& input(size_t index) const { return inputs_[index]; }
  const V& output() const { return output_; }

 private:
  Attrs attrs_;
  std::vector<V> inputs_;
  V output_;
  bool is_own_ = true;
};

/// Types of arguments in the operator's own order; those behind data and weight have none.
std::vector<Type> InOwnOrder(const OpCall& call, const Orders& orders, const LayoutAttrs& names) {
  std::vector<Type> args(call.args.begin(), call.args.end());
  const size_t count = names.weight.empty() ? 1 : 2;
  if (orders.is_own()) return args;
  for (size_t i = 0; i < std::min(count, args.size()); ++i) args[i] = Permuted(args[i], orders.input(i));
  return args;
}

void AcceptLayouts(OpDef& op, const LayoutAttrs& names) {
  const OpDef inner = op;
  op.relation = Relation([inner, names](const OpCall& call) {
    const Orders orders(inner, names, call.attrs);
    const std::vector<Type> args = InOwnOrder(call, orders, names);
    const Result<Type> type = inner.relation({args, orders.attrs()});
    if (!type.ok()) throw RelationFailure{type.reason().text};
    return orders.is_own() ? *type : Permuted(*type, orders.output());
  });
  op.reference = [inner, names](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Orders orders(inner, names, attrs);
    if (orders.is_own()) return inner.reference(inputs, orders.attrs(), outputs);
    std::vector<Tensor> permuted(inputs.begin(), inputs.end());
    const size_t count = names.weight.empty() ? 1 : 2;
    for (size_t i = 0; i < std::min(count, permuted.size()); ++i) permuted[i] = Permuted(permuted[i], orders.input(i));
    // The result in the operator's own order has, at dimension axes[i], the size of dimension i.
    V back(orders.output().size());
    for (size_t i = 0; i < back.size(); ++i) back[orders.output()[i]] = static_cast<int64_t>(i);
    Shape shape;
    for (int64_t axis : back) shape.push_back(outputs[0].shape()[axis]);
    std::vector<Tensor> result{Tensor::Empty(shape, outputs[0].dtype())};
    inner.reference(permuted, orders.attrs(), result);
    outputs[0] = Permuted(result[0], orders.output());
  };
  if (!inner.multiply_adds) return;
  op.multiply_adds = [inner, names](const OpCall& call) {
    const Orders orders(inner, names, call.attrs);
    const std::vector<Type> args = InOwnOrder(call, orders, names);
    return inner.multiply_adds({args, orders.attrs()});
  };
}

OpDef LayoutTransform() {
  OpDef op;
  op.name = "layout_transform";
  op.is_exact = true;
  op.doc = "Permutes dimensions from one order of letters to another.";
  op.args = {"data"};
  op.attrs = {{"src_layout", AttrKind::kString, {}, "order of the argument's dimensions, such as NCHW", true},
              {"dst_layout", AttrKind::kString, {}, "order of the result's dimensions", true}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    TensorArg(call, 0);
    return Permuted(call.args[0], Permutation(call.attrs.String("src_layout"), call.attrs.String("dst_layout")));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    outputs[0] = Permuted(inputs[0], Permutation(attrs.String("src_layout"), attrs.String("dst_layout")));
  };
  op.examples = {{{F32({2, 3, 4, 5})}, {{"src_layout", "NCHW"}, {"dst_layout", "NHWC"}}},
                 {{F32({4, 3, 2, 2})}, {{"src_layout", "OIHW"}, {"dst_layout", "HWIO"}}}};
  return op;
}

}  // namespace

void AddLayoutOps(std::vector<OpDef>& rows) {
  for (OpDef& op : rows) {
    if (op.FindAttr("kernel_layout") != nullptr) {
      AcceptLayouts(op, {"data_layout", "kernel_layout", "out_layout"});
    } else if (op.name.starts_with("nn.") && op.name.find("_pool") != std::string::npos &&
               op.FindAttr("layout") != nullptr) {
      AcceptLayouts(op, {"layout", "", op.FindAttr("out_layout") != nullptr ? "out_layout" : ""});
    }
  }
  rows.push_back(LayoutTransform());
}

}  // namespace collage
