// forwarding_toolchain.h: a toolchain that answers as another one does; the base of decorators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/target/compiles_elsewhere.h"
#include "collage/target/composite_calls.h"
#include "collage/target/fusion_patterns.h"
#include "collage/target/symbolic_sizes.h"
#include "collage/target/toolchain.h"
#include "collage/target/varying_results.h"

namespace collage {

/// Forwards every virtual function of `Toolchain`, of `HasFusionPatterns`, of `CallsLibraries`, of `HasSymbolicSizes`,
/// of `HasVaryingResults` and of `CompilesElsewhere`. A decorator derives from it and overrides only the functions
/// whose answers differ, so that it cannot lose one: a test (forwarding_toolchain_test.cc) compares the tables of
/// virtual functions and fails when a function that is added to `Toolchain` is not forwarded here.
class ForwardingToolchain : public Toolchain,
                            public HasFusionPatterns,
                            public CallsLibraries,
                            public HasSymbolicSizes,
                            public HasVaryingResults,
                            public CompilesElsewhere {
 public:
  /// `inner` must outlive this.
  explicit ForwardingToolchain(const Toolchain& inner) : inner_(inner) {}

  std::string name() const override { return inner_.name(); }
  std::string description() const override { return inner_.description(); }
  Availability Probe() const override { return inner_.Probe(); }
  int priority() const override { return inner_.priority(); }
  bool is_default() const override { return inner_.is_default(); }
  std::string license() const override { return inner_.license(); }
  std::vector<std::string> aliases() const override { return inner_.aliases(); }
  std::vector<Incompatibility> Incompatible() const override { return inner_.Incompatible(); }
  int device_type() const override { return inner_.device_type(); }

  std::vector<PatternTableEntry> PatternTable() const override { return inner_.PatternTable(); }
  Result<void> SupportsCall(const CallNode& call) const override { return inner_.SupportsCall(call); }
  Result<void> SupportsDynamicShapes(const CallNode& call) const override { return inner_.SupportsDynamicShapes(call); }
  std::vector<std::string> Preamble() const override { return inner_.Preamble(); }
  bool is_native() const override { return inner_.is_native(); }
  FusionStyle fusion_style() const override { return inner_.fusion_style(); }
  int max_depth() const override { return inner_.max_depth(); }
  bool wants_maximal() const override { return inner_.wants_maximal(); }
  bool only_keeps_precision() const override { return inner_.only_keeps_precision(); }
  std::vector<std::string> FusionPatterns() const override { return FusionPatternsOf(inner_); }
  std::vector<const Toolchain*> CalledLibraries() const override { return CalledLibrariesOf(inner_); }
  bool compiles_symbolic_sizes() const override { return CompilesSymbolicSizes(inner_); }
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override {
    return collage::SupportsSymbolicSizes(inner_, call);
  }
  bool results_vary() const override { return ResultsVary(inner_); }
  bool IsForThisProcessor() const override { return CompilesForThisProcessor(inner_); }
  Availability ProbeCompiler() const override { return ProbeCompilerOf(inner_); }
  Availability ProbeRunner() const override { return ProbeRunnerOf(inner_); }
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    return JoinedVersion(inner_, compiler, runner);
  }
  bool proposes() const override { return inner_.proposes(); }
  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    return inner_.Proposals(function);
  }

  std::vector<AttrField> Options() const override { return inner_.Options(); }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    return inner_.WithOptions(options);
  }
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    return inner_.Layouts(function, eligible_inputs, eligible_outputs);
  }

  std::vector<Hook> Hooks() const override { return inner_.Hooks(); }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    return inner_.RelayToRuntime(request);
  }
  Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const override {
    return inner_.RelayToTIR(request);
  }
  Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const override {
    return inner_.TIRToRuntime(lowered);
  }
  bool has_schedules() const override { return inner_.has_schedules(); }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    return inner_.Schedules(request);
  }
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    return inner_.UpdateConstants(request, compiled);
  }
  std::vector<Listing> Listings(const PartitionRequest& request, const CompiledPartition& compiled) const override {
    return inner_.Listings(request, compiled);
  }

 private:
  const Toolchain& inner_;
};

}  // namespace collage
