// c_api_fixture.h: a model whose kernel is machine code, loaded through the C API.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "collage/runtime/c_api.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "runtime/native_loader.h"
#include "support/file.h"
#include "test_paths.h"
#include "unit/runtime/test_plan.h"

namespace collage {

inline constexpr size_t kCount = 1000;  // of the kernels in kernels/add.c
using Buffer = std::array<float, kCount>;

/// y = x + 10 + 0.5, by machine code.
inline ExecutionPlan ObjectPlan() {
  PlanWriter writer;
  const int x = writer.AddInput("x", {10, 100});
  writer.Add(x, writer.AddOutput("y", {1000}), 0.5f);
  const std::string code = ReadFile(std::string(kTestKernels) + "/test_kernel_add_10.so");
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
  writer.plan.blobs[0] = std::make_shared<const std::vector<std::byte>>(bytes, bytes + code.size());
  writer.plan.kernels[0].loader = kObjectLoaderName;
  writer.plan.num_threads = 2;
  writer.plan.metadata_json = R"({"model": "test"})";
  return writer.plan;
}

class CApiTest : public testing::Test {
 protected:
  CApiTest() {
    RegisterAddLoader();
    Executable::FromPlan(ObjectPlan()).Save(path_);
    EXPECT_EQ(collage_executable_load(path_.c_str(), &model_), COLLAGE_OK) << collage_last_error()->text;
    EXPECT_EQ(collage_instance_create(model_, &run_), COLLAGE_OK) << collage_last_error()->text;
    for (size_t i = 0; i < kCount; ++i) x_[i] = static_cast<float>(i);
  }
  ~CApiTest() override {
    collage_instance_release(run_);
    collage_executable_release(model_);
    SetNumThreads(1);
  }

  /// The input as a DLPack tensor.
  collage_tensor TensorOfX() {
    return {x_.data(), {COLLAGE_DEVICE_CPU, 0}, 2, {COLLAGE_DTYPE_FLOAT, 32, 1}, shape_, nullptr, 0};
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.clg";
  collage_executable* model_ = nullptr;
  collage_instance* run_ = nullptr;
  alignas(64) Buffer x_{};
  alignas(64) Buffer y_{};
  int64_t shape_[2] = {10, 100};
};

/// `status` is that of a failure whose text has `part`, with category and status that agree.
inline void ExpectFailure(collage_status status, collage_status wanted, const std::string& part) {
  EXPECT_EQ(status, wanted) << part;
  const collage_error& error = *collage_last_error();
  EXPECT_EQ(error.status, wanted);
  EXPECT_STREQ(error.category, collage_status_name(wanted));
  EXPECT_NE(std::string(error.text).find(part), std::string::npos) << error.text;
}

inline void ExpectSum(const float* y, const float* x, float amount) {
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(y[i], x[i] + amount) << i;
}

}  // namespace collage
