// deserialize.cc: programs from files. Nothing is believed: counts are held against the bytes that are there, and what
// they refer to is checked by Verify (bytecode.h) before any of it is used.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "bytecode/bytecode.h"
#include "bytecode/file_format.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "runtime/plan/executable_state.h"
#include "runtime/plan/kernel_signature.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/signature.h"
#include "support/file.h"

namespace collage::vm {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  const std::string& name() const { return name_; }
  /// Whether nothing is left.
  bool IsAtEnd() const { return at_ == bytes_.size(); }
  size_t size() const { return bytes_.size(); }

  [[noreturn]] void Fail(const std::string& message) const { throw Error(ErrorCategory::kCorrupt, message, name_); }

  int64_t Int() {
    int64_t value = 0;
    if (bytes_.size() - at_ < sizeof value) Fail("the bytecode ends too early");
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  int SmallInt() {
    const int64_t value = Int();
    if (value != static_cast<int>(value)) Fail("the bytecode has a number out of range");
    return static_cast<int>(value);
  }
  /// The number of things that take at least eight bytes each.
  size_t Count() {
    const int64_t count = Int();
    if (count < 0 || static_cast<uint64_t>(count) > (bytes_.size() - at_) / 8) Fail("the bytecode ends too early");
    return static_cast<size_t>(count);
  }
  std::string_view Text() {
    const int64_t size = Int();
    if (size < 0 || static_cast<uint64_t>(size) > bytes_.size() - at_) Fail("the bytecode ends too early");
    const std::string_view text = bytes_.substr(at_, static_cast<size_t>(size));
    at_ += text.size();
    return text;
  }
  std::vector<int> Ints() {
    std::vector<int> values(Count());
    for (int& value : values) value = SmallInt();
    return values;
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
};

AttrValue ReadAttr(Reader& in, int depth) {
  if (depth > 100) in.Fail("an attribute nests too deep");
  switch (static_cast<AttrTag>(in.Int())) {
    case AttrTag::kNone: return {};
    case AttrTag::kBool: return in.Int() != 0;
    case AttrTag::kInt: return in.Int();
    case AttrTag::kDouble: return std::bit_cast<double>(in.Int());
    case AttrTag::kText: return std::string(in.Text());
    case AttrTag::kList: {
      AttrValue::List list;
      for (size_t count = in.Count(); count > 0; --count) list.push_back(ReadAttr(in, depth + 1));
      return list;
    }
  }
  in.Fail("an attribute of unknown kind");
}

/// The sizes may be any numbers: they are not checked.
std::pair<DataType, Shape> ReadTensorType(Reader& in) {
  const std::string dtype(in.Text());
  if (!DataType::IsName(dtype)) in.Fail("a constant of unknown dtype '" + dtype + "'");
  Shape shape(in.Count());
  for (int64_t& size : shape) size = in.Int();
  return {DataType::FromString(dtype), std::move(shape)};
}

Tensor ReadTensor(const Json& json, ExecutableSource& source, uint64_t& checksum) {
  const Piece piece = source.reader.Read(json.at("place"));
  Shape shape = ShapeFrom(json.at("shape"));
  const DataType dtype = DTypeFrom(json.at("dtype"), "a constant");
  if (CheckedBytes(shape, dtype) != piece.bytes.size()) {
    throw Error(ErrorCategory::kCorrupt, "a constant of a wrong size");
  }
  source.pieces->Note(piece);
  checksum = piece.checksum;
  return Tensor::View(std::move(shape), dtype, piece.bytes.data(), source.owner);
}

/// Constants, code and kernels that bytecode refers to.
class References {
 public:
  /// Code is checked, constants are not yet. `index` must outlive it.
  References(const Json& index, ExecutableSource& source) : source_(source), kernels_(index.at("kernels")) {
    for (const Json& constant : index.at("constants")) {
      Constant& one = constants_.emplace_back();
      one.tensor = ReadTensor(constant, source, one.checksum);
    }
    for (const Json& place : index.at("code")) {
      code_.push_back(source.reader.Read(place));
      if (!code_.back().IsRight()) throw Error(ErrorCategory::kCorrupt, "machine code has a wrong checksum");
    }
    if (!kernels_.is_array()) throw Error(ErrorCategory::kCorrupt, "the kernels are no list");
  }

  struct Constant {
    Tensor tensor;
    uint64_t checksum = 0;
  };
  const Constant& ReadConstant(Reader& in) const { return At(in, constants_, "constant"); }
  std::span<const std::byte> ReadCode(Reader& in) const { return At(in, code_, "piece of code").bytes; }
  collage::Executable NextKernel(Reader& in) {
    if (next_kernel_ >= kernels_.size()) in.Fail("a kernel is missing");
    return RestoreExecutable(kernels_[next_kernel_++], source_);
  }
  bool has_kernels_left() const { return next_kernel_ < kernels_.size(); }

 private:
  template <typename T>
  static const T& At(Reader& in, const std::vector<T>& all, const char* what) {
    const int64_t number = in.Int();
    if (number < 0 || static_cast<uint64_t>(number) >= all.size()) in.Fail(fmt::format("there is no such {}", what));
    return all[static_cast<size_t>(number)];
  }

  ExecutableSource& source_;
  const Json& kernels_;
  size_t next_kernel_ = 0;
  std::vector<Constant> constants_;
  std::vector<Piece> code_;
};

VmFunction ReadFunction(Reader& in) {
  VmFunction function;
  function.name = in.Text();
  function.num_params = in.SmallInt();
  function.num_captured = in.SmallInt();
  function.self = in.SmallInt();
  function.num_registers = in.SmallInt();
  function.code.resize(in.Count());
  for (Instruction& instruction : function.code) {
    const int opcode = in.SmallInt();
    if (opcode < 0 || opcode >= kNumOpcodes) in.Fail("an unknown opcode");
    instruction.opcode = static_cast<Opcode>(opcode);
    instruction.dst = in.SmallInt();
    instruction.index = in.SmallInt();
    instruction.target = in.SmallInt();
    instruction.regs = in.Ints();
    instruction.where = in.Text();
  }
  return function;
}

OpCallEntry ReadOpCall(Reader& in) {
  const std::string name(in.Text());
  const Op op = FindOp(name);
  if (!op) in.Fail("an operator that is not known here: '" + name + "'");
  Attrs attrs;
  for (size_t count = in.Count(); count > 0; --count) {
    std::string key(in.Text());
    attrs.Set(std::move(key), ReadAttr(in, 0));
  }
  try {
    return {&op->def(), CompleteAttrs(op->def(), std::move(attrs))};
  } catch (const Error& error) {
    in.Fail(error.message());
  }
}

DynamicSizes ReadSizes(Reader& in) {
  using Step = DynamicSizes::Step;
  DynamicSizes sizes;
  for (size_t count = in.Count(); count > 0; --count) {
    const int64_t kind = in.Int();
    if (kind < 0 || kind > Step::kField) in.Fail("a step of unknown kind");
    Step step{static_cast<Step::Kind>(kind)};
    step.args = in.Ints();
    step.field = in.SmallInt();
    if (step.kind == Step::kCall) {
      OpCallEntry call = ReadOpCall(in);
      step.op = call.op;
      step.attrs = std::move(call.attrs);
    } else if (step.kind == Step::kConstant) {
      const auto [dtype, shape] = ReadTensorType(in);
      if (std::ranges::any_of(shape, [](int64_t size) { return size < 0; })) in.Fail("a constant of negative size");
      step.type = TensorType(shape, dtype);
    }
    sizes.steps.push_back(std::move(step));
  }
  for (size_t count = in.Count(); count > 0; --count) {
    DynamicSizes::Variable variable;
    variable.known = in.Int();
    variable.is_assumed = in.Int() != 0;
    for (size_t places = in.Count(); places > 0; --places) {
      const std::vector<int> numbers = in.Ints();
      if (numbers.size() != 3) in.Fail("a size of no place");
      variable.places.push_back({numbers[0], numbers[1], numbers[2]});
    }
    sizes.variables.push_back(std::move(variable));
  }
  sizes.result = in.SmallInt();
  return sizes;
}

/// Sets `checksums` to those of the tensors.
std::vector<Tensor> ReadTensors(Reader& in, const References& references, std::vector<uint64_t>& checksums) {
  std::vector<Tensor> tensors;
  for (size_t count = in.Count(); count > 0; --count) {
    const References::Constant& constant = references.ReadConstant(in);
    tensors.push_back(constant.tensor);
    checksums.push_back(constant.checksum);
  }
  return tensors;
}

DynamicKernel ReadDynamicKernel(Reader& in, const std::vector<Var>& params, const References& references) {
  DynamicKernel kernel;
  kernel.name = in.Text();
  kernel.toolchain = in.Text();
  for (const Var& param : params) {
    kernel.params.push_back(param->type_annotation());
    const Type& type = kernel.params.back();
    if (type == nullptr || AsTensorType(type) == nullptr) in.Fail("a kernel has a parameter that is no tensor");
  }
  kernel.sizes = ReadSizes(in);
  kernel.num_threads = in.SmallInt();
  kernel.takes_dimensions = in.Int() != 0;
  std::vector<uint64_t> constants, step_constants;
  kernel.constants = ReadTensors(in, references, constants);
  kernel.step_constants = ReadTensors(in, references, step_constants);
  std::vector<uint64_t> signatures;
  for (size_t count = in.Count(); count > 0; --count) {
    DynamicKernel::Code& code = kernel.codes.emplace_back();
    code.rows = in.Int();
    code.loader = in.Text();
    const SealedCode sealed(references.ReadCode(in));
    code.blob.assign(sealed.code.begin(), sealed.code.end());
    if (sealed.signatures.size() != 1) in.Fail("a kernel's code is for several kernels");
    signatures.push_back(sealed.signatures[0]);
    code.constants = in.Ints();
    code.workspace_bytes = in.Int();
  }
  const uint64_t expected = SignatureOf(kernel, constants, step_constants);
  for (const uint64_t signature : signatures) {
    if (signature != expected) {
      in.Fail(fmt::format("kernel '{}' was compiled for other shapes, constants or workspace than the program gives",
                          kernel.name));
    }
  }
  return kernel;
}

std::vector<std::string> NamesIn(const Attrs& attrs, const char* attribute) {
  std::vector<std::string> names;
  const AttrValue* list = attrs.Find(attribute);
  if (list == nullptr || list->as_list() == nullptr) return names;
  for (const AttrValue& name : *list->as_list()) {
    if (name.as_string() != nullptr) names.push_back(*name.as_string());
  }
  return names;
}

/// A function has a register for each parameter, each captured value and each instruction at most, none of which come
/// without bytes in the file: what is allocated for them is no larger than that.
void CheckRegisters(const Program& program, const Reader& in) {
  size_t registers = 0;
  for (const VmFunction& function : program.functions) {
    if (function.num_registers < 0) in.Fail(function.name + " has too few or too many registers");
    registers += static_cast<size_t>(function.num_registers);
  }
  if (registers > in.size()) in.Fail("functions have more registers than a program of this size");
}

/// Finds constructors of `program.types` by the names that the file lists.
std::vector<Constructor> ReadConstructors(Reader& in, const Program& program) {
  std::map<std::string, Constructor, std::less<>> known;
  for (const auto& [name, type] : program.types.types()) {
    for (const Constructor& constructor : type.constructors) known.emplace(constructor->name(), constructor);
  }
  std::vector<Constructor> constructors;
  for (size_t count = in.Count(); count > 0; --count) {
    const std::string_view name = in.Text();
    const auto found = known.find(name);
    if (found == known.end()) in.Fail(fmt::format("a constructor that no type has: '{}'", name));
    constructors.push_back(found->second);
  }
  return constructors;
}

void SetSignature(const Function& signature, VmFunction& function) {
  function.type_params = signature->type_params();
  function.result = signature->result_type();
  function.result_names = NamesIn(signature->attrs(), kResultNames);
  function.param_names = NamesIn(signature->attrs(), kParameterNames);
  function.dimensions = NamedDimensions(signature->attrs(), function.param_names);
  function.strings = StringTensors(signature->attrs());
  function.specialises = signature->attrs().StringOr(kAttrSpecialises, "");
  for (const Var& param : signature->params()) function.params.push_back(param->type_annotation());
}

Program ReadProgram(Reader& in, References references) {
  Program program;
  IRModule signatures;
  try {
    signatures = ParseModule(in.Text(), "signatures", {.infer_types = false});
  } catch (const Error& error) {
    in.Fail("the signatures are damaged: " + error.message());
  }
  for (const auto& [name, type] : signatures.types()) program.types.AddType(type);
  const auto signature = [&](const std::string& name) {
    if (!signatures.Has(name)) in.Fail("the signature of " + name + " is missing");
    return signatures.Lookup(name);
  };
  for (size_t count = in.Count(); count > 0; --count) program.globals.emplace_back(in.Text());
  for (size_t count = in.Count(); count > 0; --count) program.functions.push_back(ReadFunction(in));
  for (size_t count = in.Count(); count > 0; --count) program.constants.push_back(references.ReadConstant(in).tensor);
  for (size_t count = in.Count(); count > 0; --count) program.op_calls.push_back(ReadOpCall(in));
  program.constructors = ReadConstructors(in, program);
  for (size_t count = in.Count(); count > 0; --count) {
    KernelFunction kernel{.name = std::string(in.Text()), .executable = references.NextKernel(in)};
    kernel.result = signature(fmt::format("kernel{}", program.kernels.size()))->result_type();
    program.kernels.push_back(std::move(kernel));
  }
  for (size_t i = 0; i < std::min(program.functions.size(), program.globals.size()); ++i) {
    SetSignature(signature(fmt::format("function{}", i)), program.functions[i]);
  }
  for (size_t count = in.Count(); count > 0; --count) {
    const Function shaped = signature(fmt::format("shaped{}", program.dynamic_kernels.size()));
    program.dynamic_kernels.push_back(ReadDynamicKernel(in, shaped->params(), references));
  }
  if (!in.IsAtEnd() || references.has_kernels_left()) in.Fail("the bytecode goes on behind its end");
  CheckRegisters(program, in);
  return program;
}

/// Throws kUnavailable for a file of a format before that of pieces.
void RefuseFormer(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kFormerMagic) || bytes.size() == kFormerMagic.size()) return;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format(fmt::runtime(kProgramFormat.other_version), static_cast<uint8_t>(bytes[kFormerMagic.size()]),
                          kProgramFormat.version),
              name, fmt::format("{} with this version", kProgramFormat.remedy));
}

/// Sets the nodes of kernels for dynamic shapes; files of earlier versions do not have them.
void ReadNodes(const Json& index, Program& program) {
  if (!index.contains("nodes")) return;
  const auto nodes = index.at("nodes").get<std::vector<std::vector<std::string>>>();
  for (size_t i = 0; i < std::min(nodes.size(), program.dynamic_kernels.size()); ++i) {
    program.dynamic_kernels[i].nodes = nodes[i];
  }
}

Program ReadProgramFile(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name) {
  RefuseFormer({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  const PieceFile file = ReadPieceFile(bytes, kProgramFormat, name);
  ExecutableSource source{PieceReader(file.pieces), std::make_shared<LazyPieces>(), std::move(owner), name};
  try {
    const Piece bytecode = source.reader.Read(file.index.at("bytecode"));
    if (!bytecode.IsRight()) kProgramFormat.Damaged("its instructions have a wrong checksum", name);
    Reader in({reinterpret_cast<const char*>(bytecode.bytes.data()), bytecode.bytes.size()}, name);
    Program program = ReadProgram(in, References(file.index, source));
    ReadNodes(file.index, program);
    program.file = name;
    program.explanation = FindExplanation(file.index, source);
    program.pieces = std::move(source.pieces);
    return program;
  } catch (const Json::exception& error) {
    kProgramFormat.Damaged(error.what(), name);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    if (error.category() == ErrorCategory::kCorrupt) kProgramFormat.Damaged(error.message(), name);
    throw Error(error.category(), error.message(), name, error.hint());
  }
}

}  // namespace

void Program::CheckConstant(const Tensor& constant) const {
  if (pieces == nullptr || pieces->IsRight(constant.raw())) return;
  kProgramFormat.Damaged("a constant has a wrong checksum", file);
}

Executable Executable::Deserialize(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name) {
  Program program = ReadProgramFile(bytes, std::move(owner), name);
  vm::Verify(program, name);
  for (VmFunction& function : program.functions) FindDeadRegisters(&function);
  return Executable(std::make_shared<const Program>(std::move(program)));
}

Executable Executable::Deserialize(std::string_view bytes, const std::string& name) {
  RefuseUnsigned(name);
  // Aligned as a mapped file is, since constants are read where they lie.
  const Tensor copy = Tensor::Empty({static_cast<int64_t>(bytes.size())}, kUInt8);
  if (!bytes.empty()) std::memcpy(copy.raw(), bytes.data(), bytes.size());
  return Deserialize({copy.data<std::byte>(), bytes.size()}, std::make_shared<Tensor>(copy), name);
}

Executable Executable::Load(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  CheckSignature(file->bytes(), path);
  return Deserialize(file->bytes(), file, path.string());
}

void Executable::CheckConstants() const {
  if (program_->pieces == nullptr || program_->pieces->AreRight()) return;
  kProgramFormat.Damaged("a constant has a wrong checksum", program_->file);
}

}  // namespace collage::vm
