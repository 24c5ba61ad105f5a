// pack_models.cc: all models, one after the other; then everything is compiled and written.
#include "driver/pack/pack_models.h"

#include <fmt/format.h>

#include "collage/measuring_pack.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "cost/database/measured_machine.h"
#include "driver/pack/pack_builder.h"
#include "support/file.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

void Describe(const MeasuringPack& pack, PackReport& report) {
  report.num_threads = pack.num_threads;
  for (const PackedToolchain& toolchain : pack.toolchains) {
    report.toolchains.push_back(toolchain.name);
    if (toolchain.for_processor) report.for_this_processor.push_back(toolchain.name);
  }
  for (const PackedModel& model : pack.models) {
    report.models.push_back(
        {model.name, static_cast<int64_t>(model.candidates.size()), static_cast<int64_t>(model.conversions.size())});
  }
  for (const PackedPlayOff& play_off : pack.play_offs) {
    report.play_offs.push_back({play_off.model, static_cast<int64_t>(play_off.contenders.size())});
  }
  report.num_partitions = static_cast<int64_t>(pack.partitions.size());
  for (const PackedPartition& partition : pack.partitions) {
    for (const PackedCode& code : partition.codes) {
      if (code.compiled >= 0) {
        ++report.num_compiled;
        report.num_schedules += &code == partition.codes.data() ? 0 : 1;
        continue;
      }
      ++report.num_declined;
      if (!report.first_failure.empty()) continue;
      report.first_failure =
          fmt::format("{}: {}", pack.toolchains[static_cast<size_t>(partition.toolchain)].name, code.failure);
    }
  }
}

/// The number of threads that kernels are compiled for.
int NumThreads(const CompileOptions& options) {
  if (options.num_threads > 0) return options.num_threads;
  if (options.machine.empty()) return AvailableProcessors();
  TuningDatabase database(options.database.empty() ? TuningDatabase::DefaultPlace() : options.database);
  return FindMachine(database, options.machine).num_threads;
}

}  // namespace

std::vector<ToolchainReport> ProbeFor(const CompileOptions& options) {
  std::vector<ToolchainReport> reports = ProbeToolchains();
  if (!options.runs_elsewhere()) return reports;
  for (ToolchainReport& report : reports) {
    const Availability compiler = ProbeCompilerOf(*ToolchainRegistry::Global().Find(report.name));
    report.available = compiler.available;
    report.version = compiler.version;
    report.reason = compiler.reason;
    report.hint = compiler.hint;
  }
  return reports;
}

PackReport PackModels(const std::vector<std::filesystem::path>& models, const CompileOptions& options,
                      int max_schedules, const std::filesystem::path& output) {
  CheckCanWrite(output);
  if (!options.machine.empty() && max_schedules > 0) {
    throw Error(ErrorCategory::kInput, "schedules are of candidates, and contenders are packed", "--schedules",
                "pack schedules with the candidates, without --machine");
  }
  CompileOptions own = options;
  own.packs = options.machine.empty();  // else costs of that machine choose what is packed
  PackReport report;
  {
    const Stopwatch stopwatch(report.seconds);
    PackBuilder builder(NumThreads(options));
    for (const std::filesystem::path& model : models) PackModel(model, own, builder);
    if (options.progress != nullptr) options.progress->Phase("compile");
    builder.Compile(
        {max_schedules,
         {.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.candidate_timeout_seconds * 1000)),
          .memory_bytes = options.candidate_memory_bytes}},
        options.progress);
    if (options.progress != nullptr) options.progress->Phase("write");
    WritePack(builder.pack(), output);
    Describe(builder.pack(), report);
  }
  report.output = output;
  report.output_bytes = static_cast<int64_t>(std::filesystem::file_size(output));
  return report;
}

}  // namespace collage
