// serialize.cc: programs as files. Little-endian integers of 64 bits, texts and blobs with their length before them, a
// checksum at the end; types travel as Relay text, in the signatures of functions.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bytecode/bytecode.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "support/file.h"
#include "support/hash.h"

namespace collage::vm {
namespace {

constexpr std::string_view kHeader{"CLGVM\0\0\1", 8};  // the last byte is the version
/// With kernels of unknown shapes behind those of known ones.
constexpr std::string_view kShapedHeader{"CLGVM\0\0\2", 8};
constexpr const char* kResultNames = "output_names";

// ---- writing ----

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
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

void Write(Writer& out, const AttrValue& value) {
  if (const bool* b = value.as_bool()) {
    out.Int(1);
    out.Int(*b ? 1 : 0);
  } else if (const int64_t* i = value.as_int()) {
    out.Int(2);
    out.Int(*i);
  } else if (const double* d = value.as_double()) {
    out.Int(3);
    int64_t bits = 0;
    std::memcpy(&bits, d, sizeof bits);
    out.Int(bits);
  } else if (const std::string* s = value.as_string()) {
    out.Int(4);
    out.Text(*s);
  } else if (const AttrValue::List* list = value.as_list()) {
    out.Int(5);
    out.Int(static_cast<int64_t>(list->size()));
    for (const AttrValue& item : *list) Write(out, item);
  } else {
    out.Int(0);
  }
}

void Write(Writer& out, const Tensor& tensor) {
  out.Text(tensor.dtype().ToString());
  out.Int(tensor.rank());
  for (int64_t size : tensor.shape()) out.Int(size);
  out.Text({tensor.data<char>(), tensor.size_bytes()});
}

void Write(Writer& out, const OpDef& op, const Attrs& attrs) {
  out.Text(op.name);
  out.Int(static_cast<int64_t>(attrs.size()));
  for (const auto& [name, value] : attrs) {
    out.Text(name);
    Write(out, value);
  }
}

void Write(Writer& out, const UnknownSizes& sizes) {
  using Step = UnknownSizes::Step;
  out.Int(static_cast<int64_t>(sizes.steps.size()));
  for (const Step& step : sizes.steps) {
    out.Int(step.kind);
    out.Ints(step.args);
    out.Int(step.field);
    if (step.kind == Step::kCall) Write(out, *step.op, step.attrs);
    if (step.kind != Step::kConstant) continue;
    const TensorTypeNode& tensor = *AsTensorType(step.type);
    out.Text(tensor.dtype().ToString());
    out.Int(tensor.rank());
    for (const int64_t size : tensor.static_shape()) out.Int(size);
  }
  out.Int(static_cast<int64_t>(sizes.variables.size()));
  for (const UnknownSizes::Variable& variable : sizes.variables) {
    out.Int(variable.known);
    out.Int(variable.is_assumed ? 1 : 0);
    out.Int(static_cast<int64_t>(variable.places.size()));
    for (const UnknownSizes::Place& place : variable.places) out.Ints({place.value, place.field, place.dim});
  }
  out.Int(sizes.result);
}

void Write(Writer& out, const std::vector<Tensor>& tensors) {
  out.Int(static_cast<int64_t>(tensors.size()));
  for (const Tensor& tensor : tensors) Write(out, tensor);
}

void Write(Writer& out, const ShapedKernel& kernel) {
  out.Text(kernel.name);
  Write(out, kernel.sizes);
  out.Int(static_cast<int64_t>(kernel.codes.size()));
  for (const ShapedKernel::Code& code : kernel.codes) {
    out.Int(code.rows);
    out.Text(code.loader);
    out.Text({reinterpret_cast<const char*>(code.blob.data()), code.blob.size()});
    out.Ints(code.constants);
    out.Int(code.workspace_bytes);
  }
  Write(out, kernel.constants);
  out.Int(kernel.num_threads);
  Write(out, kernel.step_constants);
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

/// Data types, and functions that have the parameters and results of the globals and the results of the kernels.
std::string Signatures(const Program& program) {
  IRModule module = program.types;
  for (size_t i = 0; i < program.globals.size(); ++i) {
    const VmFunction& function = program.functions[i];
    Attrs attrs;
    if (!function.result_names.empty()) {
      attrs.Set(kResultNames, AttrValue::List(function.result_names.begin(), function.result_names.end()));
    }
    module.Set(fmt::format("function{}", i), MakeFunction(ParametersOf(function), MakeTuple({}), function.result,
                                                          std::move(attrs), function.type_params));
  }
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    module.Set(fmt::format("kernel{}", i), MakeFunction({}, MakeTuple({}), program.kernels[i].result));
  }
  return PrintModule(module);
}

/// A file's name that nobody else uses, and its removal.
class TemporaryFile {
 public:
  TemporaryFile() {
    static std::atomic<int> next = 0;
    path_ = std::filesystem::temp_directory_path() / fmt::format("collage-vm-{}-{}.clg", getpid(), next++);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// ---- reading ----

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

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
  /// Of things that take at least eight bytes each.
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
  switch (in.Int()) {
    case 0: return {};
    case 1: return in.Int() != 0;
    case 2: return in.Int();
    case 3: {
      const int64_t bits = in.Int();
      double value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    case 4: return std::string(in.Text());
    case 5: {
      AttrValue::List list;
      for (size_t count = in.Count(); count > 0; --count) list.push_back(ReadAttr(in, depth + 1));
      return list;
    }
    default: in.Fail("an attribute of unknown kind");
  }
}

Tensor ReadTensor(Reader& in) {
  const std::string dtype(in.Text());
  if (!DataType::IsName(dtype)) in.Fail("a constant of unknown dtype '" + dtype + "'");
  Shape shape(in.Count());
  for (int64_t& size : shape) size = in.Int();
  const std::string_view data = in.Text();
  const std::optional<size_t> bytes = CheckedBytes(shape, DataType::FromString(dtype));
  if (!bytes || *bytes != data.size()) in.Fail("a constant of a wrong size");
  Tensor tensor = Tensor::Empty(std::move(shape), DataType::FromString(dtype));
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

Constructor FindConstructor(const IRModule& types, std::string_view name, const Reader& in) {
  for (const auto& [type_name, type] : types.types()) {
    for (const Constructor& constructor : type.constructors) {
      if (constructor->name() == name) return constructor;
    }
  }
  in.Fail(fmt::format("a constructor that no type has: '{}'", name));
}

KernelFunction ReadKernel(Reader& in, Type result) {
  std::string name(in.Text());
  const std::string_view file = in.Text();
  const TemporaryFile temporary;
  AtomicFile out(temporary.path());
  out.Write(file);
  out.Commit();
  return {std::move(name), collage::Executable::Load(temporary.path()), std::move(result)};
}

UnknownSizes ReadSizes(Reader& in) {
  using Step = UnknownSizes::Step;
  UnknownSizes sizes;
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
      const std::string dtype(in.Text());
      if (!DataType::IsName(dtype)) in.Fail("a constant of unknown dtype '" + dtype + "'");
      Shape shape(in.Count());
      for (int64_t& size : shape) {
        size = in.Int();
        if (size < 0) in.Fail("a constant of negative size");
      }
      step.type = TensorType(shape, DataType::FromString(dtype));
    }
    sizes.steps.push_back(std::move(step));
  }
  for (size_t count = in.Count(); count > 0; --count) {
    UnknownSizes::Variable variable;
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

ShapedKernel ReadShapedKernel(Reader& in) {
  ShapedKernel kernel;
  kernel.name = in.Text();
  kernel.sizes = ReadSizes(in);
  for (size_t count = in.Count(); count > 0; --count) {
    ShapedKernel::Code& code = kernel.codes.emplace_back();
    code.rows = in.Int();
    code.loader = in.Text();
    const std::string_view blob = in.Text();
    const auto* bytes = reinterpret_cast<const std::byte*>(blob.data());
    code.blob.assign(bytes, bytes + blob.size());
    code.constants = in.Ints();
    code.workspace_bytes = in.Int();
  }
  kernel.constants = ReadTensors(in);
  kernel.num_threads = in.SmallInt();
  kernel.step_constants = ReadTensors(in);
  return kernel;
}

std::vector<std::string> NamesIn(const Attrs& attrs) {
  std::vector<std::string> names;
  const AttrValue* list = attrs.Find(kResultNames);
  if (list == nullptr || list->as_list() == nullptr) return names;
  for (const AttrValue& name : *list->as_list()) {
    if (name.as_string() != nullptr) names.push_back(*name.as_string());
  }
  return names;
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
  for (size_t count = in.Count(); count > 0; --count) {
    program.constructors.push_back(FindConstructor(program.types, in.Text(), in));
  }
  for (size_t count = in.Count(); count > 0; --count) {
    program.kernels.push_back(
        ReadKernel(in, signature(fmt::format("kernel{}", program.kernels.size()))->result_type()));
  }
  for (size_t i = 0; i < program.functions.size(); ++i) {
    VmFunction& function = program.functions[i];
    if (i >= program.globals.size()) {
      if (function.num_params >= 0 && function.num_params < (1 << 20)) {
        function.params.resize(static_cast<size_t>(function.num_params));
      }
      continue;
    }
    const Function function_signature = signature(fmt::format("function{}", i));
    function.type_params = function_signature->type_params();
    function.result = function_signature->result_type();
    function.result_names = NamesIn(function_signature->attrs());
    for (const Var& param : function_signature->params()) {
      function.params.push_back(param->type_annotation());
      function.param_names.push_back(param->name());
    }
  }
  return program;
}

}  // namespace

std::string Executable::Serialize() const {
  const Program& program = *program_;
  Writer out;
  out.bytes() = program.shaped_kernels.empty() ? kHeader : kShapedHeader;
  out.Text(Signatures(program));
  out.Int(static_cast<int64_t>(program.globals.size()));
  for (const std::string& name : program.globals) out.Text(name);
  out.Int(static_cast<int64_t>(program.functions.size()));
  for (const VmFunction& function : program.functions) Write(out, function);
  out.Int(static_cast<int64_t>(program.constants.size()));
  for (const Tensor& constant : program.constants) Write(out, constant);
  out.Int(static_cast<int64_t>(program.op_calls.size()));
  for (const OpCallEntry& call : program.op_calls) Write(out, *call.op, call.attrs);
  out.Int(static_cast<int64_t>(program.constructors.size()));
  for (const Constructor& constructor : program.constructors) out.Text(constructor->name());
  out.Int(static_cast<int64_t>(program.kernels.size()));
  for (const KernelFunction& kernel : program.kernels) {
    const TemporaryFile temporary;
    kernel.executable.Save(temporary.path());
    out.Text(kernel.name);
    out.Text(ReadFile(temporary.path()));
  }
  if (!program.shaped_kernels.empty()) {
    out.Int(static_cast<int64_t>(program.shaped_kernels.size()));
    for (const ShapedKernel& kernel : program.shaped_kernels) Write(out, kernel);
  }
  out.Int(Crc32(out.bytes().data(), out.bytes().size()));
  return std::move(out.bytes());
}

Executable Executable::Deserialize(std::string_view bytes, const std::string& name) {
  const auto fail = [&](const std::string& message) { throw Error(ErrorCategory::kCorrupt, message, name); };
  if (!bytes.starts_with(kHeader.substr(0, 5))) fail("this is no bytecode");
  const bool has_shaped = bytes.starts_with(kShapedHeader);
  if ((!bytes.starts_with(kHeader) && !has_shaped) || bytes.size() < kHeader.size() + 8) {
    fail("bytecode of another version");
  }
  int64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (checksum != Crc32(bytes.data(), bytes.size())) fail("the checksum does not fit");
  Reader in(bytes.substr(kHeader.size()), name);
  Program program = ReadProgram(in);
  for (size_t count = has_shaped ? in.Count() : 0; count > 0; --count) {
    program.shaped_kernels.push_back(ReadShapedKernel(in));
  }
  Verify(program, name);
  for (VmFunction& function : program.functions) FindDeadRegisters(&function);
  return Executable(std::make_shared<const Program>(std::move(program)));
}

void Executable::Save(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.Write(Serialize());
  file.Commit();
}

Executable Executable::Load(const std::filesystem::path& path) { return Deserialize(ReadFile(path), path.string()); }

std::vector<Var> Executable::Parameters(std::string_view function) const {
  for (size_t i = 0; i < program_->globals.size(); ++i) {
    if (program_->globals[i] == function) return ParametersOf(program_->functions[i]);
  }
  throw Error(ErrorCategory::kInput, fmt::format("there is no function '@{}'", function));
}

bool Executable::IsBytecode(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  char begin[kHeader.size()];
  stream.read(begin, sizeof begin);
  return std::string_view(begin, static_cast<size_t>(stream.gcount())).starts_with(kHeader.substr(0, 5));
}

std::string Executable::Disassemble() const { return vm::Disassemble(*program_); }

}  // namespace collage::vm
