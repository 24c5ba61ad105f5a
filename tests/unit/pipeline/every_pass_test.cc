// Every pass of the table: on random graphs it keeps what a module computes, and graphs may be deep.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <random>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "ir/eval/interpreter.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

/// Takes relu and its like by a pattern and by operator, so that all partitioning passes have something to do.
class SomeOperators : public Toolchain {
 public:
  explicit SomeOperators(bool has_patterns) : has_patterns_(has_patterns) {}
  std::string name() const override { return has_patterns_ ? "by_pattern" : "by_operator"; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {.available = false, .reason = "for tests"}; }
  int priority() const override { return 100; }
  std::vector<PatternTableEntry> PatternTable() const override {
    if (!has_patterns_) return {};
    return {{"by_pattern.tail", "nn.relu(add(*, *))", {}},
            {"by_pattern.relu", "nn.relu(*)", {}},
            {"by_pattern.dense", "nn.dense(*, const)", {}}};
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (!has_patterns_ && call.op()->pattern <= OpPatternKind::kBroadcast && call.op()->name != "tanh") return {};
    return Reason{"not asked for", name()};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return Reason{"never", name()}; }

 private:
  bool has_patterns_;
};

PassContext Context() {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("by_pattern") == nullptr) {
    registry.Add(std::make_unique<SomeOperators>(true));
    registry.Add(std::make_unique<SomeOperators>(false));
  }
  PassContext context;
  context.opt_level = 4;
  context.SetConfig("relay.MergeComposite.toolchain", "by_pattern");
  context.SetConfig("relay.AnnotateTarget.targets", "by_operator,by_pattern");
  context.SetConfig("relay.ConvertLayout.desired_layouts", "nn.conv2d=NHWC");
  for (const char* name : {"BatchMatmul", "Conv2D", "Dense"}) {
    context.SetConfig(std::string("relay.CombineParallel") + name + ".min_num_branches", 2);
  }
  return context;
}

/// What a pass needs before it to have something to do.
IRModule RunWithPreparation(const Pass& pass, IRModule module, const PassContext& context) {
  std::vector<std::string> before;
  if (pass.name == "AnnotateTarget") before = {"MergeComposite"};
  if (pass.name == "MergeCompilerRegions") before = {"MergeComposite", "AnnotateTarget"};
  if (pass.name == "PartitionGraph") before = {"MergeComposite", "AnnotateTarget", "MergeCompilerRegions"};
  if (pass.name == "DefuseOps") before = {"FuseOps"};
  if (pass.name == "ToGraphNormalForm" || pass.name == "DeadCodeElimination") before = {"ToANormalForm"};
  return RunPass(pass, RunPasses(before, std::move(module), context), context);
}

Constant RandomConstant(Shape shape, uint64_t seed) {
  const Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  FillRandom(tensor, seed);
  return MakeConstant(tensor);
}

/// Random dataflow over images [1, 8, 4, 4] and matrices [4, 6]; values are used again and again, some in branches.
IRModule RandomModule(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  const Var x = MakeVar("x", TensorType(Shape{1, 8, 4, 4}, kFloat32));
  const Var m = MakeVar("m", TensorType(Shape{4, 6}, kFloat32));
  const Var c = MakeVar("c", TensorType(Shape{}, kBool));
  std::vector<Expr> images{x};
  std::vector<Expr> matrices{m};
  for (int step = 0; step < 24; ++step) {
    const Expr image = images[pick(images.size())];
    const Expr other = images[pick(images.size())];
    const Expr matrix = matrices[pick(matrices.size())];
    const uint64_t weight = random();
    switch (pick(12)) {
      case 0: images.push_back(MakeCall("add", {image, other})); break;
      case 1: images.push_back(MakeCall("nn.relu", {image})); break;
      case 2: images.push_back(MakeCall("multiply", {image, RandomConstant({8, 1, 1}, weight)})); break;
      case 3:
        images.push_back(MakeCall("nn.conv2d", {image, RandomConstant({8, 8, 3, 3}, weight)},
                                  {{"padding", std::vector<int64_t>{1, 1}}}));
        break;
      case 4: {
        const Expr both = MakeCall("concatenate", {MakeTuple({image, other})}, {{"axis", 1}});
        const Expr parts = MakeCall("split", {both}, {{"indices_or_sections", 2}, {"axis", 1}});
        images.push_back(MakeTupleGetItem(parts, static_cast<int>(pick(2))));
        break;
      }
      case 5:
        images.push_back(
            MakeCall("nn.max_pool2d", {image},
                     {{"pool_size", std::vector<int64_t>{3, 3}}, {"padding", std::vector<int64_t>{1, 1}}}));
        break;
      case 6: images.push_back(MakeCall("tanh", {image})); break;
      case 7: images.push_back(MakeCall("nn.bias_add", {image, RandomConstant({8}, weight)})); break;
      case 8:
        matrices.push_back(MakeCall("tanh", {MakeCall("nn.dense", {matrix, RandomConstant({6, 6}, weight)})}));
        break;
      case 9:
        matrices.push_back(MakeCall("nn.relu", {MakeCall("add", {matrix, matrices[pick(matrices.size())]})}));
        break;
      case 10: images.push_back(std::make_shared<IfNode>(c, MakeCall("negative", {image}), other)); break;
      default:
        images.push_back(
            MakeCall("multiply", {MakeCall("add", {image, MakeScalar(1, kFloat32)}), MakeScalar(0.5, kFloat32)}));
    }
  }
  return InferTypes(IRModule::FromFunction(
      MakeFunction({x, m, c}, MakeTuple({images.back(), matrices.back(), images[images.size() / 2]}))));
}

class EveryPassTest : public testing::TestWithParam<std::string> {};

TEST_P(EveryPassTest, KeepsTheMeaningOfRandomGraphs) {
  const PassContext context = Context();
  const Tolerance tolerance = GetParam() == "ToMixedPrecision" ? Tolerance{0.1, 0.1} : Tolerance{1e-4, 1e-4};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const IRModule before = RandomModule(seed);
    std::vector<Value> inputs;
    for (const Var& param : before.main()->params()) {
      const TensorTypeNode* type = AsTensorType(param->checked_type());
      const Tensor tensor = Tensor::Empty(type->static_shape(), type->dtype());
      FillRandom(tensor, seed * 10 + inputs.size());
      inputs.emplace_back(tensor);
    }
    const std::vector<Tensor> expected = FlattenTensors(Interpret(before, "main", inputs));
    const std::string text = PrintModule(before);
    const IRModule after = RunWithPreparation(GetPass(GetParam()), before, context);
    EXPECT_EQ(PrintModule(before), text) << "the module before has changed";
    const std::vector<Tensor> actual = FlattenTensors(Interpret(after, "main", inputs));
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      const Tensor same_type = actual[i].Cast(expected[i].dtype());
      const Comparison comparison = Compare(same_type, expected[i], tolerance);
      EXPECT_TRUE(comparison.agrees) << "seed " << seed << ", result " << i << ": " << comparison.difference << "\n"
                                     << PrintModule(after, {.metadata = false});
    }
  }
}

constexpr int kDeepChain = 20000;

/// Runs `body` on a stack of 256 kB: recursion once per node would have 13 bytes for each of 20,000, and the smallest
/// frame has 16.
void OnSmallStack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  const auto run = [](void* function) -> void* {
    (*static_cast<const std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_P(EveryPassTest, DeepChainsDoNotOverflowTheStack) {
  const PassContext context = Context();
  OnSmallStack([&] {
    const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
    Expr expr = x;
    for (int i = 0; i < kDeepChain; ++i) expr = MakeCall("nn.relu", {expr});
    const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction({x}, expr)));
    const IRModule after = RunWithPreparation(GetPass(GetParam()), module, context);
    EXPECT_TRUE(TypeEqual(after.main()->body()->checked_type(), module.main()->body()->checked_type()));
    // The same with a name for each value.
    const IRModule named = RunPass(GetPass("ToANormalForm"), module, context);
    RunPass(GetPass(GetParam()), named, context);
  });
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) names.push_back(pass.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPassTest, testing::ValuesIn(PassNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace collage
