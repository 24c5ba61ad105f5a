// planner.cc: the library's heuristics rank engines for a graph. Plans are made without a handle, so that a GPU that is
// described is as good as one that is here.
#include "backends/cudnn/loader/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/cudnn/loader/build.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"

namespace collage::cudnn {
namespace {

/// Engines that are tried where any will do: some are ranked first that have no plan.
constexpr int kMostTried = 24;
constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 30;
constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kDriverForPlans = "libcollage_cudnn_driver.so";

/// The library makes plans with some driver only, of which it needs no GPU: one of ours stands in where there is none.
/// It is opened first, and found by its name, that of the driver.
void OpenDriver() {
  try {
    FindLibrarySymbol(kDriver, "cuInit");
  } catch (const Error&) {
    FindModuleSymbol(kDriverForPlans, "cuInit");
  }
}

Descriptor Describe(const std::string& device) {
  Descriptor properties(DescriptorKind::kDeviceProperties);
  if (device.empty()) {
    properties.Set(Attribute::kDeviceHandle, Type::kHandle, TheHandle());
  } else {
    OpenDriver();
    properties.Set(Attribute::kDeviceJson, Type::kChar, std::span<const char>(device));
  }
  properties.Finalize("the properties of a GPU");
  return properties;
}

/// Whether the engine rounds no more than the graph allows, and equally in each run.
bool IsAllowed(const Graph& graph, const Descriptor& engine) {
  const std::vector<int> notes =
      engine.Numbers(Attribute::kEngineNumericalNotes, Type::kNumericalNote, kNumNumericalNotes);
  const auto has = [&](int note) { return std::ranges::find(notes, note) != notes.end(); };
  const bool is_float32 = std::ranges::all_of(graph.values, [](const Value& v) { return v.dtype == kFloat32; });
  if (has(kReducesInLowerPrecision) || has(kIsNondeterministic)) return false;
  if (is_float32 && !graph.may_round_factors && (has(kUsesTensorCores) || has(kConvertsInputsDown))) return false;
  return !graph.is_exact || (!has(kUsesFft) && !has(kUsesWinograd));
}

class Planner {
 public:
  explicit Planner(const PlanRequest& request)
      : request_(request), device_(Describe(request.device)), graph_(request.graph) {
    for (const int mode : {kBestHeuristic, kFallbackHeuristic}) AddConfigurations(mode);
  }

  int count() const { return static_cast<int>(allowed_.size()); }

  Plan Make() const {
    if (request_.engine >= count()) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("the library has {} engines for this, number {} is wanted", count(), request_.engine + 1),
                  "cudnn");
    }
    if (request_.engine >= 0) return Make(*allowed_[static_cast<size_t>(request_.engine)]);
    std::string reason =
        num_barred_ == 0 ? "there is none" : "all round more than is allowed, or differently in each run";
    for (int i = 0; i < std::min(count(), kMostTried); ++i) {
      try {
        return Make(*allowed_[static_cast<size_t>(i)]);
      } catch (const Error& error) {
        reason = error.message();
      }
    }
    throw Error(ErrorCategory::kUnsupported, "no engine of the library computes this: " + reason, "cudnn");
  }

 private:
  void AddConfigurations(int mode) {
    const Descriptor heuristic(DescriptorKind::kEngineHeuristic);
    heuristic.Set(Attribute::kHeuristicGraph, graph_.descriptor());
    heuristic.Set(Attribute::kHeuristicMode, Type::kHeuristicMode, mode);
    heuristic.Set(Attribute::kHeuristicDevice, device_);
    heuristic.Finalize("a ranking of engines");
    std::vector<Descriptor> configurations;
    for (int64_t i = heuristic.Count(Attribute::kHeuristicResults); i > 0; --i) {
      configurations.emplace_back(DescriptorKind::kEngineConfiguration);
    }
    const int64_t count = heuristic.Get(Attribute::kHeuristicResults, configurations);
    for (int64_t i = 0; i < count; ++i) {
      Descriptor& configuration = configurations[static_cast<size_t>(i)];
      const Descriptor engine(DescriptorKind::kEngine);
      configuration.Get(Attribute::kConfigurationEngine, {&engine, 1});
      if (IsAllowed(request_.graph, engine)) {
        allowed_.push_back(std::make_unique<Descriptor>(std::move(configuration)));
      } else {
        ++num_barred_;
      }
    }
  }

  Plan Make(const Descriptor& configuration) const {
    const Descriptor made(DescriptorKind::kExecutionPlan);
    made.Set(Attribute::kPlanConfiguration, configuration);
    made.Set(Attribute::kPlanDevice, device_);
    made.Finalize("a plan");
    Plan plan;
    plan.library = LibraryVersion();
    plan.workspace_bytes = made.Number(Attribute::kPlanWorkspaceBytes);
    if (plan.workspace_bytes > kMostWorkspaceBytes) {
      throw Error(
          ErrorCategory::kUnsupported,
          fmt::format("an engine wants {} bytes of workspace, more than {}", plan.workspace_bytes, kMostWorkspaceBytes),
          "cudnn");
    }
    plan.text = made.Text(Attribute::kPlanJson);
    return plan;
  }

  const PlanRequest& request_;
  Descriptor device_;
  BuiltGraph graph_;
  std::vector<std::unique_ptr<Descriptor>> allowed_;
  int num_barred_ = 0;
};

}  // namespace

Handle TheHandle() {
  static const Handle handle = [] {
    const cuda_driver::Stream stream = cuda_driver::GetCudaDevice().Enter();
    const Library& library = GetLibrary();
    Handle created = nullptr;
    library.Check(library.Create(&created), "create a handle");
    library.Check(library.SetStream(created, stream), "use the GPU's stream");
    return created;
  }();
  cuda_driver::GetCudaDevice().Enter();
  return handle;
}

Plan MakePlan(const PlanRequest& request) { return Planner(request).Make(); }

int CountEngines(const PlanRequest& request) { return Planner(request).count(); }

}  // namespace collage::cudnn
