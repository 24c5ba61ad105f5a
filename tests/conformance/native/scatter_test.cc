// scatter_test.cc: scatters whose results lie where the data do, as keys and values of decoders are kept.
#include "collage/runtime/kernel.h"
#include "conformance/fused_calls.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point

const Toolchain& Native() { return BuiltinToolchain("native"); }

Tensor Places(const Shape& shape, int64_t rows) {
  const Tensor places = Tensor::Empty(shape, kInt64);
  for (int64_t i = 0; i < places.num_elements(); ++i) places.Set(i, static_cast<double>(i / 4 % rows) + 1);
  return places;
}

std::vector<InPlaceResult> PairsOf(const Function& function) {
  InferType(function);
  const auto results = FlattenTensorTypes(function->body()->checked_type()).size();
  const Result<CompiledPartition> compiled =
      Native().RelayToRuntime({function, PlainLayouts(function->params().size(), results), 1});
  EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
  return GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants})->in_place();
}

TEST(NativeScatterTest, WritesInPlaceOrToMemoryOfItsOwn) {
  for (const DataType dtype : {kFloat32, kFloat16, kInt8}) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(dtype.ToString());
      const Var data = Input("data", {2, 700, 4}, dtype), places = Input("places", {2, 3, 4}, kInt64),
                updates = Input("updates", {2, 3, 4}, dtype);
      const Expr result =
          MakeCall("scatter_elements", {data, places, MakeCall("add", {updates, updates})}, {{"axis", 1}});
      const Function function = MakeFunction({data, places, updates}, result);
      InferType(function);
      const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, PlainLayouts(3, 1), threads});
      ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
      const std::unique_ptr<Kernel> kernel =
          GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, threads});
      EXPECT_EQ(kernel->in_place(), (std::vector<InPlaceResult>{{0, 0}}));
      const std::vector<Tensor> inputs{RandomTensor({2, 700, 4}, dtype, -9, 9, 1), Places({2, 3, 4}, 3),
                                       RandomTensor({2, 3, 4}, dtype, -9, 9, 2)};
      const Tensor want = Evaluate(function, inputs).at(0);
      const Tensor own = Tensor::Zeros({2, 700, 4}, dtype), buffer = inputs[0].Clone();
      const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 64}, kUInt8);
      const auto run = [&](const Tensor& from, const Tensor& to) {
        const std::vector<void*> sources{from.raw(), inputs[1].raw(), inputs[2].raw()}, targets{to.raw()};
        kernel->Bind(sources, targets, workspace.raw());
        kernel->Run();
        EXPECT_TRUE(BitEqual(to, want));
      };
      run(inputs[0], own);
      run(buffer, buffer);
    }
  }
}

TEST(NativeScatterTest, DataThatAreReadElsewhereStay) {
  const Var data = Input("data", {2, 8, 4}), places = Input("places", {2, 3, 4}, kInt64),
            updates = Input("updates", {2, 3, 4});
  const auto scatter = [&](const Expr& to, const Expr& what) {
    return MakeCall("scatter_elements", {to, places, what}, {{"axis", 1}});
  };
  const auto pairs = [&](const Expr& body) { return PairsOf(MakeFunction({data, places, updates}, body)); };
  EXPECT_EQ(pairs(scatter(data, updates)), (std::vector<InPlaceResult>{{0, 0}}));
  EXPECT_TRUE(pairs(MakeTuple({scatter(data, updates), MakeCall("exp", {data})})).empty());
  const Expr row = MakeCall("max", {data}, {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}});
  EXPECT_TRUE(pairs(scatter(data, MakeCall("add", {updates, row}))).empty());
  EXPECT_TRUE(pairs(scatter(MakeCall("exp", {data}), updates)).empty());
  EXPECT_TRUE(pairs(MakeCall("exp", {scatter(data, updates)})).empty());
  const Expr sum = MakeCall("scatter_elements", {data, places, updates}, {{"axis", 1}, {"reduction", "add"}});
  EXPECT_TRUE(pairs(sum).empty()) << "a second run would add again";
}

}  // namespace
}  // namespace collage
