// kernel.cc: see kernel.h.
#include "backends/dnnl/primitive/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/dnnl/primitive/packed_weights.h"
#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::memory;

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void Check(dnnl_status_t status) {
  if (status != dnnl_success) {
    throw Error(ErrorCategory::kInternal, fmt::format("oneDNN failed with status {}", static_cast<int>(status)));
  }
}

}  // namespace

// Scratchpad first, then the reordered inputs.
size_t WorkspaceBytes(const Built& built) {
  size_t bytes = Aligned(built.scratchpad.get_size());
  for (const Binding& binding : built.bindings) {
    if (binding.operand.input >= 0 && binding.given != binding.wanted) bytes += Aligned(binding.wanted.get_size());
  }
  return bytes;
}

bool IsPacked(const Binding& binding) { return binding.given != binding.wanted || binding.operand.zero != 0; }

DnnlKernel::DnnlKernel(std::shared_ptr<const Built> built, std::span<const Tensor> constants, int num_threads)
    : built_(std::move(built)),
      num_threads_(num_threads),
      dst_(built_->dst, Engine(), nullptr),
      scratchpad_(built_->scratchpad, Engine(), nullptr) {
  for (const Binding& binding : built_->bindings) AddArgument(binding, constants);
  for (const auto& [argument, number] : built_->numbers) arguments_.push_back({argument, number.get()});
  arguments_.push_back({DNNL_ARG_DST, dst_.get()});
  arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
}

void DnnlKernel::Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) {
  const auto is_missing = [&](const auto& given) { return static_cast<size_t>(given.first) >= inputs.size(); };
  if (outputs.empty() || std::ranges::any_of(given_, is_missing)) {
    throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel reads inputs that there are not");
  }
  auto* free = static_cast<std::byte*>(workspace);
  if (built_->scratchpad.get_size() > 0) scratchpad_.set_data_handle(free);
  free += Aligned(built_->scratchpad.get_size());
  for (auto& [index, given] : given_) given.set_data_handle(inputs[static_cast<size_t>(index)]);
  for (Conversion& conversion : conversions_) {
    conversion.target.set_data_handle(free);
    free += Aligned(conversion.target.get_desc().get_size());
  }
  dst_.set_data_handle(outputs[0]);
}

void DnnlKernel::Run() {
  UseThreads(num_threads_);
  for (const Conversion& conversion : conversions_) {
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, given_[conversion.source].second.get()},
                                         {DNNL_ARG_TO, conversion.target.get()}};
    Check(dnnl_primitive_execute(conversion.reorder.get(), Stream().get(), 2, arguments));
  }
  Check(dnnl_primitive_execute(built_->primitive.get(), Stream().get(), static_cast<int>(arguments_.size()),
                               arguments_.data()));
}

void DnnlKernel::AddArgument(const Binding& binding, std::span<const Tensor> constants) {
  if (binding.operand.constant >= 0) {
    const auto index = static_cast<size_t>(binding.operand.constant);
    const int last = std::max(binding.operand.constant, binding.operand.scales);
    if (last >= static_cast<int>(constants.size())) {
      throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel lacks a constant");
    }
    if (IsPacked(binding)) {
      constants_.push_back(PackedWeights::OfProcess().Get(binding, constants));
    } else {
      constants_.push_back(std::make_shared<memory>(binding.given, Engine(), constants[index].raw()));
    }
    arguments_.push_back({binding.argument, constants_.back()->get()});
    return;
  }
  given_.emplace_back(binding.operand.input, memory(binding.given, Engine(), nullptr));
  if (binding.given == binding.wanted) {
    arguments_.push_back({binding.argument, given_.back().second.get()});
    return;
  }
  memory target(binding.wanted, Engine(), nullptr);
  arguments_.push_back({binding.argument, target.get()});
  conversions_.push_back({given_.size() - 1, target, dnnl::reorder(given_.back().second, target)});
}

}  // namespace collage::dnnl_toolchain
