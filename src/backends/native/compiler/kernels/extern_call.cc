// extern_call.cc: arguments of a call as the function's signature wants them.
#include "backends/native/compiler/kernels/extern_call.h"

#include <fmt/ranges.h>

#include <bit>

#include "collage/support/error.h"
#include "target/function_signature.h"

namespace collage::native {
namespace {

/// Writes the call, within the function that the emitter is at.
class CallWriter {
 public:
  CallWriter(PartitionState& state, const std::string& library, const ExternCall& call)
      : state_(state), e_(state.emitter), library_(library), call_(call), signature_(SignatureOf(call.function)) {
    if (call.arguments.size() != signature_.arguments.size()) {
      Fail(fmt::format("takes {} arguments, is given {}", signature_.arguments.size(), call.arguments.size()));
    }
    for (const Tensor& constant : call.constants) constants_.push_back(state.AddConstant(constant));
    if (call.workspace_bytes > 0) {
      workspace_ = state.AddWorkspace({static_cast<int64_t>(call.workspace_bytes)}, Layout::kPlain, kUInt8);
    }
  }

  void Write(const std::vector<Buffer>& inputs, const Buffer& output) {
    const Ptr function = e_.LoadAddress(Function());
    std::vector<std::string> values;
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      values.push_back(ValueOf(call_.arguments[i], signature_.arguments[i], inputs, output));
    }
    const std::string text =
        fmt::format("llvm.call {}({}) : !llvm.ptr, {}", function, fmt::join(values, ", "), signature_.ToString());
    signature_.result.empty() ? e_.Line(text) : static_cast<void>(e_.Def(text));
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) const {
    throw Error(ErrorCategory::kInput,
                fmt::format("function '{}' of library '{}' {}", call_.function.symbol, library_, problem));
  }

  LibraryCall Function() const {
    return call_.function.library.empty() ? Request(call_.function.symbol) : SymbolCall(call_.function);
  }

  LibraryCall Request(const std::string& text) const {
    if (text.find_first_of("|\n") != std::string::npos) Fail(fmt::format("asks for '{}', which is no line", text));
    return {LibraryCall::Kind::kRequest, library_, text, call_.function.hint};
  }

  std::string ValueOf(const CallArgument& argument, const std::string& type, const std::vector<Buffer>& inputs,
                      const Buffer& output) {
    using Kind = CallArgument::Kind;
    if (argument.kind == Kind::kInteger || argument.kind == Kind::kFloat) return Number(argument, type);
    if (type != "!llvm.ptr") Fail(fmt::format("is given an address where it takes {}", type));
    switch (argument.kind) {
      case Kind::kInput: return AddressOf(Chosen(inputs, argument.integer, "input")).name();
      case Kind::kConstant: return AddressOf(Chosen(constants_, argument.integer, "constant")).name();
      case Kind::kObject: return e_.LoadAddress(Request(argument.request)).name();
      case Kind::kOutput: return AddressOf(output).name();
      default: break;
    }
    return workspace_.exists() ? AddressOf(workspace_).name() : e_.Def("llvm.mlir.zero : !llvm.ptr");
  }

  const Buffer& Chosen(const std::vector<Buffer>& buffers, int64_t number, const char* what) const {
    if (number < 0 || number >= static_cast<int64_t>(buffers.size())) {
      Fail(fmt::format("is given {} {} of {}", what, number, buffers.size()));
    }
    return buffers[static_cast<size_t>(number)];
  }

  Ptr AddressOf(const Buffer& buffer) { return e_.Address(buffer, Indices(buffer.shape.size(), e_.Zero())); }

  /// Floats by their bits, so that none is rounded.
  std::string Number(const CallArgument& argument, const std::string& type) {
    const bool is_integer = argument.kind == CallArgument::Kind::kInteger;
    if (is_integer != type.starts_with('i')) {
      Fail(fmt::format("is given {} where it takes {}", is_integer ? "an integer" : "a float", type));
    }
    if (type == "i32" && argument.integer != static_cast<int32_t>(argument.integer)) {
      Fail(fmt::format("is given {} where it takes i32", argument.integer));
    }
    if (is_integer) return e_.Def(fmt::format("arith.constant {} : {}", argument.integer, type));
    if (type == "f64") {
      return e_.Def(fmt::format("arith.constant 0x{:016X} : f64", std::bit_cast<uint64_t>(argument.real)));
    }
    return e_.Def(
        fmt::format("arith.constant 0x{:08X} : f32", std::bit_cast<uint32_t>(static_cast<float>(argument.real))));
  }

  PartitionState& state_;
  Emitter& e_;
  const std::string& library_;
  const ExternCall& call_;
  FunctionSignature signature_;
  std::vector<Buffer> constants_;
  Buffer workspace_;
};

}  // namespace

void EmitExternCall(PartitionState& state, const std::string& library, const ExternCall& call,
                    const std::vector<Buffer>& inputs, const Buffer& output) {
  CallWriter writer(state, library, call);
  const std::string name = state.NextStageName();
  state.emitter.Function(name, [&](const I64&, const I64&) { writer.Write(inputs, output); });
  state.emitter.Call(name, 1, /*parallel=*/false);
}

}  // namespace collage::native
