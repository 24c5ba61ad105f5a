// Assumptions about cuBLASLt, put to the library itself: which products its heuristic has algorithms for, and which it
// refuses. On machines without a GPU the stand-in answers, by the documentation's tables.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cublas/loader/library.h"
#include "backends/cuda_driver/device.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {
namespace {

using namespace cublas;  // NOLINT: all of it is about that

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 7;

/// A product of matrices that lie column by column, D [m, n] = A [m, k] x B [k, n].
struct Question {
  int compute = kComputeFloat32, scale = kFloat32Type;
  int factors = kFloat32Type, result = kFloat32Type;
  bool transpose_a = false, transpose_b = false;
  int64_t m = 64, n = 48, k = 32;
  uint32_t epilogue = kNothing;
  int32_t order = 0;
  int64_t leading_c = -1;  ///< -1: that of D
  int32_t batch = 1;
  int64_t stride_d = 64 * 48;
  size_t workspace = size_t{32} << 20;
};

class CublasLibraryTest : public GpuTest {
 protected:
  CublasLibraryTest() : GpuTest("cublas") {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    cuda_driver::GetCudaDevice().Enter();
    ASSERT_EQ(library().Create(&handle_), kSuccess);
    bias_.emplace(Memory::kCuda, 4096);
  }

  static const Library& library() { return GetLibrary(); }

  /// The heuristic's answer.
  Status Ask(const Question& q) const {
    Operator product = nullptr;
    EXPECT_EQ(library().MatmulDescCreate(&product, q.compute, q.scale), kSuccess);
    const auto set = [&](int attribute, const auto& value) {
      EXPECT_EQ(library().MatmulDescSetAttribute(product, attribute, &value, sizeof value), kSuccess);
    };
    set(kTransposeA, q.transpose_a ? kTransposed : int32_t{0});
    set(kTransposeB, q.transpose_b ? kTransposed : int32_t{0});
    set(kEpilogue, q.epilogue);
    if ((q.epilogue & kBias) != 0) set(kBiasPointer, bias_->address());
    const Matrix a = q.transpose_a ? Describe(q, q.factors, q.k, q.m) : Describe(q, q.factors, q.m, q.k);
    const Matrix b = q.transpose_b ? Describe(q, q.factors, q.n, q.k) : Describe(q, q.factors, q.k, q.n);
    const Matrix c = Describe(q, q.result, q.m, q.n, q.leading_c);
    const Matrix d = Describe(q, q.result, q.m, q.n);
    Preference preference = nullptr;
    EXPECT_EQ(library().MatmulPreferenceCreate(&preference), kSuccess);
    const uint64_t workspace = q.workspace;
    library().MatmulPreferenceSetAttribute(preference, kMostWorkspace, &workspace, sizeof workspace);
    Choice choice{};
    int count = 0;
    const Status status =
        library().MatmulAlgoGetHeuristic(handle_, product, a, b, c, d, preference, 1, &choice, &count);
    EXPECT_EQ(status == kSuccess, count == 1);
    for (const Matrix one : {a, b, c, d}) library().MatrixLayoutDestroy(one);
    library().MatmulDescDestroy(product);
    library().MatmulPreferenceDestroy(preference);
    return status;
  }

 private:
  static Matrix Describe(const Question& q, int type, int64_t rows, int64_t columns, int64_t leading = -1) {
    Matrix matrix = nullptr;
    const int64_t own = q.order == kRowMajor ? columns : rows;
    EXPECT_EQ(library().MatrixLayoutCreate(&matrix, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                           leading < 0 ? own : leading),
              kSuccess);
    const auto set = [&](int attribute, const auto& value) {
      EXPECT_EQ(library().MatrixLayoutSetAttribute(matrix, attribute, &value, sizeof value), kSuccess);
    };
    set(kOrder, q.order);
    set(kBatchCount, q.batch);
    set(kBatchStride, rows == q.m && columns == q.n ? q.stride_d : int64_t{0});
    return matrix;
  }

  Handle handle_ = nullptr;
  std::optional<DeviceBuffer> bias_;
};

/// Factors of int8 in the only order in which they are multiplied.
Question Integers(int compute, int scale, int result) {
  return {.compute = compute, .scale = scale, .factors = kInt8Type, .result = result, .transpose_a = true};
}

TEST_F(CublasLibraryTest, ItHasTheTypesOfItsTable) {
  std::vector<Question> all;
  for (const int compute : {kComputeFloat32, kComputeFastTf32, kComputeFastBFloat16, kComputeFastFloat16}) {
    all.push_back({.compute = compute});
  }
  for (const int type : {kFloat16Type, kBFloat16Type}) {
    all.push_back({.factors = type, .result = type});
    all.push_back({.factors = type});
  }
  all.push_back(Integers(kComputeInt32, kInt32Type, kInt32Type));
  all.push_back(Integers(kComputeInt32, kFloat32Type, kInt8Type));
  all.push_back(Integers(kComputeFloat32, kFloat32Type, kFloat32Type));
  for (const Question& question : all) {
    EXPECT_EQ(Ask(question), kSuccess) << question.compute << ", " << question.factors << ", " << question.result;
  }
}

TEST_F(CublasLibraryTest, OtherTypesAreNotSupported) {
  const Question all[] = {{.compute = kComputeInt32},
                          {.result = kFloat16Type},
                          {.factors = kFloat16Type, .result = kBFloat16Type},
                          {.compute = kComputeFastTf32, .factors = kFloat16Type, .result = kFloat16Type},
                          Integers(kComputeInt32, kInt32Type, kFloat32Type)};
  for (const Question& question : all) {
    EXPECT_NE(Ask(question), kSuccess) << question.compute << ", " << question.factors << ", " << question.result;
  }
}

TEST_F(CublasLibraryTest, EpiloguesAreForFloats) {
  for (const uint32_t epilogue : {kRelu, kGelu, kBias, kBias | kRelu, kBias | kGelu}) {
    for (const int type : {kFloat32Type, kFloat16Type, kBFloat16Type}) {
      EXPECT_EQ(Ask({.factors = type, .result = type, .epilogue = epilogue}), kSuccess) << epilogue;
    }
    Question integers = Integers(kComputeInt32, kInt32Type, kInt32Type);
    integers.epilogue = epilogue;
    EXPECT_NE(Ask(integers), kSuccess) << epilogue;
  }
}

TEST_F(CublasLibraryTest, RowMajorResultsHaveABiasWithoutAFunction) {
  EXPECT_EQ(Ask({.epilogue = kBias, .order = kRowMajor}), kSuccess);
  EXPECT_NE(Ask({.epilogue = kBias | kRelu, .order = kRowMajor}), kSuccess);
  EXPECT_NE(Ask({.epilogue = kBias | kGelu, .order = kRowMajor}), kSuccess);
}

TEST_F(CublasLibraryTest, IntegersAreMultipliedInOneOrderInFours) {
  const Question good = Integers(kComputeInt32, kInt32Type, kInt32Type);
  Question turned = good;
  turned.transpose_a = false;
  EXPECT_NE(Ask(turned), kSuccess);
  Question odd = good;
  odd.k = 30;
  EXPECT_NE(Ask(odd), kSuccess);
  Question narrow = good;
  narrow.m = 62;
  EXPECT_NE(Ask(narrow), kSuccess);
  Question few = good;
  few.n = 5;
  EXPECT_EQ(Ask(few), kSuccess) << "columns of B may be any number";
}

TEST_F(CublasLibraryTest, CMayRepeatAColumnAndDMayNot) {
  EXPECT_EQ(Ask({.leading_c = 0}), kSuccess);
  EXPECT_NE(Ask({.leading_c = 63}), kSuccess);
  EXPECT_EQ(Ask({.batch = 3}), kSuccess) << "all of the batch read one A and one B";
  EXPECT_NE(Ask({.batch = 3, .stride_d = 0}), kSuccess);
}

TEST_F(CublasLibraryTest, AttributesHaveOneSize) {
  Operator product = nullptr;
  ASSERT_EQ(library().MatmulDescCreate(&product, kComputeFloat32, kFloat32Type), kSuccess);
  const int64_t wide = 1;
  EXPECT_EQ(library().MatmulDescSetAttribute(product, kTransposeA, &wide, sizeof wide), kInvalidValue);
  EXPECT_EQ(library().MatmulDescSetAttribute(product, kTransposeA, &wide, sizeof(int32_t)), kSuccess);
  library().MatmulDescDestroy(product);
}

}  // namespace
}  // namespace collage
