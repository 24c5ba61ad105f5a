// pack.cc: the phases of a compilation that a measuring pack needs: prepare, candidates; for the machine that these
// were measured on, also costs and the search.
#include "driver/compilation.h"
#include "driver/pack/pack_builder.h"
#include "support/stopwatch.h"

namespace collage {

CompileReport Compilation::Pack(PackBuilder& pack) {
  {
    const Stopwatch stopwatch(report_.total_seconds);
    Prepare(/*runs_passes=*/true);
    if (machine_) {
      PackContenders(pack);
      return std::move(report_);
    }
    const std::vector<PartitionSpec> specs = selection_->Specs();
    std::vector<ModelForm> forms{{module_, {}}};
    forms.insert(forms.end(), forms_.begin(), forms_.end());
    for (const ModelForm& form : forms) {
      Phase("candidates");
      const Candidates candidates(form.module.main(), specs, report_.num_threads);
      report_.num_candidates += static_cast<int64_t>(candidates.candidates().size());
      report_.num_variants += static_cast<int64_t>(candidates.variants().size());
      report_.num_distinct += static_cast<int64_t>(candidates.classes().size());
      const std::unique_ptr<CostEstimator> estimator = MakeEstimatorFor(candidates);
      Partitioner partitioner(candidates, *estimator);
      const std::string name = form.owners.empty() ? report_.model : report_.model + " for " + form.owners[0]->name();
      pack.Add({name, FootprintBytes(module_), WorkOf(form.module.main())}, partitioner, options_);
    }
  }
  return std::move(report_);
}

/// Packs the covers that a compilation would choose among, for a play-off on the machine.
void Compilation::PackContenders(PackBuilder& pack) {
  leaves_out_unknown_ = true;
  builds_covers_ = true;
  std::vector<ContenderModule> contenders = FindContenders(/*must_cover=*/true);
  if (report_.budget_spent) WarnOfUnknownCosts();
  pack.AddPlayOff({report_.model, module_, std::move(contenders), Fingerprint(), Versions()});
}

}  // namespace collage
