// devices_test.cc: where values lie on two devices, and which copies that takes, by search and by brute force.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/executable.h"
#include "collage/transform/passes.h"
#include "cost/estimator/estimators.h"
#include "driver/covers/partitioner.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/sample_inputs.h"
#include "lowering/lower.h"
#include "property/devices/random_placed_function.h"
#include "property/devices/second_device.h"
#include "property/for_random_modules.h"
#include "runtime/compare.h"

namespace collage {
namespace {

constexpr int kExtDevType = 12;
constexpr const char* kOnHost = "host_text";
constexpr const char* kOnDevice = "second";

/// Costs of operators on either device and of copies between memories.
struct DeviceCosts {
  std::map<std::string, double> op;  ///< by toolchain
  double copy = 0;
  double copy_byte = 0;

  static DeviceCosts Random(RandomSource& random) {
    DeviceCosts costs;
    costs.op[kOnHost] = 1 + random.Below(4);
    costs.op[kOnDevice] = 1 + random.Below(3);
    costs.copy = 0.5 * random.Below(4);
    costs.copy_byte = random.OneIn(2) ? 0 : 1.0 / 1024;
    return costs;
  }

  std::string ToJson() const {
    return fmt::format(R"({{"op_cost": {{"{}": {}, "{}": {}}}, "copy": {}, "copy_byte": {}}})", kOnHost, op.at(kOnHost),
                       kOnDevice, op.at(kOnDevice), copy, copy_byte);
  }
  double Copies(int64_t count, int64_t bytes) const {
    return static_cast<double>(count) * copy + static_cast<double>(bytes) * copy_byte;
  }
};

/// Copies between memories that a plan makes.
SecondDeviceCounts CopiesOf(const ExecutionPlan& plan) {
  SecondDeviceCounts counts;
  for (const ExecutionPlan::Step& step : plan.steps) {
    if (step.kind == ExecutionPlan::Step::kKernel) continue;
    const ExecutionPlan::Value& from = plan.values[static_cast<size_t>(step.inputs[0])];
    const ExecutionPlan::Value& to = plan.values[static_cast<size_t>(step.outputs[0])];
    if (MemoryOf(from.layout) == MemoryOf(to.layout)) continue;
    ++counts.num_copies;
    counts.num_bytes += NumElements(to.shape) * static_cast<int64_t>(to.dtype.size_bytes());
  }
  return counts;
}

/// The cheapest way to run each operator of `graph` by itself, by trying all.
class BruteForce {
 public:
  BruteForce(const DataflowGraph& graph, const DeviceCosts& costs) : graph_(graph), costs_(costs) {
    for (int node = 0; node < static_cast<int>(graph.size()); ++node) {
      if (MustBeCovered(graph, node)) operators_.push_back(node);
    }
  }

  size_t num_operators() const { return operators_.size(); }

  double Least() {
    std::map<int, Place> places;
    return Try(0, places);
  }

 private:
  /// Memories that an operator reads from and writes to.
  struct Place {
    Memory reads = Memory::kHost;
    Memory writes = Memory::kHost;
  };
  /// A tensor: a node's value, or a field of it.
  using Tensors = std::set<std::pair<int, int>>;

  std::vector<Place> PlacesOf(int node) const {
    const VirtualDevice& planned = graph_.node(node).expr->virtual_device();
    std::vector<Place> places;
    if (planned.device_type != kExtDevType) places.push_back({});
    if (planned.device_type != 1 && graph_.OpAt(node)->name != "nn.softmax") {
      places.push_back({Memory::kExtDev, Memory::kExtDev});
      places.push_back({Memory::kExtDev, Memory::kExtDevVtcm});
      places.push_back({Memory::kExtDevVtcm, Memory::kExtDev});
    }
    if (!planned.memory_scope.empty() && planned.device_type == kExtDevType) {
      std::erase_if(places, [&](const Place& p) { return MemoryOf(kExtDevType, planned.memory_scope) != p.writes; });
    }
    return places;
  }

  /// The tensors that reading `node`, or field `field` of it, means.
  void Sources(int node, int field, Tensors& found) const {
    const std::vector<int>& inputs = graph_.node(node).inputs;
    const Expr& expr = graph_.node(node).expr;
    if (MustBeCovered(graph_, node) || expr->kind() == ExprKind::kVar) {
      found.insert({node, field});
    } else if (expr->kind() == ExprKind::kTuple) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (field < 0 || static_cast<int>(i) == field) Sources(inputs[i], -1, found);
      }
    } else if (expr->kind() == ExprKind::kTupleGetItem) {
      Sources(inputs[0], As<TupleGetItemNode>(expr)->index(), found);
    } else if (expr->kind() == ExprKind::kCall) {
      Sources(inputs[1], -1, found);
    }
  }

  double Try(size_t next, std::map<int, Place>& places) {
    if (next == operators_.size()) return CostOf(places);
    double least = std::numeric_limits<double>::infinity();
    for (const Place& place : PlacesOf(operators_[next])) {
      places[operators_[next]] = place;
      least = std::min(least, Try(next + 1, places));
    }
    return least;
  }

  double CostOf(const std::map<int, Place>& places) const {
    std::set<std::pair<std::pair<int, int>, Memory>> copies;
    double cost = 0;
    const auto read = [&](int node, Memory memory) {
      Tensors tensors;
      Sources(node, -1, tensors);
      for (const auto& tensor : tensors) {
        const auto maker = places.find(tensor.first);
        const Memory made = maker == places.end() ? Memory::kHost : maker->second.writes;
        if (made != memory) copies.insert({tensor, memory});
      }
    };
    for (const auto& [node, place] : places) {
      cost += costs_.op.at(place.reads == Memory::kHost ? kOnHost : kOnDevice);
      for (const int input : graph_.node(node).inputs) {
        if (graph_.node(input).expr->kind() != ExprKind::kOp) read(input, place.reads);
      }
    }
    read(graph_.IndexOf(graph_.function()->body()), Memory::kHost);
    for (const auto& [tensor, _] : copies) {
      const Type& type = graph_.node(tensor.first).expr->checked_type();
      const TensorTypeNode* copied =
          AsTensorType(tensor.second < 0 ? type : AsTupleType(type)->fields()[static_cast<size_t>(tensor.second)]);
      cost += costs_.Copies(1, NumElements(copied->static_shape()) * 4);
    }
    return cost;
  }

  const DataflowGraph& graph_;
  const DeviceCosts& costs_;
  std::vector<int> operators_;
};

void CheckPlaces(const ExecutionPlan& plan, const PlacedFunction& placed) {
  for (const ExecutionPlan::Step& step : plan.steps) {
    if (step.kind != ExecutionPlan::Step::kKernel) continue;
    const ExecutionPlan::KernelEntry& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    for (const std::string& name : kernel.nodes) {
      const auto wanted = placed.wanted.find(name);
      if (wanted == placed.wanted.end()) continue;
      EXPECT_EQ(kernel.toolchain == kOnDevice, wanted->second.device_type == kExtDevType) << name;
    }
  }
}

void CheckResults(const Executable& executable, const Function& function) {
  const std::vector<Tensor> inputs = SampleInputs(function, Draw::kUnit);
  const std::vector<Tensor> expected = Evaluate(function, inputs);
  ExecutionInstance instance(executable);
  for (size_t i = 0; i < inputs.size(); ++i) instance.SetInput(i, inputs[i]);
  instance.Run();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(Compare(instance.Output(i), expected[i], ToleranceFor(expected[i])).difference, "");
  }
}

/// Whether an operator must run on the device, which cannot compute it.
bool WantsTheImpossible(const IRModule& module) {
  bool wants = false;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    wants = wants || (call != nullptr && call->op() != nullptr && call->op()->name == "nn.softmax" &&
                      call->virtual_device().device_type == kExtDevType);
  });
  return wants;
}

/// The plan of `placed` for toolchains on both devices, whose partitions have at most `max_depth` operators in a row;
/// null when its constraints contradict each other, or what toolchains can do.
struct Partitioned {
  IRModule prepared;
  double seconds = 0;
  ExecutionPlan plan;
};
std::unique_ptr<Partitioned> Partition(const PlacedFunction& placed, const DeviceCosts& costs, int max_depth) {
  auto result = std::make_unique<Partitioned>();
  try {
    result->prepared = PrepareForPartitioning(IRModule::FromFunction(placed.function), PassContext(0));
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("a value must be on"), std::string::npos) << error.message();
    return nullptr;
  }
  if (WantsTheImpossible(result->prepared)) return nullptr;
  ToolchainRegistry registry;
  registry.Add(std::make_unique<TextToolchain>(kOnHost, 1, max_depth));
  registry.Add(std::make_unique<TextToolchain>(kOnDevice, kExtDevType, max_depth));
  std::vector<PartitionSpec> specs;
  specs.push_back(SpecOf(*registry.Find(kOnHost), {Target::Parse("llvm")}));
  specs.push_back(SpecOf(*registry.Find(kOnDevice), {Target::Parse("ext_dev")}));
  const Candidates candidates(result->prepared.main(), specs, /*num_threads=*/1);
  const std::unique_ptr<CostEstimator> estimator =
      MakeGivenEstimator(GivenCosts({costs.ToJson(), "costs"}), candidates);
  Partitioner partitioner(candidates, *estimator);
  const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {.beam = 0});
  if (found.covers.empty()) throw Error(ErrorCategory::kInternal, "there is no cover");
  result->seconds = found.covers[0].seconds;
  const std::optional<IRModule> module = partitioner.Apply(partitioner.ChosenOf(found.covers[0]), result->prepared);
  if (!module) throw Error(ErrorCategory::kInternal, "its partitions have no order");
  PartitionCache cache(registry);
  result->plan = Lower(*module, /*num_threads=*/1, cache);
  return result;
}

TEST(DevicesTest, CopiesAreFewestByBruteForce) {
  AddSecondDevice();
  int num_checked = 0, num_mixed = 0;
  int64_t num_copies = 0;
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", 150);
  ForRandomSeeds(count, [&](uint64_t seed) {
    RandomSource random(seed);
    const PlacedFunction placed = MakePlacedFunction(1 + random.Below(4), random);
    const DeviceCosts costs = DeviceCosts::Random(random);
    const std::unique_ptr<Partitioned> partitioned = Partition(placed, costs, /*max_depth=*/1);
    if (partitioned == nullptr) return;
    const DataflowGraph graph(partitioned->prepared.main());
    BruteForce all(graph, costs);
    if (all.num_operators() > 7) return;
    const double least = all.Least();
    EXPECT_NEAR(partitioned->seconds, least, 1e-9) << PrintModule(partitioned->prepared) << costs.ToJson();
    // The plan makes the copies that were counted.
    const ExecutionPlan& plan = partitioned->plan;
    const SecondDeviceCounts copies = CopiesOf(plan);
    double cost = costs.Copies(copies.num_copies, copies.num_bytes);
    std::set<std::string> used;
    for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
      cost += costs.op.at(kernel.toolchain);
      used.insert(kernel.toolchain);
    }
    EXPECT_NEAR(cost, least, 1e-9) << PrintModule(partitioned->prepared) << costs.ToJson();
    CheckPlaces(plan, placed);
    const Executable executable = Executable::FromPlan(plan);
    CheckResults(executable, placed.function);
    ++num_checked;
    num_mixed += used.size() > 1 ? 1 : 0;
    num_copies += copies.num_copies;
  });
  EXPECT_GT(num_checked, static_cast<int>(count) / 3);
  EXPECT_GT(num_mixed, num_checked / 5) << "costs never favour both devices";
  RecordProperty("checked", num_checked);
  RecordProperty("copies", static_cast<int>(num_copies));
}

TEST(DevicesTest, LargerPartitionsKeepToTheirDevices) {
  AddSecondDevice();
  int num_checked = 0;
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", 60);
  ForRandomSeeds(count, [&](uint64_t seed) {
    RandomSource random(seed + 1'000'000);
    const PlacedFunction placed = MakePlacedFunction(4 + random.Below(10), random);
    const DeviceCosts costs = DeviceCosts::Random(random);
    const std::unique_ptr<Partitioned> partitioned = Partition(placed, costs, /*max_depth=*/3);
    if (partitioned == nullptr) return;
    const SecondDeviceCounts before = SecondDeviceCopies();
    CheckPlaces(partitioned->plan, placed);
    CheckResults(Executable::FromPlan(partitioned->plan), placed.function);
    const SecondDeviceCounts made = CopiesOf(partitioned->plan);
    EXPECT_GE(SecondDeviceCopies().num_copies - before.num_copies, made.num_copies);
    ++num_checked;
  });
  EXPECT_GT(num_checked, static_cast<int>(count) / 3);
}

/// A plan that runs a kernel of the processor on a value of the device's: what a wrong placement would be.
TEST(DevicesDeathTest, AWrongPlacementIsNoticed) {
  AddSecondDevice();
  const PlacedFunction placed = [] {
    const Var x = MakeVar("x", TensorType(Shape{2, 4, 6}, kFloat32));
    const Expr relu = MakeCall("nn.relu", {x});
    const Function function = MakeFunction({x}, MakeCall("nn.softmax", {relu}, {{"axis", -1}}));
    InferType(function);
    return PlacedFunction{function, {}};
  }();
  const DeviceCosts costs{{{kOnHost, 9}, {kOnDevice, 1}}, 0, 0};
  const std::unique_ptr<Partitioned> partitioned = Partition(placed, costs, /*max_depth=*/1);
  ASSERT_EQ(partitioned->plan.kernels.size(), 2u);
  CheckResults(Executable::FromPlan(partitioned->plan), placed.function);
  ExecutionPlan wrong = partitioned->plan;
  int made_on_device = -1;
  for (ExecutionPlan::Step& step : wrong.steps) {
    if (step.kind != ExecutionPlan::Step::kKernel) continue;
    const bool is_on_host = wrong.kernels[static_cast<size_t>(step.kernel)].toolchain == kOnHost;
    if (!is_on_host) made_on_device = step.outputs[0];
    if (is_on_host) step.inputs[0] = made_on_device;
  }
  EXPECT_DEATH(CheckResults(Executable::FromPlan(wrong), placed.function), "");
}

}  // namespace
}  // namespace collage
