// compile_model.cc: the main job: reads a model and compiles it as its kind asks for.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/partition_for.h"
#include "collage/runtime/thread_pool.h"
#include "collage/settings.h"
#include "collage/support/error.h"
#include "collage/target/symbolic_sizes.h"
#include "collage/transform/passes.h"
#include "cost/estimator/estimators.h"
#include "cost/runner/runner.h"
#include "driver/compilation.h"
#include "driver/pack/pack_models.h"
#include "driver/play_off/whole_model_check.h"
#include "driver/programs/compile_program.h"
#include "driver/run_compilation.h"
#include "driver/toolchain_selection.h"
#include "driver/unsearched.h"
#include "lowering/partition_dump.h"
#include "program/named_sizes.h"
#include "program/regions.h"
#include "runtime/plan/file_kind.h"
#include "support/file.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

/// The purpose for which a model is read.
struct Job {
  bool only_tunes = false;
  PackBuilder* pack = nullptr;        ///< gets the candidates, which is all
  std::optional<size_t> region = {};  ///< the only one of a program that is compiled

  bool writes() const { return !only_tunes && pack == nullptr; }
  /// `compilation` as far as it is wanted.
  CompileReport Do(Compilation& compilation, Compilation::Purpose purpose) const {
    if (pack != nullptr) return compilation.Pack(*pack);
    return only_tunes ? compilation.Tune() : compilation.Run(purpose);
  }
};

/// Refuses, of a compilation for another machine, what needs a run on that machine.
void CheckForMachine(const CompileOptions& options) {
  if (options.machine.empty()) return;
  const auto refuse = [](const char* flag, const char* why) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("{}, and machine is not this one", why), flag,
                "leave it out, or compile on the other machine");
  };
  if (options.max_error) refuse("--max-error", "errors are found by runs");
  if (options.search == "evolutionary") refuse("--search evolutionary", "an evolutionary search times whole models");
  if (options.tuning_seconds > 0 || options.tuning_trials > 0) {
    refuse("--tuning-budget", "trials of schedules are timed");
  }
  if (!options.check_inputs.empty()) refuse("--check", "inputs are checked by runs");
  if (options.runner != "local") refuse("--runner", "a runner measures");
}

/// Refuses numbers that mean nothing, contradictions, and places where nothing can be written: before all work.
void CheckOptions(const CompileOptions& options, const Job& job) {
  const auto refuse = [](const std::string& message, const std::string& where = "") {
    throw Error(ErrorCategory::kInput, message, where);
  };
  CheckSettings(options);
  const std::vector<std::string> in_vain = RequiredInVain(options.pass_context);
  if (!in_vain.empty() && options.progress != nullptr) {
    options.progress->Warn(
        fmt::format("required passes have no effect, no compilation runs them: {}", fmt::join(in_vain, ", ")));
  }
  if (!options.partitioning.empty() && !options.partition_for.empty()) {
    refuse("a partitioning is given beside a toolchain that is to be alone", "--partition-for");
  }
  CheckForMachine(options);
  if (!options.estimate) CheckEstimator(options.estimator);
  CheckRunner(options.runner);
  const int processors = AvailableProcessors();
  if (options.machine.empty() && job.pack == nullptr && options.num_threads > processors) {
    throw Error(ErrorCategory::kInput,
                fmt::format("{} threads, but this process may use {} processor{}", options.num_threads, processors,
                            processors == 1 ? "" : "s"),
                "--threads", "compile on a machine that has them, or for one by --machine");
  }
  if (!job.writes()) return;
  if (!options.write_partitioning.empty()) {
    if (options.write_partitioning.lexically_normal() == options.output.lexically_normal()) {
      refuse("the executable and its partitioning go to the same file", options.output.string());
    }
    CheckCanWrite(options.write_partitioning);
  }
  if (!options.write_module.empty()) {
    if (options.write_module.lexically_normal() == options.output.lexically_normal()) {
      refuse("the executable and its module go to the same file", options.output.string());
    }
    CheckCanWrite(options.write_module);
  }
  if (options.explanation != "inside" && options.explanation != "none") {
    const std::filesystem::path explanation(options.explanation);
    if (explanation.empty()) refuse("a place for the explanation is wanted: inside, none or a file", "--explanation");
    if (explanation.lexically_normal() == options.output.lexically_normal()) {
      refuse("the executable and its explanation go to the same file", options.output.string());
    }
    CheckCanWrite(explanation);
  }
  if (!options.dump.empty()) PartitionDump{options.dump};  // throws where it cannot be begun
  CheckCanWrite(options.output);
}

void RefuseShapes(const CompileOptions& options, const std::string& where) {
  if (options.shapes.empty() && options.dims.empty() && options.constants.empty() && options.lengths.empty()) return;
  throw Error(ErrorCategory::kInput, "shapes, sizes and constants are for ONNX models: a module states its own", where);
}

/// An ONNX model, or Relay text.
IRModule ReadModel(const std::filesystem::path& model, bool is_onnx, const CompileOptions& options) {
  if (is_onnx) return ImportOnnx(model, ImportOptionsOf(options));
  RefuseShapes(options, model.string());
  return ParseModule(ReadFile(model), model.string());
}

/// Returns the options of a program, whose regions end in one executable: only toolchains that can all be in one
/// process take part, chosen in the fixed order. Adds to `notices` which are left out.
CompileOptions ForOneProcess(const CompileOptions& options, std::vector<std::string>& notices) {
  const ToolchainSelection selection(options, ProbeFor(options));
  const std::vector<const Toolchain*>& toolchains = selection.toolchains();
  const std::vector<std::vector<const Toolchain*>> sets = CompatibleSets(toolchains);
  if (sets.size() == 1) return options;
  CompileOptions own = options;
  own.toolchains.clear();
  own.targets.clear();
  own.accuracy.clear();
  own.precision.clear();
  for (const Toolchain* toolchain : sets.front()) {
    std::ranges::move(selection.TargetsOf(*toolchain), std::back_inserter(own.targets));
  }
  for (const Toolchain* toolchain : toolchains) {
    const bool stays = std::find(sets.front().begin(), sets.front().end(), toolchain) != sets.front().end();
    if (stays) continue;
    notices.push_back(
        fmt::format("'{}' takes no part: it cannot be in one executable with others, and a program's "
                    "regions are compiled one by one; choose with --toolchains",
                    toolchain->name()));
  }
  return own;
}

/// The toolchains that are available, for a program whose regions `in_regions` compile where `options` were given.
std::vector<KnownToolchain> FindKnownToolchains(const CompileOptions& options, const ToolchainSelection& in_regions) {
  const std::vector<ToolchainReport> probed = ProbeFor(options);
  const ToolchainSelection selection(options, probed);
  std::vector<KnownToolchain> all;
  for (const ToolchainReport& report : probed) {
    if (!report.available) continue;
    const Toolchain& toolchain = *ToolchainRegistry::Global().Find(report.name);
    std::string left_out = WhyLeftOut(toolchain, selection, options);
    if (left_out.empty() && !WhyLeftOut(toolchain, in_regions, options).empty()) {
      left_out = "it cannot be in one executable with others that take part";
    }
    all.push_back({&toolchain, std::move(left_out)});
  }
  return all;
}

/// The toolchains of `selection` that compile symbolic sizes. Variants in a lower precision only join plans, where
/// errors of the whole are bounded.
std::vector<const Toolchain*> SymbolicToolchains(const ToolchainSelection& selection) {
  std::vector<const Toolchain*> symbolic;
  for (const Toolchain* toolchain : selection.toolchains()) {
    const bool is_variant = std::ranges::find(selection.variants(), toolchain->name()) != selection.variants().end();
    if (!is_variant && !toolchain->is_native() && CompilesSymbolicSizes(*toolchain)) symbolic.push_back(toolchain);
  }
  return symbolic;
}

/// The ONNX model `model`, which was imported as `main` by `options`, once more with all its shapes bound.
BindShapes BindByImport(const std::filesystem::path& model, const Function& main, const CompileOptions& options) {
  const ImportOptions given = ImportOptionsOf(options);
  return [model, params = main->params(), given](const std::vector<Shape>& shapes) {
    ImportOptions bound{.constant_texts = given.constant_texts, .lengths = given.lengths};
    for (size_t i = 0; i < params.size(); ++i) bound.shapes[params[i]->name()] = shapes.at(i);
    return InferTypes(ImportOnnx(model, bound));
  };
}

/// `program` with functions for `sizes`, of which `bind` makes models. They are prepared as the program was.
IRModule WithNamedSizes(IRModule program, const std::vector<NamedSizes>& sizes, const BindShapes& bind,
                        const PassContext& own, const PassContext& context) {
  for (const NamedSizes& named : sizes) {
    try {
      const IRModule bound = PrepareForPartitioning(PrepareGraph(bind(named.shapes), own), context);
      program = WithSpecialised(std::move(program), bound, named.text);
    } catch (const Error& error) {
      throw Error(error.category(), fmt::format("with {}: {}", named.text, error.message()), error.where(),
                  error.hint());
    }
  }
  return program;
}

/// How the dynamic shapes of `program` are compiled. `open_inputs`: of an ONNX model, whose shapes could have been
/// given.
DynamicShapesOptions DynamicShapesOf(const IRModule& program, const ToolchainSelection& selection,
                                     const CompileOptions& options, const std::vector<OpenInput>& open_inputs) {
  DynamicShapesOptions unknown{.toolchain = selection.native(),
                               .symbolic = SymbolicToolchains(selection),
                               .is_symbolic_alone = !options.partition_for.empty(),
                               .refuses_evaluation = !open_inputs.empty(),
                               .inputs = open_inputs,
                               .hint = BindingHint(open_inputs),
                               .known = FindKnownToolchains(options, selection)};
  if (!open_inputs.empty()) return unknown;
  unknown.inputs = FindOpenInputs(program);
  unknown.hint = "give the sizes in the types of @main's parameters, or " + NamingHint(unknown.inputs);
  return unknown;
}

/// As its kind asks for: a graph, or a program around several. `open_inputs`: of an ONNX model.
CompileReport CompileAny(const IRModule& module, const std::filesystem::path& name, const CompileOptions& options,
                         const Job& job, const std::vector<OpenInput>& open_inputs) {
  const auto on_graph = [&](const IRModule& graph, const std::filesystem::path& called, const CompileOptions& own) {
    Compilation compilation(called, own, graph);
    return job.Do(compilation, Compilation::Purpose::kModel);
  };
  std::vector<std::string> notices;  // of a search, for when there is the first region to search
  const auto on_region = [&](const IRModule& graph, const std::filesystem::path& called, const CompileOptions& own) {
    for (const std::string& notice : std::exchange(notices, {})) {
      if (own.progress != nullptr) own.progress->Warn(notice);
    }
    Compilation compilation(called, own, graph);
    return job.Do(compilation, Compilation::Purpose::kRegion);
  };
  const IRModule graph = PrepareGraph(module, options.pass_context);
  const std::vector<NamedSizes> sizes = !options.tune_at.empty() ? CombineSizes(graph.main(), options.tune_at)
                                        : !options.dims.empty()  ? SpreadSizes(graph.main())
                                                                 : std::vector<NamedSizes>();
  if (!IsProgram(graph)) return on_graph(graph, name, options);
  if (!options.machine.empty()) {
    throw Error(
        ErrorCategory::kUnsupported,
        "the model has control flow or dynamic shapes: such programs are run before they are written, and machine "
        "is not this one",
        name.string(), "give the shapes of its inputs with --shape, or compile on the other machine");
  }
  for (const NamedInputs& inputs : options.check_inputs) InOrderOfParameters(inputs, graph.main(), name.string());
  const CompileOptions own = ForOneProcess(options, notices);
  const ToolchainSelection selection(own, ProbeFor(own));
  PassContext context = options.pass_context;  // regions are prepared once more, in the forms that toolchains want
  for (const Toolchain* toolchain : selection.toolchains()) {
    for (const std::string& name : UndoneFor(*toolchain)) context.disabled_pass.push_back(name);
  }
  const BindShapes by_import = open_inputs.empty() ? nullptr : BindByImport(name, graph.main(), options);
  const BindShapes by_types = [&](const std::vector<Shape>& shapes) { return BindParameters(graph, shapes); };
  const IRModule program = WithNamedSizes(PrepareForPartitioning(graph, context), sizes,
                                          by_import ? by_import : by_types, options.pass_context, context);
  const DynamicShapesOptions unknown = DynamicShapesOf(program, selection, options, open_inputs);
  if (job.region) {
    return CompileRegionAlone(program, name.filename().string(), own, unknown, *job.region, on_region);
  }
  if (!job.writes()) return TuneProgram(program, name.filename().string(), own, unknown, on_region);
  return CompileProgram(program, name.filename().string(), own, unknown, {graph, by_import, sizes}, on_region);
}

CompileReport ReadAndCompile(const std::filesystem::path& model, const CompileOptions& options, const Job& job) {
  CheckOptions(options, job);
  IRModule module;
  const bool is_onnx = !IsRelayText(model);
  const double seconds = SecondsOf([&] { module = ReadModel(model, is_onnx, options); });
  const std::vector<OpenInput> open = is_onnx ? FindOpenInputs(module) : std::vector<OpenInput>();
  CompileOptions own = options;
  if (options.on_written) {
    own.on_written = [&](CompileReport written, const std::filesystem::path& file) {
      written.import_seconds += seconds;
      options.on_written(written, file);
    };
  }
  CompileReport report = CompileAny(module, model, own, job, open);
  report.import_seconds += seconds;
  report.total_seconds += seconds;
  return report;
}

}  // namespace

ImportOptions ImportOptionsOf(const CompileOptions& options) {
  ImportOptions importing{.shapes = options.shapes, .constant_texts = options.constants};
  for (const auto& [name, length] : options.lengths) importing.lengths[name] = length.front();
  for (const auto& [name, sizes] : options.dims) importing.dims[name] = {sizes.front(), sizes.back()};
  return importing;
}

CompileReport RunCompilation(const std::filesystem::path& model, const CompileOptions& options) {
  return ReadAndCompile(model, options, {});
}

CompileReport RunCompilation(const IRModule& module, const std::string& name, const CompileOptions& options) {
  CheckOptions(options, {});
  RefuseShapes(options, name);
  return CompileAny(module, name, options, {}, /*open_inputs=*/{});
}

CompileReport RunRegion(const std::filesystem::path& model, size_t region, const CompileOptions& options) {
  return ReadAndCompile(model, options, {.region = region});
}

CompileReport PackModel(const std::filesystem::path& model, const CompileOptions& options, PackBuilder& pack) {
  return ReadAndCompile(model, options, {.pack = &pack});
}

CompileReport TuneModel(const std::filesystem::path& model, const CompileOptions& options) {
  return ReadAndCompile(model, options, {.only_tunes = true});
}

}  // namespace collage
