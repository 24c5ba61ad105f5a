// recurrent.cc: nn.lstm, nn.gru and nn.rnn. The inputs' share of all gates at all times is one product ahead. Then,
#include "backends/native/compiler/kernels/recurrent.h"

// step by step, units of `lanes` neurons multiply the last output with their rows of the recurrence, which is packed so
// that all gates of a unit lie together, and compute their gates in registers.
#include <algorithm>
#include <array>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

using Values = std::vector<Value>;

/// Fewer multiplications a step than this are not worth a second thread.
constexpr double kParallelStepFlops = 300e3;

// ---- activations ----

struct Activation {
  std::string name;
  double alpha = 0;
  double beta = 0;
};

Value Apply(VectorMath& m, const Activation& f, const Value& x) {
  const auto number = [&](double value) { return m.Like(value, x); };
  const Value zero = number(0);
  const auto is_positive = [&] { return m.Compare("oge", "sge", x, zero); };
  if (f.name == "Sigmoid") return m.Sigmoid(x);
  if (f.name == "Tanh") return m.Tanh(x);
  if (f.name == "Relu") return m.Larger(x, zero);
  if (f.name == "Affine") return m.FusedMultiplyAdd(x, number(f.alpha), number(f.beta));
  if (f.name == "LeakyRelu") return m.Select(is_positive(), x, m.Multiply(x, number(f.alpha)));
  if (f.name == "ThresholdedRelu") return m.Select(m.Compare("ogt", "sgt", x, number(f.alpha)), x, zero);
  if (f.name == "ScaledTanh") return m.Multiply(number(f.alpha), m.Tanh(m.Multiply(x, number(f.beta))));
  if (f.name == "HardSigmoid") return m.Limit(m.FusedMultiplyAdd(x, number(f.alpha), number(f.beta)), 0, 1);
  if (f.name == "Elu") return m.Select(is_positive(), x, m.Multiply(number(f.alpha), m.Subtract(m.Exp(x), number(1))));
  if (f.name == "Softsign") return m.Divide(x, m.Add(number(1), m.Abs(x)));
  if (f.name == "Softplus") {
    return m.Add(m.Log(m.Add(number(1), m.Exp(m.Negate(m.Abs(x))))), m.Larger(x, zero));
  }
  throw Error(ErrorCategory::kUnsupported, "activation '" + f.name + "'");
}

Activation WithDefaults(const std::string& name) {
  if (name == "Affine") return {name, 1, 0};
  if (name == "LeakyRelu") return {name, 0.01};
  if (name == "ThresholdedRelu" || name == "Elu") return {name, 1};
  if (name == "ScaledTanh") return {name, 1, 1};
  if (name == "HardSigmoid") return {name, 0.2, 0.5};
  return {name};
}

std::vector<Activation> ActivationsOf(const CallNode& call, const std::vector<std::string>& usual, size_t directions) {
  const AttrValue::List* given = call.attrs().Get("activations").as_list();
  const auto coefficient = [&](const char* attr, size_t i, double& value) {
    const AttrValue::List* list = call.attrs().Get(attr).as_list();
    if (list == nullptr || i >= list->size() || (*list)[i].is_none()) return;
    const AttrValue& number = (*list)[i];
    value = number.as_double() != nullptr ? *number.as_double() : static_cast<double>(*number.as_int());
  };
  std::vector<Activation> result;
  for (size_t i = 0; i < usual.size() * directions; ++i) {
    const bool is_given = given != nullptr && !given->empty();
    result.push_back(WithDefaults(is_given ? *(*given)[i].as_string() : usual[i % usual.size()]));
    coefficient("activation_alpha", i, result.back().alpha);
    coefficient("activation_beta", i, result.back().beta);
  }
  return result;
}

class RecurrentEmitter {
 public:
  RecurrentEmitter(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs)
      : state_(state),
        e_(state.emitter),
        m_(state.math()),
        call_(call),
        outputs_(outputs),
        is_lstm_(call.op()->name == "nn.lstm"),
        is_gru_(call.op()->name == "nn.gru") {
    const Shape data = ShapeOf(call.args()[0]);
    batch_first_ = call.attrs().Int("layout") == 1;
    steps_ = data[batch_first_ ? 1 : 0];
    batch_ = data[batch_first_ ? 0 : 1];
    features_ = data[2];
    hidden_ = call.attrs().Int("hidden_size");
    directions_ = call.attrs().String("direction") == "bidirectional" ? 2 : 1;
    gates_ = is_lstm_ ? 4 : is_gru_ ? 3 : 1;
    linear_before_reset_ = is_gru_ && call.attrs().Bool("linear_before_reset");
    const std::vector<std::string> usual = is_lstm_  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                           : is_gru_ ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                     : std::vector<std::string>{"Tanh"};
    per_direction_ = usual.size();
    activations_ = ActivationsOf(call, usual, static_cast<size_t>(directions_));
    const size_t lengths_at = is_lstm_ ? 7 : 5;
    has_lengths_ = call.args().size() > lengths_at;
    if (has_lengths_) lengths_ = call.args()[lengths_at];
    // A thread alone takes all steps of one direction, then the other's: half as many weights are read again in each
    // step, and more of them stay in its cache. Several threads share the neurons of both directions.
    at_once_ = state.num_threads > 1 ? directions_ : 1;
  }

  void Run() {
    EmitInputShare();
    // [parity, direction, batch, neuron]: steps read one half and write the other.
    h_ = state_.AddWorkspace({2, directions_, batch_, hidden_}, Layout::kPlain);
    counter_ = state_.AddWorkspace({1}, Layout::kPlain, kInt64);
    Buffer first = h_;
    first.shape = {1, directions_, batch_, hidden_};
    EmitElements(state_, first,
                 [&](const Indices& at) { return state_.expressions.At(call_.args()[4], StateIndices(at)); });
    if (is_lstm_) {
      c_ = state_.AddWorkspace({1, directions_, batch_, hidden_}, Layout::kPlain);
      EmitElements(state_, c_,
                   [&](const Indices& at) { return state_.expressions.At(call_.args()[5], StateIndices(at)); });
    }
    if (has_lengths_)
      EmitElements(state_, outputs_[0], [&](const Indices&) { return m_.Number(0, ElementKind::kFloat); });
    PrepareSteps();
    for (; first_direction_ < directions_; first_direction_ += at_once_)
      e_.CallRepeatedly(steps_, counter_, [&] { EmitStep(); });
    EmitState(outputs_[1], h_, steps_ % 2);
    if (is_lstm_) EmitState(outputs_[2], c_, 0);
  }

 private:
  // ---- ahead of the steps ----

  /// Indices of a state argument or result, [D, N, H] or [N, D, H], from [parity, D, N, H].
  Indices StateIndices(const Indices& at) const {
    return batch_first_ ? Indices{at[2], at[1], at[3]} : Indices{at[1], at[2], at[3]};
  }

  /// shares_[d][row][gate * H + neuron] = weight . x + biases; rows as they follow in the data.
  void EmitInputShare() {
    const int64_t rows = steps_ * batch_;
    const int64_t width = gates_ * hidden_;
    shares_ = state_.AddWorkspace({directions_, rows, width}, Layout::kPlain);
    const Buffer data = MaterialisePlain(state_, call_.args()[0]);
    const Var products = MakeVar("products", TensorType(Shape{directions_, rows, width}, kFloat32));
    const Expr sum = MakeCall("add", {products, MakeCall("expand_dims", {Biases()}, {{"axis", 1}})});
    InferType(sum);
    PackedWeights packing;
    packing.inner = {features_};
    packing.groups = directions_;
    packing.channels = width;
    packing.at = [](const Index& group, const Index& channel, const Indices& k) {
      return Indices{group, channel, k[0]};
    };
    packing.offset = [](const Shape& shape, int64_t group, int64_t channel, const std::vector<int64_t>& k) {
      return (group * shape[1] + channel) * shape[2] + k[0];
    };
    const Buffer b = PackWeights(state_, call_.args()[1], packing, kFloat32);
    Contraction form;
    form.outer = {directions_};
    form.rows = rows;
    form.channels = width;
    form.inner = {features_};
    form.row_stride = features_;
    Buffer flat = data;
    flat.shape = {rows, features_};
    flat.strides = {features_, 1};
    form.a_address = [&](const I64s&, const I64& row, const I64s& k) { return e_.Address(flat, Bases({row, k[0]})); };
    form.b_address = [&](const I64s& outer, const I64& panel, const I64s& k) {
      return e_.Address(b, Bases({outer[0], panel, k[0], e_.Int(0)}));
    };
    form.result = [](const I64s& outer, const I64& row, const Index& channel) {
      return Indices{{outer[0], 0}, {row, 0}, channel};
    };
    EmitContraction(state_, form, {products, sum, shares_});
    state_.synthetic.push_back(sum);
  }

  /// Both biases of all gates, [D, gates * H]; without the recurrence's of the last gate when the reset scales it.
  Expr Biases() {
    const int64_t width = gates_ * hidden_;
    const auto half = [&](int64_t begin) {
      using V = std::vector<int64_t>;
      return MakeCall("strided_slice", {call_.args()[3]},
                      {{"begin", V{begin}}, {"end", V{begin + width}}, {"axes", V{1}}});
    };
    Expr recurrence = half(width);
    if (linear_before_reset_) {
      Tensor kept = Tensor::Zeros({1, width}, kFloat32);
      std::fill_n(kept.data<float>(), 2 * hidden_, 1.0F);
      recurrence = MakeCall("multiply", {recurrence, MakeConstant(kept)});
    }
    const Expr sum = MakeCall("add", {half(0), recurrence});
    InferType(sum);
    const std::optional<Tensor> known = ConstantValue(sum);
    return known ? MakeConstant(*known) : sum;
  }

  /// The rows of some gates of the recurrence as [D][block of neurons][k][gate][lane].
  Buffer PackRecurrence(const std::vector<int64_t>& gates) {
    const int64_t lanes = e_.lanes();
    const int64_t blocks = (hidden_ + lanes - 1) / lanes;
    const auto count = static_cast<int64_t>(gates.size());
    const Shape shape{directions_, blocks, hidden_, count, lanes};
    if (const std::optional<Tensor> value = ConstantValue(call_.args()[2])) {
      Tensor packed = Tensor::Zeros(shape, kFloat32);
      const float* from = value->data<float>();
      float* to = packed.data<float>();
      for (int64_t d = 0; d < directions_; ++d) {
        for (int64_t j = 0; j < hidden_; ++j) {
          for (int64_t k = 0; k < hidden_; ++k) {
            for (int64_t g = 0; g < count; ++g) {
              to[(((d * blocks + j / lanes) * hidden_ + k) * count + g) * lanes + j % lanes] =
                  from[(d * gates_ * hidden_ + gates[static_cast<size_t>(g)] * hidden_ + j) * hidden_ + k];
            }
          }
        }
      }
      return state_.AddConstant(packed);
    }
    const Buffer buffer = state_.AddWorkspace(shape, Layout::kPlain);
    for (int64_t g = 0; g < count; ++g) {
      Buffer slice = buffer;
      slice.offset_bytes += g * lanes * 4;
      slice.shape[3] = 1;
      EmitElements(state_, slice, [&](const Indices& at) {
        const Index neuron = e_.IndexOp("minsi", e_.Sum(e_.Scaled(at[1], lanes), at[4]), hidden_ - 1);
        return state_.expressions.At(call_.args()[2],
                                     {at[0], e_.Shifted(neuron, gates[static_cast<size_t>(g)] * hidden_), at[2]});
      });
    }
    return buffer;
  }

  void PrepareSteps() {
    if (is_lstm_) {
      packed_ = PackRecurrence({0, 1, 2, 3});
    } else if (!is_gru_) {
      packed_ = PackRecurrence({0});
    } else if (linear_before_reset_) {
      packed_ = PackRecurrence({0, 1, 2});
    } else {
      packed_ = PackRecurrence({0, 1});
      packed_last_ = PackRecurrence({2});
      update_ = state_.AddWorkspace({1, directions_, batch_, hidden_}, Layout::kPlain);
      reset_ = state_.AddWorkspace({1, directions_, batch_, hidden_}, Layout::kPlain);
    }
  }

  /// A state into its result.
  void EmitState(const Buffer& result, const Buffer& state, int64_t parity) {
    EmitElements(state_, result, [&](const Indices& at) {
      const Indices own = batch_first_ ? Indices{at[1], at[0], at[2]} : at;
      return e_.Load(state, {{e_.Int(parity), 0}, own[0], own[1], own[2]});
    });
  }

  // ---- one step ----

  /// Where one vector of neurons of one sequence is.
  struct Place {
    I64 direction;
    I64 sequence;
    Index neuron;
    I64 share_row;   ///< row of shares_
    Indices output;  ///< in Y
    I64 from, to;    ///< halves of h_
    I1 is_running;   ///< whether the sequence is still going; none: always
  };

  void EmitStep() {
    if (is_lstm_) {
      EmitPhase(packed_, 4, h_, [this](const Place& at, const Values& sums) { FinishLstm(at, sums); });
    } else if (!is_gru_) {
      EmitPhase(packed_, 1, h_, [this](const Place& at, const Values& sums) {
        StoreOutput(at, Activate(at, 0, m_.Add(Share(at, 0), sums[0])));
      });
    } else if (linear_before_reset_) {
      EmitPhase(packed_, 3, h_, [this](const Place& at, const Values& sums) { FinishLinearGru(at, sums); });
    } else {
      EmitPhase(packed_, 2, h_, [this](const Place& at, const Values& sums) {
        e_.Store(update_, Own(at), Activate(at, 0, m_.Add(Share(at, 0), sums[0])));
        const Value reset = Activate(at, 0, m_.Add(Share(at, 1), sums[1]));
        e_.Store(reset_, Own(at), m_.Multiply(reset, Previous(at)));
      });
      EmitPhase(packed_last_, 1, reset_, [this](const Place& at, const Values& sums) {
        Mix(at, e_.Load(update_, Own(at)), Activate(at, 1, m_.Add(Share(at, 2), sums[0])));
      });
    }
  }

  /// One pass over all neurons: the product of `source` with packed rows, then `finish` for each vector of neurons.
  void EmitPhase(const Buffer& packed, int64_t count, const Buffer& source,
                 const std::function<void(const Place&, const Values&)>& finish) {
    const int64_t lanes = e_.lanes();
    const int64_t whole = hidden_ / lanes;
    const double flops = 2.0 * static_cast<double>(at_once_ * batch_ * hidden_ * hidden_ * count);
    const auto emit = [&](int64_t blocks, int64_t first) {
      const std::string name = state_.NextStageName();
      e_.Function(name, [&](const I64& begin, const I64& end) {
        const I64 step = e_.LoadInt(counter_, {e_.Int(0)});
        const I1 is_odd = e_.IntCompare("ne", e_.IntOp("andi", step, e_.Int(1)), e_.Int(0));
        e_.For(begin, end, 1, [&](const I64& unit) {
          const I64s parts = Delinearise(e_, unit, {at_once_, blocks});
          // Every other step goes backwards: what the last one read at its end is still in the cache.
          const I64 mirrored = e_.IntOp("subi", e_.Int(blocks - 1), parts[1]);
          const I64 block = e_.SelectInt(is_odd, mirrored, parts[1]);
          EmitBlock(packed, count, source, step, e_.Plus(parts[0], first_direction_), e_.Plus(block, first), finish);
        });
      });
      e_.Call(name, at_once_ * blocks, state_.num_threads > 1 && flops > kParallelStepFlops);
    };
    if (whole > 0) emit(whole, 0);
    if (hidden_ % lanes == 0) return;
    rest_ = hidden_ % lanes;
    emit(1, whole);
    rest_ = 0;
  }

  void EmitBlock(const Buffer& packed, int64_t count, const Buffer& source, const I64& step, const I64& direction,
                 const I64& block, const std::function<void(const Place&, const Values&)>& finish) {
    const int64_t most = std::max<int64_t>(24 / count, 1);
    const int64_t tiles = (batch_ + most - 1) / most;
    const int64_t rows = tiles == 0 ? 1 : (batch_ + tiles - 1) / tiles;
    const int64_t whole = batch_ / rows * rows;
    const auto tile = [&](const I64& first, int64_t size) {
      EmitRows(packed, count, source, step, direction, block, first, size, finish);
    };
    if (whole > 0) e_.For(e_.Int(0), e_.Int(whole), rows, [&](const I64& first) { tile(first, rows); });
    if (whole < batch_) tile(e_.Int(whole), batch_ - whole);
  }

  void EmitRows(const Buffer& packed, int64_t count, const Buffer& source, const I64& step, const I64& direction,
                const I64& block, const I64& first, int64_t rows,
                const std::function<void(const Place&, const Values&)>& finish) {
    const I64 one = e_.Int(1);
    const I64 from = e_.IntOp("andi", step, one);
    const I64 to = e_.IntOp("xori", from, one);
    const I64 source_half = source.shape[0] == 2 ? from : e_.Int(0);
    // Few accumulators: several k apart.
    int64_t chains = 1;
    while (rows * count * chains < 8 && hidden_ % (chains * 2) == 0) chains *= 2;
    const auto total = static_cast<size_t>(rows * count);
    Values start(total * static_cast<size_t>(chains), m_.Number(0, ElementKind::kFloat));
    Values sums = e_.ForValues(e_.Int(0), e_.Int(hidden_ / chains), start, [&](const I64& turn, const Values& carried) {
      Values next;
      for (int64_t chain = 0; chain < chains; ++chain) {
        const I64 k = e_.Plus(e_.MulInt(turn, chains), chain);
        Values weights;
        for (int64_t g = 0; g < count; ++g) {
          const Ptr address = e_.Address(packed, Bases({direction, block, k, e_.Int(g), e_.Int(0)}));
          weights.push_back({e_.VectorAt(address, /*masked=*/false).name()});
        }
        for (int64_t r = 0; r < rows; ++r) {
          const Value h{e_.Broadcast(e_.LoadScalar(source, {source_half, direction, e_.Plus(first, r), k})).name()};
          for (int64_t g = 0; g < count; ++g) {
            next.push_back(m_.FusedMultiplyAdd(h, weights[static_cast<size_t>(g)], carried[next.size()]));
          }
        }
      }
      return next;
    });
    for (size_t i = total; i < sums.size(); ++i) sums[i % total] = m_.Add(sums[i % total], sums[i]);
    const auto finish_rows = [&] {
      for (int64_t r = 0; r < rows; ++r) {
        Place at = PlaceOf(step, direction, e_.Plus(first, r), block);
        at.from = from;
        at.to = to;
        const Values own(sums.begin() + r * count, sums.begin() + (r + 1) * count);
        if (at.is_running.is_none()) {
          finish(at, own);
          continue;
        }
        e_.If(at.is_running, [&] { finish(at, own); });
        const I1 has_ended = e_.Not(at.is_running);
        e_.If(has_ended, [&] { e_.Store(h_, {{to, 0}, {direction, 0}, {at.sequence, 0}, at.neuron}, Previous(at)); });
      }
    };
    if (rest_ == 0)
      finish_rows();
    else
      e_.MaskedRest(rest_, [&](const I64&) { finish_rows(); });
  }

  Place PlaceOf(const I64& step, const I64& direction, const I64& sequence, const I64& block) {
    Place at;
    at.direction = direction;
    at.sequence = sequence;
    at.neuron = {e_.MulInt(block, e_.lanes()), 1, {}, e_.lanes()};
    I64 length = e_.Int(steps_);
    if (has_lengths_) {
      const Value own = state_.expressions.At(lengths_, {{sequence, 0}});
      const I64 given = e_.FirstLane(own);
      length = e_.IntOp("minsi", given, length);
      at.is_running = e_.IntCompare("slt", step, length);
    }
    // Backward: the second direction, or the only one of a reverse layer.
    const I64 mirrored = e_.IntOp("subi", e_.Plus(length, -1), step);
    I64 time = step;
    if (directions_ == 2) {
      const I1 is_second = e_.IntCompare("eq", direction, e_.Int(1));
      time = e_.SelectInt(is_second, mirrored, step);
    } else if (call_.attrs().String("direction") == "reverse") {
      time = mirrored;
    }
    if (batch_first_) {
      at.share_row = e_.AddInt(e_.MulInt(sequence, steps_), time);
      at.output = {{sequence, 0}, {time, 0}, {direction, 0}, at.neuron};
    } else {
      at.share_row = e_.AddInt(e_.MulInt(time, batch_), sequence);
      at.output = {{time, 0}, {direction, 0}, {sequence, 0}, at.neuron};
    }
    return at;
  }

  Indices Own(const Place& at) { return {{e_.Int(0), 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron}; }
  Value Previous(const Place& at) {
    return e_.Load(h_, {{at.from, 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron});
  }
  Value Share(const Place& at, int64_t gate) {
    return e_.Load(shares_, {{at.direction, 0}, {at.share_row, 0}, e_.Shifted(at.neuron, gate * hidden_)});
  }

  Value Activate(const Place& at, size_t which, Value x) {
    if (!call_.attrs().IsNone("clip")) x = m_.Limit(x, -call_.attrs().Double("clip"), call_.attrs().Double("clip"));
    const Activation& first = activations_[which];
    const Value value = Apply(m_, first, x);
    if (directions_ == 1) return value;
    const Activation& second = activations_[per_direction_ + which];
    if (second.name == first.name && second.alpha == first.alpha && second.beta == first.beta) return value;
    const Value is_second = e_.IndexCompare("eq", {at.direction, 0}, 1);
    return m_.Select(is_second, Apply(m_, second, x), value);
  }

  void StoreOutput(const Place& at, const Value& h) {
    e_.Store(h_, {{at.to, 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron}, h);
    e_.Store(outputs_[0], at.output, h);
  }

  /// ActivationLookups i o f c; peepholes i o f.
  void FinishLstm(const Place& at, const Values& sums) {
    const auto gate = [&](int64_t g) { return m_.Add(Share(at, g), sums[static_cast<size_t>(g)]); };
    const bool has_peephole = call_.args().size() > 6;
    const auto peep = [&](int64_t g, const Value& x, const Value& cell) {
      if (!has_peephole) return x;
      const Value factor =
          state_.expressions.At(call_.args()[6], {{at.direction, 0}, e_.Shifted(at.neuron, g * hidden_)});
      return m_.FusedMultiplyAdd(factor, cell, x);
    };
    const Value old = e_.Load(c_, Own(at));
    const Value input = Activate(at, 0, peep(0, gate(0), old));
    const Value forget = call_.attrs().Bool("input_forget") ? m_.Subtract(m_.Like(1, input), input)
                                                            : Activate(at, 0, peep(2, gate(2), old));
    const Value cell = m_.FusedMultiplyAdd(forget, old, m_.Multiply(input, Activate(at, 1, gate(3))));
    const Value output = Activate(at, 0, peep(1, gate(1), cell));
    e_.Store(c_, Own(at), cell);
    StoreOutput(at, m_.Multiply(output, Activate(at, 2, cell)));
  }

  void FinishLinearGru(const Place& at, const Values& sums) {
    const Value update = Activate(at, 0, m_.Add(Share(at, 0), sums[0]));
    const Value reset = Activate(at, 0, m_.Add(Share(at, 1), sums[1]));
    const int64_t bias_at = (gates_ + 2) * hidden_;
    const Value bias = state_.expressions.At(call_.args()[3], {{at.direction, 0}, e_.Shifted(at.neuron, bias_at)});
    const Value scaled = m_.Multiply(reset, m_.Add(sums[2], bias));
    Mix(at, update, Activate(at, 1, m_.Add(Share(at, 2), scaled)));
  }

  /// h = (1 - update) * candidate + update * h.
  void Mix(const Place& at, const Value& update, const Value& candidate) {
    StoreOutput(at, m_.FusedMultiplyAdd(update, m_.Subtract(Previous(at), candidate), candidate));
  }

  PartitionState& state_;
  Emitter& e_;
  VectorMath& m_;
  const CallNode& call_;
  const std::vector<Buffer>& outputs_;
  bool is_lstm_, is_gru_, batch_first_ = false, linear_before_reset_ = false, has_lengths_ = false;
  int64_t steps_ = 0, batch_ = 0, features_ = 0, hidden_ = 0, directions_ = 1, gates_ = 1;
  int64_t first_direction_ = 0, at_once_ = 1;  ///< directions whose steps are written
  int64_t rest_ = 0;                           ///< neurons of the last block while it is written and not whole
  size_t per_direction_ = 1;
  std::vector<Activation> activations_;
  Expr lengths_;
  Buffer shares_, h_, c_, counter_, packed_, packed_last_, update_, reset_;
};

}  // namespace

void EmitRecurrent(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs) {
  RecurrentEmitter(state, call, outputs).Run();
}

}  // namespace collage::native
