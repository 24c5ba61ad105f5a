// onnx.cc: models are imported and evaluated, or refused as wrong or not supported.
#include "collage/frontend/onnx.h"

#include "collage/support/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "ir/eval/evaluate.h"
#include "property/function_size.h"
#include "property/onnx_grid.h"

namespace collage::fuzz {
namespace {

constexpr int64_t kMostElements = 1 << 20;
constexpr int64_t kOpenSize = 3;

}  // namespace

void ReadOnnx(const std::string& given) {
  std::string bytes = given;
  std::string model;
  if (TakeNumber(bytes) % 2 == 0) {
    model = bytes;
  } else {
    const int op = TakeNumber(bytes) * 256;
    model = MakeGridModel(static_cast<uint64_t>(op + TakeNumber(bytes)), RandomSource(bytes)).SerializeAsString();
  }
  const IRModule module = ImportOnnx(MemoryFile(model, "model.onnx").path());
  if (NumElementsIn(module.main(), kMostElements) > kMostElements) return;
  std::vector<Tensor> inputs;
  for (const Var& param : module.main()->params()) {
    const TensorTypeNode& type = *AsTensorType(param->checked_type());
    Shape shape;
    for (const Dim& dim : type.shape()) shape.push_back(dim.is_any() ? kOpenSize : dim.size());
    inputs.push_back(Tensor::Zeros(shape, type.dtype()));
  }
  Evaluate(module.main(), inputs);
}

}  // namespace collage::fuzz
