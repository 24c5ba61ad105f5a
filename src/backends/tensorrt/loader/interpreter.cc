// interpreter.cc: finds Python's functions, starts an interpreter where there is none, and calls host.py.
#include "backends/tensorrt/loader/interpreter.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <clocale>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/tensorrt/loader/host.h"
#include "collage/support/error.h"
#include "support/programs/find_python.h"
#include "support/programs/run_tool.h"

namespace collage::tensorrt {
namespace {

constexpr const char* kWhere = "tensorrt";
constexpr const char* kHint = "name a Python that has TensorRT's wheels in $COLLAGE_PYTHON";
constexpr const char* kHostName = "collage_tensorrt_host";
constexpr int kStatements = 257;  // Py_file_input

/// Fills the table from `library`. Returns the name of the first function that is missing, empty if none is.
std::string FindFunctions(void* library, PythonFunctions& functions) {
#define COLLAGE_PYTHON_FIND(name, symbol, result, parameters)                      \
  functions.name = reinterpret_cast<result(*) parameters>(dlsym(library, symbol)); \
  if (functions.name == nullptr) return symbol;
  COLLAGE_PYTHON_FUNCTIONS(COLLAGE_PYTHON_FIND)
#undef COLLAGE_PYTHON_FIND
  return "";
}

/// An interpreter's lock.
class Locked {
 public:
  explicit Locked(const PythonFunctions& functions) : functions_(functions), state_(functions.EnsureLock()) {}
  ~Locked() { functions_.ReleaseLock(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PythonFunctions& functions_;
  int state_;
};

/// Starts an interpreter as `program` is one, so that it finds the same modules. The process keeps its locale, and its
/// handlers of signals.
void Start(void* library, const PythonFunctions& functions, const std::string& program) {
  // Left out of the stable interface: absent from some version on.
  using DecodeFn = wchar_t*(const char*, size_t*);
  using SetProgramFn = void(const wchar_t*);
  auto* decode = reinterpret_cast<DecodeFn*>(dlsym(library, "Py_DecodeLocale"));
  auto* set_program = reinterpret_cast<SetProgramFn*>(dlsym(library, "Py_SetProgramName"));
  if (decode != nullptr && set_program != nullptr) set_program(decode(program.c_str(), nullptr));
  const std::string locale = std::setlocale(LC_CTYPE, nullptr);
  functions.InitializeEx(/*with_signals=*/0);
  std::setlocale(LC_CTYPE, locale.c_str());
}

/// The functions of an interpreter that runs, and the folders, as JSON, in which one that was started here is to look
/// for modules, too; empty for others.
std::pair<PythonFunctions, std::string> Open() {
  PythonFunctions functions;
  if (FindFunctions(RTLD_DEFAULT, functions).empty() && functions.IsInitialized() != 0) return {functions, ""};
  const auto found = nlohmann::json::parse(LookInPython("-"));
  if (found.contains("reason")) {
    throw Error(ErrorCategory::kUnavailable, found.at("reason").get<std::string>(), kWhere, kHint);
  }
  const std::string file = found.at("interpreter");
  // Modules of Python find its functions among those of the process.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const std::string missing = library == nullptr ? dlerror() : FindFunctions(library, functions);
  if (!missing.empty()) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("'{}' cannot be used as a Python interpreter: {}", file, missing), kWhere, kHint);
  }
  if (functions.IsInitialized() != 0) return {functions, ""};
  Start(library, functions, found.at("program"));
  functions.SaveThread();  // callers take the lock first
  return {functions, found.at("folders").dump()};
}

ErrorCategory CategoryOf(std::string_view exception) {
  if (exception == "UnavailableError") return ErrorCategory::kUnavailable;
  if (exception == "CorruptError") return ErrorCategory::kCorrupt;
  if (exception == "DeclinedError") return ErrorCategory::kUnsupported;
  return exception == "MemoryError" ? ErrorCategory::kResource : ErrorCategory::kInternal;
}

}  // namespace

bool IsPythonHere() {
  auto* is_initialized = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  return is_initialized != nullptr && is_initialized() != 0;
}

std::string LookInPython(const std::string& module) {
  const std::string python = FindPython();
  const std::string code = fmt::format("{}\nprint()\nprint(look(sys.argv[1], sys.argv[2] == 'here'))", kHostText);
  const ToolResult result = RunTool({python, "-c", code, module, IsPythonHere() ? "here" : "elsewhere"});
  // Modules may print while they are imported; the last line is the answer.
  std::string_view text = result.output;
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::string_view last = text.substr(text.rfind('\n') + 1);
  if (result.status == 0 && nlohmann::json::accept(last)) return std::string(last);
  throw Error(
      ErrorCategory::kUnavailable,
      fmt::format("Python '{}' does not say what it has: {}", python, last.empty() ? "it prints nothing" : last), "",
      kHint);
}

Owned::Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}

Owned& Owned::operator=(Owned&& other) noexcept {
  std::swap(object_, other.object_);
  return *this;
}

Owned::~Owned() {
  if (object_ == nullptr) return;
  const PythonFunctions& functions = Interpreter::Get().functions();
  if (functions.IsInitialized() == 0) return;
  const Locked locked(functions);
  functions.DecRef(object_);
}

Interpreter& Interpreter::Get() {
  // Never destroyed: objects of it may be let go of when the process ends.
  static auto& interpreter = *[] {
    const auto [functions, folders] = Open();
    auto* const opened = new Interpreter(functions);
    if (folders.empty()) return opened;
    const Locked locked(functions);
    functions.DecRef(opened->CallHost("become", {folders}));
    return opened;
  }();
  return interpreter;
}

Interpreter::Interpreter(const PythonFunctions& functions) : functions_(functions) {
  const Locked locked(functions_);
  Object* code = Checked(functions_.Compile(kHostText, "host.py of Collage's toolchain tensorrt", kStatements));
  host_ = functions_.ExecuteModule(kHostName, code);
  functions_.DecRef(code);
  Checked(host_);
}

Owned Interpreter::Call(const char* function, const std::vector<Argument>& arguments) const {
  const Locked locked(functions_);
  return Owned(CallHost(function, arguments));
}

Owned Interpreter::Call(const Owned& callable, const std::vector<Argument>& arguments) const {
  const Locked locked(functions_);
  return Owned(CallObject(callable.get(), arguments));
}

Object* Interpreter::CallHost(const char* function, const std::vector<Argument>& arguments) const {
  Object* callable = Checked(functions_.GetAttribute(host_, function));
  try {
    Object* result = CallObject(callable, arguments);
    functions_.DecRef(callable);
    return result;
  } catch (...) {
    functions_.DecRef(callable);
    throw;
  }
}

Object* Interpreter::CallObject(Object* callable, const std::vector<Argument>& arguments) const {
  Object* tuple = TupleOf(arguments);
  Object* result = functions_.Call(callable, tuple);
  functions_.DecRef(tuple);
  return Checked(result);
}

Owned Interpreter::Attribute(const Owned& object, const char* name) const {
  const Locked locked(functions_);
  return Owned(Checked(functions_.GetAttribute(object.get(), name)));
}

std::string Interpreter::Bytes(const Owned& bytes) const {
  const Locked locked(functions_);
  char* data = nullptr;
  int64_t size = 0;
  if (functions_.ReadBytes(bytes.get(), &data, &size) != 0) Raise();
  return {data, static_cast<size_t>(size)};
}

Object* Interpreter::TupleOf(const std::vector<Argument>& arguments) const {
  Object* tuple = Checked(functions_.NewTuple(static_cast<int64_t>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i) {
    Object* object = nullptr;
    if (const auto* bytes = std::get_if<AsBytes>(&arguments[i])) {
      object = functions_.NewBytes(bytes->bytes.data(), static_cast<int64_t>(bytes->bytes.size()));
    } else if (const auto* text = std::get_if<std::string_view>(&arguments[i])) {
      object = functions_.NewText(text->data(), static_cast<int64_t>(text->size()));
    } else {
      object = functions_.NewNumber(std::get<uint64_t>(arguments[i]));
    }
    if (object == nullptr) {
      functions_.DecRef(tuple);
      Raise();
    }
    functions_.SetItem(tuple, static_cast<int64_t>(i), object);
  }
  return tuple;
}

Object* Interpreter::Checked(Object* object) const {
  if (object == nullptr) Raise();
  return object;
}

std::string Interpreter::TextOf(Object* object) const {
  Object* text = object == nullptr ? nullptr : functions_.ToText(object);
  int64_t size = 0;
  const char* characters = text == nullptr ? nullptr : functions_.ReadText(text, &size);
  std::string copy = characters == nullptr ? "" : std::string(characters, static_cast<size_t>(size));
  functions_.ClearError();
  functions_.DecRef(text);
  return copy;
}

void Interpreter::Raise() const {
  Object *type = nullptr, *value = nullptr, *trace = nullptr;
  functions_.FetchError(&type, &value, &trace);
  functions_.NormalizeError(&type, &value, &trace);
  Object* name = type == nullptr ? nullptr : functions_.GetAttribute(type, "__name__");
  const std::string exception = TextOf(name);
  const std::string text = TextOf(value);
  for (Object* object : {name, type, value, trace}) functions_.DecRef(object);
  const ErrorCategory category = CategoryOf(exception);
  const bool is_ours = category != ErrorCategory::kInternal && category != ErrorCategory::kResource;
  throw Error(category, is_ours ? text : fmt::format("Python raised {}: {}", exception, text), kWhere,
              category == ErrorCategory::kUnavailable ? kHint : "");
}

}  // namespace collage::tensorrt
