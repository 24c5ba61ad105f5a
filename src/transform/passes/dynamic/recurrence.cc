// recurrence.cc: gates and their order are ONNX's: i o f c of an LSTM, z r h of a GRU.
#include "transform/passes/dynamic/recurrence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"
#include "ir/ops/relations.h"
#include "ir/tensor_types.h"
#include "transform/passes/dynamic/replaced_calls.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

const Tensor* ConstantOf(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  return constant == nullptr ? nullptr : &constant->value();
}

/// Elements `begin` to `end` along the second dimension of row `row` of a tensor.
Tensor Part(const Tensor& whole, int64_t row, int64_t begin, int64_t end) {
  Shape shape(whole.shape().begin() + 1, whole.shape().end());
  shape[0] = end - begin;
  const Tensor part = Tensor::Empty(shape, whole.dtype());
  const auto inner = static_cast<size_t>(Strides(whole.shape())[1]) * whole.dtype().size_bytes();
  const size_t from = static_cast<size_t>(row * whole.shape()[1] + begin) * inner;
  std::copy_n(whole.data<char>() + from, static_cast<size_t>(end - begin) * inner, part.data<char>());
  return part;
}

/// A field of a typed tuple.
Expr Field(const Expr& tuple, size_t index) {
  const Expr field = MakeTupleGetItem(tuple, static_cast<int>(index));
  field->set_checked_type(AsTupleType(tuple->checked_type())->fields()[index]);
  return field;
}

/// One layer: its attributes and arguments.
struct Layer {
  explicit Layer(const CallNode& layer)
      : call(layer),
        is_lstm(layer.op()->name == "nn.lstm"),
        is_gru(layer.op()->name == "nn.gru"),
        hidden(layer.attrs().Int("hidden_size")),
        gates(is_lstm  ? 4
              : is_gru ? 3
                       : 1),
        batch_first(layer.attrs().Int("layout") == 1),
        directions(layer.attrs().String("direction") == "bidirectional" ? 2 : 1) {}

  bool IsReverse(int64_t direction) const { return direction == 1 || call.attrs().String("direction") == "reverse"; }
  size_t LengthsAt() const { return is_lstm ? 7 : 5; }
  bool HasLengths() const { return call.args().size() > LengthsAt(); }
  bool HasPeepholes() const { return is_lstm && call.args().size() > 6; }

  const CallNode& call;
  bool is_lstm, is_gru;
  int64_t hidden, gates;
  bool batch_first;
  int64_t directions;
};

/// Writes the activations of one direction.
class Activations {
 public:
  Activations(const Layer& layer, int64_t direction) : call_(layer.call) {
    const std::vector<const char*> usual = layer.is_lstm  ? std::vector{"Sigmoid", "Tanh", "Tanh"}
                                           : layer.is_gru ? std::vector{"Sigmoid", "Tanh"}
                                                          : std::vector{"Tanh"};
    const AttrValue::List* given = call_.attrs().Get("activations").as_list();
    for (size_t i = 0; i < usual.size(); ++i) {
      const size_t at = static_cast<size_t>(direction) * usual.size() + i;
      const bool is_given = given != nullptr && !given->empty();
      names_.push_back(is_given ? *(*given)[at].as_string() : usual[i]);
      is_known_ = is_known_ && (names_.back() == "Sigmoid" || names_.back() == "Tanh" || names_.back() == "Relu");
    }
  }

  /// Whether all of them are operators.
  bool is_known() const { return is_known_; }

  Expr Apply(size_t which, Expr x) const {
    if (!call_.attrs().IsNone("clip")) {
      const double most = call_.attrs().Double("clip");
      x = TypedCall("clip", {x}, call_, {{"a_min", -most}, {"a_max", most}});
    }
    const std::string& name = names_[which];
    return TypedCall(name == "Sigmoid" ? "sigmoid" : name == "Tanh" ? "tanh" : "nn.relu", {x}, call_);
  }

 private:
  const CallNode& call_;
  std::vector<std::string> names_;
  bool is_known_ = true;
};

/// Writes one direction of a layer as a global function of its steps and a call of it.
class DirectionWriter {
 public:
  DirectionWriter(const Layer& layer, int64_t direction, const std::string& name)
      : layer_(layer),
        direction_(direction),
        steps_(std::make_shared<const GlobalVarNode>(name)),
        activations_(layer, direction),
        recurrence_(Part(*ConstantOf(layer.call.args()[2]), direction, 0, layer.gates * layer.hidden)),
        dtype_(recurrence_.dtype()) {
    const int64_t gates = layer.gates * layer.hidden;
    const Tensor biases = ConstantOf(layer.call.args()[3])->Cast(kFloat64);
    const Tensor sums = Part(biases, direction, 0, gates), own = Part(biases, direction, gates, 2 * gates);
    // A GRU that resets behind the product resets the last gate's own bias, too.
    const int64_t joined = ResetsBehindProduct() ? gates - layer.hidden : gates;
    for (int64_t i = 0; i < joined; ++i) sums.data<double>()[i] += own.data<double>()[i];
    shared_bias_ = sums.Cast(dtype_);
    if (joined < gates) reset_bias_ = Part(biases, direction, gates + joined, 2 * gates).Cast(dtype_);
  }

  bool is_known() const { return activations_.is_known(); }

  /// (y [S, N, H], last output [N, H], last cell [N, H]) of data [S, N, F] and the `state` before: output, and cell of
  /// an LSTM, [N, H] each.
  Expr Call(const Expr& data, const Exprs& state, const Expr& lengths) const {
    const Expr length = Make("take", {Make("shape_of", {data}, {{"dtype", kInt64}}), MakeScalar(0, kInt64)},
                             {{"axis", 0}, {"mode", "clip"}});
    Exprs args{Shares(data), MakeScalar(0, kInt64), length};
    args.insert(args.end(), state.begin(), state.end());
    if (lengths != nullptr) args.push_back(lengths);
    return Spanned(MakeCall(Expr(steps_), args));
  }

  /// The global function for arguments of the types of `call`'s.
  Function Steps(const CallNode& call) const {
    std::vector<Var> params;
    std::vector<Type> param_types;
    for (const Expr& arg : call.args()) {
      param_types.push_back(WithoutSymbols(InferType(arg)));
      params.push_back(MakeVar(fmt::format("p{}", params.size()), param_types.back()));
      params.back()->set_checked_type(param_types.back());
    }
    const TensorTypeNode& output = *AsTensorType(params[kState]->checked_type());
    std::vector<Type> types{TensorType(std::vector<Dim>{Dim::Any(), output.shape()[0], layer_.hidden}, dtype_)};
    types.resize(layer_.is_lstm ? 3 : 2, TensorType(output.shape(), dtype_));
    const Type result = TupleType(types);
    steps_->set_checked_type(FuncType(param_types, result));
    const Expr is_one = Make("less_equal", {params[kCount], MakeScalar(1, kInt64)});
    const Expr is_none = Make("less_equal", {params[kCount], MakeScalar(0, kInt64)});
    const Expr few = Branch(is_none, NoStep(params), OneStep(params));
    return MakeFunction(params, Branch(is_one, few, Halves(params, result)), result);
  }

  const GlobalVar& name() const { return steps_; }

 private:
  enum Param : size_t { kShares, kFirst, kCount, kState };

  bool ResetsBehindProduct() const { return layer_.is_gru && layer_.call.attrs().Bool("linear_before_reset"); }

  Expr Make(std::string_view op, Exprs args, Attrs attrs = {}) const {
    return TypedCall(op, std::move(args), layer_.call, std::move(attrs));
  }
  Expr Spanned(Expr expr) const {
    expr->set_span(layer_.call.span());
    return expr;
  }
  Expr Branch(const Expr& condition, const Expr& then, const Expr& otherwise) const {
    return Spanned(std::make_shared<const IfNode>(condition, then, otherwise));
  }

  /// weight . x + biases of all gates at all times, [S, N, gates * H].
  Expr Shares(const Expr& data) const {
    const int64_t gates = layer_.gates * layer_.hidden;
    const Tensor weight = Part(*ConstantOf(layer_.call.args()[1]), direction_, 0, gates);
    const std::vector<Dim>& shape = AsTensorType(data->checked_type())->shape();
    Expr shares;
    if (shape[0].is_any() && shape[1].is_any()) {
      const Expr matrix = MakeConstant(weight.Reshaped({1, gates, weight.shape()[1]}));
      shares = Make("nn.batch_matmul", {data, matrix}, {{"transpose_b", true}});
    } else {  // all rows at once
      const Expr rows = Make("reshape", {data}, {{"newshape", V{-3, weight.shape()[1]}}});
      const V newshape{shape[0].is_any() ? -1 : shape[0].size(), shape[0].is_any() ? shape[1].size() : -1, gates};
      shares = Make("reshape", {Make("nn.dense", {rows, MakeConstant(weight)})}, {{"newshape", newshape}});
    }
    return Make("add", {shares, MakeConstant(shared_bias_)});
  }

  Expr NoStep(const std::vector<Var>& params) const {
    Exprs results{Make("strided_slice", {params[kShares]},
                       {{"begin", V{0, 0}}, {"end", V{0, layer_.hidden}}, {"axes", V{0, 2}}})};
    results.insert(results.end(), params.begin() + kState, params.begin() + kState + (layer_.is_lstm ? 2 : 1));
    return MakeTuple(results);
  }

  Expr Halves(const std::vector<Var>& params, const Type& type) const {
    const Expr half = Make("floor_divide", {params[kCount], MakeScalar(2, kInt64)});
    const Expr rest = Make("subtract", {params[kCount], half});
    const bool is_reverse = layer_.IsReverse(direction_);
    // The half that is computed first is the earlier one, or the later one of a layer that goes backward.
    const Expr middle = Make("add", {params[kFirst], is_reverse ? rest : half});
    const Exprs firsts{is_reverse ? middle : params[kFirst], is_reverse ? Expr(params[kFirst]) : middle};
    const Exprs counts{half, rest};
    Exprs args(params.begin(), params.end());
    const size_t num_states = layer_.is_lstm ? 2 : 1;
    Exprs parts;
    for (size_t i = 0; i < 2; ++i) {
      args[kFirst] = firsts[i];
      args[kCount] = counts[i];
      const Expr results = Spanned(MakeCall(Expr(steps_), args));
      results->set_checked_type(type);
      for (size_t state = 0; state < num_states; ++state) args[kState + state] = Field(results, state + 1);
      parts.push_back(Field(results, 0));
    }
    if (is_reverse) std::swap(parts[0], parts[1]);
    Exprs all{Make("concatenate", {Tuple(parts)}, {{"axis", 0}})};
    all.insert(all.end(), args.begin() + kState, args.begin() + kState + static_cast<int64_t>(num_states));
    return MakeTuple(all);
  }

  static Expr Tuple(const Exprs& fields) {
    std::vector<Type> types;
    for (const Expr& field : fields) types.push_back(field->checked_type());
    const Expr tuple = MakeTuple(fields);
    tuple->set_checked_type(TupleType(types));
    return tuple;
  }

  // ---- one step ----

  Expr OneStep(const std::vector<Var>& params) const {
    const Expr share = Make("take", {params[kShares], params[kFirst]}, {{"axis", 0}, {"mode", "clip"}});
    const Expr h = params[kState], c = layer_.is_lstm ? Expr(params[kState + 1]) : Expr();
    Exprs next = layer_.is_lstm ? Lstm(share, h, c) : layer_.is_gru ? Gru(share, h) : Exprs{Rnn(share, h)};
    Expr y = next[0];
    if (layer_.HasLengths()) {
      const Var& lengths = params.back();
      const DataType dtype = AsTensorType(lengths->checked_type())->dtype();
      const Expr now = Make("cast", {params[kFirst]}, {{"dtype", dtype}});
      const Expr runs = Make("expand_dims", {Make("less", {now, lengths})}, {{"axis", 1}});
      y = Make("where", {runs, y, MakeScalar(0, dtype_)});
      next[0] = Make("where", {runs, next[0], h});
      if (layer_.is_lstm) next[1] = Make("where", {runs, next[1], c});
    }
    next.insert(next.begin(), Make("expand_dims", {y}, {{"axis", 0}}));
    return MakeTuple(next);
  }

  /// source times the rows of gates `begin` to `end` of the recurrence.
  Expr Product(const Expr& source, int64_t begin, int64_t end) const {
    const Tensor all = recurrence_.Reshaped({1, layer_.gates * layer_.hidden, layer_.hidden});
    return Make("nn.dense", {source, MakeConstant(Part(all, 0, begin * layer_.hidden, end * layer_.hidden))});
  }
  Exprs Gates(const Expr& all, int64_t count) const {
    if (count == 1) return {all};
    const Expr split = Make("split", {all}, {{"indices_or_sections", count}, {"axis", 1}});
    Exprs gates;
    for (int64_t gate = 0; gate < count; ++gate) gates.push_back(Field(split, static_cast<size_t>(gate)));
    return gates;
  }
  Expr Add(const Expr& a, const Expr& b) const { return Make("add", {a, b}); }
  Expr Multiply(const Expr& a, const Expr& b) const { return Make("multiply", {a, b}); }

  Expr Rnn(const Expr& share, const Expr& h) const {
    return activations_.Apply(0, Add(Product(h, 0, layer_.gates), share));
  }

  Exprs Lstm(const Expr& share, const Expr& h, const Expr& c) const {
    const Exprs gates = Gates(Add(Product(h, 0, layer_.gates), share), 4);
    const auto peep = [&](int64_t gate, const Expr& x, const Expr& cell) {
      if (!layer_.HasPeepholes()) return x;
      const Tensor& all = *ConstantOf(layer_.call.args()[6]);
      const Tensor own = Part(all, direction_, gate * layer_.hidden, (gate + 1) * layer_.hidden);
      return Add(x, Multiply(cell, MakeConstant(own)));
    };
    const Expr input = activations_.Apply(0, peep(0, gates[0], c));
    const Expr forget = layer_.call.attrs().Bool("input_forget") ? Make("subtract", {MakeScalar(1, dtype_), input})
                                                                 : activations_.Apply(0, peep(2, gates[2], c));
    const Expr cell = Add(Multiply(forget, c), Multiply(input, activations_.Apply(1, gates[3])));
    const Expr output = activations_.Apply(0, peep(1, gates[1], cell));
    return {Multiply(output, activations_.Apply(2, cell)), cell};
  }

  Exprs Gru(const Expr& share, const Expr& h) const {
    const Exprs shares = Gates(share, 3);
    Expr update, reset, candidate;
    if (ResetsBehindProduct()) {
      const Exprs products = Gates(Product(h, 0, 3), 3);
      update = activations_.Apply(0, Add(products[0], shares[0]));
      reset = activations_.Apply(0, Add(products[1], shares[1]));
      const Expr scaled = Multiply(reset, Add(products[2], MakeConstant(*reset_bias_)));
      candidate = activations_.Apply(1, Add(shares[2], scaled));
    } else {
      const Exprs products = Gates(Product(h, 0, 2), 2);
      update = activations_.Apply(0, Add(products[0], shares[0]));
      reset = activations_.Apply(0, Add(products[1], shares[1]));
      candidate = activations_.Apply(1, Add(Product(Multiply(reset, h), 2, 3), shares[2]));
    }
    return {Add(candidate, Multiply(update, Make("subtract", {h, candidate})))};
  }

  const Layer& layer_;
  int64_t direction_;
  GlobalVar steps_;
  Activations activations_;
  Tensor recurrence_;
  DataType dtype_;
  Tensor shared_bias_;
  std::optional<Tensor> reset_bias_;  ///< the last gate's own; only a GRU's that resets behind the product
};

bool IsDynamicLayer(const CallNode& call) {
  const OpDef* op = call.op();
  if (op == nullptr || (op->name != "nn.lstm" && op->name != "nn.gru" && op->name != "nn.rnn")) return false;
  const TensorTypeNode* data = AsTensorType(call.args()[0]->checked_type());
  return data != nullptr && (data->dtype() == kFloat32 || data->dtype() == kFloat64) &&
         (data->shape()[0].is_any() || data->shape()[1].is_any());
}

/// Replaces the layers of one module.
class LayerWriter {
 public:
  explicit LayerWriter(const IRModule& module) : module_(module) {}

  /// The functions that were made so far.
  const std::map<std::string, Function>& functions() const { return functions_; }

  /// (y, last output, last cell) as the layer gives them; null where it stays as it is.
  Expr Replace(const CallNode& call) {
    const Layer layer(call);
    const Exprs& args = call.args();
    const bool is_constant = ConstantOf(args[1]) != nullptr && ConstantOf(args[2]) != nullptr &&
                             ConstantOf(args[3]) != nullptr &&
                             (!layer.HasPeepholes() || ConstantOf(args[6]) != nullptr);
    if (!is_constant) return nullptr;
    const auto turned = [&](const Expr& expr, const V& axes) {
      return layer.batch_first ? TypedCall("transpose", {expr}, call, {{"axes", axes}}) : expr;
    };
    const Expr data = turned(args[0], {1, 0, 2});
    const Expr lengths = layer.HasLengths() ? args[layer.LengthsAt()] : Expr();
    std::vector<Exprs> results(layer.is_lstm ? 3 : 2);
    for (int64_t direction = 0; direction < layer.directions; ++direction) {
      const DirectionWriter writer(layer, direction, FreshName());
      if (!writer.is_known()) return nullptr;
      Exprs state;
      for (size_t i = 4; i < (layer.is_lstm ? 6U : 5U); ++i) {
        state.push_back(TypedCall("take",
                                  {turned(args[i], {1, 0, 2}), MakeScalar(static_cast<double>(direction), kInt64)},
                                  call, {{"axis", 0}, {"mode", "clip"}}));
      }
      const Expr made = writer.Call(data, state, lengths);
      const Function steps = writer.Steps(static_cast<const CallNode&>(*made));
      functions_.emplace(writer.name()->name(), steps);
      made->set_checked_type(steps->result_type());
      for (size_t i = 0; i < results.size(); ++i) {
        results[i].push_back(TypedCall("expand_dims", {Field(made, i)}, call, {{"axis", i == 0 ? 1 : 0}}));
      }
    }
    Exprs fields;
    for (size_t i = 0; i < results.size(); ++i) {
      fields.push_back(turned(Joined(results[i], i == 0 ? 1 : 0, call), i == 0 ? V{2, 0, 1, 3} : V{1, 0, 2}));
    }
    return MakeTuple(fields);
  }

 private:
  /// Results of all directions along `axis`.
  static Expr Joined(const Exprs& results, int axis, const CallNode& origin) {
    return results.size() == 1 ? results[0] : TypedCall("concatenate", {MakeTuple(results)}, origin, {{"axis", axis}});
  }

  std::string FreshName() {
    std::string name;
    do {
      name = fmt::format("recurrence{}", number_++);
    } while (module_.Has(name));
    return name;
  }

  const IRModule& module_;
  std::map<std::string, Function> functions_;
  int number_ = 0;
};

}  // namespace

IRModule UnrollRecurrence(const IRModule& module, const std::function<bool(const CallNode& call)>& takes) {
  LayerWriter writer(module);
  const auto replace = [&](const CallNode& original, const CallNode& call) -> Expr {
    return IsDynamicLayer(original) && !takes(original) ? writer.Replace(call) : nullptr;
  };
  return WithReplacedCalls(module, replace, writer.functions());
}

}  // namespace collage
