// onnx.cc: models are imported and evaluated, or refused as wrong or not supported.
#include "collage/frontend/onnx.h"

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "fuzz/memory_file.h"
#include "fuzz/target.h"
#include "ir/eval/evaluate.h"
#include "property/onnx_grid.h"

namespace collage::fuzz {
namespace {

constexpr int64_t kMostElements = 1 << 20;

/// Elements of all that `function` computes; too many where one has a size that is open.
int64_t NumElementsIn(const Function& function) {
  int64_t count = 0;
  const auto add = [&](const Expr& expr) {
    if (count > kMostElements || expr->checked_type() == nullptr) return;
    if (expr->kind() == ExprKind::kOp || expr->kind() == ExprKind::kFunction) return;
    for (const Type& type : FlattenTensorTypes(expr->checked_type())) {
      const TensorTypeNode* tensor = AsTensorType(type);
      count += tensor->is_static() ? NumElements(tensor->static_shape()) : kMostElements + 1;
    }
  };
  PostOrder(function, add);
  return count;
}

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
  if (NumElementsIn(module.main()) > kMostElements) return;
  std::vector<Tensor> inputs;
  for (const Var& param : module.main()->params()) {
    const TensorTypeNode& type = *AsTensorType(param->checked_type());
    inputs.push_back(Tensor::Zeros(type.static_shape(), type.dtype()));
  }
  Evaluate(module.main(), inputs);
}

}  // namespace collage::fuzz
