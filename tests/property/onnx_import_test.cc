// onnx_import_test.cc: whatever operands and attributes the node of a model has, importing it gives a module that can
// be evaluated, or an Error for the user: no crash, no internal error, within ten seconds and 2 GB.
//
// Models are imported in processes of their own, some hundred in each. COLLAGE_PROPERTY_MODELS says how many,
// COLLAGE_PROPERTY_SEED with which seed the first is made, COLLAGE_PROPERTY_ALL that the first failure is not the end;
// one model alone is imported in this process, for a debugger.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "property/for_random_modules.h"
#include "property/function_size.h"
#include "property/onnx_grid.h"
#include "property/random_source.h"

namespace collage {
namespace {

constexpr unsigned kMostSeconds = 10;
constexpr rlim_t kMostBytes = rlim_t{2} << 30;
constexpr uint64_t kBatch = 400;
// Modules whose values have more elements than this together are not evaluated.
constexpr int64_t kMostElements = 1 << 20;
// Dimensions that stay open have this size.
constexpr int64_t kOpenSize = 3;

/// Counts of outcomes, in memory that the processes share.
struct Progress {
  uint64_t seed;
  uint64_t imported, evaluated, evaluation_refused, too_large, input, unsupported;
  bool has_failed;
  char failure[2000];
};

Tensor RandomInput(const TensorTypeNode& type, RandomSource& random) {
  static const std::vector<double> floats{-2, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 3};
  static const std::vector<double> ints{0, 0, 1, 1, 2, 3, -1, -2, 100};
  Shape shape;
  for (const Dim& dim : type.shape()) shape.push_back(dim.is_any() ? kOpenSize : dim.size());
  const Tensor tensor = Tensor::Empty(shape, type.dtype());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.Set(i, random.Pick(type.dtype().is_floating() ? floats : ints));
  }
  return tensor;
}

/// The problem with importing and evaluating the model of `seed`; "" when there is none.
std::string Failure(uint64_t seed, const std::filesystem::path& path, Progress& progress) {
  {
    std::ofstream file(path, std::ios::binary);
    MakeGridModel(seed).SerializeToOstream(&file);
  }
  std::string step = "importing";
  try {
    const IRModule module = ImportOnnx(path);
    ++progress.imported;
    if (NumElementsIn(module.main(), kMostElements) > kMostElements) {
      ++progress.too_large;
      return "";
    }
    step = "evaluating";
    RandomSource random(seed);
    std::vector<Tensor> inputs;
    for (const Var& param : module.main()->params()) {
      inputs.push_back(RandomInput(*AsTensorType(param->checked_type()), random));
    }
    Evaluate(module.main(), inputs);
    ++progress.evaluated;
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kInput && error.category() != ErrorCategory::kUnsupported) {
      return step + ": " + error.Format();
    }
    ++(step == "evaluating"                              ? progress.evaluation_refused
       : error.category() == ErrorCategory::kUnsupported ? progress.unsupported
                                                         : progress.input);
  } catch (const std::exception& error) {
    return step + ": exception " + error.what();
  }
  return "";
}

void Fail(uint64_t seed, const std::string& what) {
  ADD_FAILURE() << "seed " << seed << " (" << GridOperatorOf(seed) << "): " << what << "\n"
                << TextOf(MakeGridModel(seed));
}

class Batches {
 public:
  Batches() {
    void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    progress_ = new (memory) Progress{};
    path_ = std::filesystem::temp_directory_path() / ("collage_grid_" + std::to_string(getpid()) + ".onnx");
  }
  ~Batches() {
    munmap(progress_, sizeof(Progress));
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  const Progress& progress() const { return *progress_; }

  /// Tries the models of seeds [first, end); returns the first seed that is left.
  uint64_t Run(uint64_t first, uint64_t end) {
    progress_->seed = first;
    progress_->has_failed = false;
    std::cout.flush();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
      RunHere(end);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const uint64_t seed = progress_->seed;
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      Fail(seed, signal == SIGALRM ? "takes more than " + std::to_string(kMostSeconds) + " s"
                                   : "ends with signal " + std::to_string(signal));
      return seed + 1;
    }
    if (progress_->has_failed) {
      Fail(seed, progress_->failure);
      return seed + 1;
    }
    if (WEXITSTATUS(status) != 0) {
      Fail(seed, "ends with status " + std::to_string(WEXITSTATUS(status)));
      return seed + 1;
    }
    return end;
  }

 private:
  void RunHere(uint64_t end) {
#if !defined(__SANITIZE_ADDRESS__)
    const rlimit limit{kMostBytes, kMostBytes};
    setrlimit(RLIMIT_AS, &limit);
#endif
    for (; progress_->seed < end; ++progress_->seed) {
      alarm(kMostSeconds);
      const std::string failure = Failure(progress_->seed, path_, *progress_);
      if (failure.empty()) continue;
      progress_->has_failed = true;
      progress_->failure[failure.copy(progress_->failure, sizeof(progress_->failure) - 1)] = '\0';
      return;
    }
  }

  Progress* progress_;
  std::filesystem::path path_;
};

TEST(OnnxImportProperty, EveryModelIsImportedOrRefused) {
  const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
  const uint64_t end = first + Setting("COLLAGE_PROPERTY_MODELS", 2000);
  const bool all = std::getenv("COLLAGE_PROPERTY_ALL") != nullptr;
  if (end == first + 1) {
    Progress progress{};
    const std::string failure = Failure(first, std::filesystem::temp_directory_path() / "collage_grid.onnx", progress);
    if (!failure.empty()) Fail(first, failure);
    return;
  }
  Batches batches;
  for (uint64_t seed = first; seed < end && (all || !HasFailure());)
    seed = batches.Run(seed, std::min(seed + kBatch, end));
  const Progress& p = batches.progress();
  std::cout << end - first << " models: " << p.imported << " imported (" << p.evaluated << " evaluated, "
            << p.evaluation_refused << " whose evaluation is refused, " << p.too_large << " too large for it), "
            << p.input << " refused as wrong, " << p.unsupported << " as not supported\n";
  RecordProperty("imported", std::to_string(p.imported));
}

}  // namespace
}  // namespace collage
