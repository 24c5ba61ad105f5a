// toolchain.cc: the native toolchain's description: kernels generated through MLIR and LLVM. It mimics FuseOps: an
// anchor and the element-wise operators behind it, or chains of operators that move and compute element by element.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "backends/native/canonicalise.h"
#include "backends/native/description/narrowing.h"
#include "backends/native/description/options.h"
#include "backends/native/linker.h"
#include "backends/native/operators.h"
#include "backends/native/proposals.h"
#include "backends/native/quantised_patterns.h"
#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/fusion_patterns.h"
#include "collage/target/toolchain_module.h"
#include "support/argument_text.h"
#include "support/dynamic_library.h"

namespace collage::native {
namespace {

using RelayToTIRFn = void(const PartitionRequest& request, const NativeOptions& options,
                          Result<LoweredPartition>& result);
using SchedulesFn = void(const PartitionRequest& request, const NativeOptions& options,
                         Result<std::vector<std::string>>& result);
using TIRToRuntimeFn = void(const LoweredPartition& lowered, const NativeOptions& options,
                            Result<CompiledPartition>& result);

using ListingsFn = void(const CompiledPartition& compiled, const NativeOptions& options, std::vector<Listing>& result);

class Native : public Toolchain,
               public HasFusionPatterns,
               public CallsLibraries,
               public HasBundledFiles,
               public CompilesElsewhere {
 public:
  explicit Native(const NativeOptions& options = {}) : options_(options) {}

  std::string name() const override { return "native"; }
  std::string description() const override { return "kernels generated through MLIR and LLVM"; }
  int priority() const override { return 0; }
  std::string license() const override { return "Apache-2.0"; }
  std::vector<std::string> aliases() const override { return {"llvm", "mlir", "collage", "cpu"}; }
  bool is_native() const override { return true; }
  FusionStyle fusion_style() const override { return FusionStyle::kTVMFusion; }
  int max_depth() const override { return 8; }

  Availability Probe() const override {
    Availability result;
    result.version = COLLAGE_NATIVE_VERSION;
    result.available = !result.version.empty();
    // Options that change the code change the times.
    if (result.available && options_.is_exact) result.version += " exact";
    if (result.available && options_.winograd_tile != 0) {
      result.version += " winograd " + std::to_string(options_.winograd_tile);
    }
    if (const std::string schedule = options_.schedule.ToString(); result.available && !schedule.empty()) {
      result.version += " " + schedule;
    }
    if (result.available && options_.narrows_factors()) result.version += " " + options_.factors.ToString();
    if (result.available && options_.in_tf32) result.version += " tf32";
    if (result.available && options_.rounds_data) result.version += " int8";
    if (result.available && options_.keeps_float16) result.version += " f16";
    for (const CalledLibrary& library : options_.libraries) {
      if (result.available) result.version += " " + library.name + " " + library.version;
    }
    if (!result.available) {
      result.reason = "this build was made without MLIR";
      result.hint = "run ./setup and build again";
    } else if (const auto missing = WhyModuleMissing({"libcollage_native_compiler.so"})) {
      return {false, "", *missing, "install Collage again"};
    }
    return result;
  }
  bool IsForThisProcessor() const override { return options_.cpu.empty() && options_.triple.empty(); }
  Availability ProbeCompiler() const override { return Probe(); }
  /// Code says itself which instructions it needs (runtime/native_loader.h).
  Availability ProbeRunner() const override { return {true, "", "", ""}; }
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string&) const override {
    return compiler;
  }

  Result<void> SupportsCall(const CallNode& call) const override { return IsLowered(call); }
  Result<void> SupportsDynamicShapes(const CallNode& call) const override {
    // Tiles of libraries, products of pairs and narrow results are made for sizes that are known.
    if (options_.is_lower() || options_.calls_for_tiles())
      return Reason{"kernels in lower precision or with tiles of libraries need to know all shapes", name()};
    return IsLoweredDynamic(call);
  }
  bool only_keeps_precision() const override { return options_.keeps_float16; }
  std::vector<std::string> FusionPatterns() const override { return QuantisedPatterns(); }
  std::vector<const Toolchain*> CalledLibraries() const override {
    std::vector<const Toolchain*> called;
    for (const CalledLibrary& library : options_.libraries) {
      if (!library.calls.empty()) called.push_back(library.toolchain);
    }
    return called;
  }
  /// The linker, or the one that this bundle has.
  std::vector<BundledFile> BundledFiles() const override {
    if (const auto bundled = FindBesideModules(kBundledLinker)) return {{bundled->string(), kBundledLinker}};
    std::error_code ignored;
    if (std::filesystem::exists(COLLAGE_LD, ignored)) return {{COLLAGE_LD, kBundledLinker}};
    throw Error(ErrorCategory::kUnavailable, "the linker of kernels, '" COLLAGE_LD "', is not here", "",
                "apt-get install binutils");
  }
  bool proposes() const override { return true; }
  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    return ProposalsIn(function, *this);
  }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    bool has_convolution = false;
    bool has_narrowed = false;
    PostOrder(function->body(), [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      if (call == nullptr || call->op() == nullptr) return;
      has_convolution = has_convolution || IsConvolution(call->op()->name);
      has_narrowed = has_narrowed || NarrowingOf(*call, options_) != Narrowing::kNone;
    });
    std::vector<BoundaryLayouts> choices{last};
    if (has_convolution) {
      // Data is read one element at a time: it may lie in any order.
      choices.push_back(last);
      std::fill(choices.back().inputs.begin(), choices.back().inputs.end(), Layout::kPlain);
    } else {
      choices.push_back(plain);
    }
    if (choices.front() == choices.back()) choices.pop_back();
    // A vector of channels would be mostly empty.
    if (choices.size() > 1 && HasFewChannels(*function)) std::swap(choices.front(), choices.back());
    if (!options_.is_lower()) return choices;
    // A partition that a lower precision does not change is left to the full one, unless it reads or writes less.
    if (!has_narrowed) choices.clear();
    if (options_.rounds_data) return choices;
    const BoundaryLayouts narrow = Keeping(last, options_.narrows_factors() ? options_.factors : kFloat16, function,
                                           eligible_inputs, eligible_outputs);
    // Products like their data narrow, what computes in float32 reads it faster as that and may still write less.
    for (const BoundaryLayouts& choice :
         {narrow, BoundaryLayouts{narrow.inputs, last.outputs}, BoundaryLayouts{last.inputs, narrow.outputs}}) {
      if (choice != last && std::ranges::find(choices, choice) == choices.end()) choices.push_back(choice);
    }
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToTIR, Hook::kTIRToRuntime, Hook::kUpdateConstants}; }

  Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const override {
    Result<LoweredPartition> result = Reason{"the compiler module gave no answer", name()};
    reinterpret_cast<RelayToTIRFn*>(OpenCompilerModule(name(), "collage_relay_to_tir"))(Canonicalised(request),
                                                                                        options_, result);
    return result;
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    Result<std::vector<std::string>> result = Reason{"the compiler module gave no answer", name()};
    reinterpret_cast<SchedulesFn*>(OpenCompilerModule(name(), "collage_native_schedules"))(Canonicalised(request),
                                                                                           options_, result);
    return result;
  }

  Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const override {
    Result<CompiledPartition> result = Reason{"the compiler module gave no answer", name()};
    reinterpret_cast<TIRToRuntimeFn*>(OpenCompilerModule(name(), "collage_tir_to_runtime"))(lowered, options_, result);
    return result;
  }

  /// The loops are written again, which takes little, and are not compiled again if they are the same.
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    Result<LoweredPartition> lowered = RelayToTIR(request);
    if (!lowered) return lowered.reason();
    if (lowered->mlir != compiled.source || lowered->workspace_bytes != compiled.workspace_bytes) {
      return Reason{"the loops depend on the values of constants", name()};
    }
    return std::move(lowered->constants);
  }

  /// MLIR, LLVM IR after its passes, assembly.
  std::vector<Listing> Listings(const PartitionRequest&, const CompiledPartition& compiled) const override {
    std::vector<Listing> listings;
    reinterpret_cast<ListingsFn*>(OpenCompilerModule(name(), "collage_native_listings"))(compiled, options_, listings);
    return listings;
  }

  std::vector<AttrField> Options() const override {
    return {
        {"accuracy", AttrKind::kString, "standard",
         "standard; exact: no algorithm that rounds more than sums in another order do, such as Winograd's or "
         "Strassen's"},
        {"winograd_tile", AttrKind::kInt, 0,
         "sides of the tiles of Winograd's convolutions, wherever they apply: 2 or 4, or a digit for each of the "
         "last axes, as "
         "in 244; 0: where and as is fastest"},
        {"schedule", AttrKind::kString, "",
         "how loops are made, NAME=VALUE,… (docs/toolchains.md): of all partitions, as far as they have a use for it"},
        {"inference_precision", AttrKind::kString, "f32",
         "f32; bf16: what products of float32 values are computed in, sums stay float32, and what values between "
         "partitions may be kept as; f16: what these may be kept as, all is computed in float32; int8: what data of "
         "products with packed weights of 2, 4 or 8 bits are rounded to, by blocks"},
        {"mcpu", AttrKind::kString, "",
         "the processor that code is for, as LLVM calls it; empty: this one. For nvptx64 several GPUs, NAME,…, the "
         "oldest first"},
        {"mattr", AttrKind::kString, "", "instruction sets that it has beside (+) or has not (-): +avx512vl,-fma"},
        {"mtriple", AttrKind::kString, "", "LLVM's triple of the machine that code is for; empty: this one's"},
        {"libs", AttrKind::kString, "",
         "toolchains, NAME,…, whose libraries compute tiles of products, the first that can, and what their Composites "
         "hold"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& accuracy = options.String("accuracy");
    const int64_t tile = options.Int("winograd_tile");
    if (accuracy != "standard" && accuracy != "exact") {
      throw Error(ErrorCategory::kInput, "option 'accuracy' of 'native' is standard or exact, got '" + accuracy + "'");
    }
    if (!AreTiles(tile)) {
      throw Error(ErrorCategory::kInput,
                  "option 'winograd_tile' of 'native' is 0, 2 or 4, or such digits for up to three axes, got " +
                      std::to_string(tile));
    }
    if (accuracy == "exact" && tile != 0) {
      throw Error(ErrorCategory::kInput, "options 'accuracy' and 'winograd_tile' of 'native' exclude each other");
    }
    const Schedule schedule = Schedule::Parse(options.StringOr("schedule", ""));
    const std::string precision = options.StringOr("inference_precision", "f32");
    const std::string triple = options.StringOr("mtriple", "");
    const bool is_for_gpu = triple == kGpuTriple;
    const bool is_known =
        precision == "f32" || precision == "bf16" || precision == "f16" || precision == (is_for_gpu ? "tf32" : "int8");
    if (!is_known) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("option 'inference_precision' of 'native' is f32, {}, bf16 or f16, got '{}'",
                              is_for_gpu ? "tf32" : "int8", precision));
    }
    if (accuracy == "exact" && precision != "f32" && !is_for_gpu) {
      throw Error(ErrorCategory::kInput, "options 'accuracy' and 'inference_precision' of 'native' exclude each other");
    }
    const std::string cpu = options.StringOr("mcpu", "");
    std::vector<std::string> gpus = is_for_gpu ? SplitCommas(cpu) : std::vector<std::string>();
    const std::string attributes = options.StringOr("mattr", "");
    CheckAttributes(attributes);
    return std::make_unique<Native>(NativeOptions{.is_exact = accuracy == "exact",
                                                  .winograd_tile = static_cast<int>(tile),
                                                  .schedule = schedule,
                                                  .factors = FactorsOf(precision, is_for_gpu),
                                                  .in_tf32 = precision == "tf32",
                                                  .rounds_data = precision == "int8",
                                                  .keeps_float16 = precision == "f16" && !is_for_gpu,
                                                  .cpu = gpus.empty() ? cpu : gpus.front(),
                                                  .attributes = attributes,
                                                  .triple = triple,
                                                  .further_gpus = AllButTheFirst(std::move(gpus)),
                                                  .libraries = ReadLibraries(options.StringOr("libs", ""))});
  }

 private:
  static std::vector<std::string> AllButTheFirst(std::vector<std::string> names) {
    if (!names.empty()) names.erase(names.begin());
    return names;
  }

  /// Whether the pixels of all images that `function` takes have few channels: they lie better in planes.
  static bool HasFewChannels(const FunctionNode& function) {
    constexpr int64_t kFew = 4;
    bool has_images = false;
    for (const Var& param : function.params()) {
      const TensorTypeNode* type = AsTensorType(param->checked_type());
      if (type == nullptr || !type->is_static()) return false;
      if (type->rank() < 3) continue;
      has_images = true;
      if (type->static_shape()[1] > kFew) return false;
    }
    return has_images;
  }

  PartitionRequest Canonicalised(PartitionRequest request) const {
    // Dynamic partitions bind sizes by position, so they must not be rewritten.
    if (HasDynamicSizes(request.function)) return request;
    request.function = Canonicalise(request.function,
                                    [&](const Expr& call) { return LibraryOf(call, options_.libraries) != nullptr; });
    return request;
  }
  static DataType FactorsOf(const std::string& precision, bool is_for_gpu) {
    if (precision == "bf16") return kBFloat16;
    return precision == "f16" && is_for_gpu ? kFloat16 : kFloat32;
  }
  /// 0, or up to three digits that are 2 or 4.
  static bool AreTiles(int64_t told) {
    if (told < 0 || told > 444) return false;
    for (; told > 0; told /= 10) {
      if (told % 10 != 2 && told % 10 != 4) return false;
    }
    return true;
  }
  /// "+avx2,-fma"; whether there are such instruction sets, the compiler knows.
  static void CheckAttributes(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end - at < 2 || (text[at] != '+' && text[at] != '-')) {
        throw Error(ErrorCategory::kInput,
                    "option 'mattr' of 'native' is a list such as +avx2,-fma, got '" + text + "'");
      }
      at = end + 1;
    }
  }

  NativeOptions options_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<Native>(); }

}  // namespace collage::native
