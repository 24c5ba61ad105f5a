// deserialize.cc: programs from files. Nothing is believed: counts are held against the bytes that are there, and what
// they refer to is checked by Verify (bytecode.h) before any of it is used.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <span>

#include "bytecode/bytecode.h"
#include "bytecode/file_format.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "runtime/plan/kernel_signature.h"
#include "support/checksum.h"

namespace collage::vm {
namespace {

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

Tensor ReadTensor(Reader& in) {
  auto [dtype, shape] = ReadTensorType(in);
  const std::string_view data = in.Text();
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (!bytes || *bytes != data.size()) in.Fail("a constant of a wrong size");
  Tensor tensor = Tensor::Empty(std::move(shape), dtype);
  std::memcpy(tensor.raw(), data.data(), data.size());
  return tensor;
}

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

KernelFunction ReadKernel(Reader& in, Type result) {
  std::string name(in.Text());
  const std::string_view file = in.Text();
  return {std::move(name), collage::Executable::FromBytes(std::as_bytes(std::span(file)), in.name()),
          std::move(result)};
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

std::vector<Tensor> ReadTensors(Reader& in) {
  std::vector<Tensor> tensors;
  for (size_t count = in.Count(); count > 0; --count) tensors.push_back(ReadTensor(in));
  return tensors;
}

DynamicKernel ReadDynamicKernel(Reader& in, const std::vector<Var>& params) {
  DynamicKernel kernel;
  kernel.name = in.Text();
  for (const Var& param : params) {
    kernel.params.push_back(param->type_annotation());
    const Type& type = kernel.params.back();
    if (type == nullptr || AsTensorType(type) == nullptr) in.Fail("a kernel has a parameter that is no tensor");
  }
  std::vector<uint64_t> signatures;
  kernel.sizes = ReadSizes(in);
  for (size_t count = in.Count(); count > 0; --count) {
    DynamicKernel::Code& code = kernel.codes.emplace_back();
    code.rows = in.Int();
    code.loader = in.Text();
    const SealedCode sealed(std::as_bytes(std::span(in.Text())));
    code.blob.assign(sealed.code.begin(), sealed.code.end());
    if (sealed.signatures.size() != 1) in.Fail("a kernel's code is for several kernels");
    signatures.push_back(sealed.signatures[0]);
    code.constants = in.Ints();
    code.workspace_bytes = in.Int();
  }
  kernel.constants = ReadTensors(in);
  kernel.num_threads = in.SmallInt();
  kernel.step_constants = ReadTensors(in);
  const uint64_t expected = SignatureOf(kernel);
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
  function.specialises = signature->attrs().StringOr(kAttrSpecialises, "");
  for (const Var& param : signature->params()) function.params.push_back(param->type_annotation());
}

Program ReadProgram(Reader& in) {
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
  for (size_t count = in.Count(); count > 0; --count) program.constants.push_back(ReadTensor(in));
  for (size_t count = in.Count(); count > 0; --count) program.op_calls.push_back(ReadOpCall(in));
  program.constructors = ReadConstructors(in, program);
  for (size_t count = in.Count(); count > 0; --count) {
    program.kernels.push_back(
        ReadKernel(in, signature(fmt::format("kernel{}", program.kernels.size()))->result_type()));
  }
  for (size_t i = 0; i < std::min(program.functions.size(), program.globals.size()); ++i) {
    SetSignature(signature(fmt::format("function{}", i)), program.functions[i]);
  }
  for (size_t count = in.Count(); count > 0; --count) {
    const Function shaped = signature(fmt::format("shaped{}", program.dynamic_kernels.size()));
    program.dynamic_kernels.push_back(ReadDynamicKernel(in, shaped->params()));
  }
  if (!in.IsAtEnd()) in.Fail("the bytecode goes on behind its end");
  CheckRegisters(program, in);
  return program;
}

}  // namespace

Executable Executable::Deserialize(std::string_view bytes, const std::string& name) {
  const auto fail = [&](ErrorCategory category, const std::string& message, const char* hint) {
    throw Error(category, message, name, hint);
  };
  constexpr const char* kAgain = "compile the program again";
  if (!bytes.starts_with(kMagic)) fail(ErrorCategory::kCorrupt, "this is no bytecode", "");
  int64_t checksum = 0;
  if (bytes.size() < kHeader.size() + sizeof checksum) {
    fail(ErrorCategory::kCorrupt, "the bytecode is truncated", kAgain);
  }
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  const auto fits = [&](std::string_view all) {
    return Checksum(all.data(), all.size()) == static_cast<uint64_t>(checksum);
  };
  if (!bytes.starts_with(kHeader)) {
    std::string ours(bytes);  // a damaged version is no other version
    ours[kVersionAt] = kHeader[kVersionAt];
    if (fits(ours)) fail(ErrorCategory::kCorrupt, "the checksum does not fit", kAgain);
    fail(ErrorCategory::kUnavailable,
         fmt::format("the bytecode has format {}, this Collage reads {}", static_cast<uint8_t>(bytes[kVersionAt]),
                     static_cast<int>(kHeader[kVersionAt])),
         "compile the program again with this version");
  }
  if (!fits(bytes)) fail(ErrorCategory::kCorrupt, "the checksum does not fit", kAgain);
  Reader in(bytes.substr(kHeader.size()), name);
  Program program;
  try {
    program = ReadProgram(in);
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.category(), error.message(), name, error.hint());
  }
  Verify(program, name);
  for (VmFunction& function : program.functions) FindDeadRegisters(&function);
  return Executable(std::make_shared<const Program>(std::move(program)));
}

}  // namespace collage::vm
