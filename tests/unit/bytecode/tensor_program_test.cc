// tensor_program_test.cc: programs with control flow through the C API and the C++ header over it.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/c_api.h"
#include "collage/runtime/stable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"

namespace collage {
namespace {

constexpr const char* kTwice = R"(
  def @main(%x: Tensor[(2, 2), float32], %twice: bool) {
    if (%twice) { (multiply(%x, 2f), %x) } else { (%x, %x) }
  })";
constexpr const char* kOfAnySize = R"(
  def @main(%x: Tensor[(?, 2), float32]) { (add(%x, 1f), sum(%x)) })";

std::string BytesOf(const std::string& text) { return vm::Compile(ParseModule(text, "t.relay")).Serialize(); }

stable::Executable Load(const std::string& text) {
  const std::string bytes = BytesOf(text);
  return stable::Executable::FromBytes(bytes.data(), bytes.size(), "t.clg");
}

collage_status StatusOf(const std::string& bytes) {
  collage_executable* model = nullptr;
  const collage_status status = collage_executable_load_memory(bytes.data(), bytes.size(), "t.clg", &model);
  EXPECT_EQ(model == nullptr, status != COLLAGE_OK);
  collage_executable_release(model);
  return status;
}

void ExpectFailure(collage_status status, const std::string& part) {
  EXPECT_EQ(status, COLLAGE_ERROR_INPUT) << part;
  EXPECT_NE(std::string(collage_last_error()->text).find(part), std::string::npos) << collage_last_error()->text;
}

using Floats = std::vector<float>;

Floats OutputOf(stable::Instance& run, size_t index) {
  const stable::View<float> view = run.Output<float>(index);
  return {view.begin(), view.end()};
}

TEST(TensorProgramTest, IsDescribedAndRunLikeAPlan) {
  const stable::Executable model = Load(kTwice);
  const std::vector<stable::TensorInfo> inputs = model.inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "x");
  EXPECT_EQ(inputs[0].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(inputs[0].size_bytes, 16u);
  EXPECT_EQ(inputs[1].dtype.code, COLLAGE_DTYPE_BOOL);
  EXPECT_TRUE(inputs[1].shape.empty());
  ASSERT_EQ(model.outputs().size(), 2u);
  EXPECT_EQ(model.FindOutput("output_1"), 1u);
  EXPECT_EQ(model.num_threads(), 1);
  EXPECT_EQ(model.metadata_json(), R"({"regions": []})");

  stable::Instance run(model);
  alignas(COLLAGE_ALIGNMENT) std::array<float, 4> x{1, 2, 3, 4};
  alignas(COLLAGE_ALIGNMENT) std::array<float, 4> y{};
  run.BindInput(0, x.data(), x.size());
  run.BindOutput(0, y.data(), y.size());
  const bool yes = true, no = false;
  run.CopyInput(1, &yes, 1);
  run.Run();
  EXPECT_EQ(y, (std::array<float, 4>{2, 4, 6, 8}));
  EXPECT_EQ(OutputOf(run, 1), (Floats{1, 2, 3, 4}));
  run.CopyInput(1, &no, 1);
  run.Run();
  EXPECT_EQ(y, x) << "a result that is an input is copied";
  x[0] = 7;
  EXPECT_EQ(y[0], 1) << "and stays as it was";
  run.Run();
  EXPECT_EQ(y[0], 7) << "what is bound is read in every run";
}

TEST(TensorProgramTest, ShapesAreGivenAtRunTime) {
  const stable::Executable model = Load(kOfAnySize);
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(model.inputs()[0].size_bytes, 0u);
  EXPECT_EQ(model.outputs()[0].shape, (std::vector<int64_t>{-1, 2}));
  stable::Instance run(model);
  collage_tensor tensor;
  collage_tensor_info info;
  Floats values{1, 2, 3, 4, 5, 6};
  ExpectFailure(collage_instance_copy_input(run.handle(), 0, values.data(), 24),
                "the shape of input 'x' is not known yet");
  ExpectFailure(collage_instance_get_input(run.handle(), 0, &tensor), "collage_instance_set_input_shape");
  ExpectFailure(collage_instance_run(run.handle()), "input 'x' has not been set");
  ExpectFailure(collage_instance_get_output(run.handle(), 0, &tensor),
                "the shape of output 'output_0' is known after a run");
  ExpectFailure(collage_instance_get_output_info(run.handle(), 0, &info, sizeof info), "known after a run only");
  ExpectFailure(collage_instance_bind_output(run.handle(), 0, values.data(), 24),
                "output 'output_0' may be of another shape in every run");
  const int64_t wrong[] = {3, 3};
  ExpectFailure(collage_instance_set_input_shape(run.handle(), 0, wrong, 2), "input 'x' wants (-1, 2), got (3, 3)");
  const int64_t negative[] = {-1, 2};
  ExpectFailure(collage_instance_set_input_shape(run.handle(), 0, negative, 2), "got (-1, 2)");

  for (const int64_t rows : {3, 1, 0, 2}) {
    const auto count = static_cast<size_t>(2 * rows);
    run.SetInputShape(0, {rows, 2});
    run.CopyInput(0, values.data(), count);
    run.Run();
    const stable::TensorInfo output = run.OutputInfo(0);
    EXPECT_EQ(output.name, "output_0");
    EXPECT_EQ(output.shape, (std::vector<int64_t>{rows, 2}));
    EXPECT_EQ(output.size_bytes, count * sizeof(float));
    Floats got(count);
    ASSERT_EQ(collage_instance_copy_output(run.handle(), 0, got.data(), got.size() * sizeof(float)), COLLAGE_OK);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(got[i], values[i] + 1);
    EXPECT_EQ(run.OutputInfo(1).shape, std::vector<int64_t>{});
  }
  ExpectFailure(collage_instance_copy_output(run.handle(), 0, values.data(), 24), "takes 16 bytes");
  run.SetInputShape(0, {2, 2});
  EXPECT_EQ(run.Input<float>(0)[3], 4) << "the shape that it has already changes nothing";
  run.SetInputShape(0, {1, 2});
  EXPECT_EQ(run.Input<float>(0)[0], 0) << "memory of a new shape is zeros";
}

TEST(TensorProgramTest, TensorsBringTheirShapes) {
  stable::Instance run(Load(kOfAnySize));
  alignas(COLLAGE_ALIGNMENT) std::array<float, 8> x{1, 2, 3, 4, 5, 6, 7, 8};
  int64_t shape[] = {4, 2};
  const collage_tensor tensor{x.data(), {COLLAGE_DEVICE_CPU, 0}, 2, {COLLAGE_DTYPE_FLOAT, 32, 1}, shape, nullptr, 0};
  run.BindInput(0, tensor);
  run.Run();
  EXPECT_EQ(OutputOf(run, 0), (Floats{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(OutputOf(run, 1), (Floats{36}));
  x[0] = 11;
  run.Run();
  EXPECT_EQ(OutputOf(run, 1), (Floats{46}));
  shape[1] = 4;
  ExpectFailure(collage_instance_bind_input_tensor(run.handle(), 0, &tensor), "input 'x' wants float32 (-1, 2), got");
}

TEST(TensorProgramTest, EachThreadHasAnInstance) {
  const stable::Executable model = Load(kOfAnySize);
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t i = 0; i < sums.size(); ++i) {
    threads.emplace_back([&, i] {
      stable::Instance run(model);
      for (int64_t rows = 1; rows < 20; ++rows) {
        run.SetInputShape(0, {rows, 2});
        for (float& value : run.Input<float>(0)) value = static_cast<float>(i);
        run.Run();
      }
      sums[i] = run.Output<float>(1)[0];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (std::vector<float>{0, 38, 76, 114}));
}

TEST(TensorProgramTest, NamesOfOutputsAreKept) {
  Function main = ParseModule(kTwice, "t.relay").main();
  const AttrValue names(AttrValue::List{"scores", "boxes"});
  IRModule module = ParseModule(kTwice, "t.relay");
  Function named = WithAttr(main, "output_names", names);
  named->set_checked_type(main->checked_type());
  module.Set("main", named);
  const std::string bytes = vm::Compile(module).Serialize();
  const auto model = stable::Executable::FromBytes(bytes.data(), bytes.size());
  EXPECT_EQ(model.outputs()[0].name, "scores");
  EXPECT_EQ(model.FindOutput("boxes"), 1u);
}

TEST(TensorProgramTest, NamesThatAreNoIdentifiersAreKept) {
  const std::vector<std::string> names{"a.b", "a_b", "serving_default_input_2:0", "grö\"ße\\ \n", ""};
  std::vector<Var> params;
  std::vector<Expr> results;
  for (const std::string& name : names) {
    params.push_back(MakeVar(name, TensorType(std::vector<Dim>{Dim::Any()}, kFloat32)));
    results.push_back(MakeCall("nn.relu", {params.back()}));
  }
  const Function main =
      MakeFunction(params, MakeTuple(results), nullptr, {{"output_names", AttrValue::List{"y:0", "y.0"}}});
  const std::string bytes = vm::Compile(InferTypes(IRModule::FromFunction(main))).Serialize();
  const vm::Executable again = vm::Executable::Deserialize(bytes);
  std::vector<std::string> kept;
  for (const Var& param : again.Parameters("main")) kept.push_back(param->name());
  EXPECT_EQ(kept, names);
  EXPECT_EQ(again.ResultNames("main"), (std::vector<std::string>{"y:0", "y.0", "output_2", "output_3", "output_4"}));
  EXPECT_EQ(again.Serialize(), bytes);
  const auto model = stable::Executable::FromBytes(bytes.data(), bytes.size());
  EXPECT_EQ(model.inputs()[2].name, names[2]);
  EXPECT_EQ(model.FindInput("a_b"), 1u);
  EXPECT_EQ(model.outputs()[1].name, "y.0");
  EXPECT_THROW(again.ResultNames("other"), Error);
}

TEST(TensorProgramTest, ProgramsOfOtherValuesAreRefused) {
  const auto text = [] { return std::string(collage_last_error()->text); };
  EXPECT_EQ(StatusOf(BytesOf("def @main(%x: (float32, float32)) { %x.0 }")), COLLAGE_ERROR_UNSUPPORTED);
  EXPECT_NE(text().find("t.clg: error: parameter 'x' of the program is (float32, float32), not a tensor"),
            std::string::npos)
      << text();
  EXPECT_EQ(StatusOf(BytesOf("type Box { Of(float32) } def @main(%x: float32) { Of(%x) }")), COLLAGE_ERROR_UNSUPPORTED);
  EXPECT_NE(text().find("the program is not known to give tensors"), std::string::npos) << text();
  EXPECT_EQ(StatusOf(BytesOf("def @other(%x: float32) { %x }")), COLLAGE_ERROR_UNSUPPORTED);
  EXPECT_NE(text().find("the program has no function '@main'"), std::string::npos) << text();
  std::string damaged = BytesOf(kTwice);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(StatusOf(damaged), COLLAGE_ERROR_CORRUPT);
  EXPECT_NE(text().find("a wrong checksum"), std::string::npos) << text();
}

TEST(TensorProgramTest, ErrorsOfARunAreErrorsOfTheCall) {
  stable::Instance run(
      Load("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { concatenate((%x, add(%x, %y)), axis=0) }"));
  run.SetInputShape(0, {3});
  run.SetInputShape(1, {2});
  EXPECT_EQ(collage_instance_run(run.handle()), COLLAGE_ERROR_INPUT) << collage_last_error()->text;
  run.SetInputShape(1, {3});
  run.Run();
  EXPECT_EQ(run.OutputInfo(0).shape, std::vector<int64_t>{6}) << "an error leaves the instance usable";
}

}  // namespace
}  // namespace collage
