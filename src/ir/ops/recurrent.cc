// recurrent.cc: whole recurrent layers with ONNX's semantics, gate order and axes.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

/// Differences between the three layers: gates per unit, activations per direction, where optional arguments stand.
struct LayerKind {
  int64_t gates;
  std::vector<std::string> activations;
  bool has_cell;
};

const LayerKind kLstm{4, {"Sigmoid", "Tanh", "Tanh"}, true};
const LayerKind kGru{3, {"Sigmoid", "Tanh"}, false};
const LayerKind kRnn{1, {"Tanh"}, false};

int64_t NumDirections(const Attrs& attrs) {
  const std::string& direction = attrs.String("direction");
  if (direction == "bidirectional") return 2;
  if (direction == "forward" || direction == "reverse") return 1;
  throw RelationFailure{"direction must be forward, reverse or bidirectional, got '" + direction + "'"};
}

// ---- activations ----

struct Activation {
  double (*function)(double x, double alpha, double beta) = nullptr;
  double alpha = 0;
  double beta = 0;
  double operator()(double x) const { return function(x, alpha, beta); }
};

/// The function called `name` with its default coefficients; fails for an unknown one.
Activation NamedActivation(const std::string& name) {
  using D = double;
  if (name == "Sigmoid") return {[](D x, D, D) { return 1 / (1 + std::exp(-x)); }};
  if (name == "Tanh") return {[](D x, D, D) { return std::tanh(x); }};
  if (name == "Relu") return {[](D x, D, D) { return std::max(x, 0.0); }};
  if (name == "Affine") return {[](D x, D a, D b) { return a * x + b; }, 1, 0};
  if (name == "LeakyRelu") return {[](D x, D a, D) { return x >= 0 ? x : a * x; }, 0.01};
  if (name == "ThresholdedRelu") return {[](D x, D a, D) { return x > a ? x : 0; }, 1};
  if (name == "ScaledTanh") return {[](D x, D a, D b) { return a * std::tanh(b * x); }, 1, 1};
  if (name == "HardSigmoid") return {[](D x, D a, D b) { return std::min(std::max(a * x + b, 0.0), 1.0); }, 0.2, 0.5};
  if (name == "Elu") return {[](D x, D a, D) { return x >= 0 ? x : a * (std::exp(x) - 1); }, 1};
  if (name == "Softsign") return {[](D x, D, D) { return x / (1 + std::abs(x)); }};
  if (name == "Softplus") return {[](D x, D, D) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }};
  throw RelationFailure{"has no activation '" + name + "'"};
}

/// Number `index` of a list of numbers; nothing when the attribute is None or that entry is.
const AttrValue* Coefficient(const Attrs& attrs, const char* name, size_t index) {
  const AttrValue::List* list = attrs.Get(name).as_list();
  if (list == nullptr || index >= list->size() || (*list)[index].is_none()) return nullptr;
  return &(*list)[index];
}

double Number(const AttrValue& value) {
  if (value.as_double() != nullptr) return *value.as_double();
  if (value.as_int() != nullptr) return static_cast<double>(*value.as_int());
  throw RelationFailure{"expects numbers as coefficients of activations"};
}

/// The activations of all directions, in order.
std::vector<Activation> Activations(const Attrs& attrs, const LayerKind& kind) {
  const auto wanted = kind.activations.size() * static_cast<size_t>(NumDirections(attrs));
  const AttrValue::List* given = attrs.Get("activations").as_list();
  if (given != nullptr && !given->empty() && given->size() != wanted) {
    throw RelationFailure{fmt::format("expects {} activations, got {}", wanted, given->size())};
  }
  std::vector<Activation> result;
  for (size_t i = 0; i < wanted; ++i) {
    std::string name = kind.activations[i % kind.activations.size()];
    if (given != nullptr && !given->empty()) {
      if ((*given)[i].as_string() == nullptr) throw RelationFailure{"expects names of activations"};
      name = *(*given)[i].as_string();
    }
    result.push_back(NamedActivation(name));
    if (const AttrValue* alpha = Coefficient(attrs, "activation_alpha", i)) result.back().alpha = Number(*alpha);
    if (const AttrValue* beta = Coefficient(attrs, "activation_beta", i)) result.back().beta = Number(*beta);
  }
  return result;
}

// ---- types ----

void ExpectShape(const OpCall& call, size_t argument, const std::vector<Dim>& wanted) {
  const std::vector<Dim>& shape = TensorArg(call, argument, static_cast<int>(wanted.size())).shape();
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (shape[d] == wanted[d] || shape[d].is_any() || wanted[d].is_any()) continue;
    throw RelationFailure{fmt::format("expects {} as argument {}, got {}",
                                      ToString(TensorType(wanted, TensorArg(call, 0).dtype())), argument,
                                      ToString(call.args[argument]))};
  }
}

Type RecurrentRelation(const OpCall& call, const LayerKind& kind) {
  const TensorTypeNode& data = TensorArg(call, 0, 3);
  const int64_t hidden = call.attrs.Int("hidden_size");
  const int64_t layout = call.attrs.Int("layout");
  CheckRange("hidden_size", {hidden}, 1);
  if (layout != 0 && layout != 1) throw RelationFailure{fmt::format("layout must be 0 or 1, got {}", layout)};
  const int64_t directions = NumDirections(call.attrs);
  Activations(call.attrs, kind);
  const Dim batch = data.shape()[layout == 1 ? 0 : 1];
  const Dim steps = data.shape()[layout == 1 ? 1 : 0];
  const std::vector<Dim> state =
      layout == 1 ? std::vector<Dim>{batch, directions, hidden} : std::vector<Dim>{directions, batch, hidden};
  for (size_t i = 1; i < 5; ++i) CheckDTypeOfFirst(call, i);
  ExpectShape(call, 1, {directions, kind.gates * hidden, data.shape()[2]});
  ExpectShape(call, 2, {directions, kind.gates * hidden, hidden});
  ExpectShape(call, 3, {directions, 2 * kind.gates * hidden});
  ExpectShape(call, 4, state);
  size_t next = 5;
  if (kind.has_cell) ExpectShape(call, next++, state);
  if (kind.has_cell && next < call.args.size()) ExpectShape(call, next++, {directions, 3 * hidden});
  if (next < call.args.size()) {
    ExpectShape(call, next, {batch});
    if (!TensorArg(call, next).dtype().is_integer())
      throw RelationFailure{"expects integers as lengths, got " + ToString(call.args[next])};
  }
  const Type last = TensorType(state, data.dtype());
  const Type all = TensorType(layout == 1 ? std::vector<Dim>{batch, steps, directions, hidden}
                                          : std::vector<Dim>{steps, directions, batch, hidden},
                              data.dtype());
  return kind.has_cell ? TupleType({all, last, last}) : TupleType({all, last});
}

// ---- evaluation ----

/// One layer on doubles. Offsets follow `layout`: sequences [S, N, I] or [N, S, I], states [D, N, H] or [N, D, H].
class Layer {
 public:
  Layer(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, const LayerKind& kind)
      : kind_(kind), attrs_(attrs), outputs_(outputs), activations_(Activations(attrs, kind)) {
    for (const Tensor& input : inputs) inputs_.push_back(input.Cast(kFloat64));
    batch_first_ = attrs.Int("layout") == 1;
    const Shape& data = inputs[0].shape();
    steps_ = data[batch_first_ ? 1 : 0];
    batch_ = data[batch_first_ ? 0 : 1];
    features_ = data[2];
    hidden_ = attrs.Int("hidden_size");
    directions_ = NumDirections(attrs);
    lengths_.assign(static_cast<size_t>(batch_), steps_);
    const size_t lengths_at = kind.has_cell ? 7 : 5;
    if (inputs.size() > lengths_at) lengths_ = inputs[lengths_at].ToInts();
  }

  void Run() {
    for (Tensor& output : outputs_) {
      for (int64_t i = 0; i < output.num_elements(); ++i) output.Set(i, 0);
    }
    for (int64_t d = 0; d < directions_; ++d) {
      const bool backward = d == 1 || attrs_.String("direction") == "reverse";
      for (int64_t n = 0; n < batch_; ++n) RunSequence(d, n, backward);
    }
  }

 private:
  using Row = std::vector<double>;

  int64_t StateAt(int64_t d, int64_t n) const {
    return (batch_first_ ? n * directions_ + d : d * batch_ + n) * hidden_;
  }
  const double* Input(size_t index) const { return inputs_[index].data<double>(); }
  double Limited(double x) const {
    const AttrValue& clip = attrs_.Get("clip");
    if (clip.is_none()) return x;
    const double bound = attrs_.Double("clip");
    return std::min(std::max(x, -bound), bound);
  }
  double Activate(int64_t d, size_t which, double x) const {
    return activations_[static_cast<size_t>(d) * kind_.activations.size() + which](Limited(x));
  }

  /// sums[g * H + j] = bias + weight row . x, over all gates, of direction `d`. `part`: 0 for the input's, 1 for the
  /// recurrence's.
  Row Products(int64_t d, const double* x, int64_t part) const {
    const int64_t rows = kind_.gates * hidden_;
    const int64_t length = part == 0 ? features_ : hidden_;
    const double* weight = Input(part == 0 ? 1 : 2) + d * rows * length;
    const double* bias = Input(3) + (d * 2 + part) * rows;
    Row sums(bias, bias + rows);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += weight[r * length + i] * x[i];
      sums[r] += sum;
    }
    return sums;
  }

  void RunSequence(int64_t d, int64_t n, bool backward) {
    Row h(Input(4) + StateAt(d, n), Input(4) + StateAt(d, n) + hidden_);
    Row c;
    if (kind_.has_cell) c.assign(Input(5) + StateAt(d, n), Input(5) + StateAt(d, n) + hidden_);
    const int64_t length = std::min(lengths_[n], steps_);
    for (int64_t step = 0; step < length; ++step) {
      const int64_t t = backward ? length - 1 - step : step;
      const double* x = Input(0) + (batch_first_ ? n * steps_ + t : t * batch_ + n) * features_;
      const Row from_input = Products(d, x, 0);
      if (kind_.gates == 4) {
        StepLstm(d, from_input, h, c);
      } else if (kind_.gates == 3) {
        StepGru(d, from_input, h);
      } else {
        const Row recurrent = Products(d, h.data(), 1);
        for (size_t j = 0; j < h.size(); ++j) h[j] = Activate(d, 0, from_input[j] + recurrent[j]);
      }
      const int64_t at = batch_first_ ? (n * steps_ + t) * directions_ + d : (t * directions_ + d) * batch_ + n;
      for (int64_t j = 0; j < hidden_; ++j) outputs_[0].Set(at * hidden_ + j, h[j]);
    }
    for (int64_t j = 0; j < hidden_; ++j) {
      outputs_[1].Set(StateAt(d, n) + j, h[j]);
      if (kind_.has_cell) outputs_[2].Set(StateAt(d, n) + j, c[j]);
    }
  }

  /// Gates i o f c; peepholes i o f.
  void StepLstm(int64_t d, const Row& from_input, Row& h, Row& c) const {
    const Row recurrent = Products(d, h.data(), 1);
    const auto size = static_cast<size_t>(hidden_);
    const double* peephole = inputs_.size() > 6 ? Input(6) + d * 3 * hidden_ : nullptr;
    const auto gate = [&](size_t g, size_t j) { return from_input[g * size + j] + recurrent[g * size + j]; };
    const auto peep = [&](size_t g, size_t j, double cell) {
      return peephole == nullptr ? 0 : peephole[g * size + j] * cell;
    };
    for (size_t j = 0; j < size; ++j) {
      const double i = Activate(d, 0, gate(0, j) + peep(0, j, c[j]));
      const double f = attrs_.Bool("input_forget") ? 1 - i : Activate(d, 0, gate(2, j) + peep(2, j, c[j]));
      c[j] = f * c[j] + i * Activate(d, 1, gate(3, j));
      const double o = Activate(d, 0, gate(1, j) + peep(1, j, c[j]));
      h[j] = o * Activate(d, 2, c[j]);
    }
  }

  /// Gates z r h.
  void StepGru(int64_t d, const Row& from_input, Row& h) const {
    const Row recurrent = Products(d, h.data(), 1);
    const auto size = static_cast<size_t>(hidden_);
    Row z(size);
    Row r(size);
    for (size_t j = 0; j < size; ++j) {
      z[j] = Activate(d, 0, from_input[j] + recurrent[j]);
      r[j] = Activate(d, 0, from_input[size + j] + recurrent[size + j]);
    }
    Row hidden(size);
    if (attrs_.Bool("linear_before_reset")) {
      for (size_t j = 0; j < size; ++j) hidden[j] = r[j] * recurrent[2 * size + j];
    } else {
      Row reset(size);
      for (size_t j = 0; j < size; ++j) reset[j] = r[j] * h[j];
      const Row products = Products(d, reset.data(), 1);
      hidden.assign(products.begin() + 2 * hidden_, products.end());
    }
    for (size_t j = 0; j < size; ++j) {
      h[j] = (1 - z[j]) * Activate(d, 1, from_input[2 * size + j] + hidden[j]) + z[j] * h[j];
    }
  }

  const LayerKind& kind_;
  const Attrs& attrs_;
  std::span<Tensor> outputs_;
  std::vector<Activation> activations_;
  std::vector<Tensor> inputs_;
  std::vector<int64_t> lengths_;
  bool batch_first_;
  int64_t steps_, batch_, features_, hidden_, directions_;
};

OpDef Recurrent(std::string name, std::string doc, const LayerKind& kind) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data", "weight", "recurrence", "bias", "initial_h"};
  if (kind.has_cell) op.args.insert(op.args.end(), {"initial_c", "peephole"});
  op.args.push_back("sequence_lens");
  op.min_args = kind.has_cell ? 6 : 5;
  op.attrs = {{"hidden_size", AttrKind::kInt, {}, "units per direction", true},
              {"direction", AttrKind::kString, "forward", "forward, reverse or bidirectional"},
              {"activations", AttrKind::kAny, {}, "names, for every direction; None: the usual ones"},
              {"activation_alpha", AttrKind::kAny, {}, "a number or None per activation; None: the usual ones"},
              {"activation_beta", AttrKind::kAny, {}, "a number or None per activation; None: the usual ones"},
              {"clip", AttrKind::kDouble, {}, "bound of what activations are applied to; None: no bound"},
              {"layout", AttrKind::kInt, 0, "0: data [S, N, I]; 1: data [N, S, I]"}};
  if (kind.has_cell)
    op.attrs.push_back({"input_forget", AttrKind::kBool, false, "whether the forget gate is 1 - input"});
  if (kind.gates == 3) {
    op.attrs.push_back({"linear_before_reset", AttrKind::kBool, false, "whether the reset gate scales the product"});
  }
  op.pattern = OpPatternKind::kOpaque;
  op.index_limit = [lengths = op.args.size() - 1](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument != lengths) return std::nullopt;
    return KnownSize(call, 0, call.attrs.IntOr("layout", 0) == 0 ? 0 : 1) + 1;
  };
  op.relation = Relation([&kind](const OpCall& call) { return RecurrentRelation(call, kind); });
  op.reference = [&kind](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    Layer(inputs, attrs, outputs, kind).Run();
  };
  op.multiply_adds = [num_args = op.args.size()](const OpCall& call) {
    if (call.args.size() == num_args) return 0.0;  // sequences may end early
    const auto elements = [&](size_t arg) {
      return static_cast<double>(NumElements(AsTensorType(call.args[arg])->static_shape()));
    };
    const Shape data = AsTensorType(call.args[0])->static_shape();
    return static_cast<double>(data[0] * data[1]) * (elements(1) + elements(2));
  };
  const int64_t g = kind.gates;
  const auto example = [&](int64_t directions, Attrs attrs) {
    attrs.Set("hidden_size", 5);
    std::vector<Type> args{F32({4, 2, 3}), F32({directions, g * 5, 3}), F32({directions, g * 5, 5}),
                           F32({directions, 2 * g * 5}), F32({directions, 2, 5})};
    if (kind.has_cell) args.push_back(F32({directions, 2, 5}));
    return OpExample{std::move(args), std::move(attrs)};
  };
  op.examples = {example(1, {}), example(1, {{"direction", "reverse"}}), example(2, {{"direction", "bidirectional"}})};
  if (kind.gates == 3) op.examples.push_back(example(1, {{"linear_before_reset", true}}));
  return op;
}

}  // namespace

void AddRecurrentOps(std::vector<OpDef>& rows) {
  rows.push_back(Recurrent(
      "nn.lstm", "A long short-term memory layer; the result is all outputs, last output, last cell.", kLstm));
  rows.push_back(
      Recurrent("nn.gru", "A layer of gated recurrent units; the result is all outputs and the last one.", kGru));
  rows.push_back(Recurrent("nn.rnn", "A plain recurrent layer; the result is all outputs and the last one.", kRnn));
}

}  // namespace collage
