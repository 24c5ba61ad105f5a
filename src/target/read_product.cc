// read_product.cc: from the result back to the product, peeling off what may follow one.
#include "target/read_product.h"

#include <fmt/format.h>

#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/target/composite.h"

namespace collage {
namespace {

struct Refusal {
  std::string text;
};

const CallNode* CallOf(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr ? call : nullptr;
}

bool IsCallOf(const Expr& expr, std::string_view name) {
  const CallNode* call = CallOf(expr);
  return call != nullptr && call->op()->name == name;
}

Shape ShapeOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  for (int64_t dim : type->static_shape()) {
    if (dim < 1) throw Refusal{"takes no empty tensors"};
  }
  return type->static_shape();
}

class ProductReader {
 public:
  ProductReader(const Function& function, const BoundaryLayouts& layouts) : layouts_(layouts), body_(function) {
    for (size_t i = 0; i < function->params().size(); ++i) {
      parameters_[function->params()[i].get()] = static_cast<int64_t>(i);
    }
  }

  ProductDescription Run() {
    if (layouts_.outputs.at(0) != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
    Expr at = PeelScale(PeelBias(body_.root()));
    if (IsCallOf(at, "reshape")) at = CallOf(at)->args()[0];
    ReadProductCall(at);
    return std::move(result_);
  }

 private:
  const ConstantNode* ConstantOf(const Expr& expr) const { return As<ConstantNode>(body_.Outside(expr)); }

  Expr PeelBias(const Expr& expr) {
    const bool bias_add = IsCallOf(expr, "nn.bias_add");
    if (!bias_add && !IsCallOf(expr, "add")) return expr;
    const CallNode* call = CallOf(expr);
    const size_t which = bias_add || ConstantOf(call->args()[1]) != nullptr ? 1 : 0;
    const ConstantNode* bias = ConstantOf(call->args()[which]);
    if (bias == nullptr) throw Refusal{"adds a constant vector only"};
    const Shape shape = ShapeOf(expr);
    const Shape& added = bias->value().shape();
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = bias_add ? call->attrs().Int("axis") : -1;
    const bool along_last =
        (axis < 0 ? axis + rank : axis) == rank - 1 && !added.empty() && added.back() == shape.back();
    if (!along_last || NumElements(added) != shape.back())
      throw Refusal{"adds one value per column only, got " + ToString(added)};
    result_.product.has_bias = 1;
    result_.product.bias = AddConstant(bias->value());
    return call->args()[1 - which];
  }

  Expr PeelScale(const Expr& expr) {
    const bool divides = IsCallOf(expr, "divide");
    if (!divides && !IsCallOf(expr, "multiply")) return expr;
    const CallNode* call = CallOf(expr);
    const size_t which = divides || ConstantOf(call->args()[1]) != nullptr ? 1 : 0;
    const ConstantNode* factor = ConstantOf(call->args()[which]);
    if (factor == nullptr || factor->value().num_elements() != 1) throw Refusal{"scales by a constant only"};
    const double value = factor->value().At(0);
    result_.product.scale = divides ? 1 / value : value;
    return call->args()[1 - which];
  }

  void ReadProductCall(const Expr& expr) {
    const CallNode* call = CallOf(expr);
    const std::string name = call == nullptr ? "" : call->op()->name;
    const bool dense = name == "nn.dense";
    if (!dense && name != "nn.matmul" && name != "nn.batch_matmul")
      throw Refusal{"has no operator but products of matrices"};
    MatrixProduct& p = result_.product;
    const DataType dtype = AsTensorType(expr->checked_type())->dtype();
    if (dtype != kFloat32 && dtype != kFloat64)
      throw Refusal{"computes float32 and float64 only, got " + dtype.ToString()};
    p.element_bytes = static_cast<int64_t>(dtype.size_bytes());
    p.transpose_a = !dense && call->attrs().Bool("transpose_a") ? 1 : 0;
    p.transpose_b = dense || call->attrs().Bool("transpose_b") ? 1 : 0;
    p.a = OperandOf(call->args()[0], dtype);
    p.b = OperandOf(call->args()[1], dtype);
    const Shape a = ShapeOf(call->args()[0]), b = ShapeOf(call->args()[1]), result = ShapeOf(expr);
    p.n = result.back();
    p.k = p.transpose_a != 0 ? a.at(a.size() - 2) : a.back();
    if (name == "nn.batch_matmul") {
      p.batch = result[0];
      p.m = result[1];
      p.same_a = a[0] == 1 ? 1 : 0;
      p.same_b = b[0] == 1 ? 1 : 0;
      // Rows of one matrix more, where all of the batch are multiplied by the same.
      if (p.same_b != 0 && p.same_a == 0 && p.transpose_a == 0) {
        p.m *= p.batch;
        p.batch = 1;
      }
    } else {
      p.m = NumElements(result) / p.n;
    }
  }

  MatrixProduct::Operand OperandOf(const Expr& expr, DataType dtype) {
    if (AsTensorType(expr->checked_type())->dtype() != dtype) throw Refusal{"multiplies matrices of one type only"};
    const Expr source = body_.Outside(expr);
    if (const ConstantNode* constant = As<ConstantNode>(source)) return AddConstant(constant->value());
    const auto it = parameters_.find(source.get());
    if (it == parameters_.end()) throw Refusal{"a matrix is computed inside the match"};
    if (layouts_.inputs.at(static_cast<size_t>(it->second)) != Layout::kPlain)
      throw Refusal{"multiplies plain matrices only"};
    return it->second;
  }

  MatrixProduct::Operand AddConstant(const Tensor& tensor) {
    result_.constants.push_back(tensor);
    return -static_cast<int64_t>(result_.constants.size());
  }

  const BoundaryLayouts& layouts_;
  std::unordered_map<const ExprNode*, int64_t> parameters_;
  CompositeBody body_;
  ProductDescription result_;
};

}  // namespace

Result<ProductDescription> ReadProduct(const Function& function, const BoundaryLayouts& layouts,
                                       const std::string& toolchain) {
  try {
    return ProductReader(function, layouts).Run();
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, toolchain};
  }
}

std::vector<PatternTableEntry> ProductPatterns(const std::string& toolchain,
                                               std::function<Result<void>(const MatrixProduct& product)> check) {
  const auto predicate = [=](const Function& composite) -> Result<void> {
    const auto read = ReadProduct(composite, PlainLayouts(composite->params().size(), 1), toolchain);
    if (!read) return read.reason();
    return check ? check(read->product) : Result<void>();
  };
  // Sequences are flattened before a product and given their shape back behind it.
  const auto reshaped = [](const char* op) { return fmt::format("({0}(*, *) | reshape({0}(*, *)))", op); };
  std::vector<PatternTableEntry> table;
  const auto add = [&](const char* name, const std::string& text) {
    table.push_back({fmt::format("{}.{}", toolchain, name), text, predicate});
  };
  for (const char* name : {"dense", "matmul"}) {
    const std::string product = reshaped(name == std::string("dense") ? "nn.dense" : "nn.matmul");
    add(name == std::string("dense") ? "dense_bias" : "matmul_bias",
        fmt::format("(add({0}, const) | nn.bias_add({0}, const))", product));
  }
  add("batch_matmul_scale", fmt::format("(multiply({0}, const) | divide({0}, const))", reshaped("nn.batch_matmul")));
  add("batch_matmul", "nn.batch_matmul(*, *)");
  add("matmul", "nn.matmul(*, *)");
  add("dense", "nn.dense(*, *)");
  return table;
}

}  // namespace collage
