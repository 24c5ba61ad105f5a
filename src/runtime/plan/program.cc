// program.cc: reaching the machine, and memory for what it computes.
#include "runtime/plan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"

namespace collage {
namespace {

LoadTensorProgramFn* FindLoader(const std::string& name) {
  try {
    return reinterpret_cast<LoadTensorProgramFn*>(FindModuleSymbol(COLLAGE_IR_LIBRARY, "collage_load_tensor_program"));
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), name,
                "programs with control flow need libcollage_ir beside libcollage_runtime");
  }
}

void CheckFits(const Tensor& tensor, const PortInfo& port, const char* what) {
  if (tensor.defined() && tensor.dtype() == port.dtype && ShapeFits(tensor.shape(), port.shape)) return;
  const std::string got =
      tensor.defined() ? tensor.dtype().ToString() + " " + ToString(tensor.shape()) : "an empty tensor";
  throw Error(ErrorCategory::kInput, fmt::format("{} '{}' wants {} {}, got {}", what, port.name, port.dtype.ToString(),
                                                 ToString(port.shape), got));
}

bool IsKnown(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
}

}  // namespace

std::shared_ptr<const TensorProgram> LoadTensorProgram(std::span<std::byte> bytes, std::shared_ptr<void> owner,
                                                       const std::string& name) {
  std::shared_ptr<const TensorProgram> program;
  FindLoader(name)(bytes, std::move(owner), name, program);
  return program;
}

bool ShapeFits(const Shape& shape, const Shape& pattern) {
  return std::equal(shape.begin(), shape.end(), pattern.begin(), pattern.end(),
                    [](int64_t size, int64_t wanted) { return size >= 0 && (wanted < 0 || size == wanted); });
}

ProgramInstance::ProgramInstance(std::shared_ptr<const TensorProgram> program)
    : program_(std::move(program)), machine_(program_->NewMachine()), inputs_(program_->inputs().size()) {
  SetNumThreads(program_->num_threads());
  for (const PortInfo& port : program_->outputs()) {
    outputs_.push_back(IsKnown(port.shape) ? Tensor::Zeros(port.shape, port.dtype) : Tensor());
  }
}

void ProgramInstance::SetInput(size_t index, const Tensor& tensor) {
  CheckFits(tensor, program_->inputs().at(index), "input");
  inputs_[index] = tensor;
}

void ProgramInstance::SetOutput(size_t index, const Tensor& tensor) {
  const PortInfo& port = program_->outputs().at(index);
  if (!IsKnown(port.shape)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("output '{}' has a shape that is known at run time only: it cannot be bound", port.name));
  }
  CheckFits(tensor, port, "output");
  outputs_[index] = tensor;
}

void ProgramInstance::Run() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].defined()) continue;
    throw Error(ErrorCategory::kInput, fmt::format("input '{}' has not been set", program_->inputs()[i].name));
  }
  const std::vector<Tensor> results = machine_->Run(inputs_, outputs_);
  if (results.size() != outputs_.size()) {
    throw Error(ErrorCategory::kCorrupt,
                fmt::format("the program gives {} results where it has {} outputs", results.size(), outputs_.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    CheckFits(results[i], program_->outputs()[i], "output");
    // A result may be an input, or a constant.
    Tensor& output = outputs_[i];
    if (!output.defined() || output.shape() != results[i].shape()) {
      output = Tensor::Empty(results[i].shape(), results[i].dtype());
    }
    const bool is_there = output.raw() == results[i].raw();
    if (!is_there && results[i].size_bytes() > 0) std::memmove(output.raw(), results[i].raw(), results[i].size_bytes());
  }
}

}  // namespace collage
