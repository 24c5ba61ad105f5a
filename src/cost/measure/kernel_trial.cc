// kernel_trial.cc: the order of the runs, and the first fault.
#include "cost/measure/kernel_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "collage/target/varying_results.h"
#include "cost/machine/roofline.h"
#include "cost/measure/leak_check.h"
#include "runtime/compare.h"
#include "target/accuracy.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

// Nine functions on all draws, about; more on two.
constexpr size_t kReferencesKept = 112;
// Evaluating the reference takes longer than measuring for partitions that add up more products than this.
constexpr double kSmallPartition = 2e7;
// How long writes after the return are waited for, if there are threads that could write.
constexpr auto kLateWrites = std::chrono::milliseconds(1);

constexpr const char* kIsLate = "went on writing its results after it had returned";

/// Whether results may be no finite numbers where a model's are.
bool IsFarFromUsual(Draw draw) { return draw == Draw::kWide || draw == Draw::kTiny || draw == Draw::kHuge; }

bool HasSpecialValues(Draw draw) { return draw == Draw::kInfinite || draw == Draw::kNaN; }

/// One kernel in one set of buffers.
class KernelTrial {
 public:
  KernelTrial(LoadedPartition& partition, const PartitionRequest& request, const TrialOptions& options,
              BlockPlacement placement, double& max_error)
      : partition_(partition),
        request_(request),
        options_(options),
        max_error_(max_error),
        buffers_(request, placement) {
    partition_.Bind(buffers_);
  }

  /// Runs on all draws, then on the first one again. Empty, or the first fault.
  std::string TryAll() {
    const PartitionDraws draws{.takes_long = WorkOf(request_.function).multiply_adds > kSmallPartition,
                               .in_float16 = options_.computed_in == kFloat16 || HasFloat16(request_.function),
                               .is_exact = options_.is_exact,
                               .is_narrow = options_.computed_in.has_value() || KeepsNarrow(request_.layouts)};
    for (const Draw draw : DrawsForPartition(request_.function, draws)) {
      std::string fault = Try(draw, "");
      if (!fault.empty()) return fault;
      if (draw == Draw::kUnit) first_ = Bytes();
    }
    std::string fault = TryAgain();
    return fault.empty() ? FindLateWrites() : fault;
  }

  /// Runs on the first draw only.
  std::string TryOnce() { return Try(Draw::kUnit, ""); }

 private:
  using ResultBytes = std::vector<std::vector<std::byte>>;

  ResultBytes Bytes() const {
    ResultBytes all;
    for (size_t i = 0; i < buffers_.num_outputs(); ++i) all.push_back(buffers_.OutputBytes(i));
    return all;
  }

  void Run() {
    buffers_.PoisonOutputs();
    partition_.PoisonWorkspace();
    partition_.kernel().Run();
    buffers_.Synchronize();
  }

  std::string FindStrayAccesses() const {
    const std::string fault = buffers_.FindStrayAccesses();
    return fault.empty() ? partition_.FindStrayAccesses() : fault;
  }

  /// Fills the buffers, runs and compares. `when` is added to what is wrong.
  std::string Try(Draw draw, const std::string& when) {
    if (draw != Draw::kUnit || !last_.empty()) buffers_.Fill(draw);
    std::optional<Reference> reference;
    if (options_.has_reference) {
      try {
        reference = ReferenceFor(request_, buffers_.plain_inputs(), draw);
      } catch (const Error&) {  // a scatter beyond the end, say
        if (draw != Draw::kUnit) return "";
        if (!options_.may_be_refused) throw;
      }
    }
    Run();
    const uint64_t digest = buffers_.OutputDigest();
    std::string fault = FindStrayAccesses();
    if (fault.empty() && reference) fault = Compare(*reference, draw);
    if (!fault.empty()) fault += when;
    if (!fault.empty()) WaitForLateWrites(digest);  // results that come late are not wrong in another way
    if (buffers_.OutputDigest() != digest) return kIsLate;
    last_ = Bytes();
    return fault;
  }

  /// Waits longer than a busy machine delays a thread, if there are any.
  void WaitForLateWrites(uint64_t digest) const {
    constexpr int kMostWaits = 30;
    for (int i = 0; i < kMostWaits && HasThreadsBeyondPool() && buffers_.OutputDigest() == digest; ++i) {
      std::this_thread::sleep_for(kLateWrites);
    }
  }

  std::string Compare(const Reference& reference, Draw draw) {
    const std::vector<Tensor> actual = buffers_.PlainOutputs();
    if (actual.size() != reference.results().size()) return "the number of results differs";
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = reference.Compare(i, actual[i], options_.computed_in);
      if (!IsFarFromUsual(draw) && !HasSpecialValues(draw))
        max_error_ = std::max(max_error_, comparison.max_relative_error);
      if (comparison.agrees) continue;
      if (!last_.empty() && last_[i] == buffers_.OutputBytes(i)) {
        return fmt::format("result {} did not change when the inputs did ({}): {}", i, NameOf(draw),
                           comparison.difference);
      }
      return fmt::format("wrong result {} on {}, {}", i, NameOf(draw), comparison.difference);
    }
    return "";
  }

  /// The first inputs again, after others and after themselves.
  std::string TryAgain() {
    for (const char* when : {", after a run on other inputs", ", in a second run on the same inputs"}) {
      std::string fault = Try(Draw::kUnit, when);
      if (!fault.empty()) return fault;
      for (size_t i = 0; i < first_.size() && !options_.results_vary; ++i) {
        if (first_[i] != last_[i]) return DescribeVariation(i);
      }
    }
    return "";
  }

  std::string DescribeVariation(size_t result) const {
    const auto differs = std::ranges::mismatch(first_[result], last_[result]);
    return fmt::format(
        "two runs on equal inputs differ: result {}, from byte {} of {}; a toolchain whose results vary declares it "
        "(HasVaryingResults)",
        result, differs.in1 - first_[result].begin(), first_[result].size());
  }

  std::string FindLateWrites() {
    if (!HasThreadsBeyondPool()) return "";
    Run();
    buffers_.PoisonOutputs();
    std::this_thread::sleep_for(kLateWrites);
    return buffers_.OutputsArePoisoned() ? "" : kIsLate;
  }

  LoadedPartition& partition_;
  const PartitionRequest& request_;
  const TrialOptions& options_;
  double& max_error_;
  PartitionBuffers buffers_;
  ResultBytes first_;  ///< results of the first inputs
  ResultBytes last_;   ///< results of the last run
};

}  // namespace

TrialOptions TrialOptionsFor(const Toolchain& toolchain) {
  return {.computed_in = InferencePrecisionOf(toolchain),
          .is_exact = IsToldToBeExact(toolchain),
          .results_vary = ResultsVary(toolchain)};
}

Reference ReferenceFor(const PartitionRequest& request, const std::vector<Tensor>& inputs, Draw draw) {
  static std::deque<std::pair<std::string, Reference>> known;
  std::string key = StructuralHash(request.function) + std::to_string(static_cast<int>(draw));
  // Inputs are always the same of one draw, but for those that layouts round.
  for (const Layout layout : request.layouts.inputs)
    key += LetterOf(Keeping(Layout::kPlain, NarrowType(layout).value_or(kFloat32)));
  for (const auto& [hash, reference] : known) {
    if (hash == key) return reference;
  }
  Reference reference(
      request.function, inputs,
      {.only_finite = IsFarFromUsual(draw), .only_numbers = draw == Draw::kInfinite, .on_operator = {}});
  known.emplace_back(std::move(key), reference);
  if (known.size() > kReferencesKept) known.pop_front();
  return reference;
}

std::string TryKernel(LoadedPartition& partition, const PartitionRequest& request, const TrialOptions& options,
                      double& max_error) {
  std::string fault = KernelTrial(partition, request, options, BlockPlacement::kLeastAligned, max_error).TryAll();
  if (!fault.empty()) return fault;
  return KernelTrial(partition, request, options, BlockPlacement::kAtEnd, max_error).TryOnce();
}

}  // namespace collage
