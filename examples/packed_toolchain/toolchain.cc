// toolchain.cc: products with constant matrices, whose weights are packed once, when a partition is compiled.
#include <collage/support/error.h>
#include <collage/target/composite.h>
#include <collage/target/toolchain_module.h>

#include <algorithm>
#include <cstring>

#include "kernels.h"

namespace panels {
namespace {

using namespace collage;  // NOLINT: this file speaks of little else

/// A partition, read as a product of matrices.
struct Product {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  bool is_convolution = false;
  Tensor weights;
  bool is_transposed = false;  ///< weights are [columns, inner]; else [inner, columns]
  std::optional<Tensor> bias;
  bool has_relu = false;
};

const CallNode* CallOf(const Expr& expr, std::string_view op) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == op ? call : nullptr;
}

Shape ShapeOf(const Expr& expr) { return AsTensorType(expr->checked_type())->static_shape(); }

/// Reads the functions that the pattern table matches: as predicates see them, and as partitions that call one.
class Reader {
 public:
  explicit Reader(const Function& function) : body_(function) {}

  Result<Product> Read() {
    Expr at = body_.root();
    const DataType dtype = AsTensorType(at->checked_type())->dtype();
    if (dtype != kFloat32) return Refuse("works on float32 only, got " + dtype.ToString());
    if (const CallNode* relu = CallOf(at, "nn.relu")) {
      product_.has_relu = true;
      at = relu->args()[0];
    }
    if (const CallNode* add = CallOf(at, "add")) {
      const size_t constant = As<ConstantNode>(body_.Outside(add->args()[0])) != nullptr ? 0 : 1;
      product_.bias = ValueOf(add->args()[constant]);
      if (ShapeOf(add->args()[1 - constant]) != ShapeOf(at)) return Refuse("the bias must not change the shape");
      at = add->args()[1 - constant];
    }
    if (Result<void> read = ReadProduct(at); !read) return read.reason();
    if (product_.inner == 0 || product_.columns == 0) return Refuse("takes no empty matrices");
    if (product_.bias && !IsPerColumn(ShapeOf(at))) return Refuse("adds one number to each column, or none");
    return product_;
  }

 private:
  static Reason Refuse(const std::string& why) { return {why, "panels"}; }

  const Tensor& ValueOf(const Expr& expr) const { return As<ConstantNode>(body_.Outside(expr))->value(); }

  Result<void> ReadProduct(const Expr& expr) {
    const CallNode& call = *As<CallNode>(expr);
    const Shape data = ShapeOf(call.args()[0]);
    product_.weights = ValueOf(call.args()[1]);
    const Shape& weights = product_.weights.shape();
    product_.is_transposed = true;
    if (CallOf(expr, "nn.conv2d") != nullptr) {
      product_.is_convolution = true;
      const auto all = [&](const char* attr, int64_t value) {
        return std::ranges::all_of(call.attrs().Ints(attr), [&](int64_t one) { return one == value; });
      };
      if (weights[2] != 1 || weights[3] != 1) return Refuse("convolves with kernels of one element only");
      if (!all("strides", 1) || !all("padding", 0)) return Refuse("convolves without strides and padding only");
      if (call.attrs().Int("groups") != 1) return Refuse("convolves in one group only");
      product_.rows = data[0] * data[2] * data[3];
      product_.inner = data[1];
    } else {
      if (CallOf(expr, "nn.matmul") != nullptr) {
        if (call.attrs().Bool("transpose_a")) return Refuse("takes no transposed data");
        product_.is_transposed = call.attrs().Bool("transpose_b");
      }
      product_.rows = data[0];
      product_.inner = data[1];
    }
    product_.columns = weights[product_.is_transposed ? 0 : 1];
    return {};
  }

  /// Whether the bias has a number for each column, and is broadcast along all else.
  bool IsPerColumn(const Shape& result) const {
    const Shape& shape = product_.bias->shape();
    const size_t columns_axis = product_.is_convolution ? 1 : result.size() - 1;
    const size_t missing = result.size() - shape.size();
    for (size_t axis = 0; axis < result.size(); ++axis) {
      const int64_t size = axis < missing ? 1 : shape[axis - missing];
      if (size != (axis == columns_axis ? product_.columns : 1)) return false;
    }
    return true;
  }

  CompositeBody body_;
  Product product_;
};

Result<void> Check(const Function& composite) {
  const Result<Product> product = Reader(composite).Read();
  return product ? Result<void>() : Result<void>(product.reason());
}

/// The constants of a kernel, in the form that kernels.h describes.
std::vector<Tensor> Pack(const Product& product) {
  const int64_t panels = PanelsOf(product.columns);
  Tensor packed = Tensor::Zeros({panels, product.inner, kWidth}, kFloat32);
  const float* from = product.weights.data<float>();
  float* to = packed.data<float>();
  for (int64_t column = 0; column < product.columns; ++column) {
    float* panel = to + column / kWidth * product.inner * kWidth + column % kWidth;
    for (int64_t k = 0; k < product.inner; ++k) {
      panel[k * kWidth] = product.is_transposed ? from[column * product.inner + k] : from[k * product.columns + column];
    }
  }
  std::vector<Tensor> constants{packed};
  if (product.bias) {
    Tensor bias = Tensor::Zeros({panels * kWidth}, kFloat32);
    std::memcpy(bias.data<float>(), product.bias->data<float>(), product.bias->size_bytes());
    constants.push_back(bias);
  }
  return constants;
}

class Panels : public Toolchain {
 public:
  explicit Panels(int64_t block) : block_(block) {}

  std::string name() const override { return "panels"; }
  std::string description() const override { return "products with packed weights"; }
  std::string license() const override { return "Apache-2.0"; }
  int priority() const override { return 10; }

  Availability Probe() const override {
    if (const auto missing = WhyModuleMissing({"libcollage_rt_panels.so"})) {
      return {false, "", *missing, "add the folder that it was built in to $COLLAGE_MODULE_PATH"};
    }
    return {true, "1.0", "", ""};
  }

  std::vector<PatternTableEntry> PatternTable() const override {
    const std::string product = "(nn.dense(*, const) | nn.matmul(*, const) | nn.conv2d(*, const))";
    return {
        {"panels.bias_relu", "nn.relu(add(" + product + ", const))", Check},
        {"panels.bias", "add(" + product + ", const)", Check},
        {"panels.relu", "nn.relu(" + product + ")", Check},
        {"panels.product", product, Check},
    };
  }

  std::vector<AttrField> Options() const override {
    return {{"block", AttrKind::kInt, 0, "rows that a thread computes at once; 0: all rows, or its share of them"}};
  }

  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const int64_t block = options.Int("block");
    if (block < 0) throw Error(ErrorCategory::kInput, "no block has " + std::to_string(block) + " rows", "block");
    return std::make_unique<Panels>(block);
  }

  /// A convolution is a product of matrices where a pixel's channels lie side by side.
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const Result<Product> product = Reader(function).Read();
    if (!product) return {};
    if (!product->is_convolution) return {PlainLayouts(eligible_inputs.size(), eligible_outputs.size())};
    if (!eligible_inputs[0] || !eligible_outputs[0]) return {};
    return {ChannelsLastLayouts(eligible_inputs, eligible_outputs)};
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const Result<Product> product = Reader(request.function).Read();
    if (!product) return product.reason();
    const int64_t share = (product->rows + request.num_threads - 1) / request.num_threads;
    const Blob blob{product->rows,         product->inner,
                    product->columns,      block_ > 0 ? block_ : std::max<int64_t>(share, 1),
                    product->bias ? 1 : 0, product->has_relu ? 1 : 0};
    CompiledPartition partition;
    partition.loader = name();
    partition.blob.resize(sizeof blob);
    std::memcpy(partition.blob.data(), &blob, sizeof blob);
    partition.constants = Pack(*product);
    return partition;
  }

  /// Equal layers differ in their weights alone, of which the blob says nothing.
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition&) const override {
    const Result<Product> product = Reader(request.function).Read();
    if (!product) return product.reason();
    return Pack(*product);
  }

 private:
  int64_t block_;
};

std::unique_ptr<Toolchain> MakePanels() { return std::make_unique<Panels>(0); }

}  // namespace
}  // namespace panels

COLLAGE_TOOLCHAIN_MODULE(panels::MakePanels)
