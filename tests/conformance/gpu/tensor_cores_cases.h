// tensor_cores_cases.h: products that tensor cores compute, and what their tests share.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "conformance/conformance.h"
#include "conformance/gpu/gpu_test.h"

namespace collage {

/// A model, and what its file is called.
using Models = std::map<std::string, std::string>;

inline std::string Tensor2(const char* name, int64_t rows, int64_t columns, const char* dtype = "float32") {
  return fmt::format("%{}: Tensor[({}, {}), {}]", name, rows, columns, dtype);
}

/// `text`'s function. Its parameters called w are constants.
inline Function FunctionOf(const std::string& text) {
  const Function function = ParseModule(text, "m.relay").main();
  std::unordered_map<const ExprNode*, Expr> constants;
  std::vector<Var> params;
  for (const Var& param : function->params()) {
    if (param->name() != "w") {
      params.push_back(param);
      continue;
    }
    const TensorTypeNode& type = *AsTensorType(param->type_annotation());
    constants[param.get()] =
        MakeConstant(conformance::RandomTensor(type.static_shape(), type.dtype(), -1, 1, /*seed=*/7));
  }
  return MakeFunction(params, Substitute(function->body(), constants));
}

/// Tests of the toolchain `cuda` in one of its precisions.
class TensorCoresTest : public GpuTest {
 protected:
  TensorCoresTest() : GpuTest("cuda") {}

  static std::unique_ptr<const Toolchain> In(const std::string& precision, const std::string& architecture = "") {
    Attrs options;
    options.Set("arch", architecture);
    options.Set("inference_precision", precision);
    return ToolchainRegistry::Global().Find("cuda")->WithOptions(options);
  }

  /// Computes each of `models` on the GPU. Weights are constants, and then parameters.
  static void ExpectAgree(const Models& models, const std::string& precision, double tolerance) {
    const std::unique_ptr<const Toolchain> toolchain = In(precision);
    for (const auto& [name, text] : models) {
      SCOPED_TRACE(name + " in " + precision);
      conformance::ExpectAgrees(*toolchain, FunctionOf(text), {.tolerance = tolerance});
      conformance::ExpectAgrees(*toolchain, ParseModule(text, "m.relay").main(), {.tolerance = tolerance});
    }
  }

  static Result<LoweredPartition> Lowered(const Toolchain& toolchain, const Function& function) {
    InferType(function);
    return toolchain.RelayToTIR({function, collage::In(Memory::kCuda, PlainLayouts(function->params().size(), 1)), 1});
  }

  /// PTX of `text`.
  static std::string PtxOf(const std::string& text, const std::string& precision,
                           const std::string& architecture = "sm_80") {
    const std::unique_ptr<const Toolchain> toolchain = In(precision, architecture);
    const Result<LoweredPartition> lowered = Lowered(*toolchain, FunctionOf(text));
    EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
    const Result<CompiledPartition> compiled = toolchain->TIRToRuntime(*lowered);
    EXPECT_TRUE(compiled.ok()) << compiled.reason().text;
    return compiled.ok() ? toolchain->Listings({}, *compiled).back().text : "";
  }
};

}  // namespace collage
