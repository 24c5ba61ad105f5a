// call_plan.cc: see call_plan.h.
#include "backends/dnnl/primitive/call_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/dnnl/primitive/kernel.h"
#include "backends/dnnl/primitive/packed_weights.h"
#include "backends/dnnl/primitive/parts.h"
#include "collage/support/error.h"
#include "support/hash.h"

namespace collage::dnnl_toolchain {
namespace {

constexpr size_t kMostOperands = 8;

bool IsConstant(const Binding& binding) { return binding.operand.constant >= 0; }

/// How the elements of `desc` lie in memory.
std::string FormatOf(const Desc& desc) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(desc.get_data_type()), desc.get_dims(),
                     desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs(),
                     desc.get_size());
}

/// Tells the formats of packed constants apart: another processor, or release of oneDNN, may want others.
std::string PackedFormats(const Built& built) {
  Hasher hasher;
  for (const Binding& binding : built.bindings) {
    if (IsConstant(binding)) hasher.Add(FormatOf(binding.wanted));
  }
  return hasher.Hex();
}

/// A primitive all of whose operands come as addresses, constants packed.
class CallPlan {
 public:
  CallPlan(Built built, int num_threads) : num_threads_(num_threads) {
    for (size_t i = 0; i < built.bindings.size(); ++i) {
      Binding& binding = built.bindings[i];
      if (IsConstant(binding)) binding.given = binding.wanted;
      binding.operand = {};
      binding.operand.input = static_cast<int>(i);
    }
    built_ = std::make_shared<const Built>(std::move(built));
  }

  /// Memory objects belong to the calling thread, since other threads may execute the plan at the same time.
  void Execute(std::span<void* const> operands, void* result, void* workspace) const {
    static thread_local std::unordered_map<const CallPlan*, std::unique_ptr<DnnlKernel>> kernels;
    std::unique_ptr<DnnlKernel>& kernel = kernels[this];
    if (kernel == nullptr) kernel = std::make_unique<DnnlKernel>(built_, std::span<const Tensor>(), num_threads_);
    kernel->Bind(operands, std::array{result}, workspace);
    kernel->Run();
  }

 private:
  int num_threads_;
  std::shared_ptr<const Built> built_;
};

template <typename... Address>
void Execute(const CallPlan* plan, void* result, void* workspace, Address... operands) {
  plan->Execute(std::array<void*, sizeof...(operands)>{operands...}, result, workspace);
}

template <size_t>
using AddressOfOperand = void*;

template <size_t... I>
void* ExecuteWith(std::index_sequence<I...>) {
  return reinterpret_cast<void*>(&Execute<AddressOfOperand<I>...>);
}

/// The functions for 1 to kMostOperands operands.
template <size_t... N>
std::array<void*, sizeof...(N)> AllExecutes(std::index_sequence<N...>) {
  return {ExecuteWith(std::make_index_sequence<N + 1>())...};
}

/// Plans of the process by their requests. They stay: kernels that call them know their addresses.
const CallPlan* PlanFor(const std::string& request, const std::string& formats, int num_threads,
                        const std::string& spec) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const CallPlan>> plans;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const CallPlan>& plan = plans[request];
  if (plan != nullptr) return plan.get();
  UseThreads(num_threads);
  try {
    Built built = Build(FromJson(spec));
    if (PackedFormats(built) == formats) plan = std::make_unique<const CallPlan>(std::move(built), num_threads);
  } catch (const dnnl::error& e) {
    throw Error(ErrorCategory::kUnavailable, fmt::format("oneDNN cannot make a primitive: {}", e.what()));
  }
  return plan.get();
}

/// A constant as the primitive reads it.
Tensor Packed(const Binding& binding, std::span<const Tensor> constants) {
  if (!IsPacked(binding)) return constants[static_cast<size_t>(binding.operand.constant)];
  const std::shared_ptr<dnnl::memory> packed = PackedWeights::OfProcess().Get(binding, constants);
  const size_t bytes = packed->get_desc().get_size();
  Tensor tensor = Tensor::Empty({static_cast<int64_t>(bytes)}, kUInt8);
  std::memcpy(tensor.raw(), packed->get_data_handle(), bytes);
  return tensor;
}

}  // namespace

Result<PreparedCall> PrepareCall(const Primitive& primitive, const Implementation& found,
                                 std::span<const Tensor> constants, int num_threads) {
  const Built built = Build(primitive);
  if (built.bindings.empty() || built.bindings.size() > kMostOperands) {
    return Reason{fmt::format("is called with at most {} operands, got {}", kMostOperands, built.bindings.size()),
                  "dnnl"};
  }
  PreparedCall call;
  call.workspace_bytes = found.workspace_bytes;
  call.function = fmt::format("execute {}", built.bindings.size());
  call.plan = fmt::format("plan {} {} {}", num_threads, PackedFormats(built), ToJson(primitive));
  for (const Binding& binding : built.bindings) {
    if (!IsConstant(binding)) {
      call.operands.push_back({.input = binding.operand.input});
      continue;
    }
    if (binding.wanted.get_format_kind() != dnnl::memory::format_kind::blocked) {
      return Reason{"oneDNN packs its weights in a format of its own", "dnnl"};
    }
    call.operands.push_back({.constant = Packed(binding, constants)});
  }
  return call;
}

void* FindCall(const char* request) {
  static const std::array<void*, kMostOperands> executes = AllExecutes(std::make_index_sequence<kMostOperands>());
  std::istringstream words{std::string(request)};
  std::string what, formats, spec;
  size_t number = 0;
  if (!(words >> what >> number)) return nullptr;
  if (what == "execute") return number >= 1 && number <= kMostOperands ? executes[number - 1] : nullptr;
  if (what != "plan" || !(words >> formats) || !std::getline(words, spec)) return nullptr;
  return const_cast<CallPlan*>(PlanFor(request, formats, static_cast<int>(number), spec));
}

}  // namespace collage::dnnl_toolchain
