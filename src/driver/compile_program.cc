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
#include "driver/any_size/choose.h"
#include "driver/any_size/find.h"
#include "driver/distinct_regions.h"
#include "driver/play_off/whole_model_check.h"
#include "driver/report/report_numbers.h"
#include "driver/unsearched.h"
#include "driver/write_executable.h"
#include "program/regions.h"
#include "support/file.h"
#include "support/json_reader.h"
#include "support/machine.h"
#include "target/annotations.h"

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
    own.on_written = nullptr;
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
void AddParts(const AnySizeContender& winner, const std::map<std::string, std::string>& reasons,
              const DynamicShapesOptions& unknown, CompileReport& report) {
  if (unknown.inputs.empty()) return;
  AnySizeKernels any_size{unknown.toolchain, {}, reasons};
  for (const vm::DynamicKernel& kernel : winner.executable->program().dynamic_kernels) {
    ++any_size.kernels[kernel.toolchain];
  }
  report.parts = FindToolchainParts(unknown.known, report, winner.module, any_size);
}

/// Why an operator of `evaluated` may not run by reference evaluation: a product, where the model could have been given
/// its shapes. Empty if all may.
std::string WhyRefused(const std::vector<EvaluatedOperator>& evaluated, const DynamicShapesOptions& unknown) {
  if (!unknown.refuses_evaluation) return "";
  const auto product = std::ranges::find(evaluated, true, &EvaluatedOperator::is_product);
  if (product == evaluated.end()) return "";
  return fmt::format("the model has dynamic dimensions with which '{}'{} has no kernel: {}", product->op,
                     product->node.empty() ? "" : fmt::format(" at node '{}'", product->node), product->reason);
}

void RefuseProducts(const std::vector<EvaluatedOperator>& evaluated, const std::string& name,
                    const DynamicShapesOptions& unknown) {
  const std::string reason = WhyRefused(evaluated, unknown);
  if (!reason.empty()) throw Error(ErrorCategory::kInput, reason, name, unknown.hint);
}

/// Says what is not searched and what is slow. `at_any_size`: the toolchains whose programs for any size competed.
void WarnOf(const CompileReport& report, const CompileOptions& options, const DynamicShapesOptions& unknown,
            const std::vector<std::string>& at_any_size) {
  if (options.progress == nullptr) return;
  if (report.regions.empty() && !unknown.inputs.empty()) {
    options.progress->Warn(NothingSearchedText(unknown.inputs, report.evaluated, unknown.hint, at_any_size));
    return;
  }
  if (!report.evaluated.empty()) options.progress->Warn(EvaluatedText(report.evaluated));
  const std::vector<std::string> flags = FlagsOfASearch(options, at_any_size);
  if (!report.regions.empty() || flags.empty()) return;
  options.progress->Warn(
      fmt::format("{} had no effect: no part of the model has known sizes and enough work", fmt::join(flags, ", ")));
}

ProgramCheckOptions CheckingOf(const ProgramSource& source, const std::string& name, const CompileOptions& options,
                               int num_threads) {
  constexpr auto kLongestSilence = std::chrono::seconds(60);
  ProgramCheckOptions checking{.num_threads = num_threads,
                               .limits = {.timeout = kLongestSilence},
                               .bind = source.bind,
                               .max_error = options.max_error};
  for (const NamedSizes& named : source.sizes) checking.shapes.push_back(named.shapes);
  for (const NamedInputs& inputs : options.check_inputs) {
    checking.inputs.push_back(InOrderOfParameters(inputs, source.module.main(), name));
  }
  return checking;
}

/// Throws where `program` is wrong; the report says at which sizes it was right.
void Check(const ProgramSource& source, const vm::Executable& program, const ProgramCheckOptions& checking,
           const CompileOptions& options, CompileReport& report) {
  if (options.progress != nullptr) options.progress->Phase("check");
  for (const NamedSizes& named : source.sizes) report.searched_sizes.push_back(named.text);
  const ProgramCheckResult result = CheckProgram(source.module, program, checking);
  report.verified_sizes = result.sizes;
  report.verified_error = result.max_error;
  report.not_verified = result.not_verified;
  if (result.not_verified.empty() || options.progress == nullptr) return;
  options.progress->Warn(fmt::format("the program was not run to check it: {}", result.not_verified));
}

/// Options for compiling the code around kernels. Sets machine and threads of the report where no region did.
vm::CompileOptions OptionsOfProgram(const CompileOptions& options, const DynamicShapesOptions& unknown,
                                    CompileReport& report) {
  vm::CompileOptions compiling;
  compiling.num_threads = report.num_threads > 0    ? report.num_threads
                          : options.num_threads > 0 ? options.num_threads
                                                    : AvailableProcessors();
  compiling.for_dynamic_shapes = unknown.toolchain;
  if (!report.regions.empty()) return compiling;
  report.machine = ThisMachine().cpu;
  report.num_threads = compiling.num_threads;
  return compiling;
}

/// Share of a budget that is kept for programs for any size, if several compete.
constexpr double kAnySizeShare = 0.2;

/// Options for the search of plans.
CompileOptions ForRegions(const CompileOptions& options, const AnySizeContenders& found) {
  CompileOptions own = options;
  if (!found.symbolic.empty()) own.budget_seconds *= 1 - kAnySizeShare;
  return own;
}

/// Refuses options that nothing follows: no part of the model has known sizes.
void RefuseUnsearched(const CompileOptions& options, const AnySizeContenders& found,
                      const DynamicShapesOptions& unknown, const std::string& name) {
  CompileOptions asked = options;
  std::erase_if(asked.require, [&](const std::string& one) { return found.Has(one); });
  CheckRequired(asked, {}, name);
  if (!unknown.inputs.empty()) RefuseFlagsOfASearch(options, unknown.inputs, name, unknown.hint, found.symbolic);
}

/// Throws where a toolchain that is required has no kernel in a plan, nor in a program for any size that can be used.
void RequireKernels(const CompileOptions& options, const CompileReport& report, const AnySizeContenders& found,
                    const std::string& name) {
  CompileOptions asked = options;
  std::erase_if(asked.require, [&](const std::string& one) { return found.IsRight(one); });
  CheckRequired(asked, report, name);
}

/// Returns the fastest of the programs that were `found`, and notes why others are not.
AnySizeContender ChooseOf(AnySizeContenders& found, const IRModule& source, const CompileOptions& options,
                          const DynamicShapesOptions& unknown, AnySizeOptions any_size) {
  any_size.budget_seconds = options.budget_seconds * (found.program.regions.empty() ? 1 : kAnySizeShare);
  if (options.should_stop && options.should_stop()) any_size.budget_seconds = 0;
  any_size.why_refused = [&](const std::vector<EvaluatedOperator>& evaluated) {
    return found.symbolic.empty() ? "" : WhyRefused(evaluated, unknown);
  };
  any_size.on_contender = [&](const std::string& toolchain) {
    if (options.progress != nullptr && !found.symbolic.empty()) {
      options.progress->Phase(fmt::format("any size with {}", toolchain));
    }
  };
  if (!options.dump.empty()) any_size.dump = options.dump / "dynamic";
  const size_t winner = ChooseAtAnySize(found.contenders, source, any_size);
  found.reasons.merge(ReasonsOfLosers(found.contenders, winner));
  return found.contenders[winner];
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

/// Writes the executable if `check` does not throw of what is loaded from its file.
void Write(const vm::Executable& executable, const std::function<void(const vm::Executable&)>& check,
           const CompileOptions& options, CompileReport& report) {
  report.output_bytes = WriteExecutable(
      options.output,
      [&](const std::filesystem::path& file) -> Result<void> {
        executable.Save(file);
        check(vm::Executable::Load(file));
        return {};
      },
      [&](const std::filesystem::path& file) {
        report.output_bytes = static_cast<int64_t>(std::filesystem::file_size(file));
        if (options.on_written) options.on_written(report, file);
      });
}

}  // namespace

CompileReport CompileProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                             const DynamicShapesOptions& unknown, const ProgramSource& source,
                             const CompileRegion& compile_region) {
  const auto started = std::chrono::steady_clock::now();
  AnySizeContenders found =
      FindAnySizeContenders(module, unknown.toolchain, unknown.symbolic, unknown.is_symbolic_alone);
  const IRModule& program = found.program.module;
  if (found.symbolic.empty()) RefuseProducts(found.contenders.front().evaluated, name, unknown);
  const std::vector<DistinctRegion> regions = Distinct(found.program);
  if (regions.empty()) RefuseUnsearched(options, found, unknown, name);
  const TemporaryFolder folder;
  const RegionFiles files(options, folder.path());
  files.CheckNumber(regions.size());
  std::map<std::string, Executable> kernels;
  const CompileOptions for_regions = ForRegions(options, found);
  CompileReport report =
      ForEachRegion(regions, name, for_regions, [&](const DistinctRegion& region, CompileOptions own) {
        own.output = folder / fmt::format("region{}.clg", kernels.size());
        files.SetFiles(kernels.size(), own);
        if (!options.dump.empty()) own.dump = options.dump / fmt::format("region-{:03}", kernels.size());
        const std::string sizes = program.Lookup(region.global)->attrs().StringOr(kAttrSizes, "");
        const std::string called =
            fmt::format("{}, {}region {}", name, sizes.empty() ? "" : sizes + ", ", kernels.size());
        CompileReport made = compile_region(IRModule::FromFunction(region.function), called, own);
        kernels.emplace(region.digest, Executable::Load(own.output));
        return made;
      });
  files.Write(program, regions);
  AnySizeOptions any_size{OptionsOfProgram(options, unknown, report), {}, folder.path()};
  any_size.checking = CheckingOf(source, name, options, any_size.compiling.num_threads);
  any_size.compiling.find_kernel = [&](const Function& function) -> std::optional<Executable> {
    const auto it = kernels.find(DigestOf(*function));
    if (it == kernels.end()) return std::nullopt;
    return it->second;
  };
  AnySizeContender winner = ChooseOf(found, source.module, options, unknown, std::move(any_size));
  RequireKernels(options, report, found, name);
  RefuseProducts(winner.evaluated, name, unknown);
  AddDynamic(winner.module, report);
  AddParts(winner, found.reasons, unknown, report);
  report.evaluated = std::move(winner.evaluated);
  const auto check = [&](const vm::Executable& loaded) {
    Check(source, loaded, CheckingOf(source, name, options, report.num_threads), options, report);
  };
  Write(*winner.executable, check, options, report);
  WarnOf(report, options, unknown, found.symbolic);
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
  WarnOf(report, options, unknown, {});
  report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace collage
