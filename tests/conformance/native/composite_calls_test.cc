// composite_calls_test.cc: Composite functions inside native kernels that a library computes (target option `libs`).
// The library "calling" is the test's own (composite_calls/calling.cc).
#include "collage/target/composite_calls.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "collage/target/composite.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "support/dynamic_library.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using testing::HasSubstr;
using testing::Not;
using V = std::vector<int64_t>;

const CallNode& RootOf(const CompositeBody& body) { return *As<CallNode>(body.root()); }

/// A dense layer, alone or with relu; of few columns only.
Result<ExternCall> CallDense(const PartitionRequest& request) {
  const CompositeBody body(request.function);
  const bool has_relu = RootOf(body).op()->name == "nn.relu";
  const CallNode& dense = has_relu ? *As<CallNode>(RootOf(body).args()[0]) : RootOf(body);
  const Shape x = AsTensorType(dense.args()[0]->checked_type())->static_shape();
  const Shape w = AsTensorType(dense.args()[1]->checked_type())->static_shape();
  constexpr int64_t kMostColumns = 500;
  if (w[0] > kMostColumns) return Reason{"computes at most 500 columns", "calling"};
  ExternCall call;
  call.function = {"", "dense",
                   "(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i32, i64, i64, f32, f64) -> ()",
                   "build the tests"};
  using Arg = CallArgument;
  const auto* weights = As<ConstantNode>(body.Outside(dense.args()[1]));
  if (weights != nullptr) call.constants.push_back(weights->value());
  call.arguments = {Arg::Object(has_relu ? "plan relu" : "plan none"),
                    Arg::Input(0),
                    weights != nullptr ? Arg::Constant(0) : Arg::Input(1),
                    Arg::Output(),
                    Arg::Workspace(),
                    Arg::Integer(x[0]),
                    Arg::Integer(w[0]),
                    Arg::Integer(x[1]),
                    Arg::Float(1),
                    Arg::Float(0)};
  call.workspace_bytes = static_cast<size_t>(w[0]) * sizeof(float);
  return call;
}

/// A convolution of single pixels, which is computed channels-last.
Result<ExternCall> CallPointwise(const PartitionRequest& request) {
  const CompositeBody body(request.function);
  const CallNode& conv = RootOf(body);
  const Shape x = AsTensorType(conv.args()[0]->checked_type())->static_shape();
  const auto* weights = As<ConstantNode>(body.Outside(conv.args()[1]));
  if (weights == nullptr) return Reason{"weights are constants", "calling"};
  ExternCall call;
  call.function = {"", "pointwise", "(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64) -> i32", "build the tests"};
  call.arguments = {CallArgument::Input(0),      CallArgument::Constant(0),
                    CallArgument::Output(),      CallArgument::Integer(x[0] * x[2] * x[3]),
                    CallArgument::Integer(x[1]), CallArgument::Integer(weights->value().shape()[0])};
  call.constants = {weights->value()};
  call.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}};
  return call;
}

/// x + c, by twice the constant: a row may prepare its constants.
Result<ExternCall> CallAddTo(const PartitionRequest& request) {
  const CompositeBody body(request.function);
  const auto* constant = As<ConstantNode>(body.Outside(RootOf(body).args()[1]));
  const Tensor& value = constant->value();
  const Tensor doubled = Tensor::Empty(value.shape(), kFloat32);
  for (int64_t i = 0; i < value.num_elements(); ++i) doubled.Set(i, 2 * value.At(i));
  ExternCall call;
  call.function = {"", "add_to", "(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()", "build the tests"};
  call.arguments = {CallArgument::Input(0), CallArgument::Constant(0), CallArgument::Output(),
                    CallArgument::Integer(value.num_elements())};
  call.constants = {doubled};
  return call;
}

/// Too few arguments, or of other types than the function takes.
Result<ExternCall> CallWrongly(const PartitionRequest& request) {
  Result<ExternCall> call = CallDense(request);
  const int64_t m = AsTensorType(request.function->params()[0]->checked_type())->static_shape()[0];
  if (m == 1) call->arguments.pop_back();
  if (m == 2) call->arguments[5] = CallArgument::Float(1);
  if (m == 3) call->arguments[5] = CallArgument::Input(0);
  if (m == 4) call->arguments[1] = CallArgument::Input(7);
  if (m == 5) call->function.signature = "(ptr) -> ()";
  if (m == 6) call->layouts = {{}, {Layout::kPlain}};
  return call;
}

class CallingToolchain : public Toolchain, public HasCompositeCalls {
 public:
  std::string name() const override { return "calling"; }
  std::string description() const override { return "functions of the tests"; }
  int priority() const override { return 1000; }
  bool is_default() const override { return false; }
  Availability Probe() const override { return {true, "1.0", "", ""}; }
  std::vector<CompositeCall> CompositeCalls() const override {
    return {{{"calling.dense_relu", "nn.relu(nn.dense(*, *))", {}}, CallDense},
            {{"calling.dense", "nn.dense(*, *)", {}}, CallDense},
            {{"calling.pointwise", "nn.conv2d(*, const)", {}}, CallPointwise},
            {{"calling.add_to", "add(*, const)", {}}, CallAddTo},
            {{"calling.wrong", "nn.dense(*, *)", {}}, CallWrongly}};
  }
};

std::unique_ptr<const Toolchain> NativeWith(const std::string& options) {
  BuiltinToolchain("native");  // and all others
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("calling") == nullptr) {
    const char* before = std::getenv("COLLAGE_MODULE_PATH");
    setenv("COLLAGE_MODULE_PATH", (COLLAGE_TEST_COMPOSITE_CALLS + (before ? ":" + std::string(before) : "")).c_str(),
           1);
    registry.Add(std::make_unique<CallingToolchain>());
  }
  return ToolchainConfiguration::Parse("native " + options, registry).Make();
}

int64_t NumCalls() {
  using Fn = int64_t();
  return reinterpret_cast<Fn*>(FindModuleSymbol("libcollage_rt_calling.so", "collage_num_calls"))();
}

/// A call of a Composite with `label` whose body is `body(parameters)`.
template <typename Body>
Expr Labelled(const std::string& label, const std::vector<Expr>& args, const Body& body) {
  std::vector<Var> params;
  std::vector<Expr> values;
  for (const Expr& arg : args) {
    params.push_back(MakeVar("p" + std::to_string(params.size()), InferType(arg)));
    values.push_back(params.back());
  }
  const Function composite = WithAttr(MakeFunction(params, body(values)), "Composite", label);
  InferType(composite);
  return MakeCall(composite, args);
}

Expr Dense(const Expr& x, const Expr& w, const std::string& label = "calling.dense") {
  return Labelled(label, {x, w}, [&](const std::vector<Expr>& p) {
    const Expr dense = MakeCall("nn.dense", {p[0], p[1]});
    return label == "calling.dense_relu" ? MakeCall("nn.relu", {dense}) : dense;
  });
}

std::string LoopsOf(const Toolchain& toolchain, const Function& function) {
  InferType(function);
  const Result<LoweredPartition> lowered =
      toolchain.RelayToTIR({function, PlainLayouts(function->params().size(), 1), 1});
  return lowered.ok() ? lowered->mlir : lowered.reason().text;
}

/// Agrees with the reference, and makes `calls` calls in each of the two runs that are compared with it.
void ExpectCalls(int64_t calls, const Function& function, const Options& options = {}) {
  const auto native = NativeWith("-libs=calling");
  const int64_t before = NumCalls();
  ExpectAgrees(*native, function, options);
  EXPECT_EQ(NumCalls() - before, 2 * calls);
}

TEST(NativeCompositeCallsTest, CompositesAreCallsAndWhatSurroundsThemLoops) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 6; ++round) {
    const int64_t m = draw(1, 40), k = draw(1, 70), n = draw(1, 70);
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    const Var x = Input("x", {m, k}), w = Input("w", {n, k}), residual = Input("residual", {m, n});
    const Expr weights = RandomConstant({n, k}, 3, -0.3, 0.3);
    const Expr before = MakeCall("tanh", {MakeCall("exp", {x})});
    ExpectCalls(1, MakeFunction({x, w}, Dense(x, w)));
    ExpectCalls(1, MakeFunction({x}, Dense(x, weights, "calling.dense_relu")));
    ExpectCalls(1, MakeFunction({x, residual}, MakeCall("tanh", {Plus(Dense(before, weights), residual)})));
    ExpectCalls(1, MakeFunction({x}, MakeCall("nn.softmax", {Dense(MakeCall("nn.softmax", {x}), weights)})));
    ExpectCalls(1, MakeFunction({x}, MakeCall("reshape", {Dense(x, weights)}, {{"newshape", V{n, m}}})));
    ExpectCalls(1, MakeFunction({x}, MakeCall("transpose", {Dense(x, weights)}, {{"axes", V{1, 0}}})));
    ExpectCalls(1, MakeFunction({residual}, MakeCall("negative", {Labelled("calling.add_to", {residual}, [&](auto p) {
                                                       return Plus(p[0], RandomConstant({m, n}, 4));
                                                     })})));
  }
}

TEST(NativeCompositeCallsTest, SeveralInOneKernelShareWhatTheyRead) {
  const Var x = Input("x", {9, 24}), y = Input("y", {7, 24});
  const Expr read = MakeCall("tanh", {x});
  const Expr first = Dense(read, RandomConstant({24, 24}, 1, -0.3, 0.3));
  const Expr second = Dense(MakeCall("sigmoid", {first}), RandomConstant({24, 24}, 2, -0.3, 0.3), "calling.dense_relu");
  const Expr third = Dense(read, RandomConstant({24, 24}, 3, -0.3, 0.3));
  ExpectCalls(3, MakeFunction({x}, Plus(Plus(second, third), first)));
  // Products by loops beside them, and results that are read further.
  const Expr loops = MakeCall("nn.dense", {first, RandomConstant({24, 24}, 4, -0.3, 0.3)});
  ExpectCalls(1, MakeFunction({x}, MakeTuple({first, MakeCall("nn.relu", {loops}), first})));
  ExpectCalls(2, MakeFunction({x, y}, MakeTuple({Dense(x, y), MakeCall("nn.softmax", {Dense(x, y)})})));
  EXPECT_THAT(LoopsOf(*NativeWith("-libs=calling"), MakeFunction({x, y}, Dense(read, y))),
              HasSubstr("collage_kernel_calls(\"calling|dense|build the tests\\0Acalling|plan none|build the tests"));
}

TEST(NativeCompositeCallsTest, ValuesAreMovedToTheLayoutThatAFunctionWants) {
  const Layout last = Layout::kChannelsLast;
  const Var x = Input("x", {2, 6, 5, 7}), residual = Input("residual", {2, 10, 5, 7});
  const auto conv = [&](const Expr& data) {
    return Labelled("calling.pointwise", {data}, [&](auto p) {
      return MakeCall("nn.conv2d", {p[0], RandomConstant({10, 6, 1, 1}, 5, -0.3, 0.3)});
    });
  };
  const std::vector<Function> functions{
      MakeFunction({x, residual}, Plus(conv(x), residual)),
      MakeFunction({x, residual}, MakeCall("nn.relu", {Plus(conv(MakeCall("tanh", {x})), residual)}))};
  for (const Function& function : functions) {
    for (const Layout in : {Layout::kPlain, last}) {
      for (const Layout out : {Layout::kPlain, last}) ExpectCalls(1, function, {.layouts = {{in, last}, {out}}});
    }
  }
  // A kernel holds the call alone if everything lies as the function wants it.
  const Function alone = MakeFunction({x}, conv(x));
  InferType(alone);
  const auto native = NativeWith("-libs=calling");
  const auto num_stages = [&](Layout layout) {
    const std::string mlir = native->RelayToTIR({alone, {{layout}, {layout}}, 1})->mlir;
    EXPECT_THAT(mlir, HasSubstr("@stage0"));
    return mlir.find("@stage1") == std::string::npos ? 1 : 2;
  };
  EXPECT_EQ(num_stages(last), 1);
  EXPECT_EQ(num_stages(Layout::kPlain), 2);
}

TEST(NativeCompositeCallsTest, LabelsThatNoTableHasAreLoops) {
  const Var x = Input("x", {5, 12});
  const Expr w = RandomConstant({8, 12}, 1);
  const std::string plain = LoopsOf(BuiltinToolchain("native"), MakeFunction({x}, MakeCall("nn.dense", {x, w})));
  EXPECT_EQ(LoopsOf(BuiltinToolchain("native"), MakeFunction({x}, Dense(x, w))), plain);
  EXPECT_EQ(LoopsOf(*NativeWith("-libs=calling"), MakeFunction({x}, Dense(x, w, "acme.dense"))), plain);
  EXPECT_EQ(LoopsOf(*NativeWith("-libs=calling"), MakeFunction({x}, MakeCall("nn.dense", {x, w}))), plain);
  ExpectCalls(0, MakeFunction({x}, Dense(x, w, "acme.dense")));
}

TEST(NativeCompositeCallsTest, WhatALibraryRefusesIsNoKernel) {
  const auto native = NativeWith("-libs=calling");
  const Var x = Input("x", {5, 2});
  EXPECT_EQ(LoopsOf(*native, MakeFunction({x}, Dense(x, RandomConstant({501, 2}, 1)))), "computes at most 500 columns");
}

TEST(NativeCompositeCallsTest, CallsThatDoNotFitTheFunctionAreRefused) {
  const auto native = NativeWith("-libs=calling");
  const std::vector<std::string> wanted{"function 'dense' of library 'calling' takes 10 arguments, is given 9",
                                        "function 'dense' of library 'calling' is given a float where it takes i32",
                                        "function 'dense' of library 'calling' is given an address where it takes i32",
                                        "function 'dense' of library 'calling' is given input 7 of 1",
                                        "function 'dense' of '' has the signature '(ptr) -> ()', which is none",
                                        "the function for 'calling.wrong' wants 0 inputs and 1 results, got 1 and 1"};
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Var x = Input("x", {static_cast<int64_t>(i) + 1, 2});
    EXPECT_EQ(LoopsOf(*native, MakeFunction({x}, Dense(x, RandomConstant({3, 2}, 1), "calling.wrong"))), wanted[i]);
  }
}

TEST(NativeCompositeCallsTest, EqualPartitionsDifferInConstantsOnly) {
  const auto native = NativeWith("-libs=calling");
  const auto request = [](uint32_t seed) {
    const Var x = Input("x", {5, 12});
    const Function function = MakeFunction({x}, MakeCall("tanh", {Dense(x, RandomConstant({8, 12}, seed))}));
    InferType(function);
    return PartitionRequest{function, PlainLayouts(1, 1), 1};
  };
  const Result<CompiledPartition> compiled = native->RelayToRuntime(request(1));
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const Result<std::vector<Tensor>> updated = native->UpdateConstants(request(2), *compiled);
  ASSERT_TRUE(updated.ok()) << updated.reason().text;
  ASSERT_EQ(updated->size(), 1U);
  EXPECT_EQ(updated->at(0).At(3), RandomTensor({8, 12}, kFloat32, -1, 1, 2).At(3));
}

}  // namespace
}  // namespace collage
