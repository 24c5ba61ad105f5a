// serialize.cc: programs to files.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bytecode/bytecode.h"
#include "bytecode/file_format.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "ir/attr_visitor.h"
#include "runtime/plan/executable_format.h"
#include "runtime/plan/executable_state.h"
#include "runtime/plan/kernel_signature.h"
#include "runtime/plan/plan_json.h"
#include "support/checksum.h"
#include "support/file.h"

namespace collage::vm {
namespace {

class Writer {
 public:
  void Int(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Text(std::string_view text) {
    Int(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  void Ints(const std::vector<int>& values) {
    Int(static_cast<int64_t>(values.size()));
    for (int value : values) Int(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Writes constants, code and kernels that bytecode refers to, and numbers them.
class References {
  using Json = nlohmann::json;

 public:
  References(const Program& program, PieceWriter& pieces) : program_(program), pieces_(pieces) {}

  struct Reference {
    int64_t number;
    uint64_t checksum;
  };
  Reference Constant(const Tensor& tensor) {
    program_.CheckConstant(tensor);  // one of a loaded file that is damaged must not get a checksum that fits
    Json place = pieces_.Write(tensor.raw(), tensor.size_bytes());
    const uint64_t checksum = ChecksumFrom(place.at(2));
    constants_.push_back(
        {{"shape", tensor.shape()}, {"dtype", tensor.dtype().ToString()}, {"place", std::move(place)}});
    return {static_cast<int64_t>(constants_.size()) - 1, checksum};
  }
  int64_t Code(std::vector<std::byte> sealed) {
    code_.push_back(pieces_.Write(std::move(sealed)));
    return static_cast<int64_t>(code_.size()) - 1;
  }
  void Kernel(const collage::Executable& executable) { kernels_.push_back(StoreExecutable(executable, pieces_)); }

  /// The index of the file with this `bytecode`, which must outlive the writer of pieces.
  Json Finish(const std::string& bytecode) {
    Json nodes = Json::array();
    for (const DynamicKernel& kernel : program_.dynamic_kernels) nodes.push_back(kernel.nodes);
    Json index = {{"bytecode", pieces_.Write(bytecode.data(), bytecode.size())},
                  {"nodes", std::move(nodes)},
                  {"constants", std::move(constants_)},
                  {"code", std::move(code_)},
                  {"kernels", std::move(kernels_)}};
    const Tensor& explanation = program_.explanation;
    if (explanation.defined()) {
      program_.CheckConstant(explanation);
      index[kExplanationPiece] = pieces_.Write(explanation.raw(), explanation.size_bytes());
    }
    return index;
  }

 private:
  const Program& program_;
  PieceWriter& pieces_;
  Json constants_ = Json::array();
  Json code_ = Json::array();
  Json kernels_ = Json::array();
};

struct AttrWriter {
  Writer& out;

  void None() { Tag(AttrTag::kNone); }
  void Bool(bool flag) { Number(AttrTag::kBool, flag ? 1 : 0); }
  void Int(int64_t number) { Number(AttrTag::kInt, number); }
  void Double(double number) { Number(AttrTag::kDouble, std::bit_cast<int64_t>(number)); }
  void Text(const std::string& text) {
    Tag(AttrTag::kText);
    out.Text(text);
  }
  void List(const AttrValue::List& list) {
    Number(AttrTag::kList, static_cast<int64_t>(list.size()));
    for (const AttrValue& item : list) VisitAttr(item, *this);
  }

 private:
  void Tag(AttrTag tag) { out.Int(static_cast<int64_t>(tag)); }
  void Number(AttrTag tag, int64_t number) {
    Tag(tag);
    out.Int(number);
  }
};

void Write(Writer& out, DataType dtype, const Shape& shape) {
  out.Text(dtype.ToString());
  out.Int(static_cast<int64_t>(shape.size()));
  for (const int64_t size : shape) out.Int(size);
}

void Write(Writer& out, const OpDef& op, const Attrs& attrs) {
  out.Text(op.name);
  out.Int(static_cast<int64_t>(attrs.size()));
  for (const auto& [name, value] : attrs) {
    out.Text(name);
    VisitAttr(value, AttrWriter{out});
  }
}

void Write(Writer& out, const DynamicSizes& sizes) {
  using Step = DynamicSizes::Step;
  out.Int(static_cast<int64_t>(sizes.steps.size()));
  for (const Step& step : sizes.steps) {
    out.Int(step.kind);
    out.Ints(step.args);
    out.Int(step.field);
    if (step.kind == Step::kCall) Write(out, *step.op, step.attrs);
    if (step.kind != Step::kConstant) continue;
    const TensorTypeNode& tensor = *AsTensorType(step.type);
    Write(out, tensor.dtype(), tensor.static_shape());
  }
  out.Int(static_cast<int64_t>(sizes.variables.size()));
  for (const DynamicSizes::Variable& variable : sizes.variables) {
    out.Int(variable.known);
    out.Int(variable.is_assumed ? 1 : 0);
    out.Int(static_cast<int64_t>(variable.places.size()));
    for (const DynamicSizes::Place& place : variable.places) out.Ints({place.value, place.field, place.dim});
  }
  out.Int(sizes.result);
}

/// Returns the checksums of `tensors`.
std::vector<uint64_t> Write(Writer& out, const std::vector<Tensor>& tensors, References& references) {
  std::vector<uint64_t> checksums;
  out.Int(static_cast<int64_t>(tensors.size()));
  for (const Tensor& tensor : tensors) {
    const References::Reference reference = references.Constant(tensor);
    out.Int(reference.number);
    checksums.push_back(reference.checksum);
  }
  return checksums;
}

void Write(Writer& out, const DynamicKernel& kernel, References& references) {
  out.Text(kernel.name);
  out.Text(kernel.toolchain);
  Write(out, kernel.sizes);
  out.Int(kernel.num_threads);
  out.Int(kernel.takes_dimensions ? 1 : 0);
  const std::vector<uint64_t> constants = Write(out, kernel.constants, references);
  const std::vector<uint64_t> step_constants = Write(out, kernel.step_constants, references);
  const uint64_t signature = SignatureOf(kernel, constants, step_constants);
  out.Int(static_cast<int64_t>(kernel.codes.size()));
  for (const DynamicKernel::Code& code : kernel.codes) {
    out.Int(code.rows);
    out.Text(code.loader);
    out.Int(references.Code(SealCode(code.blob, {signature})));
    out.Ints(code.constants);
    out.Int(code.workspace_bytes);
  }
}

void Write(Writer& out, const VmFunction& function) {
  out.Text(function.name);
  out.Int(function.num_params);
  out.Int(function.num_captured);
  out.Int(function.self);
  out.Int(function.num_registers);
  out.Int(static_cast<int64_t>(function.code.size()));
  for (const Instruction& instruction : function.code) {
    out.Int(static_cast<int64_t>(instruction.opcode));
    out.Int(instruction.dst);
    out.Int(instruction.index);
    out.Int(instruction.target);
    out.Ints(instruction.regs);
    out.Text(instruction.where);
  }
}

std::vector<Var> ParametersOf(const VmFunction& function) {
  std::vector<Var> params;
  for (size_t i = 0; i < function.params.size(); ++i) {
    params.push_back(MakeVar(function.param_names[i], function.params[i]));
  }
  return params;
}

/// Data types, and functions that have the parameters and results of the globals, the results of the kernels, and the
/// parameters of those that are told shapes.
std::string Signatures(const Program& program) {
  IRModule module = program.types;
  for (size_t i = 0; i < program.globals.size(); ++i) {
    const VmFunction& function = program.functions[i];
    Attrs attrs;
    function.dimensions.AddTo(attrs);
    function.strings.AddTo(attrs);
    const auto set = [&attrs](const char* name, const std::vector<std::string>& names) {
      if (!names.empty()) attrs.Set(name, AttrValue::List(names.begin(), names.end()));
    };
    set(kResultNames, function.result_names);
    set(kParameterNames, function.param_names);
    if (!function.specialises.empty()) attrs.Set(kAttrSpecialises, function.specialises);
    module.Set(fmt::format("function{}", i), MakeFunction(ParametersOf(function), MakeTuple({}), function.result,
                                                          std::move(attrs), function.type_params));
  }
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    module.Set(fmt::format("kernel{}", i), MakeFunction({}, MakeTuple({}), program.kernels[i].result));
  }
  for (size_t i = 0; i < program.dynamic_kernels.size(); ++i) {
    std::vector<Var> params;
    for (const Type& type : program.dynamic_kernels[i].params) {
      params.push_back(MakeVar(fmt::format("p{}", params.size()), type));
    }
    module.Set(fmt::format("shaped{}", i), MakeFunction(std::move(params), MakeTuple({})));
  }
  return PrintModule(module);
}

}  // namespace

uint64_t SignatureOf(const DynamicKernel& kernel, std::span<const uint64_t> constants,
                     std::span<const uint64_t> step_constants) {
  Writer out;
  for (const Type& type : kernel.params) out.Text(ToString(type));
  DynamicSizes sizes = kernel.sizes;
  for (DynamicSizes::Step& step : sizes.steps) {
    if (step.op != nullptr) step.attrs = CompleteAttrs(*step.op, std::move(step.attrs));
  }
  Write(out, sizes);
  for (const DynamicKernel::Code& code : kernel.codes) {
    out.Int(code.rows);
    out.Text(code.loader);
    out.Int(static_cast<int64_t>(Checksum(code.blob.data(), code.blob.size())));
    out.Ints(code.constants);
    out.Int(code.workspace_bytes);
  }
  const auto add = [&](const std::vector<Tensor>& tensors, std::span<const uint64_t> checksums) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      Write(out, tensors[i].dtype(), tensors[i].shape());
      out.Int(static_cast<int64_t>(checksums[i]));
    }
  };
  add(kernel.constants, constants);
  out.Int(kernel.num_threads);
  out.Int(kernel.takes_dimensions ? 1 : 0);
  add(kernel.step_constants, step_constants);
  return Checksum(out.bytes().data(), out.bytes().size());
}

void Executable::Save(const std::filesystem::path& path) const {
  const Program& program = *program_;
  AtomicFile file(path);
  Writer out;
  PieceWriter pieces(file);
  References references(program, pieces);
  out.Text(Signatures(program));
  out.Int(static_cast<int64_t>(program.globals.size()));
  for (const std::string& name : program.globals) out.Text(name);
  out.Int(static_cast<int64_t>(program.functions.size()));
  for (const VmFunction& function : program.functions) Write(out, function);
  Write(out, program.constants, references);
  out.Int(static_cast<int64_t>(program.op_calls.size()));
  for (const OpCallEntry& call : program.op_calls) Write(out, *call.op, call.attrs);
  out.Int(static_cast<int64_t>(program.constructors.size()));
  for (const Constructor& constructor : program.constructors) out.Text(constructor->name());
  out.Int(static_cast<int64_t>(program.kernels.size()));
  for (const KernelFunction& kernel : program.kernels) {
    out.Text(kernel.name);
    references.Kernel(kernel.executable);
  }
  out.Int(static_cast<int64_t>(program.dynamic_kernels.size()));
  for (const DynamicKernel& kernel : program.dynamic_kernels) Write(out, kernel, references);
  pieces.Finish(kProgramFormat, references.Finish(out.bytes()));
  file.Commit();
}

std::string Executable::Serialize() const {
  const TemporaryFolder folder;
  Save(folder / "program.clg");
  return ReadFile(folder / "program.clg");
}

namespace {

/// Null where the program has no such function.
const VmFunction* FindGlobal(const Program& program, std::string_view function) {
  const auto found = std::ranges::find(program.globals, function);
  if (found == program.globals.end()) return nullptr;
  return &program.functions[static_cast<size_t>(found - program.globals.begin())];
}

}  // namespace

NamedDimensions Executable::Dimensions(std::string_view function) const {
  const VmFunction* found = FindGlobal(*program_, function);
  return found == nullptr ? NamedDimensions() : found->dimensions;
}

StringTensors Executable::Strings(std::string_view function) const {
  const VmFunction* found = FindGlobal(*program_, function);
  return found == nullptr ? StringTensors() : found->strings;
}

std::vector<Var> Executable::Parameters(std::string_view function) const {
  for (size_t i = 0; i < program_->globals.size(); ++i) {
    if (program_->globals[i] == function) return ParametersOf(program_->functions[i]);
  }
  throw Error(ErrorCategory::kInput, fmt::format("there is no function '@{}'", function));
}

std::vector<std::string> Executable::ResultNames(std::string_view function) const {
  const auto found = std::find(program_->globals.begin(), program_->globals.end(), function);
  if (found == program_->globals.end()) {
    throw Error(ErrorCategory::kInput, fmt::format("there is no function '@{}'", function));
  }
  const VmFunction& of = program_->functions[static_cast<size_t>(found - program_->globals.begin())];
  if (of.result == nullptr) return {};
  std::vector<std::string> names = of.result_names;
  const size_t count = FlattenTensorTypes(of.result).size();
  names.resize(std::min(names.size(), count));
  while (names.size() < count) names.push_back(fmt::format("output_{}", names.size()));
  return names;
}

int Executable::num_threads() const {
  int threads = 1;
  for (const KernelFunction& kernel : program_->kernels) {
    threads = std::max(threads, kernel.executable.plan().num_threads);
  }
  for (const DynamicKernel& kernel : program_->dynamic_kernels) threads = std::max(threads, kernel.num_threads);
  return threads;
}

bool Executable::IsBytecode(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  char begin[kFormerMagic.size()];
  stream.read(begin, sizeof begin);
  return IsProgramFile({begin, static_cast<size_t>(stream.gcount())});
}

std::string Executable::Disassemble() const { return vm::Disassemble(*program_); }

}  // namespace collage::vm
