// interpreter.h: the Python interpreter of this process by a table of its functions, those of Python's stable
// interface, with declarations of our own: nothing of Python is needed to build, and any Python from 3.10 on will do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace collage::tensorrt {

/// PyObject.
using Object = struct PythonObjectLayout;

// Name here, name in the library, result, parameters.
#define COLLAGE_PYTHON_FUNCTIONS(F)                                                                       \
  F(IsInitialized, "Py_IsInitialized", int, ())                                                           \
  F(InitializeEx, "Py_InitializeEx", void, (int with_signals))                                            \
  F(SaveThread, "PyEval_SaveThread", void*, ())                                                           \
  F(EnsureLock, "PyGILState_Ensure", int, ())                                                             \
  F(ReleaseLock, "PyGILState_Release", void, (int state))                                                 \
  F(Compile, "Py_CompileString", Object*, (const char* text, const char* file, int kind))                 \
  F(ExecuteModule, "PyImport_ExecCodeModule", Object*, (const char* name, Object* code))                  \
  F(NewBytes, "PyBytes_FromStringAndSize", Object*, (const char* bytes, int64_t size))                    \
  F(ReadBytes, "PyBytes_AsStringAndSize", int, (Object * bytes, char** data, int64_t* size))              \
  F(NewText, "PyUnicode_FromStringAndSize", Object*, (const char* text, int64_t size))                    \
  F(ReadText, "PyUnicode_AsUTF8AndSize", const char*, (Object * text, int64_t * size))                    \
  F(NewNumber, "PyLong_FromUnsignedLongLong", Object*, (unsigned long long number))                       \
  F(NewTuple, "PyTuple_New", Object*, (int64_t size))                                                     \
  F(SetItem, "PyTuple_SetItem", int, (Object * tuple, int64_t place, Object * owned))                     \
  F(Call, "PyObject_CallObject", Object*, (Object * callable, Object * arguments))                        \
  F(GetAttribute, "PyObject_GetAttrString", Object*, (Object * object, const char* name))                 \
  F(ToText, "PyObject_Str", Object*, (Object * object))                                                   \
  F(FetchError, "PyErr_Fetch", void, (Object * *type, Object * *value, Object * *trace))                  \
  F(NormalizeError, "PyErr_NormalizeException", void, (Object * *type, Object * *value, Object * *trace)) \
  F(ClearError, "PyErr_Clear", void, ())                                                                  \
  F(DecRef, "Py_DecRef", void, (Object * object))

struct PythonFunctions {
#define COLLAGE_PYTHON_MEMBER(name, symbol, result, parameters) result(*name) parameters = nullptr;
  COLLAGE_PYTHON_FUNCTIONS(COLLAGE_PYTHON_MEMBER)
#undef COLLAGE_PYTHON_MEMBER
};

/// A Python object, or none. It is let go of under the interpreter's lock, unless the interpreter has ended.
class Owned {
 public:
  Owned() = default;
  explicit Owned(Object* object) : object_(object) {}
  Owned(Owned&& other) noexcept;
  Owned& operator=(Owned&& other) noexcept;
  ~Owned();

  Object* get() const { return object_; }

 private:
  Object* object_ = nullptr;
};

/// Bytes, a text or a number that Python is given.
struct AsBytes {
  explicit AsBytes(std::string_view all) : bytes(all) {}
  std::string_view bytes;
};
using Argument = std::variant<AsBytes, std::string_view, uint64_t>;

/// The interpreter, with the functions of host.py. Thread-safe: whatever runs in it holds its lock. All functions throw
/// Error with what Python says: kUnavailable, kCorrupt and kUnsupported for the exceptions of host.py that are called
/// so, kResource where memory is missing, kInternal for others.
class Interpreter {
 public:
  /// The interpreter that runs this process, or that has been started in it; else one that is started from the shared
  /// library of FindPython's. It is never ended. Throws kUnavailable where there is none.
  static Interpreter& Get();

  /// Calls a function of host.py, or what else can be called there.
  Owned Call(const char* function, const std::vector<Argument>& arguments) const;
  /// Calls an object.
  Owned Call(const Owned& callable, const std::vector<Argument>& arguments) const;
  /// An object's attribute, such as a bound method.
  Owned Attribute(const Owned& object, const char* name) const;
  std::string Bytes(const Owned& bytes) const;

  const PythonFunctions& functions() const { return functions_; }

 private:
  explicit Interpreter(const PythonFunctions& functions);
  /// Throws what Python raised.
  [[noreturn]] void Raise() const;
  Object* Checked(Object* object) const;
  std::string TextOf(Object* object) const;
  // The caller holds the lock, and owns the result.
  Object* CallHost(const char* function, const std::vector<Argument>& arguments) const;
  Object* CallObject(Object* callable, const std::vector<Argument>& arguments) const;
  Object* TupleOf(const std::vector<Argument>& arguments) const;

  PythonFunctions functions_;
  Object* host_ = nullptr;  ///< the module
};

/// Whether Python runs in this process, so that no other interpreter is started.
bool IsPythonHere();

/// Runs host.py's `look` in FindPython's Python, in a process of its own. Returns the JSON that it prints. Throws
/// kUnavailable where there is no such Python. `module` is the wanted one; "-" imports none.
std::string LookInPython(const std::string& module);

}  // namespace collage::tensorrt
