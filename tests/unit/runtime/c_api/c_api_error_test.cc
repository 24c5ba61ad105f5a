// c_api_error_test.cc: what is wrongly asked of the C API, damaged files, exceptions: statuses and texts, never a
// crash.
#include "runtime/c_api/c_api_error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/runtime/c_api/c_api_fixture.h"
#include "unit/runtime/executable_bytes.h"

namespace collage {
namespace {

TEST_F(CApiTest, WrongTensorsAreRefused) {
  const auto refused = [&](const collage_tensor& tensor, const std::string& part) {
    ExpectFailure(collage_instance_bind_input_tensor(run_, 0, &tensor), COLLAGE_ERROR_INPUT, part);
  };
  collage_tensor tensor = TensorOfX();
  tensor.device.device_type = 2;
  refused(tensor, "input 'x': the tensor is on a device of type 2");
  tensor = TensorOfX();
  tensor.dtype = {5, 64, 1};
  refused(tensor, "there is no dtype of code 5, 64 bits and 1 lanes");
  tensor.dtype = {COLLAGE_DTYPE_INT, 7, 1};
  refused(tensor, "there is no dtype of code 0, 7 bits");
  tensor.dtype = {COLLAGE_DTYPE_FLOAT, 32, 0};
  refused(tensor, "and 0 lanes");
  tensor.dtype = {COLLAGE_DTYPE_BFLOAT, 32, 1};
  refused(tensor, "there is no dtype of code 4, 32 bits");
  tensor.dtype = {COLLAGE_DTYPE_BOOL, 8, 1};
  refused(tensor, "input 'x' wants float32 (10, 100), got bool (10, 100)");
  tensor = TensorOfX();
  tensor.ndim = -1;
  refused(tensor, "a tensor of -1 dimensions");
  tensor.ndim = 1;
  refused(tensor, "wants float32 (10, 100), got float32 (10)");
  tensor = TensorOfX();
  tensor.shape = nullptr;
  refused(tensor, "the tensor's shape is null");
  tensor = TensorOfX();
  tensor.data = nullptr;
  refused(tensor, "the tensor's data is null");
  tensor = TensorOfX();
  tensor.byte_offset = 4;
  refused(tensor, "the memory is not 64-byte aligned");
  tensor = TensorOfX();
  int64_t strides[] = {1, 10};
  tensor.strides = strides;
  refused(tensor, "not dense");
  tensor = TensorOfX();
  shape_[0] = -10;
  refused(tensor, "a tensor of shape (-10, 100)");
  shape_[0] = INT64_MAX;
  refused(tensor, "a tensor of shape (9223372036854775807, 100)");
  ExpectFailure(collage_instance_run(run_), COLLAGE_ERROR_INPUT, "input 'x' has not been set");
}

void ExpectNullRefused(collage_status status) { ExpectFailure(status, COLLAGE_ERROR_INPUT, "is null"); }

TEST_F(CApiTest, NullIsAnErrorOfExecutables) {
  size_t size = 0;
  int32_t number = 0;
  const char* text = nullptr;
  collage_tensor_info info;
  collage_executable* model = nullptr;
  ExpectNullRefused(collage_file_get_kind(nullptr, &number));
  ExpectNullRefused(collage_file_get_kind(path_.c_str(), nullptr));
  ExpectNullRefused(collage_executable_load(nullptr, &model));
  ExpectNullRefused(collage_executable_load(path_.c_str(), nullptr));
  ExpectFailure(collage_executable_load_memory(nullptr, 10, "x", &model), COLLAGE_ERROR_INPUT, "the bytes are null");
  ExpectNullRefused(collage_executable_load_memory("", 0, "x", nullptr));
  ExpectNullRefused(collage_executable_verify(nullptr));
  ExpectNullRefused(collage_executable_num_inputs(nullptr, &size));
  ExpectNullRefused(collage_executable_num_inputs(model_, nullptr));
  ExpectNullRefused(collage_executable_num_outputs(nullptr, &size));
  ExpectNullRefused(collage_executable_num_outputs(model_, nullptr));
  ExpectNullRefused(collage_executable_get_input(nullptr, 0, &info, sizeof info));
  ExpectNullRefused(collage_executable_get_input(model_, 0, nullptr, sizeof info));
  ExpectNullRefused(collage_executable_get_output(nullptr, 0, &info, sizeof info));
  ExpectNullRefused(collage_executable_get_output(model_, 0, nullptr, sizeof info));
  ExpectNullRefused(collage_executable_find_input(nullptr, "x", &size));
  ExpectNullRefused(collage_executable_find_input(model_, nullptr, &size));
  ExpectNullRefused(collage_executable_find_input(model_, "x", nullptr));
  ExpectNullRefused(collage_executable_find_output(nullptr, "y", &size));
  ExpectNullRefused(collage_executable_find_output(model_, nullptr, &size));
  ExpectNullRefused(collage_executable_find_output(model_, "y", nullptr));
  ExpectNullRefused(collage_executable_num_threads(nullptr, &number));
  ExpectNullRefused(collage_executable_num_threads(model_, nullptr));
  ExpectNullRefused(collage_executable_metadata(nullptr, &text));
  ExpectNullRefused(collage_executable_metadata(model_, nullptr));
  collage_executable_release(nullptr);
  EXPECT_EQ(model, nullptr);
}

TEST_F(CApiTest, NullIsAnErrorOfInstances) {
  collage_tensor tensor;
  collage_instance* run = nullptr;
  ExpectNullRefused(collage_instance_create(nullptr, &run));
  ExpectNullRefused(collage_instance_create(model_, nullptr));
  ExpectNullRefused(collage_instance_bind_input(nullptr, 0, x_.data(), sizeof x_));
  ExpectFailure(collage_instance_bind_input(run_, 0, nullptr, sizeof x_), COLLAGE_ERROR_INPUT, "the data is null");
  ExpectNullRefused(collage_instance_bind_input_tensor(nullptr, 0, &tensor));
  ExpectNullRefused(collage_instance_bind_input_tensor(run_, 0, nullptr));
  ExpectNullRefused(collage_instance_copy_input(nullptr, 0, x_.data(), sizeof x_));
  ExpectNullRefused(collage_instance_copy_input(run_, 0, nullptr, sizeof x_));
  ExpectNullRefused(collage_instance_bind_output(nullptr, 0, y_.data(), sizeof y_));
  ExpectNullRefused(collage_instance_bind_output(run_, 0, nullptr, sizeof y_));
  ExpectNullRefused(collage_instance_bind_output_tensor(nullptr, 0, &tensor));
  ExpectNullRefused(collage_instance_bind_output_tensor(run_, 0, nullptr));
  ExpectNullRefused(collage_instance_copy_output(nullptr, 0, y_.data(), sizeof y_));
  ExpectNullRefused(collage_instance_copy_output(run_, 0, nullptr, sizeof y_));
  ExpectNullRefused(collage_instance_get_input(nullptr, 0, &tensor));
  ExpectNullRefused(collage_instance_get_input(run_, 0, nullptr));
  ExpectNullRefused(collage_instance_get_output(nullptr, 0, &tensor));
  ExpectNullRefused(collage_instance_get_output(run_, 0, nullptr));
  ExpectNullRefused(collage_instance_run(nullptr));
  collage_instance_release(nullptr);
  EXPECT_EQ(run, nullptr);
}

TEST_F(CApiTest, WrongNumbersNamesAndSizesAreErrors) {
  collage_tensor_info info;
  collage_tensor tensor = TensorOfX();
  size_t index = 7;
  ExpectFailure(collage_executable_get_input(model_, 1, &info, sizeof info), COLLAGE_ERROR_INPUT,
                "there is no input 1\nhint: the executable has 1 input");
  ExpectFailure(collage_executable_get_output(model_, SIZE_MAX, &info, sizeof info), COLLAGE_ERROR_INPUT,
                "there is no output 18446744073709551615");
  ExpectFailure(collage_executable_find_input(model_, "image", &index), COLLAGE_ERROR_INPUT,
                "there is no input 'image'\nhint: there are 'x'");
  EXPECT_EQ(index, 7u);
  ExpectFailure(collage_instance_bind_input(run_, 1, x_.data(), sizeof x_), COLLAGE_ERROR_INPUT, "there is no input 1");
  ExpectFailure(collage_instance_copy_input(run_, 1, x_.data(), sizeof x_), COLLAGE_ERROR_INPUT, "there is no input 1");
  ExpectFailure(collage_instance_bind_output_tensor(run_, 1, &tensor), COLLAGE_ERROR_INPUT, "there is no output 1");
  ExpectFailure(collage_instance_get_output(run_, 1, &tensor), COLLAGE_ERROR_INPUT, "there is no output 1");
  ExpectFailure(collage_instance_bind_input(run_, 0, x_.data(), 3996), COLLAGE_ERROR_INPUT,
                "input 'x' takes 4000 bytes (float32 (10, 100)), got 3996");
  ExpectFailure(collage_instance_copy_output(run_, 0, y_.data(), 4004), COLLAGE_ERROR_INPUT,
                "output 'y' takes 4000 bytes");
  const float* unaligned = x_.data() + 1;
  ExpectFailure(collage_instance_bind_input(run_, 0, unaligned, sizeof x_), COLLAGE_ERROR_INPUT,
                "input 'x': the memory is not 64-byte aligned");
  ExpectFailure(collage_instance_run(run_), COLLAGE_ERROR_INPUT, "input 'x' has not been set");
  EXPECT_STREQ(collage_status_name(1), "unknown");
}

TEST_F(CApiTest, DamagedFilesSayWhatIsWrong) {
  const std::string bytes = ReadFile(path_);
  collage_executable* model = nullptr;
  const auto refused = [&](const std::string& changed, collage_status wanted, const std::string& part) {
    ExpectFailure(collage_executable_load_memory(changed.data(), changed.size(), "a.clg", &model), wanted,
                  "a.clg: error: " + part);
    EXPECT_STREQ(collage_last_error()->where, "a.clg");
    EXPECT_STRNE(collage_last_error()->hint, "");
    EXPECT_EQ(model, nullptr);
  };
  refused("", COLLAGE_ERROR_CORRUPT, "not a Collage executable: too short");
  refused(std::string(100, 'x'), COLLAGE_ERROR_CORRUPT, "not a Collage executable: wrong magic number");
  refused(bytes.substr(0, bytes.size() - 1), COLLAGE_ERROR_CORRUPT, "the executable is truncated");
  std::string changed = bytes;
  changed[kVersionAt] = 9;
  refused(WithHeaderSealed(changed), COLLAGE_ERROR_UNAVAILABLE, "the executable has format 9");
  changed = bytes;
  changed[changed.size() - 2] ^= 1;
  refused(changed, COLLAGE_ERROR_CORRUPT, "the executable is damaged: its plan has a wrong checksum");
  changed = bytes;
  changed[changed.find("ELF")] = 'e';
  refused(changed, COLLAGE_ERROR_CORRUPT, "the executable is damaged: machine code 0 has a wrong checksum");
  for (size_t length = 0; length < bytes.size(); length += 61) {
    EXPECT_EQ(collage_executable_load_memory(bytes.data(), length, "a.clg", &model), COLLAGE_ERROR_CORRUPT);
  }
  ExpectFailure(collage_executable_load((folder_ / "none.clg").c_str(), &model), COLLAGE_ERROR_INPUT,
                "none.clg: error: cannot open");
  EXPECT_EQ(collage_executable_verify(path_.c_str()), COLLAGE_OK);
}

/// Weights are looked at when they are first used.
TEST_F(CApiTest, DamagedWeightsAreFoundBeforeAnythingRuns) {
  std::string bytes = ReadFile(path_);
  bytes[PlanOf(bytes)["constants"][0]["place"][0].get<size_t>()] ^= 1;
  collage_executable* model = nullptr;
  ASSERT_EQ(collage_executable_load_memory(bytes.data(), bytes.size(), "a.clg", &model), COLLAGE_OK);
  collage_instance* run = nullptr;
  ExpectFailure(collage_instance_create(model, &run), COLLAGE_ERROR_CORRUPT,
                "a.clg: error: the executable is damaged: constant 0 has a wrong checksum");
  EXPECT_EQ(run, nullptr);
  collage_executable_release(model);
}

TEST_F(CApiTest, BytecodeIsToldApartAndChecked) {
  using namespace std::string_literals;
  WriteFile(folder_ / "p.clg", "CLGP\5\0\0\0rest"s);
  collage_file_kind kind = -1;
  ASSERT_EQ(collage_file_get_kind((folder_ / "p.clg").c_str(), &kind), COLLAGE_OK);
  EXPECT_EQ(kind, COLLAGE_FILE_BYTECODE);
  ASSERT_EQ(collage_file_get_kind(path_.c_str(), &kind), COLLAGE_OK);
  EXPECT_EQ(kind, COLLAGE_FILE_EXECUTABLE);
  WriteFile(folder_ / "empty", "");
  ASSERT_EQ(collage_file_get_kind((folder_ / "empty").c_str(), &kind), COLLAGE_OK);
  EXPECT_EQ(kind, COLLAGE_FILE_OTHER);
  collage_executable* model = nullptr;
  const char* damaged = "p.clg: error: the bytecode is truncated";
  ExpectFailure(collage_executable_load((folder_ / "p.clg").c_str(), &model), COLLAGE_ERROR_CORRUPT, damaged);
  ExpectFailure(collage_executable_verify((folder_ / "p.clg").c_str()), COLLAGE_ERROR_CORRUPT, damaged);
  ExpectFailure(collage_executable_load_memory("CLGP\5\0\0\0", 8, nullptr, &model), COLLAGE_ERROR_CORRUPT,
                "memory: error: the bytecode is truncated");
  const std::string other = "CLGVM\0\0\3and the rest of it"s;
  ExpectFailure(collage_executable_load_memory(other.data(), other.size(), nullptr, &model), COLLAGE_ERROR_UNAVAILABLE,
                "memory: error: the bytecode has format 3, this Collage reads 5");
  EXPECT_EQ(model, nullptr);
}

TEST_F(CApiTest, ShapesOfPlansAreTheSameInEveryRun) {
  const int64_t own[] = {10, 100};
  EXPECT_EQ(collage_instance_set_input_shape(run_, 0, own, 2), COLLAGE_OK);
  const int64_t other[] = {11, 100};
  ExpectFailure(collage_instance_set_input_shape(run_, 0, other, 2), COLLAGE_ERROR_INPUT,
                "input 'x' wants (10, 100), got (11, 100)");
  ExpectFailure(collage_instance_set_input_shape(run_, 0, own, 1), COLLAGE_ERROR_INPUT, "got (10)");
  ExpectFailure(collage_instance_set_input_shape(run_, 0, nullptr, 2), COLLAGE_ERROR_INPUT, "the shape is null");
  ExpectFailure(collage_instance_set_input_shape(run_, 0, own, -1), COLLAGE_ERROR_INPUT, "of a negative length");
  ExpectFailure(collage_instance_set_input_shape(run_, 1, own, 2), COLLAGE_ERROR_INPUT, "there is no input 1");
  collage_tensor_info info;
  ASSERT_EQ(collage_instance_get_output_info(run_, 0, &info, sizeof info), COLLAGE_OK) << "known before a run";
  EXPECT_STREQ(info.name, "y");
  EXPECT_EQ(info.size_bytes, 4000u);
  ExpectFailure(collage_instance_get_output_info(run_, 1, &info, sizeof info), COLLAGE_ERROR_INPUT,
                "there is no output 1");
}

TEST_F(CApiTest, EveryThreadHasItsOwnError) {
  ExpectFailure(collage_instance_run(nullptr), COLLAGE_ERROR_INPUT, "the instance is null");
  std::thread([] {
    EXPECT_EQ(collage_last_error()->status, COLLAGE_OK);
    EXPECT_STREQ(collage_last_error()->text, "");
    EXPECT_EQ(collage_executable_verify(nullptr), COLLAGE_ERROR_INPUT);
    EXPECT_STREQ(collage_last_error()->message, "the path is null");
  }).join();
  EXPECT_STREQ(collage_last_error()->message, "the instance is null");
  size_t count = 0;
  ASSERT_EQ(collage_executable_num_inputs(model_, &count), COLLAGE_OK);  // what succeeds leaves it as it is
  EXPECT_STREQ(collage_last_error()->message, "the instance is null");
}

class WaitingLoader : public KernelLoader {
 public:
  struct WaitingKernel : Kernel {
    explicit WaitingKernel(WaitingLoader* the_loader) : loader(the_loader) {}
    void Bind(std::span<void* const>, std::span<void* const>, void*) override {}
    void Run() override {
      loader->is_running = true;
      while (!loader->may_end) std::this_thread::yield();
      throw 17;  // no kernel should; nothing may get out all the same
    }
    WaitingLoader* loader;
  };
  std::unique_ptr<Kernel> Load(const KernelImage&) override { return std::make_unique<WaitingKernel>(this); }

  std::atomic<bool> is_running{false};
  std::atomic<bool> may_end{false};
};

TEST_F(CApiTest, AnInstanceInUseIsRefusedAndExceptionsOfAnyKindAreStatuses) {
  auto loader = std::make_unique<WaitingLoader>();
  WaitingLoader* waiting = loader.get();
  AddKernelLoader("test_waiting", std::move(loader));
  ExecutionPlan plan = ObjectPlan();
  plan.kernels[0].loader = "test_waiting";
  Executable::FromPlan(plan).Save(folder_ / "w.clg");
  collage_executable* model = nullptr;
  collage_instance* run = nullptr;
  ASSERT_EQ(collage_executable_load((folder_ / "w.clg").c_str(), &model), COLLAGE_OK);
  ASSERT_EQ(collage_instance_create(model, &run), COLLAGE_OK);
  collage_executable_release(model);
  ASSERT_EQ(collage_instance_copy_input(run, 0, x_.data(), sizeof x_), COLLAGE_OK);
  std::thread other(
      [&] { ExpectFailure(collage_instance_run(run), COLLAGE_ERROR_INTERNAL, "an exception of unknown type"); });
  while (!waiting->is_running) std::this_thread::yield();
  ExpectFailure(collage_instance_run(run), COLLAGE_ERROR_INPUT, "the instance is in use by another thread");
  ExpectFailure(collage_instance_copy_input(run, 0, x_.data(), sizeof x_), COLLAGE_ERROR_INPUT, "in use");
  waiting->may_end = true;
  other.join();
  ExpectFailure(collage_instance_run(run), COLLAGE_ERROR_INTERNAL, "an exception of unknown type");  // free again
  collage_instance_release(run);
}

TEST_F(CApiTest, MissingLoadersAreUnavailable) {
  ExecutionPlan plan = ObjectPlan();
  plan.kernels[0].loader = "no_such_loader";
  Executable::FromPlan(plan).Save(folder_ / "n.clg");
  collage_executable* model = nullptr;
  collage_instance* run = nullptr;
  ASSERT_EQ(collage_executable_load((folder_ / "n.clg").c_str(), &model), COLLAGE_OK);
  ExpectFailure(collage_instance_create(model, &run), COLLAGE_ERROR_UNAVAILABLE, "libcollage_rt_no_such_loader.so");
  EXPECT_EQ(run, nullptr);
  collage_executable_release(model);
}

}  // namespace
}  // namespace collage
