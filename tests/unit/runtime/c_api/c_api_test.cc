// c_api_test.cc: executables run through the C API and the C++ header over it, by several threads too.
#include "collage/runtime/c_api.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "collage/runtime/stable.h"
#include "unit/runtime/c_api/c_api_fixture.h"

namespace collage {
namespace {

TEST_F(CApiTest, CopiesInAndOut) {
  ASSERT_EQ(collage_instance_copy_input(run_, 0, x_.data(), sizeof x_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_copy_output(run_, 0, y_.data(), sizeof y_), COLLAGE_OK);
  ExpectSum(y_.data(), x_.data(), 10.5f);
}

TEST_F(CApiTest, BoundBuffersAreReadAndWrittenInPlace) {
  ASSERT_EQ(collage_instance_bind_input(run_, 0, x_.data(), sizeof x_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_bind_output(run_, 0, y_.data(), sizeof y_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  ExpectSum(y_.data(), x_.data(), 10.5f);
  x_[7] = 1000;
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  EXPECT_EQ(y_[7], 1010.5f);
  collage_tensor view;
  ASSERT_EQ(collage_instance_get_output(run_, 0, &view), COLLAGE_OK);
  EXPECT_EQ(view.data, y_.data());
  ASSERT_EQ(collage_instance_get_input(run_, 0, &view), COLLAGE_OK);
  EXPECT_EQ(view.data, x_.data());
}

TEST_F(CApiTest, ACopyReplacesABoundBufferAndLeavesItAsItWas) {
  ASSERT_EQ(collage_instance_bind_input(run_, 0, x_.data(), sizeof x_), COLLAGE_OK);
  Buffer other{};
  other[3] = 5;
  ASSERT_EQ(collage_instance_copy_input(run_, 0, other.data(), sizeof other), COLLAGE_OK);
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_copy_output(run_, 0, y_.data(), sizeof y_), COLLAGE_OK);
  ExpectSum(y_.data(), other.data(), 10.5f);
  EXPECT_EQ(x_[3], 3);
}

TEST_F(CApiTest, TheInstancesOwnMemoryIsFilledAndRead) {
  collage_tensor x;
  ASSERT_EQ(collage_instance_get_input(run_, 0, &x), COLLAGE_OK);
  EXPECT_EQ(x.ndim, 2);
  EXPECT_EQ(x.shape[1], 100);
  EXPECT_EQ(x.dtype.code, COLLAGE_DTYPE_FLOAT);
  EXPECT_EQ(x.device.device_type, COLLAGE_DEVICE_CPU);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data) % COLLAGE_ALIGNMENT, 0u);
  std::copy(x_.begin(), x_.end(), static_cast<float*>(x.data));
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  collage_tensor y;
  ASSERT_EQ(collage_instance_get_output(run_, 0, &y), COLLAGE_OK);
  EXPECT_EQ(y.ndim, 1);
  ExpectSum(static_cast<const float*>(y.data), x_.data(), 10.5f);
}

TEST_F(CApiTest, DLPackTensorsAreBound) {
  collage_tensor tensor = TensorOfX();
  int64_t strides[] = {100, 1};
  tensor.strides = strides;
  tensor.data = reinterpret_cast<std::byte*>(x_.data()) - 128;
  tensor.byte_offset = 128;
  ASSERT_EQ(collage_instance_bind_input_tensor(run_, 0, &tensor), COLLAGE_OK) << collage_last_error()->text;
  int64_t shape[] = {1000};
  tensor = {y_.data(), {COLLAGE_DEVICE_CPU, 0}, 1, {COLLAGE_DTYPE_FLOAT, 32, 1}, shape, nullptr, 0};
  ASSERT_EQ(collage_instance_bind_output_tensor(run_, 0, &tensor), COLLAGE_OK) << collage_last_error()->text;
  ASSERT_EQ(collage_instance_run(run_), COLLAGE_OK);
  ExpectSum(y_.data(), x_.data(), 10.5f);
}

TEST_F(CApiTest, ModelIsDescribed) {
  size_t count = 0;
  ASSERT_EQ(collage_executable_num_inputs(model_, &count), COLLAGE_OK);
  EXPECT_EQ(count, 1u);
  ASSERT_EQ(collage_executable_num_outputs(model_, &count), COLLAGE_OK);
  EXPECT_EQ(count, 1u);
  collage_tensor_info info;
  ASSERT_EQ(collage_executable_get_input(model_, 0, &info, sizeof info), COLLAGE_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.ndim, 2);
  EXPECT_EQ(info.shape[0], 10);
  EXPECT_EQ(info.size_bytes, 4000u);
  EXPECT_EQ(info.dtype.bits, 32);
  size_t index = 7;
  ASSERT_EQ(collage_executable_find_output(model_, "y", &index), COLLAGE_OK);
  EXPECT_EQ(index, 0u);
  int32_t threads = 0;
  ASSERT_EQ(collage_executable_num_threads(model_, &threads), COLLAGE_OK);
  EXPECT_EQ(threads, 2);
  const char* metadata = nullptr;
  ASSERT_EQ(collage_executable_metadata(model_, &metadata), COLLAGE_OK);
  EXPECT_STREQ(metadata, R"({"model": "test"})");
  EXPECT_GE(collage_abi_version(), uint32_t{COLLAGE_ABI_VERSION});
  EXPECT_STRNE(collage_version(), "");
}

/// A caller built with a later header, whose struct is longer, gets zeros for what this library does not know.
TEST_F(CApiTest, StructsMayGrow) {
  struct {
    collage_tensor_info known;
    uint64_t later;
  } info;
  info.later = 77;
  ASSERT_EQ(collage_executable_get_input(model_, 0, &info.known, sizeof info), COLLAGE_OK);
  EXPECT_STREQ(info.known.name, "x");
  EXPECT_EQ(info.later, 0u);
  ExpectFailure(collage_executable_get_input(model_, 0, &info.known, 8), COLLAGE_ERROR_INPUT,
                "a tensor info of 8 bytes");
}

TEST_F(CApiTest, LoadsFromMemoryThatMayGoAtOnce) {
  auto bytes = std::make_unique<std::string>("." + ReadFile(path_));  // of any alignment
  collage_executable* model = nullptr;
  ASSERT_EQ(collage_executable_load_memory(bytes->data() + 1, bytes->size() - 1, nullptr, &model), COLLAGE_OK)
      << collage_last_error()->text;
  bytes->assign(bytes->size(), 'x');
  bytes.reset();
  collage_instance* run = nullptr;
  ASSERT_EQ(collage_instance_create(model, &run), COLLAGE_OK) << collage_last_error()->text;
  collage_executable_release(model);  // the instance keeps what it needs
  ASSERT_EQ(collage_instance_copy_input(run, 0, x_.data(), sizeof x_), COLLAGE_OK);
  ASSERT_EQ(collage_instance_run(run), COLLAGE_OK);
  ASSERT_EQ(collage_instance_copy_output(run, 0, y_.data(), sizeof y_), COLLAGE_OK);
  ExpectSum(y_.data(), x_.data(), 10.5f);
  collage_instance_release(run);
}

TEST_F(CApiTest, InstancesOfOneExecutableRunAtOnce) {
  constexpr int kThreads = 8;
  std::vector<std::thread> threads;
  std::atomic<int> agreed{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      collage_instance* run = nullptr;
      if (collage_instance_create(model_, &run) != COLLAGE_OK) return;
      alignas(64) Buffer x{};
      alignas(64) Buffer y{};
      bool all = collage_instance_bind_input(run, 0, x.data(), sizeof x) == COLLAGE_OK &&
                 collage_instance_bind_output(run, 0, y.data(), sizeof y) == COLLAGE_OK;
      for (int round = 0; round < 50; ++round) {
        x.fill(static_cast<float>(1000 * t + round));
        all = all && collage_instance_run(run) == COLLAGE_OK;
        for (float value : y) all = all && value == x[0] + 10.5f;
      }
      collage_instance_release(run);
      agreed += all ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agreed, kThreads);
}

/// Waits within its run, so that another thread can try.
TEST_F(CApiTest, InputsWithoutElementsNeedNoMemory) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {0, 3});
  writer.Move(ExecutionPlan::Step::kCopy, x, writer.AddOutput("y", {0, 3}));
  Executable::FromPlan(writer.plan).Save(folder_ / "e.clg");
  collage_executable* model = nullptr;
  collage_instance* run = nullptr;
  ASSERT_EQ(collage_executable_load((folder_ / "e.clg").c_str(), &model), COLLAGE_OK);
  ASSERT_EQ(collage_instance_create(model, &run), COLLAGE_OK);
  EXPECT_EQ(collage_instance_bind_input(run, 0, nullptr, 0), COLLAGE_OK) << collage_last_error()->text;
  EXPECT_EQ(collage_instance_run(run), COLLAGE_OK) << collage_last_error()->text;
  EXPECT_EQ(collage_instance_copy_output(run, 0, nullptr, 0), COLLAGE_OK) << collage_last_error()->text;
  collage_instance_release(run);
  collage_executable_release(model);
}

TEST_F(CApiTest, TheCppHeaderRunsAndThrows) {
  const stable::Executable executable = stable::Executable::Load(path_);
  EXPECT_EQ(executable.inputs()[0].name, "x");
  EXPECT_EQ(executable.outputs()[0].shape, std::vector<int64_t>{1000});
  EXPECT_EQ(executable.num_threads(), 2);
  EXPECT_EQ(executable.FindOutput("y"), 0u);
  stable::Instance run(executable);
  run.CopyInput(0, x_.data(), x_.size());
  run.BindOutput(0, y_.data(), y_.size());
  run.Run();
  ExpectSum(y_.data(), x_.data(), 10.5f);
  EXPECT_EQ(run.Output<float>(0).data, y_.data());
  EXPECT_EQ(run.Input<float>(0).size, kCount);
  EXPECT_THROW(run.Output<double>(0), stable::Error);
  EXPECT_THROW(run.CopyInput(0, std::vector<int32_t>(kCount).data(), kCount), stable::Error);
  try {
    stable::Executable::FromBytes("nothing", 7, "n.clg");
    FAIL();
  } catch (const stable::Error& error) {
    EXPECT_EQ(error.status(), COLLAGE_ERROR_CORRUPT);
    EXPECT_EQ(error.category(), "corrupt");
    EXPECT_EQ(error.where(), "n.clg");
  }
}

}  // namespace
}  // namespace collage
