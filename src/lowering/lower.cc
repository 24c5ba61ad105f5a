// lower.cc: walks the partitioned function once, in order, and writes down steps and values.
#include "lowering/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/ops/annotation.h"
#include "ir/place.h"
#include "partition/work.h"
#include "runtime/plan/memory_planner.h"

namespace collage {
namespace {

constexpr int64_t kAlignment = 64;
/// As GPUs allocate memory: their libraries move tensors that begin elsewhere, or read them slowly.
constexpr int64_t kDeviceAlignment = 256;

int64_t AlignedBytes(int64_t bytes, Memory memory) {
  const int64_t alignment = memory == Memory::kHost ? kAlignment : kDeviceAlignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

ExecutionPlan::KernelWork KernelWorkOf(const Function& function, const std::vector<std::string>& nodes) {
  const Work work = WorkOf(function);
  return {work.products, work.multiply_adds, work.spared, work.constant_bytes, ProductsOfNodes(function, nodes)};
}

/// `partition` without the attributes that differ between equal partitions, so that these are compiled once.
Function WithoutAnnotations(const Function& partition) {
  Function bare = MakeFunction(partition->params(), partition->body(), partition->result_type());
  bare->set_checked_type(partition->checked_type());
  return bare;
}

/// The partition that `call` calls; null if it is an operator's.
Function PartitionCalledBy(const CallNode& call) {
  const FunctionNode* function = As<FunctionNode>(call.callee());
  const bool is_partition = function != nullptr && function->attrs().IntOr(kAttrPrimitive, 0) != 0;
  return is_partition ? AsShared<FunctionNode>(call.callee()) : nullptr;
}

/// State of one lowering.
class Lowering {
 public:
  Lowering(const IRModule& module, int num_threads, PartitionCache& cache, PartitionDump* dump)
      : main_(module.main()), cache_(cache), dump_(dump) {
    plan_.num_threads = num_threads;
  }

  ExecutionPlan Run() {
    for (size_t i = 0; i < main_->params().size(); ++i) AddInput(main_->params()[i]);
    PostOrderInScope(main_->body(), [&](const Expr& expr) { Visit(expr); });
    CheckCompatible();
    AddOutputs();
    PlaceInArenas();
    return std::move(plan_);
  }

 private:
  using Values = std::vector<int>;

  int AddValue(const Type& type, Layout layout, ExecutionPlan::Value::Storage storage, int64_t place) {
    const TensorTypeNode* tensor = AsTensorType(type);
    COLLAGE_CHECK(tensor != nullptr && tensor->is_static()) << "cannot plan a value of type " << ToString(type);
    ExecutionPlan::Value value;
    value.shape = tensor->static_shape();
    value.dtype = tensor->dtype();
    value.layout = layout;
    value.storage = storage;
    value.offset_or_index = place;
    plan_.values.push_back(std::move(value));
    return static_cast<int>(plan_.values.size()) - 1;
  }

  int AddArenaValue(const Type& type, Layout layout) {
    return AddValue(type, layout, ExecutionPlan::Value::Storage::kArena, -1);
  }

  void AddInput(const Var& param) {
    const int value = AddValue(param->checked_type(), Layout::kPlain, ExecutionPlan::Value::Storage::kInput,
                               static_cast<int64_t>(plan_.inputs.size()));
    plan_.inputs.push_back({param->name(), value});
    values_[param.get()] = {value};
  }

  void Visit(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kVar:
      case ExprKind::kOp:
      case ExprKind::kFunction: return;
      case ExprKind::kConstant: return AddConstant(static_cast<const ConstantNode&>(*expr));
      case ExprKind::kTuple: {
        Values fields;
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) {
          const Values& values = values_.at(field.get());
          fields.insert(fields.end(), values.begin(), values.end());
        }
        values_[expr.get()] = std::move(fields);
        return;
      }
      case ExprKind::kTupleGetItem: return Project(static_cast<const TupleGetItemNode&>(*expr));
      case ExprKind::kCall: return VisitCall(static_cast<const CallNode&>(*expr));
      default:
        throw Error(ErrorCategory::kUnsupported, "only static dataflow can be planned; control flow needs the VM",
                    PlaceOf(expr->span()));
    }
  }

  void AddConstant(const ConstantNode& constant) {
    plan_.constants.push_back(constant.value());
    values_[&constant] = {AddValue(constant.checked_type(), Layout::kPlain, ExecutionPlan::Value::Storage::kConstant,
                                   static_cast<int64_t>(plan_.constants.size()) - 1)};
  }

  void Project(const TupleGetItemNode& projection) {
    const TupleTypeNode* type = AsTupleType(projection.tuple()->checked_type());
    COLLAGE_CHECK(type != nullptr) << "projection of " << ToString(projection.tuple()->checked_type());
    size_t first = 0;
    for (int i = 0; i < projection.index(); ++i) first += FlattenTensorTypes(type->fields()[i]).size();
    const size_t count = FlattenTensorTypes(type->fields()[projection.index()]).size();
    const Values& all = values_.at(projection.tuple().get());
    values_[&projection] =
        Values(all.begin() + static_cast<int64_t>(first), all.begin() + static_cast<int64_t>(first + count));
  }

  void VisitCall(const CallNode& call) {
    if (const Function partition = PartitionCalledBy(call)) return CallPartition(call, partition);
    const OpDef* op = call.op();
    if (op != nullptr && op->is_reshape) return Reshape(call);
    if (op != nullptr && SaysWhere(*op)) {  // a reader in another memory copies it
      const Values same = values_.at(call.args()[0].get());
      values_[&call] = same;
      return;
    }
    throw Error(ErrorCategory::kInternal,
                fmt::format("operator '{}' was left without a toolchain", op == nullptr ? "a call" : op->name),
                PlaceOf(call.span()));
  }

  void Reshape(const CallNode& call) {
    const int source = values_.at(call.args()[0].get()).at(0);
    const Layout layout = plan_.values[source].layout;
    // In the memory that it is in, or in the host's, where its order can be changed.
    const Layout plain = In(MemoryOf(layout), Layout::kPlain);
    values_[&call] = {Reshaped(InLayout(source, layout == plain ? plain : Layout::kPlain), call.checked_type())};
  }

  int Reshaped(int plain, const Type& type) {
    const int value = AddArenaValue(type, plan_.values[plain].layout);
    plan_.values[value].alias_of = Root(plain);
    return value;
  }

  void CallPartition(const CallNode& call, const Function& function) {
    const auto [toolchain, request] = AsLowered(function, plan_.num_threads);
    const std::shared_ptr<const CompiledPartition> compiled = cache_.Compile(toolchain, request);
    ExecutionPlan::Step step;
    step.kind = ExecutionPlan::Step::kKernel;
    step.kernel = AddKernel(*compiled, function);
    if (dump_ != nullptr) dump_->Add(*cache_.Find(toolchain), request, *compiled, plan_.kernels.back().nodes);
    for (const Expr& arg : call.args()) {
      for (int value : values_.at(arg.get())) {
        step.inputs.push_back(InLayout(value, request.layouts.inputs[step.inputs.size()]));
      }
    }
    Values outputs;
    for (const Type& type : FlattenTensorTypes(call.checked_type())) {
      outputs.push_back(AddArenaValue(type, request.layouts.outputs[outputs.size()]));
    }
    step.outputs = outputs;
    plan_.steps.push_back(std::move(step));
    values_[&call] = std::move(outputs);
  }

  int AddKernel(const CompiledPartition& compiled, const Function& function) {
    ExecutionPlan::KernelEntry kernel;
    kernel.loader = compiled.loader;
    kernel.blob = AddBlob(compiled);
    for (const Tensor& constant : compiled.constants) {
      // Equal constants are stored once by the executable, so there is no need to look for them here.
      plan_.constants.push_back(constant);
      kernel.constants.push_back(static_cast<int>(plan_.constants.size()) - 1);
    }
    kernel.workspace_bytes = compiled.workspace_bytes;
    kernel.workspace_memory = compiled.workspace_memory;
    kernel.toolchain = function->attrs().StringOr(kAttrCompiler, NativeName());
    kernel.schedule = function->attrs().StringOr(kAttrSchedule, "");
    kernel.label = OperatorLabel(function);
    kernel.nodes = SourceNodes(function);
    if (const AttrValue* estimate = function->attrs().Find(kAttrEstimate)) {
      if (estimate->as_double() != nullptr) kernel.estimated_seconds = *estimate->as_double();
    }
    kernel.work = KernelWorkOf(function, kernel.nodes);
    plan_.kernels.push_back(std::move(kernel));
    return static_cast<int>(plan_.kernels.size()) - 1;
  }

  /// Refuses toolchains that cannot share a process, which the choice of partitions should have separated.
  void CheckCompatible() const {
    std::set<std::string> names;
    for (const ExecutionPlan::KernelEntry& kernel : plan_.kernels) names.insert(RegisteredName(kernel.toolchain));
    const ToolchainRegistry& registry = ToolchainRegistry::Global();
    for (auto a = names.begin(); a != names.end(); ++a) {
      for (auto b = std::next(a); b != names.end(); ++b) {
        const Toolchain* one = registry.Find(*a);
        const Toolchain* other = registry.Find(*b);
        if (one == nullptr || other == nullptr) continue;
        const std::optional<std::string> why = WhyIncompatible(*one, *other);
        if (!why) continue;
        throw Error(ErrorCategory::kUnsupported,
                    fmt::format("'{}' and '{}' cannot be in one executable: {}", *a, *b, *why));
      }
    }
  }

  static std::string NativeName() {
    const Toolchain* native = ToolchainRegistry::Global().Native();
    return native == nullptr ? "native" : native->name();
  }

  int AddBlob(const CompiledPartition& compiled) {
    auto [it, is_new] = blobs_.emplace(&compiled, static_cast<int>(plan_.blobs.size()));
    if (is_new) plan_.blobs.push_back(std::make_shared<const std::vector<std::byte>>(compiled.blob));
    return it->second;
  }

  /// The value that owns the memory of `value`.
  int Root(int value) const {
    while (plan_.values[value].alias_of >= 0) {
      value = plan_.values[value].alias_of;
    }
    return value;
  }

  /// `value`, or a converted copy of it; each conversion is made once.
  int InLayout(int value, Layout layout) {
    for (const Layout step : StepsBetween(plan_.values[value].layout, layout)) value = Converted(value, step);
    return value;
  }

  /// Takes a step of StepsBetween. A value that was reshaped is copied as it was before, together with all others that
  /// were made of that one.
  int Converted(int value, Layout layout) {
    const ExecutionPlan::Value from = plan_.values[value];
    auto [it, is_new] = converted_.emplace(std::pair(value, layout), -1);
    if (!is_new) return it->second;
    if (from.alias_of >= 0 && MemoryOf(from.layout) != MemoryOf(layout)) {
      const int copy = InLayout(from.alias_of, layout);
      return converted_[std::pair(value, layout)] = Reshaped(copy, TensorType(from.shape, from.dtype));
    }
    const int converted = AddArenaValue(TensorType(from.shape, from.dtype), layout);
    ExecutionPlan::Step step;
    step.kind = ExecutionPlan::Step::kConvertLayout;
    step.inputs = {value};
    step.outputs = {converted};
    plan_.steps.push_back(std::move(step));
    return converted_[std::pair(value, layout)] = converted;
  }

  /// Graph results: written in place by their producer where one result is one arena value, copied otherwise.
  void AddOutputs() {
    const Values results = values_.at(main_->body().get());
    std::vector<std::string> names = OutputNames(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      int value = InLayout(results[i], Layout::kPlain);
      const int root = Root(value);
      ExecutionPlan::Value& owner = plan_.values[root];
      if (owner.storage == ExecutionPlan::Value::Storage::kArena) {
        owner.storage = ExecutionPlan::Value::Storage::kOutput;
        owner.offset_or_index = static_cast<int64_t>(i);
      } else {
        const ExecutionPlan::Value& source = plan_.values[value];
        const int copy = AddValue(TensorType(source.shape, source.dtype), Layout::kPlain,
                                  ExecutionPlan::Value::Storage::kOutput, static_cast<int64_t>(i));
        ExecutionPlan::Step step;
        step.kind = ExecutionPlan::Step::kCopy;
        step.inputs = {value};
        step.outputs = {copy};
        plan_.steps.push_back(std::move(step));
        value = copy;
      }
      plan_.outputs.push_back({names[i], value});
    }
  }

  std::vector<std::string> OutputNames(size_t count) const {
    std::vector<std::string> names;
    if (const AttrValue* value = main_->attrs().Find("output_names"); value != nullptr && value->as_list() != nullptr) {
      for (const AttrValue& name : *value->as_list()) {
        if (name.as_string() != nullptr) names.push_back(*name.as_string());
      }
    }
    while (names.size() < count) names.push_back(fmt::format("output_{}", names.size()));
    return names;
  }

  void PlaceInArenas() {
    plan_.arena_bytes = PlaceIn(Memory::kHost);
    for (const Memory memory : AllMemories()) {
      const bool is_used =
          std::ranges::any_of(plan_.values, [&](const auto& value) { return MemoryOf(value.layout) == memory; }) ||
          std::ranges::any_of(plan_.kernels, [&](const auto& kernel) {
            return kernel.workspace_bytes > 0 && kernel.workspace_memory == memory;
          });
      if (is_used && memory != Memory::kHost) plan_.device_arena_bytes[memory] = PlaceIn(memory);
    }
  }

  /// Gives each arena value of `memory`, and each kernel's workspace there, its place. Returns the arena's bytes.
  size_t PlaceIn(Memory memory) {
    std::vector<LiveRange> ranges;
    std::vector<int> range_of(plan_.values.size(), -1);
    const auto touch = [&](int value, int step) {
      const int root = Root(value);
      const ExecutionPlan::Value& owner = plan_.values[root];
      if (owner.storage != ExecutionPlan::Value::Storage::kArena || MemoryOf(owner.layout) != memory) return;
      int& range = range_of[root];
      if (range < 0) {
        range = static_cast<int>(ranges.size());
        const DataType stored = StoredType(owner.layout, owner.dtype);
        const auto bytes = NumElements(owner.shape) * static_cast<int64_t>(stored.size_bytes());
        ranges.push_back({AlignedBytes(bytes, memory), step, step});
      }
      ranges[range].last_use = step;
    };
    std::vector<int> workspace_of(plan_.steps.size(), -1);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const ExecutionPlan::Step& step = plan_.steps[i];
      for (int value : step.inputs) touch(value, static_cast<int>(i));
      for (int value : step.outputs) touch(value, static_cast<int>(i));
      const size_t workspace = step.kernel < 0 ? 0 : plan_.kernels[step.kernel].workspace_bytes;
      if (workspace == 0 || plan_.kernels[step.kernel].workspace_memory != memory) continue;
      workspace_of[i] = static_cast<int>(ranges.size());
      ranges.push_back(
          {AlignedBytes(static_cast<int64_t>(workspace), memory), static_cast<int>(i), static_cast<int>(i)});
    }
    const ArenaPlan arena = PlanArena(ranges);
    for (size_t value = 0; value < range_of.size(); ++value) {
      if (range_of[value] >= 0) {
        plan_.values[value].offset_or_index = arena.offsets[range_of[value]];
      }
    }
    for (size_t i = 0; i < workspace_of.size(); ++i) {
      if (workspace_of[i] >= 0) plan_.steps[i].workspace_offset = arena.offsets[workspace_of[i]];
    }
    return arena.total_bytes;
  }

  Function main_;
  PartitionCache& cache_;
  PartitionDump* dump_;
  ExecutionPlan plan_;
  std::unordered_map<const ExprNode*, Values> values_;
  std::map<std::pair<int, Layout>, int> converted_;
  std::map<const CompiledPartition*, int> blobs_;
};

}  // namespace

const Toolchain* PartitionCache::Find(const std::string& toolchain) {
  return toolchain.empty() ? toolchains_.Native() : configured_.Find(toolchain);
}

std::shared_ptr<const CompiledPartition> PartitionCache::Compile(const std::string& toolchain,
                                                                 const PartitionRequest& request) {
  const Toolchain* compiler = Find(toolchain);
  if (compiler == nullptr) {
    throw Error(ErrorCategory::kUnavailable, fmt::format("unknown toolchain '{}'", toolchain));
  }
  const std::string rest = "/" + LayoutsText(request.layouts) + "/" + compiler->name() + "/" + request.schedule;
  auto& entry = compiled_[StructuralHash(request.function) + rest];
  if (entry) return entry;
  if (on_compile_) on_compile_();
  if (std::optional<CompiledPartition> kept = store_ == nullptr ? std::nullopt : store_->Find(*compiler, request)) {
    return entry = std::make_shared<const CompiledPartition>(std::move(*kept));
  }
  Shared* like = nullptr;
  if (compiler->Has(Hook::kUpdateConstants)) {
    like = &by_structure_[StructuralHash(request.function, {.constants_by_shape = true}) + rest];
    if ((entry = Update(*compiler, request, *like))) return entry;
  }
  Result<CompiledPartition> compiled = compiler->RelayToRuntime(request);
  if (!compiled.ok()) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("toolchain '{}' declined a partition: {}", compiler->name(), compiled.reason().text));
  }
  entry = std::make_shared<const CompiledPartition>(std::move(*compiled));
  if (store_ != nullptr) store_->Put(*compiler, request, *entry);
  if (like != nullptr && *like == nullptr) *like = entry;
  return entry;
}

PartitionCache::Shared PartitionCache::Update(const Toolchain& compiler, const PartitionRequest& request,
                                              const Shared& like) const {
  std::optional<CompiledPartition> updated;
  if (like != nullptr) {
    updated = *like;
  } else if (store_ != nullptr) {
    updated = store_->FindLike(compiler, request);
  }
  if (!updated) return nullptr;
  Result<std::vector<Tensor>> constants = compiler.UpdateConstants(request, *updated);
  if (!constants.ok()) return nullptr;
  updated->constants = std::move(*constants);
  return std::make_shared<const CompiledPartition>(std::move(*updated));
}

ModulePartition AsLowered(const Function& function, int num_threads) {
  return {
      function->attrs().StringOr(kAttrCompiler, ""),
      {WithoutAnnotations(function), LayoutsOf(function), num_threads, function->attrs().StringOr(kAttrSchedule, "")}};
}

std::vector<ModulePartition> PartitionsOf(const IRModule& module, int num_threads) {
  std::vector<ModulePartition> partitions;
  PostOrderInScope(module.main()->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr) return;
    if (const Function partition = PartitionCalledBy(*call)) partitions.push_back(AsLowered(partition, num_threads));
  });
  return partitions;
}

ExecutionPlan Lower(const IRModule& module, int num_threads, PartitionCache& cache, PartitionDump* dump) {
  return Lowering(module, num_threads, cache, dump).Run();
}

}  // namespace collage
