// toolchain.h: what a vendor or library author implements to add a toolchain. One folder under src/backends/, one line
// in src/backends/CMakeLists.txt, nothing else (see docs/add-a-toolchain.md).
//
// A toolchain comes in up to three parts, so that nothing heavy is loaded before it is needed:
//   - this description (patterns, predicates, layouts): light, free of vendor headers, in libcollage;
//   - its compiler, the hooks: may live in a module `libcollage_NAME_compiler.so`, opened in the worker process;
//   - its kernel loader (runtime/kernel.h): a module `libcollage_rt_NAME.so` that needs none of the compiler.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"
#include "collage/support/result.h"
#include "collage/target/boundary_layouts.h"

namespace collage {

/// Whether a toolchain can be used here: a version, or the reason why not and how to get it.
struct Availability {
  bool available = false;
  std::string version;  ///< part of every tuning key: a new version invalidates old measurements
  std::string reason;   ///< when not available
  std::string hint;     ///< how to install it
};

/// One row of a pattern table (RFC 0.81, "PartitionRule": what MergeComposite used).
struct PatternTableEntry {
  /// The Composite name, "dnnl.conv2d_bias_relu".
  std::string name;
  /// DFPattern text: `*` anything, `const`, `op(P, …)`, `(P | P)`, `proj(P, i)`, `tuple(P, …)`, `op{attr=value}(P)`;
  /// add and multiply commute. Several patterns may share one name.
  std::string pattern;
  /// Whether the matched sub-graph is really supported; `composite` is the extracted, typed function whose body is
  /// the match (constants inlined). The reason of a "no" ends in the explanation. May be empty: always yes.
  std::function<Result<void>(const Function& composite)> predicate;
  /// Whether partitioning without costs (MergeComposite, partition_for_NAME) takes its matches. A row of single
  /// element-wise operators is worth a candidate, but taken wherever it matches it keeps the operator from a neighbour
  /// that would have computed it on the way.
  bool is_greedy = true;
};

/// A partition to compile.
struct PartitionRequest {
  /// A closed, typed function. Parameters are tensors; the result is a tensor or a tuple of tensors. Constants are
  /// inlined in the body. For pattern toolchains the body calls inner functions with a Composite attribute.
  Function function;
  BoundaryLayouts layouts;
  int num_threads = 1;
  /// How to compile it: one of the texts that `Toolchain::Schedules` lists; empty: as the toolchain thinks best.
  std::string schedule = {};
};

/// A compiled partition, self-contained.
struct CompiledPartition {
  std::string loader;                       ///< name of the kernel loader, usually the toolchain's
  std::vector<std::byte> blob;              ///< opaque to all but the loader; equal blobs are stored once
  std::vector<Tensor> constants;            ///< weights kept outside of the blob, stored once and mapped
  size_t workspace_bytes = 0;               ///< scratch memory that `Kernel::Bind` gets
  std::string source;                       ///< readable form of what was generated, for `Listings`; may be empty
  Memory workspace_memory = Memory::kHost;  ///< the memory of the workspace
};

/// One step from a partition to its code, as a text for people to read.
struct Listing {
  std::string extension;  ///< suffix of a file with the source: "mlir"
  std::string text;
};

/// A partition as loops: what RFC 10 calls TIR is MLIR here.
struct LoweredPartition {
  /// A module in the dialects func, scf, cf, arith, math, vector and llvm, with `func.func @collage_kernel(!llvm.ptr)`.
  /// The argument is an array of addresses: the partition's inputs, `constants`, outputs and, if asked for, workspace,
  /// in this order.
  std::string mlir;
  std::vector<Tensor> constants;
  size_t workspace_bytes = 0;
};

/// RFC 10's attributes of a target kind, by its names: the ways from a partition to what runs.
enum class Hook : uint8_t {
  kRelayToTIR,       ///< `Toolchain::RelayToTIR`
  kTIRToRuntime,     ///< `Toolchain::TIRToRuntime`
  kRelayToRuntime,   ///< `Toolchain::RelayToRuntime`
  kUpdateConstants,  ///< `Toolchain::UpdateConstants`
};
/// "RelayToTIR", …
const char* ToString(Hook hook);

/// A toolchain that another one cannot be in the same process with: libraries whose symbols or runtimes clash.
struct Incompatibility {
  std::string toolchain;
  std::string reason;  ///< why, for reports
};

/// How candidates of a toolchain are enumerated.
enum class FusionStyle : uint8_t {
  kNoFusion,   ///< each match alone (kernel libraries)
  kTVMFusion,  ///< matches combine by operator kind, as FuseOps would
  kArbitrary,  ///< any connected union of matches (graph compilers)
};

/// A toolchain's description and compiler. Implementations are stateless and may be called from several threads.
class Toolchain {
 public:
  virtual ~Toolchain() = default;

  /// The compiler name, as in `-compiler=NAME`, Function attribute Compiler and reports.
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;
  /// Looks for the toolchain on this machine. Cheap; must not start threads or initialise the vendor's library.
  virtual Availability Probe() const = 0;
  /// Decides between candidates that measurement cannot separate; lower wins.
  virtual int priority() const = 0;
  /// Whether it takes part where nobody names toolchains. One that wins next to nothing beside the others lengthens
  /// every compilation, since its candidates are measured too: it waits until it is named.
  virtual bool is_default() const { return true; }
  /// Licence of what executables with its kernels need at run time, as an SPDX expression and, where it matters, a
  /// word on what that allows: "Apache-2.0", "proprietary: may not be passed on". Shown by `collage targets`.
  virtual std::string license() const { return ""; }
  /// Other names that people know it by, for hints where a name is mistyped: "onednn", "mkldnn".
  virtual std::vector<std::string> aliases() const { return {}; }
  /// Toolchains that never meet this one in an executable, a play-off or a measuring process. It is enough that one of
  /// two says so; names that nobody has are ignored.
  virtual std::vector<Incompatibility> Incompatible() const { return {}; }
  /// The type of device that its kernels run on, a DLDeviceType: 1 is the processor. Any other one has a memory
  /// (collage/runtime/device.h), and its targets are of a kind for it: "ext_dev -compiler=NAME".
  virtual int device_type() const { return 1; }

  /// Pattern-based toolchains list their patterns; an empty table means operator-predicate based.
  virtual std::vector<PatternTableEntry> PatternTable() const { return {}; }
  /// Predicate of operator-based toolchains (RFC 0.81's "target.NAME"): may this typed operator call be offloaded?
  virtual Result<void> SupportsCall(const CallNode& call) const;
  /// Whether it compiles this typed call although shapes in it are not known (`?`). Partitions of such calls are
  /// PartitionRequests of functions whose types leave sizes open; their kernels have one more input, behind the others,
  /// which tells what these are: int64, in the order of FindDynamicSizes (collage/ir/dynamic_sizes.h). All layouts
  /// are plain.
  virtual Result<void> SupportsDynamicShapes(const CallNode& call) const;
  /// Names of the passes that bring a module into the form that its patterns and predicates are written for, in order:
  /// what RFC 0.81 calls optimize_for_NAME.
  virtual std::vector<std::string> Preamble() const { return {}; }
  /// True for the toolchain that leaves no Compiler attribute: its kernels mimic FuseOps (RFC 0.81, Phase 1).
  virtual bool is_native() const { return false; }
  virtual FusionStyle fusion_style() const { return FusionStyle::kNoFusion; }
  /// Longest path of a candidate, in nodes (calls, tuples, projections); 0 = no limit.
  virtual int max_depth() const { return 4; }
  /// Whether one maximal partition of everything it supports is worth a candidate of its own.
  virtual bool wants_maximal() const { return false; }
  /// Whether it has a partitioner of its own, whose partitions are candidates beside those of the rules.
  virtual bool proposes() const { return false; }
  /// Returns the partitions proposed for `function`, typed dataflow: for each the expressions inside, calls and the
  /// nodes between them. Empty if there are none. Asked in the process that searches: a library that this needs is
  /// asked in a child (collage/target/child_process.h).
  virtual std::vector<std::vector<Expr>> Proposals(const Function&) const { return {}; }

  /// Options that a target may give it, "cuda -compiler=NAME -use_fp16=1", with their types (kBool, kInt, kDouble or
  /// kString), defaults and meaning. Any other option is refused.
  virtual std::vector<AttrField> Options() const { return {}; }
  /// This toolchain under `options`, which are complete and of the declared types: what it takes, in which layouts, and
  /// how it compiles may depend on them. Null where nothing does.
  virtual std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const;

  /// Whether a lower `inference_precision` is nothing but what values between partitions may be kept as. Arithmetic
  /// stays that of float32, so that processors gain that only convert such values.
  virtual bool only_keeps_precision() const { return false; }

  /// Layout combinations that the compiler accepts for `function`, best first; maybe none. `eligible_inputs` and
  /// `eligible_outputs` say which flattened parameters and results may be anything but plain at all. To keep some of
  /// them as bfloat16 or float16 rounds: only who is told a lower `inference_precision` offers that. Layouts are of the
  /// memory that a kernel expects each value in: what is not there is copied. Unless overridden: all plain, in the main
  /// memory of its device.
  virtual std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                               const std::vector<bool>& eligible_outputs) const;

  /// Which of the hooks below are set (RFC 10's "HasHook"). Hooks that are not set answer with a `Reason`.
  ///
  /// All are called in a worker process: they may throw, crash or hang, which is then the reason. Either RelayToRuntime
  /// is set, or RelayToTIR; docs/toolchain-interface.md says how they differ.
  virtual std::vector<Hook> Hooks() const { return {Hook::kRelayToRuntime}; }
  bool Has(Hook hook) const;

  /// Compiles one partition; a `Reason` when the toolchain cannot. Unless overridden: RelayToTIR, then TIRToRuntime.
  virtual Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const;
  /// Writes a partition as loops, without compiling them. Workspace that these ask for is planned with the executable's
  /// own memory.
  virtual Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const;
  /// Compiles loops. Unless overridden: as the native toolchain does, so that a toolchain may be a RelayToTIR alone.
  virtual Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const;
  /// Whether there are several ways to compile a partition that only the clock can choose between.
  virtual bool has_schedules() const { return false; }
  /// Ways to compile `request` that differ little from how its `schedule` says, most promising first, as texts that
  /// nobody else understands. Asked in a worker process, again with each that turned out to be faster. Texts are part
  /// of keys: each stands for one way for good, whatever the request.
  virtual Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const;

  /// The constants for `request`, of which `compiled` was made but for the values of its constants that are tensors
  /// (scalars agree): equal blocks of a model are compiled once. A `Reason` when these values matter to the compiler;
  /// the partition is then compiled by itself.
  virtual Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                                      const CompiledPartition& compiled) const;

  /// The steps from `request` to `compiled`, which was made of it, in their order (`collage compile --dump`). Called in
  /// a worker process and may compile again. Unless overridden: `compiled.source` as "txt", if there is any.
  virtual std::vector<Listing> Listings(const PartitionRequest& request, const CompiledPartition& compiled) const;
};

/// The toolchains of this process in their fixed order. Built-in ones come from the generated list of src/backends/;
/// tests and embedders may add more.
class ToolchainRegistry {
 public:
  static ToolchainRegistry& Global();

  /// Adds `toolchain`; throws kInput if its name is taken. `revision` tells states of our own code for it apart: part
  /// of every tuning key beside the vendor's version.
  void Add(std::unique_ptr<Toolchain> toolchain, std::string revision = "");
  /// The revision that `toolchain`, one of these, was added with.
  const std::string& RevisionOf(const Toolchain& toolchain) const;
  /// Null when unknown.
  const Toolchain* Find(std::string_view name) const;
  /// Throws kInput at `where` when unknown, naming what may have been meant.
  const Toolchain& Get(std::string_view name, const std::string& where = "") const;
  /// Returns that error's hint: "did you mean 'dnnl'?", or all there are.
  std::string HintFor(std::string_view unknown) const;
  std::vector<const Toolchain*> All() const;
  /// The one with `is_native()`; never null in a full build.
  const Toolchain* Native() const;

 private:
  std::vector<std::unique_ptr<Toolchain>> toolchains_;
  std::vector<std::string> revisions_;  ///< parallel to `toolchains_`
};

/// Why `a` and `b` cannot be in one process, as either says; nothing where they can.
std::optional<std::string> WhyIncompatible(const Toolchain& a, const Toolchain& b);

/// The largest sets of `toolchains` that can all be in one process: one set with all of them where nobody objects.
/// Within each, and between them by their first difference, in the order given.
std::vector<std::vector<const Toolchain*>> CompatibleSets(std::span<const Toolchain* const> toolchains);

/// The main memory of a toolchain's device. Throws kUnsupported for a type of device that has none.
Memory MainMemoryOf(const Toolchain& toolchain);
/// Opens `libcollage_NAME_compiler.so` (beside this library, or in $COLLAGE_MODULE_PATH) and returns its C symbol
/// `collage_compile_partition`; throws kUnavailable with the loader's reason.
using CompilePartitionFn = void(const PartitionRequest& request, Result<CompiledPartition>& result);
CompilePartitionFn* OpenCompilerModule(std::string_view name);
/// Opens another C symbol of that module.
void* OpenCompilerModule(std::string_view name, const std::string& symbol);

}  // namespace collage
