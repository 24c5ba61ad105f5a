// Recurrent layers whose numbers of steps and sequences a run knows: the programs in their place compute the same.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/value.h"
#include "collage/ir/visitor.h"
#include "ir/eval/interpreter.h"
#include "runtime/random_inputs.h"
#include "transform/passes/dynamic/recurrence.h"

namespace collage {
namespace {

constexpr int64_t kFeatures = 3, kHidden = 2;

Tensor Random(const Shape& shape, uint64_t seed) {
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  FillRandom(tensor, seed, -1, 1);
  return tensor;
}

/// One layer with states of its own as a module: dimensions below 0 are dynamic.
struct LayerCase {
  std::string op;
  Attrs attrs;
  int64_t steps = -1, batch = -1;
  bool has_lengths = false, has_peepholes = false;
  bool has_constant_weights = true;

  int64_t gates() const { return op == "nn.lstm" ? 4 : op == "nn.gru" ? 3 : 1; }
  int64_t directions() const {
    const AttrValue* direction = attrs.Find("direction");
    return direction != nullptr && *direction->as_string() == "bidirectional" ? 2 : 1;
  }
  bool batch_first() const { return attrs.IntOr("layout", 0) == 1; }
  Shape Data(int64_t s, int64_t n) const { return batch_first() ? Shape{n, s, kFeatures} : Shape{s, n, kFeatures}; }
  Shape State(int64_t n) const {
    return batch_first() ? Shape{n, directions(), kHidden} : Shape{directions(), n, kHidden};
  }

  IRModule Module() const {
    std::vector<Var> params;
    const auto param = [&](const Shape& shape, DataType dtype) {
      std::vector<Dim> dims;
      for (const int64_t size : shape) dims.push_back(size < 0 ? Dim::Any() : Dim(size));
      params.push_back(MakeVar("x" + std::to_string(params.size()), TensorType(dims, dtype)));
      return Expr(params.back());
    };
    const int64_t rows = gates() * kHidden;
    std::vector<Expr> args{param(Data(steps, batch), kFloat32)};
    const auto weight = [&](const Shape& shape, uint64_t seed) {
      args.push_back(has_constant_weights ? Expr(MakeConstant(Random(shape, seed))) : param(shape, kFloat32));
    };
    weight({directions(), rows, kFeatures}, 1);
    weight({directions(), rows, kHidden}, 2);
    weight({directions(), 2 * rows}, 3);
    for (int state = op == "nn.lstm" ? 2 : 1; state > 0; --state) args.push_back(param(State(batch), kFloat32));
    if (op == "nn.lstm" && (has_peepholes || has_lengths)) {
      args.push_back(MakeConstant(has_peepholes ? Random({directions(), 3 * kHidden}, 4)
                                                : Tensor::Zeros({directions(), 3 * kHidden}, kFloat32)));
    }
    if (has_lengths) args.push_back(param({batch}, kInt32));
    Attrs all = attrs;
    all.Set("hidden_size", kHidden);
    return InferTypes(IRModule::FromFunction(MakeFunction(params, MakeCall(op, args, all))));
  }

  std::vector<Value> Arguments(int64_t s, int64_t n) const {
    std::vector<Value> args{Random(Data(s, n), 5)};
    for (int state = op == "nn.lstm" ? 2 : 1; state > 0; --state) args.emplace_back(Random(State(n), 6 + state));
    if (has_lengths) {
      const Tensor lengths = Tensor::Empty({n}, kInt32);
      for (int64_t i = 0; i < n; ++i) lengths.Set(i, static_cast<double>(i % (s + 1)));
      args.emplace_back(lengths);
    }
    return args;
  }
};

IRModule Unrolled(const IRModule& module) {
  return UnrollRecurrence(module, [](const CallNode&) { return false; });
}

bool HasLayer(const IRModule& module) {
  bool has = false;
  for (const auto& [_, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      const std::string name = call != nullptr && call->op() != nullptr ? call->op()->name : "";
      has = has || name == "nn.lstm" || name == "nn.gru" || name == "nn.rnn";
    });
  }
  return has;
}

/// Both compute the same for several numbers of steps and sequences.
void ExpectSame(const LayerCase& layer) {
  const IRModule module = layer.Module();
  const IRModule unrolled = Unrolled(module);
  EXPECT_FALSE(HasLayer(unrolled)) << PrintModule(unrolled);
  for (const int64_t steps : layer.steps < 0 ? std::vector<int64_t>{1, 2, 3, 7, 0} : std::vector{layer.steps}) {
    for (const int64_t batch : layer.batch < 0 ? std::vector<int64_t>{1, 3} : std::vector{layer.batch}) {
      const std::vector<Value> args = layer.Arguments(steps, batch);
      const Value expected = Interpret(module, "main", args);
      const Value actual = Interpret(unrolled, "main", args);
      EXPECT_TRUE(ValuesEqual(expected, actual, 1e-5))
          << layer.op << " of " << steps << " steps, " << batch << " sequences: " << ToString(expected) << "\nbecame "
          << ToString(actual) << "\n"
          << PrintModule(unrolled);
    }
  }
}

TEST(DynamicRecurrenceTest, LayersOfAllKindsAndDirections) {
  for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      ExpectSame({.op = op, .attrs = {{"direction", direction}}});
      ExpectSame({.op = op, .attrs = {{"direction", direction}, {"layout", 1}}});
    }
  }
}

TEST(DynamicRecurrenceTest, OneDynamicDimension) {
  ExpectSame({.op = "nn.lstm", .batch = 2});
  ExpectSame({.op = "nn.lstm", .steps = 4});
  ExpectSame({.op = "nn.gru", .attrs = {{"direction", "bidirectional"}}, .batch = 1});
}

TEST(DynamicRecurrenceTest, SequencesOfDifferentLengths) {
  for (const char* op : {"nn.lstm", "nn.gru"}) {
    for (const char* direction : {"forward", "bidirectional"}) {
      ExpectSame({.op = op, .attrs = {{"direction", direction}}, .has_lengths = true});
    }
  }
}

TEST(DynamicRecurrenceTest, VariantsOfCells) {
  ExpectSame({.op = "nn.gru", .attrs = {{"linear_before_reset", true}, {"direction", "bidirectional"}}});
  ExpectSame({.op = "nn.lstm", .attrs = {{"direction", "bidirectional"}}, .has_peepholes = true});
  ExpectSame({.op = "nn.lstm", .attrs = {{"input_forget", true}, {"clip", 0.25}}});
  ExpectSame({.op = "nn.rnn", .attrs = {{"activations", AttrValue::List{"Relu"}}}});
}

TEST(DynamicRecurrenceTest, LeavesOtherLayers) {
  EXPECT_TRUE(HasLayer(Unrolled(LayerCase{.op = "nn.lstm", .steps = 3, .batch = 2}.Module())));
  EXPECT_TRUE(HasLayer(Unrolled(LayerCase{.op = "nn.lstm", .has_constant_weights = false}.Module())));
  EXPECT_TRUE(
      HasLayer(Unrolled(LayerCase{.op = "nn.rnn", .attrs = {{"activations", AttrValue::List{"Elu"}}}}.Module())));
  const IRModule module = LayerCase{.op = "nn.lstm"}.Module();
  EXPECT_TRUE(HasLayer(UnrollRecurrence(module, [](const CallNode&) { return true; })));
}

}  // namespace
}  // namespace collage
