// kernel_trial_test.cc: inputs that change while a kernel is timed, and what is found without a reference.
#include "cost/measure/kernel_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "cost/measure/input_toggle.h"
#include "cost/measure/measure.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr int64_t kElements = 64;

struct Counts {
  int64_t runs = 0;
  int64_t computed = 0;
};
Counts& TheCounts() {
  static Counts counts;
  return counts;
}

/// relu that remembers its last results, or has another habit.
class RememberingKernel : public Kernel {
 public:
  explicit RememberingKernel(std::string habit) : habit_(std::move(habit)) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    input_ = static_cast<float*>(inputs[0]);
    output_ = static_cast<float*>(outputs[0]);
  }
  void Run() override {
    ++TheCounts().runs;
    if (habit_ == "remembers" && !inputs_.empty() && std::equal(inputs_.begin(), inputs_.end(), input_)) {
      std::copy(results_.begin(), results_.end(), output_);
      return;
    }
    ++TheCounts().computed;
    for (int64_t i = 0; i < kElements; ++i) output_[i] = std::max(input_[i], 0.0F);
    if (habit_ == "counts") output_[0] = static_cast<float>(TheCounts().runs);
    inputs_.assign(input_, input_ + kElements);
    results_.assign(output_, output_ + kElements);
  }

 private:
  std::string habit_;
  float* input_ = nullptr;
  float* output_ = nullptr;
  std::vector<float> inputs_;
  std::vector<float> results_;
};

class RememberingLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<RememberingKernel>(
        std::string(reinterpret_cast<const char*>(image.blob.data()), image.blob.size()));
  }
};

class KernelTrialTest : public testing::Test {
 protected:
  KernelTrialTest() {
    setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);  // other tests hold no lock of this one's
    const Var x = MakeVar("x", TensorType(Shape{kElements}, kFloat32));
    request_.function = MakeFunction({x}, MakeCall("nn.relu", {x}));
    InferType(request_.function);
    request_.layouts = PlainLayouts(1, 1);
    AddKernelLoader("remembering", std::make_unique<RememberingLoader>());
    TheCounts() = {};
  }
  ~KernelTrialTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  static CompiledPartition Compiled(const std::string& habit) {
    CompiledPartition compiled;
    compiled.loader = "remembering";
    compiled.blob.resize(habit.size());
    std::memcpy(compiled.blob.data(), habit.data(), habit.size());
    return compiled;
  }
  std::string Try(const std::string& habit, const TrialOptions& options) {
    LoadedPartition partition(Compiled(habit), 1);
    double max_error = 0;
    return TryKernel(partition, request_, options, max_error);
  }

  TemporaryFolder folder_;
  PartitionRequest request_;
};

TEST_F(KernelTrialTest, AKernelThatRemembersIsTimedComputing) {
  for (const CacheLevel operands : {CacheLevel::kNear, CacheLevel::kShared}) {
    TheCounts() = {};
    const TuningRecord record = MeasureCompiled(Compiled("remembers"), request_,
                                                {.min_seconds = 0.001, .budget_seconds = 0.01, .operands = operands});
    EXPECT_TRUE(record.ok) << record.reason;
    // A few runs of the checks have equal inputs.
    EXPECT_GT(TheCounts().runs, 50);
    EXPECT_GT(TheCounts().computed, TheCounts().runs * 9 / 10);
  }
}

TEST_F(KernelTrialTest, WithoutAReferenceEqualInputsStillHaveEqualResults) {
  EXPECT_EQ(Try("computes", {.has_reference = false}), "");
  EXPECT_NE(Try("counts", {.has_reference = false}).find("two runs on equal inputs differ: result 0, from byte"),
            std::string::npos);
  EXPECT_EQ(Try("counts", {.results_vary = true, .has_reference = false}), "");
}

TEST(InputToggleTest, ChangesOneElementOfEachAndBack) {
  const Tensor x = Tensor::Of<float>({4}, kFloat32, std::vector<float>{1, 1, 3, 4});
  const Tensor indices = Tensor::Of<int64_t>({2}, kInt64, std::vector<int64_t>{7, 2});
  const Tensor equal = Tensor::Of<float>({2}, kFloat32, std::vector<float>{5, 5});
  const Tensor none = Tensor::Empty({0}, kFloat32);
  InputToggle toggle({x, indices, equal, none});
  toggle.Set(true);
  EXPECT_EQ(x.At(0), 3);
  EXPECT_EQ(indices.At(0), 2);
  EXPECT_EQ(equal.At(0), 5);
  toggle.Set(true);
  EXPECT_EQ(x.At(0), 3);
  toggle.Set(false);
  EXPECT_EQ(x.At(0), 1);
  EXPECT_EQ(indices.At(0), 7);
}

}  // namespace
}  // namespace collage
