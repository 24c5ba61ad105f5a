// toolchain.cc: the description of oneDNN's graph API: single operators, the partitions that it makes of a model
// itself, and the largest regions, which it cuts up as it likes.
#include "collage/target/toolchain.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/onednn_graph/describe.h"
#include "backends/onednn_graph/query.h"
#include "collage/target/child_process.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"
#include "support/machine.h"

namespace collage::onednn_graph {
namespace {

#ifdef COLLAGE_DNNL_LIBRARY_FILE
constexpr const char* kLibrary = COLLAGE_DNNL_LIBRARY_FILE;
constexpr const char* kVersion = COLLAGE_DNNL_VERSION;
#else
constexpr const char* kLibrary = "";
constexpr const char* kVersion = "";
#endif

constexpr const char* kModule = "libcollage_rt_onednn_graph.so";
/// Models of thousands of operators take a second.
constexpr std::chrono::seconds kPartitioningLimit{60};

/// Whether bytes are multiplied, or may be, once the library has fused what is around a product.
bool MayMultiplyBytes(const GraphSpec& spec) {
  const auto has = [&](auto... kinds) {
    return std::ranges::any_of(spec.ops, [&](const GraphOp& op) { return ((op.kind == kinds) || ...); });
  };
  return has("Dequantize") && has("MatMul", "Convolution", "ConvTranspose");
}

class OneDnnGraphToolchain : public Toolchain {
 public:
  std::string name() const override { return "onednn_graph"; }
  std::string description() const override {
    return "partitions that oneDNN's graph API makes: attention, residual stages";
  }

  Availability Probe() const override {
    const std::string hint = "run ./setup, which installs the onednn wheels, and build again";
    if (*kLibrary == '\0') return {false, "", "this build was made without oneDNN", hint};
    if (const auto missing = WhyModuleMissing({kModule, "libcollage_rt_onednn_graph_impl.so"})) {
      return {false, "", *missing, hint};
    }
    if (const auto missing = WhyLibraryMissing(kLibrary)) return {false, "", *missing, hint};
    return {true, kVersion, "", ""};
  }

  int priority() const override { return 4; }
  bool is_default() const override { return false; }  // most of its candidates are those of the toolchain of primitives
  std::string license() const override { return "Apache-2.0"; }
  std::vector<std::string> aliases() const override { return {"dnnl_graph"}; }
  Result<void> SupportsCall(const CallNode& call) const override { return Supports(call); }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 1; }  // what is worth putting together, the library says itself
  bool wants_maximal() const override { return true; }
  bool proposes() const override { return true; }

  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    const Result<WholeDescription> whole = DescribeWhole(function);
    if (!whole.ok() || !Probe().available) return {};
    const Result<std::string> answer = AnswerInChild(
        [&] {
          const auto find =
              reinterpret_cast<PartitionsFn*>(FindModuleSymbol(kModule, "collage_onednn_graph_partitions"));
          return nlohmann::json(find(whole->spec)).dump();
        },
        kPartitioningLimit);
    if (!answer.ok()) return {};
    std::vector<std::vector<Expr>> proposals;
    for (const auto& ops : nlohmann::json::parse(*answer)) {
      std::vector<Call> calls;
      for (const int op : ops) std::ranges::copy(whole->calls.at(static_cast<size_t>(op)), std::back_inserter(calls));
      if (!calls.empty()) proposals.push_back(WithWhatIsBetween(function, calls));
    }
    return proposals;
  }

  std::vector<BoundaryLayouts> Layouts(const Function&, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts channels_last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    if (plain == channels_last) return {plain};
    return {channels_last, plain};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = Describe(request.function, request.layouts);
    if (!description) return description.reason();
    if (MayMultiplyBytes(description->spec) && !HasVnni(ThisMachine().features)) {
      return Reason{"products of 8-bit integers overflow on processors without VNNI instructions", name()};
    }
    const auto query = reinterpret_cast<QueryFn*>(FindModuleSymbol(kModule, "collage_onednn_graph_query"));
    const Result<Implementation> found = query(description->spec, request.num_threads);
    if (!found) return found.reason();
    CompiledPartition partition;
    partition.loader = name();
    const std::string text = ToJson(description->spec);
    const auto bytes = std::as_bytes(std::span(text));
    partition.blob.assign(bytes.begin(), bytes.end());
    partition.constants = std::move(description->constants);
    partition.workspace_bytes = found->workspace_bytes;
    partition.source = found->partitions + text + "\n";
    return partition;
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<OneDnnGraphToolchain>(); }

}  // namespace collage::onednn_graph
