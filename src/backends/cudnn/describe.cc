// describe.cc: follows the anchor's result to the match's, and adds what is met on the way: a residual, a bias and a
// function, in the order in which most of cuDNN's engines take them.
#include "backends/cudnn/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cudnn/anchors.h"
#include "backends/cudnn/reading.h"
#include "collage/ir/op.h"

namespace collage::cudnn {
namespace {

using matches::IsBias;

using Reader = Anchor(Reading& reading, size_t number);

Reader* ReaderOf(const std::string& op) {
  if (op.starts_with("nn.conv")) return ReadConvolution;
  if (op == "nn.dense") return ReadDense;
  if (op == "nn.matmul" || op == "nn.batch_matmul") return ReadProduct;
  if (op.find("_pool") != std::string::npos) return ReadPool;
  if (op == "nn.layer_norm") return ReadLayerNorm;
  if (op == "nn.instance_norm") return ReadInstanceNorm;
  return nullptr;
}

bool IsFloat32(const Graph& graph) {
  const Operation& first = graph.operations.front();
  return graph.values[static_cast<size_t>(first.x)].dtype == kFloat32;
}

/// Whether cuDNN multiplies float32 factors of the operation on tensor cores only.
bool NeedsTensorCores(Kind kind) { return kind == Kind::kProduct || kind == Kind::kAttention; }

class Describer {
 public:
  Describer(const Function& function, const BoundaryLayouts& layouts) : reading_(function, layouts) {}

  Description Run(Precision precision) {
    anchor_ = ReadAnchor(reading_);
    current_ = reading_.calls()[anchor_.call];
    while (current_ != reading_.root()) Step();
    if (!anchor_.is_image && reading_.result_layout() != Layout::kPlain) throw Refusal{"makes plain matrices only"};
    AddEnd();
    Graph& graph = reading_.graph();
    Value& result = graph.values[static_cast<size_t>(graph.operations.back().y)];
    result.source = Source::kResult;
    result.dtype = DTypeOf(reading_.root());
    graph.may_round_factors = precision.allows_tf32;
    graph.is_exact = precision.is_exact;
    if (Result().dims.size() == 5 && !TakesPlainImages(graph) && function_) {
      throw Refusal{"computes no such function behind volumes"};
    }
    if (NeedsTensorCores(graph.operations.front().kind) && IsFloat32(graph) && !precision.allows_tf32) {
      throw Refusal{"multiplies float32 matrices of two inputs as TF32 only (-inference_precision=tf32)"};
    }
    return {std::move(graph), std::move(reading_.constants())};
  }

 private:
  /// Takes the next operator, or a function that is written out, which reads `current_`.
  void Step() {
    if (!anchor_.fuses || function_) throw Refusal{"has nothing that may follow"};
    const matches::Follower follower = reading_.FollowerOf(current_);
    function_ = follower.function;
    if (function_ && function_->mode == PointwiseMode::kHardSwish) throw Refusal{"computes no hard swish"};
    if (!function_) Take(*follower.call);
    current_ = follower.call;
  }

  void Take(const CallNode& call) {
    const std::string& name = call.op()->name;
    if (call.op()->is_reshape) {
      if (anchor_.is_image) throw Refusal{"allows a reshape behind products only"};
      return;
    }
    if (name != "add" && name != "nn.bias_add") throw Refusal{"computes no '" + name + "' behind an operation"};
    const size_t which = call.args()[0] == current_ ? 1 : 0;
    if (name == "nn.bias_add" && which == 0) throw Refusal{"adds to the operation's result only"};
    const Operand operand = reading_.OperandOf(call.args()[which]);
    if (operand.dtype != DTypeOf(current_)) throw Refusal{"adds values of one type only"};
    const auto rank = static_cast<int64_t>(ShapeOf(current_).size());
    if (IsBias(call, operand, Result().dims[anchor_.channel], anchor_.is_image ? 1 : rank - 1, rank)) {
      if (bias_) throw Refusal{"adds one bias only"};
      bias_ = operand;
    } else if (operand.shape == ShapeOf(current_)) {
      if (residual_) throw Refusal{"adds one tensor only"};
      residual_ = operand;
    } else {
      throw Refusal{fmt::format("adds a number for each channel, or a tensor of the result's shape, got {}",
                                ToString(operand.shape))};
    }
  }

  const Value& Result() { return reading_.graph().values[static_cast<size_t>(anchor_.y)]; }

  /// Adds what follows the anchor.
  void AddEnd() {
    if (residual_) AddResidual();
    if (!bias_ && anchor_.wants_bias && (residual_ || function_)) {
      // Without a bias, cuDNN has no engine, or few.
      const int64_t channels = Result().dims[anchor_.channel];
      bias_ = Operand{.constant = Tensor::Zeros({channels}, DTypeOf(current_))};
    }
    if (bias_) {
      Shape dims(Result().dims.size(), 1);
      dims[anchor_.channel] = Result().dims[anchor_.channel];
      const bool channels_last = anchor_.channel == 1 && Result().strides[1] == 1;
      Append({.mode = PointwiseMode::kAdd},
             reading_.AddConstant(bias_->constant, dims, StridesOf(dims, channels_last)));
    }
    if (function_) Append(*function_, -1);
  }

  void AddResidual() {
    const Shape dims = Result().dims;
    const bool channels_last = anchor_.is_image ? IsChannelsLast(residual_->layout) : Result().strides[1] == 1;
    if (!anchor_.is_image && residual_->layout != Layout::kPlain) throw Refusal{"adds plain matrices only"};
    Append({.mode = PointwiseMode::kAdd}, reading_.Add(*residual_, dims, StridesOf(dims, channels_last)));
  }

  void Append(const Pointwise& pointwise, int operand) {
    const Shape dims = Result().dims, strides = Result().strides;
    Operation operation{.kind = Kind::kPointwise, .pointwise = pointwise};
    operation.x = reading_.graph().operations.back().y;
    operation.b = operand;
    operation.y = reading_.AddInside(dims, strides);
    reading_.graph().operations.push_back(operation);
  }

  Reading reading_;
  Anchor anchor_;
  Call current_;
  std::optional<Operand> bias_;
  std::optional<Operand> residual_;
  std::optional<Pointwise> function_;
};

}  // namespace

Anchor ReadAnchor(Reading& reading) {
  const std::vector<Call>& calls = reading.calls();
  const auto softmax = std::ranges::find_if(calls, [](const Call& call) { return call->op()->name == "nn.softmax"; });
  if (softmax != calls.end()) return ReadAttention(reading, static_cast<size_t>(softmax - calls.begin()));
  for (size_t i = 0; i < calls.size(); ++i) {
    if (Reader* read = ReaderOf(calls[i]->op()->name)) return read(reading, i);
  }
  throw Refusal{"has no operation that cuDNN computes"};
}

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision) {
  try {
    return Describer(function, layouts).Run(precision);
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "cudnn"};
  }
}

bool TakesPlainImages(const Graph& graph) {
  const Value& x = graph.values[static_cast<size_t>(graph.operations.front().x)];
  if (x.strides[1] == 1) return true;  // they lie channels-last whatever the boundary
  const Kind kind = graph.operations.front().kind;
  if (kind == Kind::kTransposedConvolution) return graph.operations.size() == 1;
  return std::ranges::all_of(graph.operations, [](const Operation& operation) {
    if (operation.kind != Kind::kPointwise) return true;
    const Pointwise& function = operation.pointwise;
    switch (function.mode) {
      case PointwiseMode::kRelu: return function.slope == 0 && function.low == 0;
      case PointwiseMode::kGelu:
      case PointwiseMode::kGeluTanh:
      case PointwiseMode::kSwish: return false;
      default: return true;
    }
  });
}

bool HasFactorsToRound(const Graph& graph) {
  const Kind kind = graph.operations.front().kind;
  const bool multiplies = kind == Kind::kConvolution || kind == Kind::kTransposedConvolution || NeedsTensorCores(kind);
  return multiplies && IsFloat32(graph);
}

}  // namespace collage::cudnn
