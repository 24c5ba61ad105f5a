// compile_program.cc: regions compiled one by one, bytecode around them.
#include "driver/compile_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bytecode/bytecode.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "driver/distinct_regions.h"
#include "driver/play_off/whole_model_check.h"
#include "driver/report/report_numbers.h"
#include "driver/unsearched.h"
#include "lowering/partition_dump.h"
#include "program/regions.h"
#include "support/file.h"
#include "support/json_reader.h"
#include "support/machine.h"
#include "target/annotations.h"
#include "transform/passes/dynamic/decompose.h"
#include "transform/passes/dynamic/recurrence.h"
#include "transform/passes/dynamic/widen.h"

namespace collage {
namespace {

CompileReport ForEachRegion(const std::vector<DistinctRegion>& regions, const std::string& name,
                            const CompileOptions& options,
                            const std::function<CompileReport(const DistinctRegion&, const CompileOptions&)>& compile) {
  CompileReport all;
  all.model = name;
  all.output = options.output;
  for (const DistinctRegion& region : regions) {
    CompileOptions own = options;
    own.shapes.clear();
    own.dims.clear();
    own.constants.clear();
    own.tune_at.clear();
    own.check_inputs.clear();  // they are the program's
    own.budget_seconds *= region.share;
    own.tuning_seconds *= region.share;
    if (own.tuning_trials > 0) {
      own.tuning_trials = std::max<int64_t>(std::llround(static_cast<double>(own.tuning_trials) * region.share), 1);
    }
    all.regions.push_back(compile(region, own));
    AddRegion(all.regions.back(), region.num_equal, all);
  }
  return all;
}

/// Adds the kernels that take any size, which are in no region's report.
void AddDynamic(const IRModule& module, CompileReport& report) {
  for (const auto& [_, function] : module.functions()) {
    PostOrder(function->body(), [&](const Expr& expr) {
      const FunctionNode* inner = As<FunctionNode>(expr);
      if (inner == nullptr || !IsDynamicFusion(*inner)) return;
      PostOrder(inner->body(), [&](const Expr& within) {
        const CallNode* call = As<CallNode>(within);
        report.num_operators += call != nullptr && call->op() != nullptr ? 1 : 0;
        const ConstantNode* constant = As<ConstantNode>(within);
        report.num_parameters += constant == nullptr ? 0 : constant->value().num_elements();
      });
    });
  }
}

/// Accounts for the toolchains that are here, if there are dynamic shapes.
void AddParts(const IRModule& module, const vm::Executable& program, const DynamicShapesOptions& unknown,
              CompileReport& report) {
  if (unknown.inputs.empty()) return;
  report.parts =
      FindToolchainParts(unknown.known, report, module, unknown.toolchain, program.program().dynamic_kernels.size());
}

/// Refuses products that are evaluated as the reference does, where the model could have been given its shapes.
void RefuseProducts(const std::vector<EvaluatedOperator>& evaluated, const std::string& name,
                    const DynamicShapesOptions& unknown) {
  if (!unknown.refuses_evaluation) return;
  const auto product = std::ranges::find(evaluated, true, &EvaluatedOperator::is_product);
  if (product == evaluated.end()) return;
  throw Error(ErrorCategory::kInput,
              fmt::format("the model has dynamic dimensions with which '{}'{} has no kernel: {}", product->op,
                          product->node.empty() ? "" : fmt::format(" at node '{}'", product->node), product->reason),
              name, unknown.hint);
}

/// Says what is not searched and what is slow.
void WarnOf(const CompileReport& report, const CompileOptions& options, const DynamicShapesOptions& unknown) {
  if (options.progress == nullptr) return;
  if (report.regions.empty() && !unknown.inputs.empty()) {
    options.progress->Warn(NothingSearchedText(unknown.inputs, report.evaluated, unknown.hint));
    return;
  }
  if (!report.evaluated.empty()) options.progress->Warn(EvaluatedText(report.evaluated));
  const std::vector<std::string> flags = FlagsOfASearch(options);
  if (!report.regions.empty() || flags.empty()) return;
  options.progress->Warn(
      fmt::format("{} had no effect: no part of the model has known sizes and enough work", fmt::join(flags, ", ")));
}

/// `module` with operators for which `for_dynamic_shapes` has kernels in place of some for which it has none.
IRModule WithKernels(const IRModule& module, const Toolchain* for_dynamic_shapes) {
  if (for_dynamic_shapes == nullptr) return module;
  const auto takes = [&](const CallNode& call) { return for_dynamic_shapes->SupportsDynamicShapes(call).ok(); };
  return WidenDynamic(DecomposeDynamic(UnrollRecurrence(module, takes), takes), takes);
}

ProgramRegions RegionsFor(const IRModule& module, const Toolchain* for_dynamic_shapes) {
  if (for_dynamic_shapes == nullptr) return FindRegions(module);
  return FindRegions(module, kFewElements,
                     {[&](const CallNode& call) { return for_dynamic_shapes->SupportsDynamicShapes(call).ok(); },
                      [&](const CallNode& call) { return for_dynamic_shapes->SupportsCall(call).ok(); }});
}

/// Throws where `program` is wrong; the report says at which sizes it was right.
void Check(const ProgramSource& source, const vm::Executable& program, const std::string& name,
           const CompileOptions& options, CompileReport& report) {
  constexpr auto kLongestSilence = std::chrono::seconds(60);
  if (options.progress != nullptr) options.progress->Phase("check");
  ProgramCheckOptions checking{.num_threads = report.num_threads,
                               .limits = {.timeout = kLongestSilence},
                               .bind = source.bind,
                               .max_error = options.max_error};
  for (const NamedSizes& named : source.sizes) {
    checking.shapes.push_back(named.shapes);
    report.searched_sizes.push_back(named.text);
  }
  for (const NamedInputs& inputs : options.check_inputs) {
    checking.inputs.push_back(InOrderOfParameters(inputs, source.module.main(), name));
  }
  const ProgramCheckResult result = CheckProgram(source.module, program, checking);
  report.verified_sizes = result.sizes;
  report.verified_error = result.max_error;
  report.not_verified = result.not_verified;
  if (result.not_verified.empty() || options.progress == nullptr) return;
  options.progress->Warn(fmt::format("the program was not run to check it: {}", result.not_verified));
}

/// Writes partitions of dynamic shapes, which `toolchain` compiles, into `folder`.
std::function<void(const PartitionRequest&, const CompiledPartition&)> DumpTo(const std::filesystem::path& folder,
                                                                              const Toolchain* toolchain) {
  return [dump = std::make_shared<PartitionDump>(folder), toolchain](const PartitionRequest& request,
                                                                     const CompiledPartition& compiled) {
    dump->Add(*toolchain, request, compiled, {});
  };
}

/// Options for compiling the code around kernels. Sets machine and threads of the report where no region did.
vm::CompileOptions OptionsOfProgram(const CompileOptions& options, const DynamicShapesOptions& unknown,
                                    CompileReport& report) {
  vm::CompileOptions compiling;
  compiling.num_threads = report.num_threads > 0    ? report.num_threads
                          : options.num_threads > 0 ? options.num_threads
                                                    : AvailableProcessors();
  compiling.for_dynamic_shapes = unknown.toolchain;
  if (!options.dump.empty()) compiling.on_partition = DumpTo(options.dump / "dynamic", unknown.toolchain);
  if (!report.regions.empty()) return compiling;
  report.machine = ThisMachine().cpu;
  report.num_threads = compiling.num_threads;
  return compiling;
}

/// Files of a program: what they hold of each region.
///
///     {"format": "collage-partitioning", "version": 1, "regions": [region 0's, …]}
class RegionFiles {
 public:
  RegionFiles(const CompileOptions& options, const std::filesystem::path& folder) : options_(options), folder_(folder) {
    for (const std::filesystem::path& file : options.also) also_.push_back(ReadRegions(file));
    if (!options.partitioning.empty()) given_ = ReadRegions(options.partitioning);
  }

  /// Throws kInput when a file has another number of regions.
  void CheckNumber(size_t num_regions) const {
    const auto check = [&](const std::vector<std::string>& given, const std::filesystem::path& file) {
      if (given.size() == num_regions) return;
      throw Error(ErrorCategory::kInput,
                  fmt::format("the file chooses for {} regions, the program has {}", given.size(), num_regions),
                  file.string());
    };
    if (!options_.partitioning.empty()) check(given_, options_.partitioning);
    for (size_t i = 0; i < also_.size(); ++i) check(also_[i], options_.also[i]);
  }

  /// Makes the files of a region those that its compilation reads and writes.
  void SetFiles(size_t region, CompileOptions& own) const {
    if (!options_.write_partitioning.empty()) own.write_partitioning = Written(region, "json");
    if (!options_.write_module.empty()) own.write_module = Written(region, "relay");
    const auto split = [&](const std::string& content, const std::filesystem::path& of, size_t number) {
      const std::filesystem::path folder = folder_ / fmt::format("given{}-region{}", number, region);
      std::filesystem::create_directory(folder);
      WriteFile(folder / of.filename(), content);
      return folder / of.filename();
    };
    own.also.clear();
    for (size_t i = 0; i < also_.size(); ++i) own.also.push_back(split(also_[i][region], options_.also[i], i + 1));
    if (!options_.partitioning.empty()) own.partitioning = split(given_[region], options_.partitioning, 0);
  }

  /// Puts together what was written of `regions`, which `module` calls.
  void Write(const IRModule& module, const std::vector<DistinctRegion>& regions) const {
    if (!options_.write_partitioning.empty()) WritePartitioning(regions.size());
    if (!options_.write_module.empty()) WriteModule(module, regions);
  }

 private:
  using Json = nlohmann::ordered_json;

  static std::vector<std::string> ReadRegions(const std::filesystem::path& file) {
    const JsonReader json = JsonReader::Parse(ReadFile(file), file.string());
    json.AllowOnly({"format", "version", "regions"});
    std::vector<std::string> regions;
    for (const JsonReader& region : json.At("regions").Items()) regions.push_back(region.value().dump(2));
    return regions;
  }

  std::filesystem::path Written(size_t region, const std::string& ending) const {
    return folder_ / fmt::format("written-region{}.{}", region, ending);
  }

  void WritePartitioning(size_t num_regions) const {
    Json json{{"format", "collage-partitioning"}, {"version", 1}, {"regions", Json::array()}};
    for (size_t region = 0; region < num_regions; ++region) {
      json["regions"].push_back(Json::parse(ReadFile(Written(region, "json"))));
    }
    WriteWhole(options_.write_partitioning, json.dump(2) + "\n");
  }

  /// The program's module; each region in it is partitioned.
  void WriteModule(const IRModule& module, const std::vector<DistinctRegion>& regions) const {
    std::map<std::string, Function> partitioned;
    for (size_t region = 0; region < regions.size(); ++region) {
      const std::filesystem::path file = Written(region, "relay");
      partitioned.emplace(regions[region].digest, ParseModule(ReadFile(file), file.string()).main());
    }
    WriteWhole(options_.write_module, PrintModule(WithRegions(module, partitioned)));
  }

  const CompileOptions& options_;
  std::filesystem::path folder_;
  std::vector<std::string> given_;
  std::vector<std::vector<std::string>> also_;  ///< by file
};

}  // namespace

CompileReport CompileProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                             const DynamicShapesOptions& unknown, const ProgramSource& source,
                             const CompileRegion& compile_region) {
  const auto started = std::chrono::steady_clock::now();
  const ProgramRegions program = RegionsFor(WithKernels(module, unknown.toolchain), unknown.toolchain);
  std::vector<EvaluatedOperator> evaluated = FindEvaluated(program.module, unknown.toolchain);
  RefuseProducts(evaluated, name, unknown);
  const std::vector<DistinctRegion> regions = Distinct(program);
  if (regions.empty()) {
    CheckRequired(options, {}, name);
    if (!unknown.inputs.empty()) RefuseFlagsOfASearch(options, unknown.inputs, name, unknown.hint);
  }
  const TemporaryFolder folder;
  const RegionFiles files(options, folder.path());
  files.CheckNumber(regions.size());
  std::map<std::string, Executable> kernels;
  CompileReport report = ForEachRegion(regions, name, options, [&](const DistinctRegion& region, CompileOptions own) {
    own.output = folder / fmt::format("region{}.clg", kernels.size());
    files.SetFiles(kernels.size(), own);
    if (!options.dump.empty()) own.dump = options.dump / fmt::format("region-{:03}", kernels.size());
    const std::string sizes = program.module.Lookup(region.global)->attrs().StringOr(kAttrSizes, "");
    const std::string called = fmt::format("{}, {}region {}", name, sizes.empty() ? "" : sizes + ", ", kernels.size());
    CompileReport made = compile_region(IRModule::FromFunction(region.function), called, own);
    kernels.emplace(region.digest, Executable::Load(own.output));
    return made;
  });
  CheckRequired(options, report, name);
  files.Write(program.module, regions);
  vm::CompileOptions compiling = OptionsOfProgram(options, unknown, report);
  AddDynamic(program.module, report);
  compiling.find_kernel = [&](const Function& function) -> std::optional<Executable> {
    const auto it = kernels.find(DigestOf(*function));
    if (it == kernels.end()) return std::nullopt;
    return it->second;
  };
  compiling.on_declined = [&](const Function& function, const std::string& reason) {
    AddEvaluated(function, reason, evaluated);
  };
  const vm::Executable executable = vm::Compile(program.module, compiling);
  RefuseProducts(evaluated, name, unknown);
  AddParts(program.module, executable, unknown, report);
  Check(source, executable, name, options, report);
  executable.Save(options.output);
  report.evaluated = std::move(evaluated);
  WarnOf(report, options, unknown);
  report.output_bytes = static_cast<int64_t>(std::filesystem::file_size(options.output));
  report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

CompileReport TuneProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                          const DynamicShapesOptions& unknown, const CompileRegion& tune_region) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<DistinctRegion> regions = Distinct(FindRegions(module));
  CompileReport report =
      ForEachRegion(regions, name, options, [&](const DistinctRegion& region, const CompileOptions& own) {
        return tune_region(IRModule::FromFunction(region.function), name, own);
      });
  WarnOf(report, options, unknown);
  report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace collage
