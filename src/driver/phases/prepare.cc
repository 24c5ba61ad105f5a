// prepare.cc: first phase: checks what is given, chooses toolchains, prepares the module, opens the database.
#include <fmt/format.h>

#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/transform/passes.h"
#include "driver/compilation.h"
#include "driver/pack/pack_models.h"
#include "driver/play_off/whole_model_check.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

void DescribeModel(const IRModule& module, CompileReport& report) {
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++report.num_operators;
    if (const ConstantNode* constant = As<ConstantNode>(expr))
      report.num_parameters += constant->value().num_elements();
  });
}

}  // namespace

void Compilation::Prepare(bool runs_passes) {
  const Stopwatch stopwatch(report_.import_seconds);
  for (const NamedInputs& inputs : options_.check_inputs) {
    check_inputs_.push_back(InOrderOfParameters(inputs, given_.main(), model_.string()));
  }
  report_.model = model_.filename().string();
  report_.output = options_.output;
  if (options_.runs_elsewhere()) OpenDatabase();
  report_.machine = machine_ ? machine_->cpu : ThisMachine().cpu;
  const int usual_threads = machine_ ? machine_->num_threads : AvailableProcessors();
  report_.num_threads = options_.num_threads > 0 ? options_.num_threads : usual_threads;
  SetNumThreads(report_.num_threads);
  ChooseToolchains();
  CheckCompilers();

  Phase("import");
  module_ = runs_passes ? PrepareForPartitioning(given_, options_.pass_context) : given_;
  if (runs_passes) forms_ = OtherForms(given_, module_, toolchains(), options_.pass_context);
  DescribeModel(module_, report_);
  if (!options_.runs_elsewhere()) OpenDatabase();
}

void Compilation::OpenDatabase() {
  std::string place = options_.database.empty() ? TuningDatabase::DefaultPlace() : options_.database;
  if (options_.packs) place = (folder_ / "none.db").string();  // costs are found elsewhere
  database_ = std::make_unique<TuningDatabase>(place);
  for (const std::string& notice : database_->notices()) Warn(notice);
  if (!options_.machine.empty()) machine_ = FindMachine(*database_, options_.machine);
}

void Compilation::ChooseToolchains() {
  report_.toolchains = ProbeFor(options_);
  selection_.emplace(options_, report_.toolchains);
  for (ToolchainReport& probed : report_.toolchains) {
    for (const Toolchain* toolchain : toolchains()) {
      if (GoesBy(*toolchain, probed.name)) probed.participants.push_back(toolchain->name());
    }
    probed.takes_part = !probed.participants.empty();
    if (!machine_ || !probed.takes_part) continue;
    probed.available = true;  // under its options
    const auto version = machine_->versions.find(probed.name);
    if (version != machine_->versions.end()) probed.version = version->second;
  }
  report_.precision_variants = selection_->variants();
  report_.no_precision_variants = selection_->no_variants();
  for (const std::string& notice : selection_->notices()) Warn(notice);
}

/// Refuses toolchains that do not compile here what was measured on the other machine.
void Compilation::CheckCompilers() const {
  if (!machine_) return;
  for (const Toolchain* toolchain : toolchains()) {
    const auto refuse = [&](const std::string& why, const std::string& hint) {
      throw Error(
          ErrorCategory::kUnavailable,
          fmt::format("toolchain '{}' cannot compile for machine '{}': {}", toolchain->name(), machine_->name, why), "",
          hint);
    };
    if (CompilesForThisProcessor(*toolchain) && machine_->fingerprint != ThisMachine().fingerprint) {
      refuse(fmt::format("its code is for processors of this kind, {}", ThisMachine().fingerprint),
             "name the other machine's processor when packing and when compiling, as in --target \"llvm "
             "-mcpu=x86-64-v3\", and toolchains that compile for it with --target");
    }
    const auto measured = machine_->compilers.find(RegisteredName(toolchain->name()));
    if (measured == machine_->compilers.end()) {
      refuse("it was not measured there", "measure a pack with it, or leave it out with --target or --toolchains");
    }
    const std::string version = ProbeCompilerOf(*toolchain).version;
    if (measured->second != version) {
      refuse(fmt::format("its compiler is {}, costs are of {}", version, measured->second),
             "make and measure a new pack");
    }
  }
}

const std::string& Compilation::Fingerprint() const {
  return machine_ ? machine_->fingerprint : ThisMachine().fingerprint;
}

std::map<std::string, std::string> Compilation::Versions() const {
  if (machine_) return machine_->versions;
  std::map<std::string, std::string> versions;
  for (const ToolchainReport& probed : report_.toolchains) versions[probed.name] = TuningVersion(probed);
  return versions;
}

}  // namespace collage
