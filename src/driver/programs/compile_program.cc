// compile_program.cc: regions compiled one by one, bytecode around them.
#include "driver/programs/compile_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "bytecode/bytecode.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "driver/any_size/build.h"
#include "driver/any_size/choose.h"
#include "driver/any_size/find.h"
#include "driver/play_off/whole_model_check.h"
#include "driver/programs/distinct_regions.h"
#include "driver/programs/region_files.h"
#include "driver/report/report_numbers.h"
#include "driver/unsearched.h"
#include "driver/write_executable.h"
#include "program/regions.h"
#include "support/file.h"
#include "support/machine.h"
#include "target/annotations.h"

namespace collage {
namespace {

/// `options` without what is said of a program's inputs and of its file.
CompileOptions WithoutInputs(const CompileOptions& options) {
  CompileOptions own = options;
  own.shapes.clear();
  own.dims.clear();
  own.constants.clear();
  own.tune_at.clear();
  own.check_inputs.clear();
  own.on_written = nullptr;
  return own;
}

/// The options of a program as those of a region, with its share of the budgets.
CompileOptions OptionsOfRegion(const CompileOptions& options, const DistinctRegion& region) {
  CompileOptions own = WithoutInputs(options);
  own.budget_seconds *= region.share;
  own.tuning_seconds *= region.share;
  if (own.tuning_trials > 0) {
    own.tuning_trials = std::max<int64_t>(std::llround(static_cast<double>(own.tuning_trials) * region.share), 1);
  }
  return own;
}

CompileReport ForEachRegion(const std::vector<DistinctRegion>& regions, const std::string& name,
                            const CompileOptions& options,
                            const std::function<CompileReport(size_t region, const CompileOptions&)>& compile) {
  CompileReport all;
  all.model = name;
  all.output = options.output;
  for (size_t i = 0; i < regions.size(); ++i) {
    all.regions.push_back(compile(i, OptionsOfRegion(options, regions[i])));
    AddRegion(all.regions.back(), regions[i].num_equal, all);
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

/// One compilation of a program: its regions one by one, and bytecode around them.
class ProgramCompilation {
 public:
  ProgramCompilation(const IRModule& module, const std::string& name, const CompileOptions& options,
                     const DynamicShapesOptions& unknown, const ProgramSource& source,
                     const CompileRegion& compile_region)
      : name_(name),
        options_(options),
        unknown_(unknown),
        source_(source),
        compile_region_(compile_region),
        found_(FindAnySizeContenders(module, unknown.toolchain, unknown.symbolic, unknown.is_symbolic_alone)),
        regions_(Distinct(found_.program)),
        files_(options, folder_.path()) {
    if (found_.symbolic.empty()) RefuseProducts(found_.contenders.front().evaluated, name, unknown);
    files_.CheckNumber(regions_.size());
    writes_early_ = options.partition_for.empty() && options.partitioning.empty() && options.require.empty() &&
                    options.dump.empty();
  }

  CompileReport Run() {
    const auto started = std::chrono::steady_clock::now();
    if (regions_.empty()) RefuseUnsearched(options_, found_, unknown_, name_);
    CompileReport report =
        ForEachRegion(regions_, name_, ForRegions(options_, found_),
                      [&](size_t region, CompileOptions own) { return Search(region, std::move(own)); });
    report.num_checkpoints = num_written_;
    files_.Write(found_.program.module, regions_);
    AnySizeOptions any_size{OptionsOfKernels(report), {}, folder_.path()};
    any_size.checking = Checking(any_size.compiling.num_threads);
    AnySizeContender winner = ChooseOf(found_, source_.module, options_, unknown_, std::move(any_size));
    RequireKernels(options_, report, found_, name_);
    RefuseProducts(winner.evaluated, name_, unknown_);
    AddDynamic(winner.module, report);
    AddParts(winner, found_.reasons, unknown_, report);
    report.evaluated = std::move(winner.evaluated);
    const auto check = [&](const vm::Executable& loaded) {
      Check(source_, loaded, Checking(report.num_threads), options_, report);
    };
    Write(*winner.executable, check, options_, report);
    WarnOf(report, options_, unknown_, found_.symbolic);
    report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return report;
  }

 private:
  /// A region, as reports call it.
  std::string Called(size_t region) const {
    const IRModule& program = found_.program.module;
    const std::string sizes = program.Lookup(regions_[region].global)->attrs().StringOr(kAttrSizes, "");
    return fmt::format("{}, {}region {}", name_, sizes.empty() ? "" : sizes + ", ", region);
  }

  CompileReport Compile(size_t region, CompileOptions own) {
    own.output = folder_ / fmt::format("region{}.clg", region);
    files_.SetFiles(region, own);
    if (!options_.dump.empty()) own.dump = options_.dump / fmt::format("region-{:03}", region);
    CompileReport report = compile_region_(IRModule::FromFunction(regions_[region].function), Called(region), own);
    kernels_.insert_or_assign(regions_[region].digest, Executable::Load(own.output));
    return report;
  }

  /// Searches a region. A compilation that is stopped takes what it has.
  CompileReport Search(size_t region, CompileOptions own) {
    const auto early = early_.find(region);
    if (early != early_.end() && options_.should_stop && options_.should_stop()) return std::move(early->second);
    if (writes_early_) {
      own.on_checkpoint = [this, region](const std::filesystem::path& file) {
        kernels_.insert_or_assign(regions_[region].digest, Executable::Load(file));
        if (writes_early_) WriteEarly();
      };
    }
    return Compile(region, std::move(own));
  }

  /// Writes the program with the kernels that there are by now. Regions without get those that need no search.
  void WriteEarly() {
    try {
      for (size_t region = 0; region < regions_.size(); ++region) {
        if (!kernels_.contains(regions_[region].digest)) early_.emplace(region, CompileAtOnce(region));
      }
      CompileReport ignored;
      const vm::CompileOptions compiling = OptionsOfKernels(ignored);
      AnySizeContender program = found_.contenders.front();
      BuildHere(program, compiling, {});
      RefuseProducts(program.evaluated, name_, unknown_);
      WriteExecutable(
          options_.output,
          [&](const std::filesystem::path& file) -> Result<void> {
            program.executable->Save(file);
            CheckProgram(source_.module, vm::Executable::Load(file), Checking(compiling.num_threads));
            return {};
          },
          nullptr);
      ++num_written_;
    } catch (const Error&) {
      writes_early_ = false;  // the end of the compilation meets it again, and says so
    }
  }

  CompileReport CompileAtOnce(size_t region) {
    CompileOptions own = OptionsOfRegion(options_, regions_[region]);
    own.should_stop = [] { return true; };
    own.progress = nullptr;
    return Compile(region, std::move(own));
  }

  vm::CompileOptions OptionsOfKernels(CompileReport& report) const {
    vm::CompileOptions compiling = OptionsOfProgram(options_, unknown_, report);
    compiling.find_kernel = [this](const Function& function) -> std::optional<Executable> {
      const auto it = kernels_.find(DigestOf(*function));
      if (it == kernels_.end()) return std::nullopt;
      return it->second;
    };
    return compiling;
  }

  ProgramCheckOptions Checking(int num_threads) const { return CheckingOf(source_, name_, options_, num_threads); }

  const std::string& name_;
  const CompileOptions& options_;
  const DynamicShapesOptions& unknown_;
  const ProgramSource& source_;
  const CompileRegion& compile_region_;
  AnySizeContenders found_;
  std::vector<DistinctRegion> regions_;
  TemporaryFolder folder_;
  RegionFiles files_;
  std::map<std::string, Executable> kernels_;  ///< by the digest of their region
  std::map<size_t, CompileReport> early_;      ///< regions that have been compiled without a search
  bool writes_early_ = false;
  int64_t num_written_ = 0;  ///< executables that were written before the end
};

}  // namespace

CompileReport CompileProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                             const DynamicShapesOptions& unknown, const ProgramSource& source,
                             const CompileRegion& compile_region) {
  return ProgramCompilation(module, name, options, unknown, source, compile_region).Run();
}

CompileReport CompileRegionAlone(const IRModule& module, const std::string& name, const CompileOptions& options,
                                 const DynamicShapesOptions& unknown, size_t region,
                                 const CompileRegion& compile_region) {
  const std::vector<DistinctRegion> regions =
      Distinct(FindAnySizeContenders(module, unknown.toolchain, unknown.symbolic, unknown.is_symbolic_alone).program);
  if (region >= regions.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("the program has {} regions, no region {}", regions.size(), region),
                name);
  }
  return compile_region(IRModule::FromFunction(regions[region].function), name, WithoutInputs(options));
}

CompileReport TuneProgram(const IRModule& module, const std::string& name, const CompileOptions& options,
                          const DynamicShapesOptions& unknown, const CompileRegion& tune_region) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<DistinctRegion> regions = Distinct(FindRegions(module));
  CompileReport report = ForEachRegion(regions, name, options, [&](size_t region, const CompileOptions& own) {
    return tune_region(IRModule::FromFunction(regions[region].function), name, own);
  });
  WarnOf(report, options, unknown, {});
  report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace collage
