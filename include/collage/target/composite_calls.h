// composite_calls.h: functions of libraries that native kernels call in place of Composite functions (RFC 0.81,
// Appendix B; RFC 10's call_extern): one row for each.
//
// The target "llvm -libs=NAME" switches the table of toolchain NAME on. Its matches are then candidates of native
// kernels as Composite functions, beside the same operators without a label, so that measurement chooses for each. A
// kernel with such a Composite calls the library's function; what surrounds it in the kernel stays loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collage/runtime/tensor.h"
#include "collage/support/result.h"
#include "collage/target/library_functions.h"
#include "collage/target/toolchain.h"

namespace collage {

/// An argument of a call. A value.
struct CallArgument {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kWorkspace, kObject, kInteger, kFloat };
  Kind kind = Kind::kInteger;
  int64_t integer = 0;  ///< a number of kind i32 or i64; which input or constant
  double real = 0;      ///< a number of kind f32 or f64
  std::string request;  ///< for an object

  /// The address of what the Composite is called with: parameter `number` of the request's function.
  static CallArgument Input(int64_t number) { return {Kind::kInput, number, 0, ""}; }
  /// The address of the Composite's result, which the function fills.
  static CallArgument Output() { return {Kind::kOutput, 0, 0, ""}; }
  /// The address of number `number` of `ExternCall::constants`.
  static CallArgument Constant(int64_t number) { return {Kind::kConstant, number, 0, ""}; }
  /// The address of `ExternCall::workspace_bytes` bytes, aligned to 64.
  static CallArgument Workspace() { return {Kind::kWorkspace, 0, 0, ""}; }
  /// The address that module `libcollage_rt_NAME.so` of the table's toolchain returns for `request` when the kernel is
  /// loaded (`collage_find_micro_kernel`, collage/runtime/micro_kernels.h): an object that the library makes once, such
  /// as a plan. It holds for good. One line without '|'.
  static CallArgument Object(std::string request) { return {Kind::kObject, 0, 0, std::move(request)}; }
  /// A number, as the signature's i32 or i64.
  static CallArgument Integer(int64_t value) { return {Kind::kInteger, value, 0, ""}; }
  /// A number, as the signature's f32 or f64.
  static CallArgument Float(double value) { return {Kind::kFloat, 0, value, ""}; }
};

/// A call of a C function that computes a Composite. The kernel makes it once a run, from the thread that runs it;
/// memory that the arguments point to does not overlap. A result of the function is not looked at.
struct ExternCall {
  /// With an empty `library`, the module `libcollage_rt_NAME.so` of the table's toolchain finds the function for the
  /// request `symbol`, as it finds objects.
  LibraryFunction function;
  std::vector<CallArgument> arguments;  ///< one for each of the signature
  /// How inputs and result lie in memory for the function; empty: all plain. The kernel moves what lies otherwise.
  BoundaryLayouts layouts = {};
  std::vector<Tensor> constants = {};  ///< kept in the executable
  size_t workspace_bytes = 0;
};

/// A row of a table: sub-graphs that a pattern matches, and the function for them.
struct CompositeCall {
  /// The label ("acme.dense_relu": Composites of that name go to `call`), the pattern, and its predicate. Several rows
  /// may have one label.
  PatternTableEntry match;
  /// Returns the call for a function whose body calls one Composite of that label, with parameters of the function and
  /// constants (CompositeBody reads it); or why there is none, and the kernel is refused. The request's layouts say how
  /// the values lie in the kernel, where that is known. Asked in a worker process. Equal requests get equal calls.
  std::function<Result<ExternCall>(const PartitionRequest& request)> call;
};

/// Base class of a `Toolchain` whose library has such functions.
class HasCompositeCalls {
 public:
  virtual ~HasCompositeCalls() = default;
  virtual std::vector<CompositeCall> CompositeCalls() const = 0;
};

/// The toolchain's table; empty where it has no such base.
std::vector<CompositeCall> CompositeCallsOf(const Toolchain& toolchain);

/// Attribute "CompositeCalls" of a target kind (target_kind.h): `HasCompositeCalls::CompositeCalls`, for the values of
/// the kind's options. A kind may have it alone: then it compiles nothing by itself, and "llvm -libs=NAME" names it.
using FCompositeCalls = std::function<std::vector<CompositeCall>(const Attrs& options)>;

/// Base class of a `Toolchain` of fusion style kTVMFusion whose kernels make such calls.
class CallsLibraries {
 public:
  virtual ~CallsLibraries() = default;
  /// The registered toolchains whose tables are switched on. The largest matches of each are candidates as Composite
  /// functions, beside the same operators without a label, and are combined by their kind as they are.
  virtual std::vector<const Toolchain*> CalledLibraries() const = 0;
};

/// The toolchain's CalledLibraries; none where it has no such base.
std::vector<const Toolchain*> CalledLibrariesOf(const Toolchain& toolchain);

}  // namespace collage
