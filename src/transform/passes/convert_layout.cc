// convert_layout.cc: each value is kept in the order in which it was computed, beside a transform back that dies when
// nobody needs it; so transforms remain only where orders meet.
#include "transform/passes/convert_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "support/edit_distance.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// A value's dimensions were `from` and are `to`.
struct Order {
  std::string from, to;

  /// For each dimension now, which one it was.
  size_t Was(size_t index) const { return from.find(to[index]); }
  /// Returns the new position of a dimension.
  int64_t Now(size_t index) const { return static_cast<int64_t>(to.find(from[index])); }
  bool SameAs(const Order& other) const {
    if (from.size() != other.from.size()) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      if (Was(i) != other.Was(i)) return false;
    }
    return true;
  }
  int rank() const { return static_cast<int>(from.size()); }
};

struct Placed {
  Expr value;
  Order order;
};

const char* DataAttr(const OpDef& op) {
  if (op.FindAttr("data_layout") != nullptr) return "data_layout";
  return op.name.starts_with("nn.") && op.FindAttr("layout") != nullptr ? "layout" : nullptr;
}

class Converter {
 public:
  explicit Converter(const std::function<std::optional<DesiredLayouts>(const CallNode&)>& desired)
      : desired_(desired) {}

  Function Run(const Function& function) {
    return AsShared<FunctionNode>(
        RewriteNodes(function, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten& done) -> Expr {
          if (CalledOp(original) == nullptr) return expr;
          done_ = &done;
          const std::optional<Placed> placed = Convert(*As<CallNode>(original));
          if (!placed) return expr;
          placed_[original.get()] = *placed;
          return Transform(placed->value, placed->order.to, placed->order.from);
        }));
  }

 private:
  static Expr Transform(const Expr& value, const std::string& from, const std::string& to) {
    return TypedCall("layout_transform", {value}, *value, {{"src_layout", from}, {"dst_layout", to}});
  }

  static const TensorTypeNode* TypeOf(const Expr& expr) { return AsTensorType(InferType(expr)); }

  const Placed* Find(const Expr& original) const {
    auto it = placed_.find(original.get());
    return it == placed_.end() ? nullptr : &it->second;
  }

  /// The value of `original` in `order`.
  Expr In(const Expr& original, const Order& order) {
    if (const Placed* placed = Find(original); placed != nullptr && placed->order.SameAs(order)) return placed->value;
    Expr& known = transformed_[{original.get(), order.from + ">" + order.to}];
    if (!known) known = Transform(done_->at(original.get()), order.from, order.to);
    return known;
  }

  /// As In, for an argument that is broadcast to the order's rank; null when it is no tensor of at most that rank.
  Expr BroadcastIn(const Expr& original, const Order& order) {
    const TensorTypeNode* type = TypeOf(original);
    if (type == nullptr || type->rank() > order.rank()) return nullptr;
    if (type->rank() == order.rank()) return In(original, order);
    const Expr& value = done_->at(original.get());
    if (type->rank() == 0) return value;
    const Expr raised =
        TypedCall("expand_dims", {value}, *value, {{"axis", 0}, {"num_newaxis", order.rank() - type->rank()}});
    return Transform(raised, order.from, order.to);
  }

  std::optional<Placed> Convert(const CallNode& call) {
    if (const std::optional<DesiredLayouts> desired = desired_(call)) {
      if (std::optional<Placed> placed = ConvertTo(call, *desired)) return placed;
    }
    return Follow(call);
  }

  std::optional<Placed> ConvertTo(const CallNode& call, const DesiredLayouts& desired) {
    const char* data_attr = DataAttr(*call.op());
    const std::string& own = call.attrs().String(data_attr);
    if (!call.attrs().StringOr("out_layout", "").empty()) return std::nullopt;
    const Order order{own, desired.data};
    Attrs attrs = call.attrs();
    attrs.Set(data_attr, desired.data);
    std::vector<Expr> args{In(call.args()[0], order)};
    if (call.args().size() > 1) {
      const std::string& weight = attrs.String("kernel_layout");
      Expr kernel = done_->at(call.args()[1].get());
      if (weight != desired.weight) kernel = Transform(kernel, weight, desired.weight);
      args.push_back(std::move(kernel));
      attrs.Set("kernel_layout", desired.weight);
    }
    if (own == desired.data && attrs == call.attrs()) return std::nullopt;
    return Place(call, std::move(args), std::move(attrs), order);
  }

  static Placed Place(const CallNode& call, std::vector<Expr> args, Attrs attrs, Order order) {
    return {TypedCall(call.op()->name, std::move(args), call, std::move(attrs)), std::move(order)};
  }

  /// The call in the order that its first converted argument has, if it can work in any order.
  std::optional<Placed> Follow(const CallNode& call) {
    const Placed* leader = nullptr;
    for (const Expr& arg : call.args()) {
      const TupleNode* tuple = As<TupleNode>(arg);
      for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
        if (leader == nullptr) leader = Find(leaf);
      }
    }
    if (leader == nullptr) return std::nullopt;
    const Order order = leader->order;
    const OpDef& op = *call.op();
    const TensorTypeNode* type = AsTensorType(call.checked_type());
    if (type == nullptr || type->rank() != order.rank()) return std::nullopt;
    if (op.name == "concatenate") return FollowConcatenate(call, order);
    if (op.name == "nn.pad") return FollowPad(call, order);
    if (op.name == "nn.bias_add" || op.name == "nn.softmax" || op.name == "nn.log_softmax")
      return FollowAxis(call, order);
    if (op.pattern == OpPatternKind::kCommReduce && op.FindAttr("keepdims") != nullptr)
      return FollowReduction(call, order);
    if (op.FindAttr("pool_size") != nullptr || op.name.starts_with("nn.global_")) return FollowPool(call, order);
    if (op.pattern <= OpPatternKind::kBroadcast && op.FindAttr("axis") == nullptr)
      return FollowElementwise(call, order);
    return std::nullopt;
  }

  std::optional<Placed> FollowElementwise(const CallNode& call, const Order& order) {
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) {
      args.push_back(BroadcastIn(arg, order));
      if (!args.back()) return std::nullopt;
    }
    return Place(call, std::move(args), call.attrs(), order);
  }

  std::optional<Placed> FollowPool(const CallNode& call, const Order& order) {
    const char* attr = DataAttr(*call.op());
    if (attr == nullptr || call.attrs().String(attr) != order.from) return std::nullopt;
    if (!call.attrs().StringOr("out_layout", "").empty()) return std::nullopt;
    Attrs attrs = call.attrs();
    attrs.Set(attr, order.to);
    return Place(call, {In(call.args()[0], order)}, std::move(attrs), order);
  }

  /// Along an axis; further arguments are vectors.
  std::optional<Placed> FollowAxis(const CallNode& call, const Order& order) {
    Attrs attrs = call.attrs();
    attrs.Set("axis", order.Now(FromFront(attrs.Int("axis"), order.rank())));
    std::vector<Expr> args{In(call.args()[0], order)};
    for (size_t i = 1; i < call.args().size(); ++i) args.push_back(done_->at(call.args()[i].get()));
    return Place(call, std::move(args), std::move(attrs), order);
  }

  std::optional<Placed> FollowConcatenate(const CallNode& call, const Order& order) {
    const TupleNode* tuple = As<TupleNode>(call.args()[0]);
    if (tuple == nullptr) return std::nullopt;
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields()) fields.push_back(In(field, order));
    const Expr joined = MakeTuple(std::move(fields));
    InferType(joined);
    Attrs attrs = call.attrs();
    attrs.Set("axis", order.Now(FromFront(attrs.Int("axis"), order.rank())));
    return Place(call, {joined}, std::move(attrs), order);
  }

  std::optional<Placed> FollowPad(const CallNode& call, const Order& order) {
    const AttrValue::List& widths = *call.attrs().Get("pad_width").as_list();
    AttrValue::List moved;
    for (size_t i = 0; i < widths.size(); ++i) moved.push_back(widths[order.Was(i)]);
    Attrs attrs = call.attrs();
    attrs.Set("pad_width", std::move(moved));
    return Place(call, {In(call.args()[0], order), done_->at(call.args()[1].get())}, std::move(attrs), order);
  }

  /// Reductions that keep their dimensions, so that the result has the order, too.
  std::optional<Placed> FollowReduction(const CallNode& call, const Order& order) {
    if (!call.attrs().Bool("keepdims")) return std::nullopt;
    Attrs attrs = call.attrs();
    if (!attrs.IsNone("axis")) {
      std::vector<int64_t> axes = attrs.Ints("axis");
      for (int64_t& axis : axes) axis = order.Now(FromFront(axis, order.rank()));
      std::sort(axes.begin(), axes.end());
      attrs.Set("axis", axes);
    }
    return Place(call, {In(call.args()[0], order)}, std::move(attrs), order);
  }

  const std::function<std::optional<DesiredLayouts>(const CallNode&)>& desired_;
  const Rewritten* done_ = nullptr;
  std::unordered_map<const ExprNode*, Placed> placed_;  ///< by the original
  std::map<std::pair<const ExprNode*, std::string>, Expr> transformed_;
};

// ---- the option ----

void CheckIsPermutation(const std::string& layout, const AttrField& field, const std::string& op) {
  const std::string& own = *field.default_value.as_string();
  if (std::is_permutation(layout.begin(), layout.end(), own.begin(), own.end())) return;
  throw Error(ErrorCategory::kInput, fmt::format("'{}' is no order of the dimensions {} of '{}'", layout, own, op),
              "relay.ConvertLayout.desired_layouts");
}

std::map<std::string, DesiredLayouts> ParseDesiredLayouts(const std::string& text) {
  std::map<std::string, DesiredLayouts> result;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string entry = text.substr(at, comma - at);
    at = comma + 1;
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed layout '{}'", entry),
                  "relay.ConvertLayout.desired_layouts", "write OPERATOR=LAYOUT or OPERATOR=LAYOUT:WEIGHTLAYOUT");
    }
    const std::string name = entry.substr(0, equals);
    const OpDef& op = GetOp(name)->def();
    const size_t colon = std::min(entry.find(':', equals), entry.size());
    DesiredLayouts layouts{entry.substr(equals + 1, colon - equals - 1), ""};
    const char* attr = DataAttr(op);
    if (attr == nullptr) {
      throw Error(ErrorCategory::kInput, fmt::format("operator '{}' has no layout", name),
                  "relay.ConvertLayout.desired_layouts");
    }
    CheckIsPermutation(layouts.data, *op.FindAttr(attr), name);
    if (const AttrField* weight = op.FindAttr("kernel_layout")) {
      layouts.weight = colon < entry.size() ? entry.substr(colon + 1)
                                            : MatchingWeightLayout(layouts.data, *weight->default_value.as_string());
      CheckIsPermutation(layouts.weight, *weight, name);
    }
    result[name] = std::move(layouts);
  }
  return result;
}

}  // namespace

std::string MatchingWeightLayout(const std::string& data, const std::string& own) {
  if (data.empty() || data.back() != 'C') return own;
  std::string layout;
  for (char letter : own) {
    if (letter != 'O' && letter != 'I') layout += letter;
  }
  return layout + "IO";
}

Function ConvertLayouts(const Function& function,
                        const std::function<std::optional<DesiredLayouts>(const CallNode& call)>& desired) {
  return Converter(desired).Run(function);
}

Function ConvertLayout(const Function& function, const IRModule&, const PassContext& context) {
  const auto wanted = ParseDesiredLayouts(context.ConfigString("relay.ConvertLayout.desired_layouts"));
  return ConvertLayouts(function, [&](const CallNode& call) -> std::optional<DesiredLayouts> {
    auto it = wanted.find(call.op()->name);
    return it == wanted.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace collage
