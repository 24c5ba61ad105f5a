// kind.cc: a kind of target whose hook RelayToTIR calls a vendor's C library, as TVM's cmsisnn does.
#include <collage/ir/op.h>
#include <collage/target/composite.h>
#include <collage/target/composite_calls.h>
#include <collage/target/library_functions.h>
#include <collage/target/target_kind.h>

#include <cmath>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <sstream>
#include <vector>

namespace {

using namespace collage;  // NOLINT: this file speaks of little else

constexpr const char* kName = "cmsisnn-like";

/// The vendor's function, as vendor.h declares it.
LibraryFunction SoftmaxFunction(const Attrs& options) {
  return {.library = "libvendor_nn.so",
          .symbol = options.Bool("fast") ? "vnn_softmax_fast_f32" : "vnn_softmax_f32",
          .signature = "(!llvm.ptr, i32, i32, f32, !llvm.ptr) -> ()",
          .hint = "build examples/target_kinds/cmsisnn_like"};
}

/// Arguments of that function.
struct ScaledSoftmax {
  int64_t num_rows = 1;
  int64_t row_size = 1;
  float scale = 1;
};

/// Reads a match of one of the patterns below; a `Reason` where the vendor's function does something else.
Result<ScaledSoftmax> Describe(const Function& function) {
  const CompositeBody body(function);
  const CallNode& softmax = *As<CallNode>(body.root());
  const TensorTypeNode& type = *AsTensorType(softmax.checked_type());
  if (type.dtype() != kFloat32) return Reason{"works on float32, got " + type.dtype().ToString(), kName};
  const int64_t axis = softmax.attrs().Int("axis");
  if (type.rank() == 0 || (axis != -1 && axis != type.rank() - 1)) return Reason{"works along the last axis", kName};
  const Shape shape = type.static_shape();
  ScaledSoftmax found{1, shape.back(), 1};
  for (size_t i = 0; i + 1 < shape.size(); ++i) found.num_rows *= shape[i];
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (found.num_rows > kMost || found.row_size > kMost) return Reason{"counts rows and columns as int32", kName};
  const auto* multiply = As<CallNode>(body.Outside(softmax.args()[0]));
  if (multiply == nullptr || multiply->op() == nullptr) return found;
  for (const Expr& argument : multiply->args()) {
    const auto* constant = As<ConstantNode>(body.Outside(argument));
    if (constant == nullptr) continue;
    if (!constant->is_scalar()) return Reason{"scales all elements by one number", kName};
    found.scale = static_cast<float>(constant->value().At(0));
    if (!std::isfinite(found.scale)) return Reason{"scales by a finite number", kName};
  }
  return found;
}

Result<void> Check(const Function& composite) {
  const Result<ScaledSoftmax> found = Describe(composite);
  if (!found.ok()) return found.reason();
  return {};
}

std::vector<PatternTableEntry> Patterns(const Attrs&) {
  return {
      {"cmsisnn-like.scaled_softmax", "nn.softmax(multiply(*, const))", Check},
      {"cmsisnn-like.softmax", "nn.softmax(*)", Check},
  };
}

/// Writes one call of the vendor's function: RFC 10's call_extern.
Result<LoweredPartition> RelayToTIR(const PartitionRequest& request, const Attrs& options) {
  const Result<ScaledSoftmax> found = Describe(request.function);
  if (!found.ok()) return found.reason();
  const LibraryFunction function = SoftmaxFunction(options);
  std::ostringstream mlir;
  mlir << DeclareFunctions({&function, 1});
  mlir << std::scientific << std::setprecision(9) << "func.func @collage_kernel(%buffers: !llvm.ptr) {\n"
       << "  %output_slot = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
       << "  %input = llvm.load %buffers : !llvm.ptr -> !llvm.ptr\n"
       << "  %output = llvm.load %output_slot : !llvm.ptr -> !llvm.ptr\n"
       << "  %num_rows = arith.constant " << found->num_rows << " : i32\n"
       << "  %row_size = arith.constant " << found->row_size << " : i32\n"
       << "  %scale = arith.constant " << found->scale << " : f32\n"
       << "  func.call @" << function.symbol
       << "(%input, %num_rows, %row_size, %scale, %output) : " << function.signature << "\n"
       << "  return\n}\n";
  return LoweredPartition{.mlir = mlir.str(), .constants = {}};
}

/// Rows for targets `llvm -libs=cmsisnn-like`: native kernels call the same function and compute what surrounds it.
std::vector<CompositeCall> CompositeCalls(const Attrs& options) {
  std::vector<CompositeCall> calls;
  for (const PatternTableEntry& row : Patterns(options)) {
    calls.push_back({row, [options](const PartitionRequest& request) -> Result<ExternCall> {
                       const Result<ScaledSoftmax> found = Describe(request.function);
                       if (!found.ok()) return found.reason();
                       return ExternCall{.function = SoftmaxFunction(options),
                                         .arguments = {CallArgument::Input(0), CallArgument::Integer(found->num_rows),
                                                       CallArgument::Integer(found->row_size),
                                                       CallArgument::Float(found->scale), CallArgument::Output()}};
                     }});
  }
  return calls;
}

/// The library is looked for in another process: the one that searches holds no vendor's code.
Availability Probe() {
  const LibraryFunction functions[] = {SoftmaxFunction(Attrs({{"fast", false}})),
                                       SoftmaxFunction(Attrs({{"fast", true}}))};
  if (const auto missing = WhyFunctionsMissing(functions)) {
    return {false, "", *missing, functions[0].hint + ", and add its folder to $COLLAGE_LIBRARY_PATH"};
  }
  return {true, "1.0", "", ""};
}

TargetKind MakeKind() {
  return TargetKind(kName, kDLCPU, "softmax by a vendor's C library")
      .add_attr_option({"fast", AttrKind::kBool, false, "whether a polynomial replaces the exponential function"})
      .set_attr<FTVMRelayToTIR>("RelayToTIR", RelayToTIR)
      .set_attr<FPatternTable>("PatternTable", Patterns)
      .set_attr<FCompositeCalls>("CompositeCalls", CompositeCalls)
      .set_attr<FProbe>("Probe", Probe)
      .set_attr<std::string>("License", "Apache-2.0");
}

}  // namespace

COLLAGE_TARGET_KIND_MODULE(MakeKind)
