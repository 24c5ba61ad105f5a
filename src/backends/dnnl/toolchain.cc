// toolchain.cc: oneDNN's description. What a match is, is decided here; whether oneDNN has a fast implementation of it
// is asked of the library in the worker.
#include "collage/target/toolchain.h"

#include <algorithm>
#include <memory>

#include "backends/dnnl/describe.h"
#include "backends/dnnl/patterns.h"
#include "backends/dnnl/query.h"
#include "collage/support/error.h"
#include "collage/target/composite_calls.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"

namespace collage::dnnl {
namespace {

using dnnl_toolchain::Description;

#ifdef COLLAGE_DNNL_LIBRARY_FILE
constexpr const char* kLibrary = COLLAGE_DNNL_LIBRARY_FILE;
constexpr const char* kVersion = COLLAGE_DNNL_VERSION;
#else
constexpr const char* kLibrary = "";
constexpr const char* kVersion = "";
#endif

/// Convolutions of so few channels read plain images faster than they can be reordered.
constexpr int64_t kImageChannels = 4;

constexpr const char* kHint = "run ./setup, which installs the onednn wheels, and build again";

constexpr const char* kPrecision = "inference_precision";

class DnnlToolchain : public Toolchain, public HasCompositeCalls {
 public:
  explicit DnnlToolchain(DataType precision = kFloat32) : precision_(precision) {}

  std::string name() const override { return "dnnl"; }
  std::string description() const override { return "oneDNN's CPU primitives with bias and post-ops"; }

  Availability Probe() const override {
    if (*kLibrary == '\0') return {false, "", "this build was made without oneDNN", kHint};
    if (const auto missing = WhyModuleMissing({"libcollage_rt_dnnl.so", "libcollage_rt_dnnl_impl.so"})) {
      return {false, "", *missing, kHint};
    }
    if (const auto missing = WhyLibraryMissing(kLibrary)) return {false, "", *missing, kHint};
    return {true, precision_ == kFloat32 ? kVersion : std::string(kVersion) + " bf16", "", ""};
  }

  int priority() const override { return 1; }
  std::string license() const override { return "Apache-2.0"; }
  std::vector<std::string> aliases() const override { return {"onednn", "mkldnn", "mkl-dnn"}; }
  std::vector<PatternTableEntry> PatternTable() const override {
    static const std::vector<PatternTableEntry> table = dnnl_toolchain::Patterns();
    if (precision_ == kFloat32) return table;
    // Matches that no precision changes are left to the toolchain as it is.
    std::vector<PatternTableEntry> narrower = table;
    for (PatternTableEntry& entry : narrower) {
      entry.predicate = [check = entry.predicate, precision = precision_](const Function& composite) -> Result<void> {
        if (check) {
          if (Result<void> answer = check(composite); !answer) return answer;
        }
        const BoundaryLayouts plain = PlainLayouts(composite->params().size(), 1);
        const Result<Description> description = dnnl_toolchain::DescribeIn(precision, composite, plain);
        if (!description) return description.reason();
        return {};
      };
    }
    return narrower;
  }

  /// Rows of single element-wise operators are left out: loops compute these on the way.
  std::vector<CompositeCall> CompositeCalls() const override {
    std::vector<CompositeCall> calls;
    for (PatternTableEntry& entry : PatternTable()) {
      if (entry.is_greedy) calls.push_back({std::move(entry), CallOf});
    }
    return calls;
  }

  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts channels_last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    if (channels_last == plain) return {plain};
    const Result<Description> match = dnnl_toolchain::Describe(function, channels_last);
    if (!match) return {plain};
    std::vector<BoundaryLayouts> choices{channels_last};
    const dnnl_toolchain::Primitive& primitive = match->primitive;
    if (primitive.kind == dnnl_toolchain::Kind::kConv && primitive.src.input >= 0 &&
        primitive.src.shape[1] <= kImageChannels) {
      BoundaryLayouts image = channels_last;
      image.inputs.at(static_cast<size_t>(primitive.src.input)) = Layout::kPlain;
      if (image != channels_last) choices.push_back(image);
    }
    choices.push_back(plain);
    const BoundaryLayouts narrow = Keeping(channels_last, kBFloat16, function, eligible_inputs, eligible_outputs);
    if (precision_ == kBFloat16 && narrow != channels_last) choices.push_back(narrow);
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = dnnl_toolchain::DescribeIn(precision_, request.function, request.layouts);
    if (!description) return description.reason();
    const auto query =
        reinterpret_cast<dnnl_toolchain::QueryFn*>(FindModuleSymbol("libcollage_rt_dnnl.so", "collage_dnnl_query"));
    const Result<dnnl_toolchain::Implementation> found = query(description->primitive, request.num_threads);
    if (!found) return found.reason();
    CompiledPartition partition;
    partition.loader = name();
    const std::string text = dnnl_toolchain::ToJson(description->primitive);
    const auto bytes = std::as_bytes(std::span(text));
    partition.blob.assign(bytes.begin(), bytes.end());
    partition.constants = std::move(description->constants);
    partition.workspace_bytes = found->workspace_bytes;
    partition.source = found->name + "\n" + text + "\n";
    return partition;
  }

  /// A primitive says nothing of its weights, which lie beside it.
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    Result<Description> description = dnnl_toolchain::DescribeIn(precision_, request.function, request.layouts);
    if (!description) return description.reason();
    const std::string text = dnnl_toolchain::ToJson(description->primitive);
    if (!std::ranges::equal(std::as_bytes(std::span(text)), compiled.blob)) {
      return Reason{"the primitive depends on the values of constants", name()};
    }
    return std::move(description->constants);
  }

  std::vector<AttrField> Options() const override {
    return {{kPrecision, AttrKind::kString, "f32",
             "f32; bf16: what products of float32 values are computed in, sums stay float32, and what values between "
             "partitions may be kept as"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& precision = options.String(kPrecision);
    if (precision != "f32" && precision != "bf16") {
      throw Error(ErrorCategory::kInput,
                  "option 'inference_precision' of 'dnnl' is f32 or bf16, got '" + precision + "'");
    }
    return std::make_unique<DnnlToolchain>(precision == "bf16" ? kBFloat16 : kFloat32);
  }

 private:
  /// A call that executes one primitive, with values as they lie where the primitive takes them so.
  static Result<ExternCall> CallOf(const PartitionRequest& request) {
    BoundaryLayouts layouts = request.layouts;
    Result<Description> description = dnnl_toolchain::Describe(request.function, layouts);
    if (!description) {
      layouts = PlainLayouts(layouts.inputs.size(), layouts.outputs.size());
      description = dnnl_toolchain::Describe(request.function, layouts);
    }
    if (!description) return description.reason();
    const auto prepare = reinterpret_cast<dnnl_toolchain::PrepareCallFn*>(
        FindModuleSymbol("libcollage_rt_dnnl.so", "collage_dnnl_prepare_call"));
    const auto prepared = prepare(description->primitive, description->constants, request.num_threads);
    if (!prepared) return prepared.reason();
    ExternCall call;
    call.layouts = layouts;
    call.workspace_bytes = prepared->workspace_bytes;
    call.arguments = {CallArgument::Object(prepared->plan), CallArgument::Output(), CallArgument::Workspace()};
    std::string pointers = "!llvm.ptr, !llvm.ptr, !llvm.ptr";
    for (const auto& operand : prepared->operands) {
      pointers += ", !llvm.ptr";
      if (!operand.constant) {
        call.arguments.push_back(CallArgument::Input(operand.input));
        continue;
      }
      call.arguments.push_back(CallArgument::Constant(static_cast<int64_t>(call.constants.size())));
      call.constants.push_back(*operand.constant);
    }
    call.function = {"", prepared->function, "(" + pointers + ") -> ()", kHint};
    return call;
  }

  DataType precision_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<DnnlToolchain>(); }

}  // namespace collage::dnnl
