// open_import.cc: two imports of a model, node by node.
#include "frontend/onnx/open_import.h"

#include <fmt/format.h>

#include <algorithm>
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
          throw Differ{fmt::format("a constant{} depends on a size", At(a))};
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
    if ((op != "reshape" || name != "newshape") && (op != "strided_slice" || name != "end")) return std::nullopt;
    const Shape from_a = AsTensorType(a.args()[0]->checked_type())->static_shape();
    const Shape from_b = AsTensorType(b.args()[0]->checked_type())->static_shape();
    std::vector<int64_t> x = a.attrs().Ints(name), y = b.attrs().Ints(name);
    if (x.size() != y.size()) return std::nullopt;
    if (op == "reshape") {
      if (a.attrs().Bool("allowzero")) return std::nullopt;
      // Copied from the same place, or the one that follows from all others.
      bool infers = std::ranges::any_of(x, [](int64_t size) { return size < 0; });
      for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] == y[i]) continue;
        if (i < from_a.size() && x[i] == from_a[i] && y[i] == from_b[i]) {
          x[i] = 0;
        } else {
          if (infers) return std::nullopt;
          infers = true;
          x[i] = -1;
        }
      }
      return AttrValue(AttrValue::List(x.begin(), x.end()));
    }
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
