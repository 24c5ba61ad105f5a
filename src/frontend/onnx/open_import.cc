// open_import.cc: two imports of a model, node by node.
#include "frontend/onnx/open_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// Why two imports have nothing in common that would be right for other sizes, too.
struct Differ {
  std::string what;
};

/// One expression out of two that differ in sizes only.
class Common {
 public:
  Common(const Function& a, const Function& b) : a_(a), b_(b) {}

  Function Run() {
    const std::vector<Expr> a = Order(a_), b = Order(b_);
    if (a.size() != b.size() || a_->params().size() != b_->params().size()) {
      throw Differ{"the model has other nodes for other sizes"};
    }
    std::unordered_map<const ExprNode*, size_t> place;
    for (size_t i = 0; i < a.size(); ++i) {
      place[a[i].get()] = i;
      if (a[i] != b[i]) other_[a[i].get()] = b[i];
    }
    std::vector<Var> params;
    for (size_t i = 0; i < a_->params().size(); ++i) {
      const Var& own = a_->params()[i];
      params.push_back(MakeVar(own->name(), Merged(own->checked_type(), b_->params()[i]->checked_type())));
      params.back()->set_checked_type(params.back()->type_annotation());
      made_[own.get()] = params.back();
    }
    for (size_t i = 0; i < a.size(); ++i) {
      CheckChildren(a[i], b[i]);
      Make(a[i], b[i]);
    }
    return MakeFunction(params, made_.at(a_->body().get()), nullptr, a_->attrs());
  }

 private:
  static std::vector<Expr> Order(const Function& function) {
    std::vector<Expr> order;
    PostOrder(function->body(), [&](const Expr& expr) { order.push_back(expr); });
    return order;
  }

  static Type Merged(const Type& a, const Type& b) {
    const TensorTypeNode* x = AsTensorType(a);
    const TensorTypeNode* y = AsTensorType(b);
    if (x == nullptr || y == nullptr || x->rank() != y->rank()) throw Differ{"an input has other dimensions"};
    std::vector<Dim> shape;
    for (size_t i = 0; i < x->shape().size(); ++i) {
      shape.push_back(x->shape()[i] == y->shape()[i] ? x->shape()[i] : Dim::Any());
    }
    return TensorType(shape, x->dtype());
  }

  void CheckChildren(const Expr& a, const Expr& b) const {
    const std::vector<Expr> x = Children(a), y = Children(b);
    bool fits = a->kind() == b->kind() && x.size() == y.size();
    for (size_t i = 0; fits && i < x.size(); ++i) {
      const auto other = other_.find(x[i].get());
      fits = y[i] == (other == other_.end() ? x[i] : other->second);
    }
    if (!fits) throw Differ{"the model has other nodes for other sizes"};
  }

  void Make(const Expr& a, const Expr& b) {
    if (made_.contains(a.get())) return;
    Expr made = a;
    switch (a->kind()) {
      case ExprKind::kOp: break;
      case ExprKind::kConstant:
        if (!BitEqual(As<ConstantNode>(a)->value(), As<ConstantNode>(b)->value())) {
          made = Computed(As<ConstantNode>(a)->value(), As<ConstantNode>(b)->value());
          if (made == nullptr) throw Differ{fmt::format("a constant{} depends on a size", At(a))};
        }
        break;
      case ExprKind::kTuple: made = MakeTuple(Made(static_cast<const TupleNode&>(*a).fields())); break;
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(*a);
        made = MakeTupleGetItem(made_.at(item.tuple().get()), item.index());
        break;
      }
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*a);
        const auto& other = static_cast<const CallNode&>(*b);
        if (call.op() == nullptr || call.op() != other.op()) throw Differ{"the model has other nodes for other sizes"};
        if (call.op()->name == "reshape" && !(call.attrs().Get("newshape") == other.attrs().Get("newshape"))) {
          made = Reshaped(call, other, At(a));
          break;
        }
        if (call.op()->name == "broadcast_to" && !(call.attrs().Get("shape") == other.attrs().Get("shape"))) {
          const Shape x = ShapeOf(a), y = ShapeOf(b);
          const Expr sizes = SizesOf(x, y);
          if (sizes == nullptr) throw Differ{fmt::format("a 'broadcast_to'{} depends on a size", At(a))};
          made = WithKnown(MakeCall("dyn.broadcast_to", {made_.at(call.args()[0].get()), sizes}), x, y);
          break;
        }
        made = MakeCall(call.callee(), Made(call.args()), CommonAttrs(call, other, At(a)));
        break;
      }
      default: throw Differ{fmt::format("control flow{}", At(a))};
    }
    if (made != a) {
      made->share_span(*a);
      InferType(made);
    }
    made_[a.get()] = made;
  }

  static std::string At(const Expr& expr) {
    return expr->span().source.empty() ? "" : fmt::format(" at node '{}'", expr->span().source);
  }

  std::vector<Expr> Made(const std::vector<Expr>& exprs) const {
    std::vector<Expr> made;
    for (const Expr& expr : exprs) made.push_back(made_.at(expr.get()));
    return made;
  }

  // ---- reshapes ----

  static Shape ShapeOf(const Expr& expr) { return AsTensorType(expr->checked_type())->static_shape(); }

  Expr Reshaped(const CallNode& a, const CallNode& b, const std::string& where) const {
    const Expr& data = made_.at(a.args()[0].get());
    const Shape from_a = ShapeOf(a.args()[0]), from_b = ShapeOf(b.args()[0]);
    const Shape to_a = AsTensorType(a.checked_type())->static_shape();
    const Shape to_b = AsTensorType(b.checked_type())->static_shape();
    const auto reshape = [](const Expr& expr, const std::vector<int64_t>& sizes) {
      return MakeCall("reshape", {expr}, Attrs{{"newshape", AttrValue(AttrValue::List(sizes.begin(), sizes.end()))}});
    };
    if (to_a.size() != to_b.size()) throw Differ{fmt::format("the rank of a 'reshape'{} depends on a size", where)};
    if (const auto steps = StepByStep(from_a, from_b, to_a, to_b)) return reshape(data, *steps);
    if (const auto sizes = WithOneInferred(to_a, to_b)) return reshape(data, *sizes);
    const Expr sizes = SizesOf(to_a, to_b);
    if (sizes == nullptr) throw Differ{fmt::format("a 'reshape'{} depends on a size", where)};
    return WithKnown(MakeCall("dyn.reshape", {data, sizes}), to_a, to_b);
  }

  // ---- what a run computes ----

  /// A shape as a tensor of int64; null where it is not made of the parameters' sizes.
  Expr SizesOf(const Shape& a, const Shape& b) const {
    std::vector<Expr> sizes;
    for (size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
      sizes.push_back(a[i] == b[i] ? Number(a[i]) : Size(a[i], b[i]));
      if (sizes.back() == nullptr) return nullptr;
    }
    return sizes.empty() ? nullptr : MakeCall("concatenate", {MakeTuple(sizes)}, Attrs{{"axis", 0}});
  }

  /// `expr`, whose shape is computed, with what is known of it in its type.
  static Expr WithKnown(const Expr& expr, const Shape& a, const Shape& b) {
    AttrValue::List sizes;
    for (size_t i = 0; i < a.size(); ++i) sizes.emplace_back(a[i] == b[i] ? a[i] : 0);
    return MakeCall("reshape", {expr}, Attrs{{"newshape", sizes}});
  }

  /// What gives `a` in one import and `b` in the other: the same again and again along what is open, a list of sizes,
  /// numbers that count up along one dimension. Null for others.
  Expr Computed(const Tensor& a, const Tensor& b) const {
    if (a.dtype() != b.dtype() || a.rank() != b.rank() || a.rank() == 0) return nullptr;
    if (a.num_elements() == 0 || b.num_elements() == 0) return nullptr;
    if (const Expr repeated = Repeated(a, b)) return repeated;
    const auto cast = [&](const Expr& expr) {
      return MakeCall("cast", {expr}, Attrs{{"dtype", a.dtype().ToString()}});
    };
    if (a.shape() == b.shape()) {
      const bool is_list = a.rank() == 1 && a.dtype().is_integer();
      const Expr sizes = is_list ? SizesOf(a.ToInts(), b.ToInts()) : nullptr;
      return sizes == nullptr ? nullptr : cast(sizes);
    }
    const bool counts = CountsUp(a) && CountsUp(b) && a.At(0) == b.At(0) && a.At(1) == b.At(1);
    const Expr size = counts ? Size(a.num_elements(), b.num_elements()) : nullptr;
    if (size == nullptr) return nullptr;
    AttrValue::List shape;
    for (size_t i = 0; i < a.shape().size(); ++i) shape.emplace_back(a.shape()[i] == b.shape()[i] ? 1 : -1);
    const auto number = [](double value) { return MakeScalar(value, kInt64); };
    const double start = a.At(0), step = a.At(1) - a.At(0);
    const Expr length = MakeCall("reshape", {size}, Attrs{{"newshape", AttrValue::List{}}});
    const Expr stop = MakeCall("add", {MakeCall("multiply", {length, number(step)}), number(start)});
    const Expr range = MakeCall("arange", {number(start), stop, number(step)});
    return cast(MakeCall("reshape", {range}, Attrs{{"newshape", shape}}));
  }

  /// Whether elements are whole numbers at the same distance, one after the other along one dimension.
  static bool CountsUp(const Tensor& tensor) {
    const int64_t count = tensor.num_elements();
    if (count < 2 || *std::ranges::max_element(tensor.shape()) != count) return false;
    const double start = tensor.At(0), step = tensor.At(1) - start;
    if (step == 0 || step != std::trunc(step) || start != std::trunc(start)) return false;
    for (int64_t i = 0; i < count; ++i) {
      if (tensor.At(i) != start + static_cast<double>(i) * step) return false;
    }
    return true;
  }

  /// The one slice along all dimensions that differ, stretched; null where there are several.
  Expr Repeated(const Tensor& a, const Tensor& b) const {
    if (a.shape() == b.shape()) return nullptr;
    Shape shape = a.shape();
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = a.shape()[i] == b.shape()[i] ? shape[i] : 1;
    const Tensor slice = Tensor::Empty(shape, a.dtype());
    const size_t bytes = a.dtype().size_bytes();
    // Compares each element of `tensor` with that of the slice, or makes the slice of those that come first.
    const auto walk = [&](const Tensor& tensor, bool makes) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        int64_t rest = i, at = 0, stride = 1;
        bool is_first = true;
        for (size_t d = shape.size(); d-- > 0;) {
          const int64_t index = rest % tensor.shape()[d];
          rest /= tensor.shape()[d];
          const bool is_open = a.shape()[d] != b.shape()[d];
          is_first = is_first && (!is_open || index == 0);
          if (!is_open) at += index * stride;
          stride *= shape[d];
        }
        std::byte* own = slice.data<std::byte>() + static_cast<size_t>(at) * bytes;
        const std::byte* element = tensor.data<std::byte>() + static_cast<size_t>(i) * bytes;
        if (makes && is_first) std::memcpy(own, element, bytes);
        if (!makes && std::memcmp(own, element, bytes) != 0) return false;
      }
      return true;
    };
    walk(a, /*makes=*/true);
    if (!walk(a, /*makes=*/false) || !walk(b, /*makes=*/false)) return nullptr;
    const Expr sizes = SizesOf(a.shape(), b.shape());
    if (sizes == nullptr) return nullptr;
    return WithKnown(MakeCall("dyn.broadcast_to", {MakeConstant(slice), sizes}), a.shape(), b.shape());
  }

  /// Dimensions that are copied (0), merged (-3) and split (-4), one after the other.
  static std::optional<std::vector<int64_t>> StepByStep(const Shape& from_a, const Shape& from_b, const Shape& to_a,
                                                        const Shape& to_b) {
    std::vector<int64_t> steps;
    size_t i = 0;
    for (size_t j = 0; j < to_a.size(); ++j) {
      const auto is = [&](size_t at) { return at < from_a.size(); };
      if (is(i) && to_a[j] == from_a[i] && to_b[j] == from_b[i]) {
        steps.push_back(0);
        ++i;
      } else if (is(i + 1) && to_a[j] == from_a[i] * from_a[i + 1] && to_b[j] == from_b[i] * from_b[i + 1]) {
        steps.push_back(-3);
        i += 2;
      } else if (is(i) && j + 1 < to_a.size() && from_a[i] == to_a[j] * to_a[j + 1] &&
                 from_b[i] == to_b[j] * to_b[j + 1]) {
        const bool knows_first = to_a[j] == to_b[j], knows_second = to_a[j + 1] == to_b[j + 1];
        if (!knows_first && !knows_second) return std::nullopt;
        steps.insert(steps.end(), {-4, knows_first ? to_a[j] : -1, knows_second ? to_a[j + 1] : -1});
        ++i;
        ++j;
      } else {
        return std::nullopt;
      }
    }
    if (i != from_a.size()) return std::nullopt;
    return steps;
  }

  static std::optional<std::vector<int64_t>> WithOneInferred(const Shape& to_a, const Shape& to_b) {
    std::vector<int64_t> sizes = to_a;
    int inferred = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (to_a[i] == to_b[i]) continue;
      sizes[i] = -1;
      ++inferred;
    }
    // A known size of 0 would be copied.
    if (inferred != 1 || std::ranges::find(sizes, 0) != sizes.end()) return std::nullopt;
    return sizes;
  }

  static Expr Number(int64_t value) {
    return MakeConstant(Tensor::Of<int64_t>({1}, kInt64, std::vector<int64_t>{value}));
  }

  /// What is `x` in one import and `y` in the other: a multiple of a parameter's size; null where none is.
  Expr Size(int64_t x, int64_t y) const {
    for (const Var& param : a_->params()) {
      const auto number = static_cast<size_t>(&param - a_->params().data());
      const Shape in_a = ShapeOf(param), in_b = ShapeOf(b_->params()[number]);
      for (size_t dim = 0; dim < in_a.size(); ++dim) {
        if (in_a[dim] == in_b[dim] || x % in_a[dim] != 0 || y % in_b[dim] != 0 || x / in_a[dim] != y / in_b[dim])
          continue;
        const auto first = static_cast<int64_t>(dim);
        const Expr sizes = MakeCall("shape_of", {made_.at(param.get())}, Attrs{{"dtype", "int64"}});
        const Expr one = MakeCall("strided_slice", {sizes},
                                  Attrs{{"begin", AttrValue::List{first}}, {"end", AttrValue::List{first + 1}}});
        return x == in_a[dim] ? one : MakeCall("multiply", {one, Number(x / in_a[dim])});
      }
    }
    return nullptr;
  }

  // ---- attributes ----

  static Attrs CommonAttrs(const CallNode& a, const CallNode& b, const std::string& where) {
    Attrs attrs = a.attrs();
    for (const auto& [name, value] : a.attrs()) {
      const AttrValue* other = b.attrs().Find(name);
      if (other != nullptr && *other == value) continue;
      const std::optional<AttrValue> common = CommonValue(a, b, name);
      if (!common) throw Differ{fmt::format("'{}' of '{}'{} depends on a size", name, a.op()->name, where)};
      attrs.Set(name, *common);
    }
    return attrs;
  }

  /// What says for every size what both say for theirs.
  static std::optional<AttrValue> CommonValue(const CallNode& a, const CallNode& b, const std::string& name) {
    const std::string& op = a.op()->name;
    if (op != "strided_slice" || name != "end") return std::nullopt;
    const Shape from_a = AsTensorType(a.args()[0]->checked_type())->static_shape();
    const Shape from_b = AsTensorType(b.args()[0]->checked_type())->static_shape();
    std::vector<int64_t> x = a.attrs().Ints(name), y = b.attrs().Ints(name);
    if (x.size() != y.size()) return std::nullopt;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] == y[i]) continue;
      const int64_t given = a.attrs().IsNone("axes") ? static_cast<int64_t>(i) : a.attrs().Ints("axes")[i];
      const auto axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(from_a.size()) : given);
      if (x[i] != from_a[axis] || y[i] != from_b[axis]) return std::nullopt;
      x[i] = std::numeric_limits<int32_t>::max();
    }
    return AttrValue(AttrValue::List(x.begin(), x.end()));
  }

  const Function& a_;
  const Function& b_;
  std::unordered_map<const ExprNode*, Expr> other_;  ///< a's → b's
  std::unordered_map<const ExprNode*, Expr> made_;   ///< a's → the common one
};

ImportOptions WithSizes(const ImportOptions& options, const std::vector<OpenInput>& open,
                        const std::vector<int64_t>& sizes) {
  ImportOptions own = options;
  for (const OpenInput& input : open) {
    Shape shape = input.shape;
    for (int64_t& size : shape) {
      if (size < 0) size = sizes[static_cast<size_t>(-1 - size) % sizes.size()];
    }
    own.shapes[input.name] = shape;
  }
  return own;
}

}  // namespace

IRModule ImportOpen(const std::filesystem::path& path, const ImportOptions& options,
                    const std::vector<OpenInput>& open) {
  // Sizes that no layer is likely to have; images have no less than some.
  static const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> tried{
      {{3, 23, 29, 31, 37, 41}, {5, 43, 47, 53, 59, 61}}, {{3, 224, 288, 352, 416, 480}, {5, 256, 320, 384, 448, 512}}};
  std::string why;
  for (const auto& [some, others] : tried) {
    try {
      const IRModule a = ImportOnnx(path, WithSizes(options, open, some));
      const IRModule b = ImportOnnx(path, WithSizes(options, open, others));
      return InferTypes(IRModule::FromFunction(Common(a.main(), b.main()).Run()));
    } catch (const Differ& differ) {
      why = differ.what;
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kInput) throw;
      if (why.empty()) why = error.message();
    }
  }
  std::string names, example;
  for (const OpenInput& input : open) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", input.name);
    example += fmt::format("{}--shape {}=", example.empty() ? "" : " ", input.name);
    for (size_t i = 0; i < input.shape.size(); ++i) {
      example += fmt::format("{}{}", i == 0 ? "" : "x", std::max<int64_t>(input.shape[i], 1));
    }
  }
  throw Error(ErrorCategory::kInput,
              fmt::format("input {} has dynamic dimensions that cannot stay open: {}", names, why), path.string(),
              "give their shapes, as in " + example);
}

}  // namespace collage
