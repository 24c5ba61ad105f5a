// Compiles a whole model with toolchains that misbehave on purpose: each is survived, its failure is recorded with the
// reason, and what is written is right.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "driver/play_off/ranking.h"
#include "driver/toolchain_selection.h"
#include "runtime/random_inputs.h"
#include "support/file.h"
#include "support/machine.h"
#include "unit/driver/listener.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

std::filesystem::path Mnist() {
  if (const char* folder = std::getenv("COLLAGE_MODELS")) return std::filesystem::path(folder) / "small/mnist.onnx";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".cache/collage/models/small/mnist.onnx";
}

/// nn.relu of float32, wrong in the way that the blob says.
class MisbehavingKernel : public Kernel {
 public:
  MisbehavingKernel(std::string mode, int64_t elements) : mode_(std::move(mode)), elements_(elements) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    input_ = static_cast<float*>(inputs[0]);
    output_ = static_cast<float*>(outputs[0]);
  }

  void Run() override {
    ++runs_;
    if (mode_ == "repeats" && !first_.empty()) {
      std::copy(first_.begin(), first_.end(), output_);
      return;
    }
    for (int64_t i = 0; i < elements_; ++i) output_[i] = input_[i] > 0 ? input_[i] : 0;
    if (mode_ == "repeats") first_.assign(output_, output_ + elements_);
    for (int64_t i = 0; i < elements_ && mode_ == "saturates"; ++i) output_[i] = std::min(output_[i], 5.0F);
    if (mode_ == "lies") output_[elements_ / 2] += 0.9F;
    if (mode_ == "tires" && runs_ > 2) output_[0] += 1;
    if (mode_ == "overflows") output_[elements_] = 0;
    if (mode_ == "scribbles") input_[0] = 42;
    for (int64_t i = 0; i < elements_ && mode_ == "thresholds"; ++i) output_[i] *= output_[i] == 100000 ? 0.5F : 1;
    if (mode_ == "traps") std::raise(SIGILL);
  }

 private:
  std::string mode_;
  int64_t elements_;
  int64_t runs_ = 0;
  float* input_ = nullptr;
  float* output_ = nullptr;
  std::vector<float> first_;  ///< results
};

class MisbehavingLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const std::string text(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    const size_t space = text.find(' ');
    return std::make_unique<MisbehavingKernel>(text.substr(0, space), std::stoll(text.substr(space)));
  }
};

/// A toolchain for nn.relu that is named after what it does wrong.
class Misbehaving : public Toolchain {
 public:
  explicit Misbehaving(std::string mode) : mode_(std::move(mode)) {}
  std::string name() const override { return mode_; }
  std::string description() const override { return "misbehaves on purpose"; }
  bool is_default() const override { return false; }  // other tests go without
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 0; }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (call.op() != nullptr && call.op()->name == "nn.relu") return {};
    return Reason{"only nn.relu"};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    if (mode_ == "crashes") std::raise(SIGSEGV);
    if (mode_ == "exits") _exit(0);
    if (mode_ == "hangs") pause();
    if (mode_ == "throws") throw std::runtime_error("thrown on purpose");
    if (mode_ == "swells") {
      std::vector<std::vector<char>> blocks;
      for (;;) blocks.emplace_back(size_t{256} << 20, 'x');
    }
    const auto* type = AsTensorType(request.function->body()->checked_type());
    const std::string text = mode_ + " " + std::to_string(NumElements(type->static_shape()));
    CompiledPartition compiled;
    compiled.loader = "misbehaving";
    compiled.blob.resize(text.size());
    std::memcpy(compiled.blob.data(), text.data(), text.size());
    return compiled;
  }

 private:
  std::string mode_;
};

/// Registers the built-in toolchains and the one that does `mode` wrong.
void AddMisbehaving(const std::string& mode) {
  ProbeToolchains();
  static const bool is_loader_known = [] {
    AddKernelLoader("misbehaving", std::make_unique<MisbehavingLoader>());
    return true;
  }();
  (void)is_loader_known;
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find(mode) == nullptr) registry.Add(std::make_unique<Misbehaving>(mode));
}

class CompileModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Mnist())) GTEST_SKIP() << "no models here: run tools/models/prepare-tests";
  }

  CompileOptions Options() const {
    CompileOptions options;
    options.output = folder_ / "model.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    return options;
  }

  TemporaryFolder folder_;
};

TEST_F(CompileModelTest, ToolchainsThatMisbehaveAreSurvivedAndNamed) {
  const std::vector<std::pair<std::string, std::string>> expected{{"crashes", "signal 11"},
                                                                  {"exits", "exit code 0"},
                                                                  {"hangs", "did not answer"},
                                                                  {"throws", "thrown on purpose"},
                                                                  {"swells", ""},
                                                                  {"lies", "wrong result 0"},
                                                                  {"tires", "wrong result 0"},
                                                                  {"repeats", "result 0 did not change"},
                                                                  {"saturates", "wrong result 0"},
                                                                  {"overflows", "wrote beyond result 0"},
                                                                  {"scribbles", "wrote to input 0"},
                                                                  {"traps", "signal 4"}};
  CompileOptions options = Options();
  options.candidate_timeout_seconds = 2;  // one of them hangs
  for (const auto& [mode, reason] : expected) {
    AddMisbehaving(mode);
    options.toolchains.push_back(mode);
  }
  const CompileReport report = CompileModel(Mnist(), options);
  for (const auto& [mode, reason] : expected) {
    bool is_named = false;
    for (const auto& [kind, failure] : report.failures) {
      is_named |= kind.starts_with(mode + ": ") && failure.second.find(reason) != std::string::npos;
    }
    EXPECT_TRUE(is_named) << mode << " has no failure with '" << reason << "'";
    for (const Contender& contender : report.contenders) {
      EXPECT_FALSE(contender.name == report.winner && contender.partitions.contains(mode));
    }
  }
  for (const Contender& contender : report.contenders) {
    if (contender.name == report.winner) {
      EXPECT_LT(contender.max_error, 1e-4);
    }
  }
  EXPECT_NO_THROW(Executable::Load(options.output));

  // What failed is remembered: nothing is tried again.
  const CompileReport again = CompileModel(Mnist(), options);
  EXPECT_EQ(again.num_measured, 0);
  EXPECT_EQ(again.num_failed, report.num_failed);
}

TEST_F(CompileModelTest, ARequiredToolchainWhoseKernelsAreWrongIsAnErrorThatWritesNothing) {
  AddMisbehaving("lies");
  CompileOptions options = Options();
  options.toolchains = {"lies", "native"};
  options.require = {"lies"};
  options.write_partitioning = folder_ / "p.json";
  WriteFile(options.output, "an earlier result");
  ExpectError([&] { CompileModel(Mnist(), options); }, ErrorCategory::kUnavailable, "wrong result 0");
  EXPECT_EQ(ReadFile(options.output), "an earlier result");
  EXPECT_FALSE(std::filesystem::exists(options.write_partitioning));
  options.require = {"native"};
  const CompileReport report = CompileModel(Mnist(), options);
  EXPECT_EQ(report.output, options.output);
  EXPECT_NO_THROW(Executable::Load(options.output));
  EXPECT_TRUE(std::filesystem::exists(options.write_partitioning));
}

TEST_F(CompileModelTest, KernelsThatAreRightOnSomeInputsOnlyAreRefusedOnEveryWay) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(1, 64), float32]) { nn.relu(%x) }", "relu");
  for (const std::string mode : {"repeats", "saturates"}) {
    AddMisbehaving(mode);
    CompileOptions options = Options();
    options.output = folder_ / (mode + ".clg");
    options.toolchains = {"native", mode};
    const auto expect_refused = [&](const char* way) {
      try {
        CompileModule(module, "relu", options);
        ADD_FAILURE() << mode << " was let through by " << way;
      } catch (const Error& error) {
        EXPECT_NE(error.hint().find("wrong result 0"), std::string::npos) << way << ": " << error.Format();
      }
      EXPECT_FALSE(std::filesystem::exists(options.output)) << way;
    };
    options.partition_for = mode;
    options.estimator = R"(mock={"op_cost": {")" + mode + R"(": 1}})";
    expect_refused("--partition-for");

    // A partitioning that was written when another toolchain of that name was right.
    options.partitioning = folder_ / "given.json";
    options.partition_for = "native";
    options.estimator = "analytic";
    options.write_partitioning = options.partitioning;
    options.partitioning.clear();
    CompileModule(module, "relu", options);
    std::filesystem::remove(options.output);
    std::string text = ReadFile(options.write_partitioning);
    options.partitioning = options.write_partitioning;
    options.write_partitioning.clear();
    const size_t at = text.find("\"native\"");
    ASSERT_NE(at, std::string::npos) << text;
    WriteFile(options.partitioning, text.replace(at, 8, '"' + mode + '"'));
    options.partition_for.clear();
    expect_refused("--partitioning");

    // Where the estimator knows nothing of what is right, it is out of the play-off.
    options.partitioning.clear();
    options.estimator = R"(mock={"op_cost": {"native": 9, ")" + mode + R"(": 1}})";
    const CompileReport report = CompileModule(module, "relu", options);
    bool is_out = false;
    for (const Contender& one : report.contenders) {
      is_out |= one.partitions.contains(mode) && one.failure.find("wrong result 0") != std::string::npos;
      EXPECT_FALSE(one.name == report.winner && one.partitions.contains(mode));
    }
    EXPECT_TRUE(is_out) << mode;
  }
}

TEST_F(CompileModelTest, GivenInputsAreCheckedOnAndMustFit) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(1, 64), float32]) { nn.relu(%x) }", "relu");
  AddMisbehaving("thresholds");
  CompileOptions options = Options();
  options.toolchains = {"native", "thresholds"};
  options.partition_for = "thresholds";
  options.estimator = R"(mock={"op_cost": {"thresholds": 1}})";
  // It is right on all random inputs …
  EXPECT_EQ(CompileModule(module, "relu", options).contenders.at(0).failure, "");
  // … but not on these.
  const Tensor given = Tensor::Zeros({1, 64}, kFloat32);
  given.Set(3, 100000);
  options.check_inputs = {{{"x", given}}};
  try {
    CompileModule(module, "relu", options);
    FAIL() << "100000 was not checked";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("on the inputs that were given"), std::string::npos) << error.Format();
  }
  options.check_inputs = {{{"in.x", given}, {"out.y", given}}};
  EXPECT_THROW(CompileModule(module, "relu", options), Error);

  const auto expect_input_error = [&](std::map<std::string, Tensor> inputs, const std::string& text) {
    options.check_inputs = {std::move(inputs)};
    ExpectError([&] { CompileModule(module, "relu", options); }, ErrorCategory::kInput, text);
  };
  expect_input_error({}, "no values for input 'x', which is Tensor[(1, 64), float32]");
  expect_input_error({{"x", given}, {"y", given}}, "the model has no input 'y'");
  expect_input_error({{"x", Tensor::Zeros({1, 65}, kFloat32)}},
                     "input 'x' is Tensor[(1, 64), float32], got float32 (1, 65)");
  expect_input_error({{"x", Tensor::Zeros({1, 64}, kInt32)}},
                     "input 'x' is Tensor[(1, 64), float32], got int32 (1, 64)");
}

TEST_F(CompileModelTest, Float16InsideIsHeldToFloat16) {
  CompileOptions options = Options();
  options.toolchains = {"native"};
  options.partition_for = "native";
  options.estimator = "analytic";
  for (int layers = 2; layers <= 8; ++layers) {
    const Var x = MakeVar("x", TensorType(Shape{8, 64}, kFloat32));
    Expr value = MakeCall("cast", {x}, {{"dtype", kFloat16}});
    for (int i = 0; i < layers; ++i) {
      const Tensor weight = Tensor::Empty({64, 64}, kFloat16);
      FillRandom(weight, static_cast<uint64_t>(i));
      for (int64_t j = 0; j < weight.num_elements(); ++j) weight.Set(j, weight.At(j) / 4);
      value = MakeCall("nn.matmul", {value, MakeConstant(weight)});
      value = MakeCall("multiply", {value, MakeCall("sigmoid", {value})});
    }
    const Function main = MakeFunction({x}, MakeCall("cast", {value}, {{"dtype", kFloat32}}));
    InferType(main);
    EXPECT_EQ(CompileModule(IRModule::FromFunction(main), "f16", options).contenders.at(0).failure, "") << layers;
  }
}

TEST_F(CompileModelTest, EvolutionIsJudgedEndToEnd) {
  CompileOptions options = Options();
  options.toolchains = {"native"};
  options.search = "evolutionary";
  options.evolution_seconds = 3;
  options.evolution_population = 4;
  const CompileReport report = CompileModel(Mnist(), options);
  EXPECT_NO_THROW(Executable::Load(options.output));
  for (const Contender& contender : report.contenders) EXPECT_TRUE(contender.failure.empty()) << contender.name;
  // Each individual was a play-off of its own, which the database remembers.
  const char* count = R"(SELECT COUNT(*) FROM play_off WHERE key LIKE '%"name":"individual"%')";
  EXPECT_NE(OpenSqlite(options.database)->Query(count)[0][0], "0");
  options.search = "luck";
  EXPECT_THROW(CompileModel(Mnist(), options), Error);
}

TEST_F(CompileModelTest, TheFinalDecidesAndIsRemembered) {
  const CompileOptions options = Options();
  const CompileReport report = CompileModel(Mnist(), options);
  const auto winner = std::find_if(report.contenders.begin(), report.contenders.end(),
                                   [&](const Contender& contender) { return contender.name == report.winner; });
  ASSERT_NE(winner, report.contenders.end());
  EXPECT_TRUE(winner->is_finalist);
  for (const Contender& contender : report.contenders) {
    if (contender.is_finalist) {
      EXPECT_LE(winner->relative, contender.relative * (1 + kAsGood) + 1e-9);
    }
  }
  const CompileReport again = CompileModel(Mnist(), options);
  EXPECT_EQ(again.winner, report.winner);
  EXPECT_EQ(again.num_measured, 0);
  EXPECT_EQ(again.play_off_parts.timing, 0);  // taken from the database
  EXPECT_NO_THROW(Executable::Verify(options.output));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_NE(entry.path().extension(), ".part");
    EXPECT_NE(entry.path().extension(), ".pending");
  }
}

TEST_F(CompileModelTest, EveryBuiltInToolchainHasARevision) {
  ProbeToolchains();
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  for (const char* name : {"native", "dnnl", "openvino", "xnnpack", "blas", "xsmm", "onednn_graph", "onnxruntime"}) {
    ASSERT_NE(registry.Find(name), nullptr);
    EXPECT_EQ(registry.RevisionOf(*registry.Find(name)).size(), 8u);
  }
  EXPECT_NE(registry.RevisionOf(*registry.Find("dnnl")), registry.RevisionOf(*registry.Find("openvino")));
}

TEST_F(CompileModelTest, OneToolchainAloneNeedsNoSearch) {
  CompileOptions options = Options();
  options.partition_for = "native";
  const CompileReport report = CompileModel(Mnist(), options);
  EXPECT_LT(report.num_measured, report.num_candidates);
  ASSERT_EQ(report.contenders.size(), 1u);
  EXPECT_EQ(report.contenders[0].name, "native");
  EXPECT_EQ(report.contenders[0].partitions.size(), 1u);
  options.partition_for = "acme";
  EXPECT_THROW(CompileModel(Mnist(), options), Error);
}

TEST_F(CompileModelTest, WhatNoBudgetWasLeftToTryAndCannotBeBuiltIsLeftOut) {
  AddMisbehaving("throws");
  const IRModule module = ParseModule("def @main(%x: Tensor[(1, 64), float32]) { nn.relu(exp(%x)) }", "relu");
  CompileOptions options = Options();
  options.toolchains = {"native", "throws"};
  options.partition_for = "throws";
  options.should_stop = [] { return true; };
  Listener listener;
  options.progress = &listener;
  const CompileReport report = CompileModule(module, "relu", options);
  EXPECT_TRUE(listener.warnings.empty());  // it was compiled before the play-off
  EXPECT_EQ(report.failures.size(), 1u);
  ASSERT_EQ(report.contenders.size(), 1u);
  EXPECT_EQ(report.contenders[0].failure, "");
  EXPECT_EQ(report.contenders[0].partitions.size(), 1u);
  EXPECT_TRUE(report.contenders[0].partitions.contains("native"));
  EXPECT_NO_THROW(Executable::Load(options.output));
}

/// A network of two operators: three covers natively, with as many formats.
IRModule TinyModule() { return ParseModule("def @main(%x: Tensor[(1, 64), float32]) { exp(tanh(%x)) }", "tiny"); }

TEST_F(CompileModelTest, TheErrorThatIsAllowedDecidesWhoMayWin) {
  AddMisbehaving("lies");  // one element is off by 0.9
  const IRModule module = ParseModule("def @main(%x: Tensor[(1, 64), float32]) { nn.relu(%x) }", "relu");
  CompileOptions options = Options();
  options.toolchains = {"native", "lies"};
  options.estimator = R"(mock={"op_cost": {"native": 9, "lies": 1}})";  // nothing is checked before the play-off
  const auto lies = [&] {
    const CompileReport report = CompileModule(module, "relu", options);
    for (const Contender& one : report.contenders) {
      if (one.partitions.contains("lies")) return one;
    }
    return Contender{.failure = "did not take part"};
  };
  EXPECT_NE(lies().failure.find("wrong result 0, element 32 of 64"), std::string::npos) << lies().failure;
  options.max_error = 0.5;
  EXPECT_NE(lies().failure.find("of its largest element, where 0.5 is allowed: element 32"), std::string::npos)
      << lies().failure;
  options.max_error = 1;
  EXPECT_EQ(lies().failure, "");
  EXPECT_GT(lies().max_error, 0.9);

  options.max_error = 0;
  options.partition_for = "native";
  try {
    CompileModule(TinyModule(), "tiny", options);
    FAIL() << "exp(tanh(x)) is not computed without any error";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("where 0 is allowed"), std::string::npos) << error.Format();
  }
}

TEST_F(CompileModelTest, AsMuchOfAModelStaysInLowerPrecisionAsFits) {
  if (LowerPrecisions(ThisMachine().features).empty()) GTEST_SKIP() << "this processor computes in no lower precision";
  const std::string narrow = "native -inference_precision=bf16";
  CompileOptions options = Options();
  options.targets = {"llvm -inference_precision=bf16", "llvm"};
  options.estimator = R"(mock={"op_cost": {"native": 9, "native -inference_precision=bf16": 1}})";
  options.max_error = 1;
  const CompileReport all = CompileModel(Mnist(), options);
  ASSERT_TRUE(all.bounded.has_value());
  EXPECT_GE(all.bounded->partitions, 2);
  EXPECT_EQ(all.bounded->partitions, all.bounded->best_partitions);
  EXPECT_EQ(all.bounded->num_built, 1);
  EXPECT_GT(all.bounded->error, 1e-5);

  options.max_error = 0.9 * all.bounded->error;
  const CompileReport part = CompileModel(Mnist(), options);
  ASSERT_TRUE(part.bounded.has_value());
  EXPECT_EQ(part.bounded->best_error, all.bounded->error);
  EXPECT_LE(part.bounded->error, *options.max_error);
  EXPECT_GT(part.bounded->num_built, 0);
  ASSERT_GT(part.bounded->partitions, 0);
  EXPECT_LT(part.bounded->partitions, part.bounded->best_partitions);
  const auto contender = [&](const std::string& name) {
    const auto it = std::ranges::find(part.contenders, name, &Contender::name);
    return it == part.contenders.end() ? Contender{.failure = "did not take part"} : *it;
  };
  // The best mix, which may be of one toolchain and go by its name.
  EXPECT_TRUE(std::ranges::any_of(
      part.contenders, [](const Contender& one) { return one.failure.find("is allowed") != std::string::npos; }));
  EXPECT_EQ(contender("collage-standard").failure, "");
  const Contender bounded = contender("collage-bounded");
  EXPECT_EQ(bounded.failure, "");
  EXPECT_EQ(bounded.max_error, part.bounded->error);
  EXPECT_EQ(bounded.partitions.at(narrow), part.bounded->partitions);

  // What was found out is known: nothing is built for it once more.
  const CompileReport again = CompileModel(Mnist(), options);
  ASSERT_TRUE(again.bounded.has_value());
  EXPECT_EQ(again.bounded->num_built, 0);
  EXPECT_EQ(again.bounded->error, part.bounded->error);
}

TEST_F(CompileModelTest, ValuesAreKeptMoreExactlyWhereTheFastestAreOffByTooMuch) {
  const std::vector<std::string>& features = ThisMachine().features;
  if (LowerPrecisions(features) != std::vector<std::string>{"bf16"} || ConvertedPrecisions(features).empty()) {
    GTEST_SKIP() << "this processor does not compute in bfloat16 and convert float16";
  }
  const std::string keeps = "native -inference_precision=f16";
  CompileOptions options = Options();
  options.toolchains = {"native"};
  options.precision = "any";
  options.estimator = R"(mock={"op_cost": {"native": 9, "native -inference_precision=bf16": 1,
                               "native -inference_precision=f16": 2}})";
  const auto num_kept = [&](const CompileReport& report) {
    return std::ranges::count_if(report.contenders,
                                 [&](const Contender& one) { return one.partitions.contains(keeps); });
  };
  options.max_error = 1;
  const CompileReport all = CompileModel(Mnist(), options);
  ASSERT_TRUE(all.bounded.has_value());
  EXPECT_EQ(num_kept(all), 0) << "it waits";

  options.max_error = 0.5 * all.bounded->error;
  const CompileReport part = CompileModel(Mnist(), options);
  ASSERT_TRUE(part.bounded.has_value());
  EXPECT_GT(num_kept(part), 0);
  EXPECT_LE(part.bounded->error, *options.max_error);
  const auto bounded = std::ranges::find(part.contenders, "collage-bounded", &Contender::name);
  ASSERT_NE(bounded, part.contenders.end());
  EXPECT_EQ(bounded->failure, "");
  EXPECT_TRUE(bounded->partitions.contains(keeps));
  EXPECT_EQ(bounded->max_error, part.bounded->error);

  // So little that not even all of float16 fits.
  options.max_error = 1e-5;
  const CompileReport little = CompileModel(Mnist(), options);
  ASSERT_TRUE(little.bounded.has_value());
  EXPECT_LE(little.bounded->error, *options.max_error);
}

TEST_F(CompileModelTest, AllCoversMeetWhereTheyAreFew) {
  CompileOptions options = Options();
  options.toolchains = {"native"};
  // By this table operators apart are best: the search misses the fused one, which is faster in truth.
  options.estimator = R"(mock={"op_cost": {"native": 1}, "fusion_benefit": 9})";
  options.num_covers = 1;
  const CompileReport report = CompileModule(TinyModule(), "tiny", options);
  EXPECT_EQ(report.num_covers, 2);
  ASSERT_TRUE(report.optimality_loss_seconds.has_value());
  double chosen = 1e9;
  double best = 1e9;
  for (const Contender& one : report.contenders) {
    ASSERT_TRUE(one.failure.empty()) << one.name;
    best = std::min(best, one.p50);
    if (!one.is_extra) chosen = std::min(chosen, one.p50);
    if (one.name == report.winner && !one.is_extra) {
      EXPECT_EQ(*report.optimality_loss_seconds, 0);
    }
  }
  EXPECT_NEAR(*report.optimality_loss_seconds, chosen - best, 1e-12);
  EXPECT_EQ(report.optimality_loss_unknown, "");
  const std::vector<CompilationRecord> noted = TuningDatabase(options.database).Compilations();
  ASSERT_EQ(noted.size(), 1u);
  ASSERT_TRUE(noted[0].optimality_loss.has_value());
  EXPECT_EQ(*noted[0].optimality_loss, *report.optimality_loss_seconds);

  options.max_optimality_covers = 1;
  const CompileReport too_many = CompileModule(TinyModule(), "tiny", options);
  EXPECT_EQ(too_many.num_covers, 0);
  EXPECT_FALSE(too_many.optimality_loss_seconds.has_value());
  EXPECT_EQ(too_many.optimality_loss_unknown, "not feasible: more than 1 covers");
  for (const Contender& one : too_many.contenders) EXPECT_FALSE(one.is_extra);
}

}  // namespace
}  // namespace collage
