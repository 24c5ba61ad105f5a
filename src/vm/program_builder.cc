// program_builder.cc: numbers for what bytecode refers to, and kernels from Primitive functions.
#include "vm/program_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "bytecode/result_shapes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/place.h"
#include "ir/tensor_types.h"
#include "target/annotations.h"

namespace collage::vm {
namespace {

/// Rows of a batch per call, if there are so many: fewer calls, and weights are read once for all of them.
constexpr int64_t kRowsTogether = 8;

/// By flattened tensor: whether it has channels to be last.
std::vector<bool> HaveChannels(const std::vector<Type>& types) {
  constexpr int kFewest = 3, kMost = 5;
  std::vector<bool> have;
  for (const Type& type : types) {
    const int rank = AsTensorType(type)->rank();
    have.push_back(rank >= kFewest && rank <= kMost);
  }
  return have;
}

/// `function`, typed as `type`, with the layouts at its boundary in which `toolchain` takes it: plain ones, if it does,
/// as values are plain everywhere else.
Function InLayoutsOf(const Toolchain& toolchain, const Function& function, const FuncTypeNode& type) {
  const std::vector<bool> inputs = HaveChannels(type.args());
  const std::vector<bool> outputs = HaveChannels(FlattenTensorTypes(type.result()));
  const std::vector<BoundaryLayouts> taken = toolchain.Layouts(function, inputs, outputs);
  const bool is_plain = std::ranges::find(taken, PlainLayouts(inputs.size(), outputs.size())) != taken.end();
  return is_plain || taken.empty() ? function : WithLayouts(function, taken.front());
}

}  // namespace

ProgramBuilder::ProgramBuilder(const IRModule& module, const CompileOptions& options)
    : module_(module), options_(options) {
  if (options.toolchains != nullptr) partitions_.emplace(*options.toolchains);
  for (const auto& [name, type] : module.types()) program_.types.AddType(type);
  for (const auto& [name, function] : module.functions()) {
    const int index = static_cast<int>(program_.functions.size());
    globals_[name] = index;
    program_.globals.push_back(name);
    program_.functions.emplace_back().name = "@" + name;
    waiting_.push_back({index, function, std::make_shared<const ScopeAnalysis>(function)});
  }
}

std::optional<ProgramBuilder::Waiting> ProgramBuilder::TakeWaiting() {
  if (waiting_.empty()) return std::nullopt;
  Waiting next = std::move(waiting_.back());
  waiting_.pop_back();
  return next;
}

int ProgramBuilder::GlobalIndex(const GlobalVarNode& global) const {
  auto it = globals_.find(global.name());
  if (it != globals_.end()) return it->second;
  throw Error(ErrorCategory::kInput, fmt::format("the module has no function '@{}'", global.name()));
}

int ProgramBuilder::ConstantIndex(const ConstantNode& constant) {
  auto [it, is_new] = constants_.emplace(&constant, static_cast<int>(program_.constants.size()));
  if (is_new) program_.constants.push_back(constant.value());
  return it->second;
}

int ProgramBuilder::ConstructorIndex(const Constructor& constructor) {
  auto [it, is_new] = constructors_.emplace(constructor->name(), static_cast<int>(program_.constructors.size()));
  if (is_new) program_.constructors.push_back(constructor);
  return it->second;
}

int ProgramBuilder::OpCallIndex(const CallNode& call) {
  program_.op_calls.push_back({call.op(), call.attrs()});
  return static_cast<int>(program_.op_calls.size()) - 1;
}

int ProgramBuilder::AddFunction(const std::string& outer, const Function& function,
                                std::shared_ptr<const ScopeAnalysis> scopes) {
  const int index = static_cast<int>(program_.functions.size());
  program_.functions.emplace_back().name = fmt::format("{}/fn{}", outer, ++num_inner_);
  waiting_.push_back({index, function, std::move(scopes)});
  return index;
}

std::optional<int> ProgramBuilder::KernelIndex(const Function& function) {
  if ((!partitions_ && !options_.find_kernel) || !function || function->attrs().IntOr("Primitive", 0) == 0)
    return std::nullopt;
  auto known = kernels_.find(function.get());
  if (known != kernels_.end()) return known->second;
  const FuncTypeNode* type = AsFuncType(InferType(function, module_));
  bool is_static = HasStaticTensorsOnly(type->result()) && FreeVars(function).empty();
  std::vector<Var> params;
  for (size_t i = 0; i < type->args().size(); ++i) {
    is_static = is_static && AsTensorType(type->args()[i]) != nullptr && HasStaticTensorsOnly(type->args()[i]);
    params.push_back(MakeVar(fmt::format("p{}", i), type->args()[i]));
  }
  if (!is_static) return std::nullopt;
  const auto add = [&](collage::Executable executable) {
    const int index = static_cast<int>(program_.kernels.size());
    const std::string name = function->attrs().StringOr("global_symbol", fmt::format("kernel{}", index));
    program_.kernels.push_back({name, std::move(executable), type->result()});
    return kernels_[function.get()] = index;
  };
  if (options_.find_kernel) {
    if (std::optional<collage::Executable> made = options_.find_kernel(function)) return add(std::move(*made));
  }
  if (!partitions_) return std::nullopt;
  const Toolchain* toolchain = partitions_->Find(function->attrs().StringOr(kAttrCompiler, ""));
  const Function partition = toolchain == nullptr ? function : InLayoutsOf(*toolchain, function, *type);
  const Function main = MakeFunction(params, MakeCall(Expr(partition), {params.begin(), params.end()}));
  const IRModule module = InferTypes(IRModule::FromFunction(main));
  return add(collage::Executable::FromPlan(Lower(module, options_.num_threads, *partitions_)));
}

const Toolchain* ProgramBuilder::ToolchainFor(const Function& function) const {
  const std::string compiler = function->attrs().StringOr(kAttrCompiler, "");
  if (compiler.empty()) return options_.for_dynamic_shapes;
  const auto found =
      std::ranges::find_if(options_.for_symbolic_sizes, [&](const Toolchain* one) { return one->name() == compiler; });
  return found == options_.for_symbolic_sizes.end() ? nullptr : *found;
}

void ProgramBuilder::AddCode(DynamicKernel& kernel, const Toolchain& toolchain, const Function& function,
                             int64_t rows) const {
  const FuncTypeNode* type = AsFuncType(InferType(function, module_));
  const PartitionRequest request{function, PlainLayouts(type->args().size(), FlattenTensorTypes(type->result()).size()),
                                 options_.num_threads};
  Result<CompiledPartition> compiled = toolchain.RelayToRuntime(request);
  if (!compiled.ok()) throw Error(ErrorCategory::kUnsupported, compiled.reason().text);
  if (options_.on_partition) options_.on_partition(toolchain, request, *compiled);
  DynamicKernel::Code code{rows, compiled->loader, std::move(compiled->blob), {}, 0};
  code.workspace_bytes = static_cast<int64_t>(compiled->workspace_bytes);
  for (Tensor& constant : compiled->constants) {
    // Weights are mostly the same for any number of rows.
    const auto known =
        std::ranges::find_if(kernel.constants, [&](const Tensor& one) { return BitEqual(one, constant); });
    code.constants.push_back(static_cast<int>(known - kernel.constants.begin()));
    if (known == kernel.constants.end()) kernel.constants.push_back(std::move(constant));
  }
  kernel.codes.push_back(std::move(code));
}

DynamicKernel ProgramBuilder::MakeDynamicKernel(const Function& function, const Function& plain,
                                                const Toolchain& toolchain) const {
  DynamicKernel kernel;
  kernel.params = AsFuncType(InferType(function, module_))->args();
  kernel.toolchain = toolchain.name();
  kernel.nodes = SourceNodes(plain);
  kernel.num_threads = options_.num_threads;
  kernel.takes_dimensions = function->attrs().Has(kAttrCompiler);
  std::vector<Expr> exprs;
  kernel.sizes = FindDynamicSizes(plain, &exprs);
  const bool is_by_rows = function->attrs().IntOr(kAttrRows, 0) != 0;
  for (const int64_t rows : is_by_rows ? std::vector<int64_t>{kRowsTogether, 1} : std::vector<int64_t>{0}) {
    AddCode(kernel, toolchain, rows == 0 ? plain : WithBatchSize(plain, rows), rows);
  }
  // Operators with indices are evaluated where something is empty, and sizes may be constants.
  const bool reads_constants =
      kernel.sizes.is_assumed() || std::ranges::any_of(kernel.sizes.steps, [](const DynamicSizes::Step& step) {
        return step.op != nullptr && step.op->index_limit != nullptr;
      });
  for (const Expr& expr : exprs) {
    const ConstantNode* constant = As<ConstantNode>(expr);
    if (constant == nullptr) continue;
    const bool is_wanted = kernel.takes_dimensions ? IsSizeConstant(constant->checked_type()) : reads_constants;
    if (is_wanted) kernel.step_constants.push_back(constant->value());
  }
  return kernel;
}

std::optional<int> ProgramBuilder::DynamicKernelIndex(const Function& function) {
  if (!function || function->attrs().IntOr("Primitive", 0) == 0) return std::nullopt;
  const Toolchain* toolchain = ToolchainFor(function);
  if (toolchain == nullptr) return std::nullopt;
  const auto [known, is_new] = dynamic_kernels_.emplace(function.get(), std::nullopt);
  if (!is_new) return known->second;
  const FuncTypeNode* type = AsFuncType(InferType(function, module_));
  bool is_of_tensors = HasTensorsOnly(type->result()) && FreeVars(function).empty();
  bool is_open = is_of_tensors && !HasStaticTensorsOnly(type->result());
  for (const Type& arg : type->args()) {
    is_of_tensors = is_of_tensors && AsTensorType(arg) != nullptr;
    is_open = is_open || (is_of_tensors && !HasStaticTensorsOnly(arg));
  }
  // One of known shapes takes no sizes.
  if (!is_of_tensors || !is_open) return std::nullopt;
  const Function plain = MakeFunction(function->params(), function->body());
  InferType(plain, module_);
  const bool is_by_rows = function->attrs().IntOr(kAttrRows, 0) != 0;
  const std::string compiler = function->attrs().StringOr(kAttrCompiler, "");
  const std::string digest = StructuralHash(Expr(plain)) + (is_by_rows ? " rows" : "") + " " + compiler;
  const auto [equal, is_first] = dynamic_by_digest_.emplace(digest, static_cast<int>(program_.dynamic_kernels.size()));
  if (!is_first) return known->second = equal->second;
  DynamicKernel kernel;
  try {
    kernel = MakeDynamicKernel(function, plain, *toolchain);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kUnsupported || !compiler.empty()) throw;
    if (options_.on_declined) options_.on_declined(plain, error.message());
    dynamic_by_digest_.erase(equal);
    return std::nullopt;
  }
  kernel.name = function->attrs().StringOr("global_symbol", fmt::format("shaped{}", equal->second));
  program_.dynamic_kernels.push_back(std::move(kernel));
  return known->second = equal->second;
}

}  // namespace collage::vm
