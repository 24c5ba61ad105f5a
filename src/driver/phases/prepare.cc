// prepare.cc: first phase: checks what is given, chooses toolchains, prepares the module, opens the database.
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "driver/compilation.h"
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
  report_.machine = ThisMachine().cpu;
  report_.num_threads = options_.num_threads > 0 ? options_.num_threads : AvailableProcessors();
  SetNumThreads(report_.num_threads);
  report_.toolchains = ProbeToolchains();
  selection_.emplace(options_, report_.toolchains);
  for (ToolchainReport& probed : report_.toolchains) {
    for (const Toolchain* toolchain : toolchains()) {
      if (GoesBy(*toolchain, probed.name)) probed.participants.push_back(toolchain->name());
    }
    probed.takes_part = !probed.participants.empty();
  }
  report_.precision_variants = selection_->variants();
  report_.no_precision_variants = selection_->no_variants();
  for (const std::string& notice : selection_->notices()) Warn(notice);

  Phase("import");
  module_ = runs_passes ? PrepareForPartitioning(given_, options_.pass_context) : given_;
  if (runs_passes) forms_ = OtherForms(given_, module_, toolchains(), options_.pass_context);
  DescribeModel(module_, report_);
  database_ =
      std::make_unique<TuningDatabase>(options_.database.empty() ? TuningDatabase::DefaultPlace() : options_.database);
  for (const std::string& notice : database_->notices()) Warn(notice);
}

std::map<std::string, std::string> Compilation::Versions() const {
  std::map<std::string, std::string> versions;
  for (const ToolchainReport& probed : report_.toolchains) versions[probed.name] = TuningVersion(probed);
  return versions;
}

}  // namespace collage
