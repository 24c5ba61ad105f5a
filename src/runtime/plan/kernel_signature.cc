// kernel_signature.cc: a text of all that a kernel relies on, digested.
#include "runtime/plan/kernel_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "collage/support/error.h"
#include "support/checksum.h"

namespace collage {

uint64_t SignatureOf(const ExecutionPlan& plan, const ExecutionPlan::Step& step, uint64_t code_checksum,
                     std::span<const uint64_t> constant_checksums) {
  const ExecutionPlan::KernelEntry& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  std::string text = fmt::format("{:016x} {} threads {} workspace {}\n", code_checksum, kernel.loader, plan.num_threads,
                                 kernel.workspace_bytes);
  if (kernel.workspace_memory != Memory::kHost) text += fmt::format("in {}\n", ToString(kernel.workspace_memory));
  const auto add_values = [&](const std::vector<int>& values) {
    for (int index : values) {
      const ExecutionPlan::Value& value = plan.values[static_cast<size_t>(index)];
      text += fmt::format("{} {} {}\n", value.dtype.ToString(), ToString(value.shape), ToString(value.layout));
    }
    text += "->\n";
  };
  add_values(step.inputs);
  add_values(step.outputs);
  for (int index : kernel.constants) {
    const Tensor& constant = plan.constants[static_cast<size_t>(index)];
    text += fmt::format("{} {} {:016x}\n", constant.dtype().ToString(), ToString(constant.shape()),
                        constant_checksums[static_cast<size_t>(index)]);
  }
  return Checksum(text.data(), text.size());
}

std::vector<std::byte> SealCode(std::span<const std::byte> code, const std::set<uint64_t>& signatures) {
  std::vector<std::byte> piece(code.begin(), code.end());
  const auto append = [&](uint64_t number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    piece.insert(piece.end(), bytes.begin(), bytes.end());
  };
  for (uint64_t signature : signatures) append(signature);
  append(signatures.size());
  return piece;
}

SealedCode::SealedCode(std::span<const std::byte> piece) {
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t count = 0;
  if (piece.size() >= kWord) std::memcpy(&count, piece.data() + piece.size() - kWord, kWord);
  if (piece.size() < kWord || count > piece.size() / kWord - 1) {
    throw Error(ErrorCategory::kCorrupt, "the code of a kernel does not say what it was compiled for");
  }
  code = piece.first(piece.size() - (count + 1) * kWord);
  signatures.resize(count);
  std::memcpy(signatures.data(), piece.data() + code.size(), count * kWord);
  std::ranges::sort(signatures);
}

bool SealedCode::IsFor(uint64_t signature) const { return std::ranges::binary_search(signatures, signature); }

}  // namespace collage
