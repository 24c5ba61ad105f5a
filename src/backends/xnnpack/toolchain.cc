// toolchain.cc: XNNPACK's description. What a match is, is decided here; whether the library makes such an operator is
// asked of it in the worker.
#include "collage/target/toolchain.h"

#include <memory>

#include "backends/xnnpack/describe.h"
#include "backends/xnnpack/patterns.h"
#include "backends/xnnpack/query.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"

namespace collage::xnnpack {
namespace {

using xnnpack_toolchain::Description;

#ifdef COLLAGE_XNNPACK_LIBRARY_FILE
constexpr const char* kLibrary = COLLAGE_XNNPACK_LIBRARY_FILE;
constexpr const char* kVersion = COLLAGE_XNNPACK_VERSION;
#else
constexpr const char* kLibrary = "";
constexpr const char* kVersion = "";
#endif

class XnnpackToolchain : public Toolchain {
 public:
  std::string name() const override { return "xnnpack"; }
  std::string description() const override { return "XNNPACK's operators, channels-last, in float32 and 8 bits"; }

  Availability Probe() const override {
    const std::string hint = "apt-get install libxnnpack-dev, or run ./setup, and build again";
    if (*kLibrary == '\0') return {false, "", "this build was made without XNNPACK", hint};
    if (const auto missing = WhyLibraryMissing(kLibrary)) return {false, "", *missing, hint};
    if (const auto missing = WhyModuleMissing({"libcollage_rt_xnnpack.so", "libcollage_rt_xnnpack_impl.so"})) {
      return {false, "", *missing, hint};
    }
    return {true, kVersion, "", ""};
  }

  int priority() const override { return 3; }
  bool is_default() const override { return false; }  // docs/toolchains.md says why
  std::string license() const override { return "BSD-3-Clause"; }
  std::vector<PatternTableEntry> PatternTable() const override {
    static const std::vector<PatternTableEntry> table = xnnpack_toolchain::Patterns();
    return table;
  }

  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  /// Channels-last where that will do, plain where that will.
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts channels_last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    std::vector<BoundaryLayouts> choices;
    if (channels_last != plain && xnnpack_toolchain::Describe(function, channels_last))
      choices.push_back(channels_last);
    if (choices.empty() || xnnpack_toolchain::Describe(function, plain)) choices.push_back(plain);
    return choices;
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = xnnpack_toolchain::Describe(request.function, request.layouts);
    if (!description) return description.reason();
    const auto query = reinterpret_cast<xnnpack_toolchain::QueryFn*>(
        FindModuleSymbol("libcollage_rt_xnnpack.so", "collage_xnnpack_query"));
    if (const Result<void> made = query(description->operation, description->constants); !made) return made.reason();
    CompiledPartition partition;
    partition.loader = name();
    const std::string text = xnnpack_toolchain::ToJson(description->operation);
    const auto bytes = std::as_bytes(std::span(text));
    partition.blob.assign(bytes.begin(), bytes.end());
    partition.constants = std::move(description->constants);
    partition.source = text + "\n";
    return partition;
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<XnnpackToolchain>(); }

}  // namespace collage::xnnpack
