// special_values_test.cc: native kernels at operands that random numbers seldom are: zeros with a sign, infinities,
// quotients beyond what a float counts, shifts by negative numbers and by more bits than there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using Numbers = std::vector<double>;

Tensor TensorOf(const Numbers& values, DataType dtype) {
  const Tensor tensor = Tensor::Empty({static_cast<int64_t>(values.size())}, dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, values[static_cast<size_t>(i)]);
  return tensor;
}

/// The result of a function of vectors as long as its result, by a native kernel.
Tensor RunNatively(const Function& function, const std::vector<Tensor>& inputs) {
  const Result<CompiledPartition> compiled = conformance::BuiltinToolchain("native").RelayToRuntime(
      {function, PlainLayouts(inputs.size(), 1), /*num_threads=*/1});
  if (!compiled.ok()) throw Error(ErrorCategory::kInternal, compiled.reason().text);
  const std::unique_ptr<Kernel> kernel =
      GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
  std::vector<void*> addresses;
  for (const Tensor& input : inputs) addresses.push_back(input.raw());
  const Tensor result = Tensor::Empty(inputs[0].shape(), inputs[0].dtype());
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 1}, kUInt8);
  kernel->Bind(addresses, std::vector<void*>{result.raw()}, workspace.raw());
  kernel->Run();
  return result;
}

/// op(a, b) by a native kernel and by the reference evaluation, which must be equal, zeros with their signs.
void ExpectEqual(const char* op, const Numbers& a, const Numbers& b, DataType dtype) {
  SCOPED_TRACE(std::string(op) + " of " + dtype.ToString());
  const std::vector<Tensor> inputs{TensorOf(a, dtype), TensorOf(b, dtype)};
  const Var x = MakeVar("x", TensorType(inputs[0].shape(), dtype)),
            y = MakeVar("y", TensorType(inputs[1].shape(), dtype));
  const Function function = MakeFunction({x, y}, MakeCall(op, {x, y}));
  InferType(function);
  const Tensor wanted = Evaluate(function, inputs)[0];
  const Tensor got = RunNatively(function, inputs);
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double w = wanted.At(i), g = got.At(i);
    EXPECT_TRUE((std::isnan(w) && std::isnan(g)) || (w == g && std::signbit(w) == std::signbit(g)))
        << op << "(" << inputs[0].At(i) << ", " << inputs[1].At(i) << ") is " << g << ", wanted " << w;
  }
}

TEST(NativeSpecialValuesTest, RemaindersHaveTheSignOfTheDivisor) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  for (const DataType dtype : {kFloat32, kFloat64, kFloat16}) {
    ExpectEqual("floor_mod", {0., -0., 0., -0., -3, 3, -1, 1, kInfinity, -kInfinity, 1, 1, nan, 1, 5.5, -5.5},
                {-2, 2, 2, -2, kInfinity, kInfinity, -kInfinity, -kInfinity, 2, 2, 0., -0., 2, nan, -2, 2}, dtype);
  }
  ExpectEqual("floor_mod", {1e10, -1e10, 1e20, 7e15}, {3, 7, -11, 0.1}, kFloat32);
}

TEST(NativeSpecialValuesTest, ShiftsOutOfRange) {
  for (const DataType dtype : {kInt32, kInt64, kInt8}) {
    for (const char* op : {"left_shift", "right_shift"}) {
      ExpectEqual(op, {-8, 4, -1, 3, -3, 5, -5, 1}, {-1, -32, -64, 64, 64, 40, 40, 3}, dtype);
    }
  }
}

}  // namespace
}  // namespace collage
