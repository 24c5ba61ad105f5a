// operands.cc: parameters and constants behind the expressions of a match, and their order in memory.
#include "backends/xnnpack/operands.h"

#include <algorithm>

#include "backends/xnnpack/written_out.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::xnnpack_toolchain {
namespace {

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  for (int64_t dim : type->static_shape()) {
    if (dim < 1) throw Refusal{"takes no empty tensors"};
  }
  return *type;
}

/// Whether the order of these dimensions makes no difference: at most one is more than 1.
bool IsOrderFree(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](int64_t dim) { return dim != 1; }) <= 1;
}

bool HasLayouts(size_t rank) { return rank >= 3 && rank <= 5; }

}  // namespace

Element ElementOf(const Expr& expr) {
  const DataType dtype = TensorOf(expr).dtype();
  if (dtype == kFloat32) return Element::kFloat32;
  if (dtype == kInt8) return Element::kInt8;
  if (dtype == kUInt8) return Element::kUInt8;
  if (dtype == kFloat16) {
    throw Refusal{"leaves float16 to others: on x86 this version rounds every partial sum to 16 bits"};
  }
  throw Refusal{"computes float32 and quantised 8-bit integers only, got " + dtype.ToString()};
}

OperandReader::OperandReader(const Function& function, const BoundaryLayouts& layouts)
    : layouts_(layouts), body_(function) {
  for (size_t i = 0; i < function->params().size(); ++i) {
    parameters_[function->params()[i].get()] = static_cast<int>(i);
  }
  PostOrderInScope(root(), [&](const Expr& expr) {
    const CallNode* inner = As<CallNode>(expr);
    if (inner != nullptr && inner->op() == nullptr) throw Refusal{"holds one composite only"};
  });
}

bool OperandReader::IsLeaf(const Expr& expr) const {
  if (const CallNode* dequantize = CallOf(expr, "qnn.dequantize")) return IsLeaf(dequantize->args()[0]);
  const Expr source = Outside(expr);
  return As<ConstantNode>(source) != nullptr || parameters_.contains(source.get());
}

Shape OperandReader::ShapeOf(const Expr& expr) const { return TensorOf(expr).static_shape(); }

Quantisation OperandReader::QuantisationOf(const CallNode& call) const {
  const Expr scales = Outside(call.args()[1]);
  const Expr points = Outside(call.args()[2]);
  const ConstantNode* scale = As<ConstantNode>(scales);
  const ConstantNode* point = As<ConstantNode>(points);
  if (scale == nullptr || point == nullptr) throw Refusal{"takes scales known when compiling only"};
  Quantisation result;
  for (int64_t i = 0; i < scale->value().num_elements(); ++i) result.scales.push_back(scale->value().At(i));
  result.zero_point = static_cast<int>(point->value().At(0));
  for (int64_t i = 0; i < point->value().num_elements(); ++i) {
    if (static_cast<int>(point->value().At(i)) != result.zero_point)
      throw Refusal{"takes one zero point for all channels"};
  }
  return result;
}

Operand OperandReader::Read(const Expr& expr, Layout& layout) {
  Operand operand;
  Expr data = expr;
  if (const CallNode* dequantize = CallOf(expr, "qnn.dequantize")) {
    operand.quantisation = QuantisationOf(*dequantize);
    data = dequantize->args()[0];
  }
  operand.shape = ShapeOf(data);
  operand.element = ElementOf(data);
  const Expr source = Outside(data);
  layout = Layout::kPlain;
  if (const ConstantNode* constant = As<ConstantNode>(source)) {
    operand.constant = static_cast<int>(constants_.size());
    constants_.push_back(constant->value());
    return operand;
  }
  const auto it = parameters_.find(source.get());
  if (it == parameters_.end()) throw Refusal{"an operand is computed inside the match"};
  operand.input = it->second;
  layout = layouts_.inputs.at(static_cast<size_t>(it->second));
  return operand;
}

Operand OperandReader::Plain(const Expr& expr) {
  Layout layout;
  Operand operand = Read(expr, layout);
  if (layout != Layout::kPlain && !IsOrderFree(operand.shape))
    throw Refusal{"reads this operand in its logical order only"};
  return operand;
}

Shape OperandReader::ImageShape(const Expr& expr, Layout layout) const {
  const Shape shape = ShapeOf(expr);
  if (shape.size() != 3 && shape.size() != 4) throw Refusal{"has windows of one and two dimensions only"};
  const Shape one_image(shape.begin() + 1, shape.end());
  const bool one_pixel = NumElements(one_image) == one_image[0];
  if (layout == Layout::kPlain && one_image[0] != 1 && !one_pixel)
    throw Refusal{"reads and writes images channels-last only"};
  Shape memory = PhysicalShape(shape, Layout::kChannelsLast);
  if (memory.size() == 3) memory.insert(memory.begin() + 1, 1);
  return memory;
}

Operand OperandReader::Image(const Expr& expr) {
  Layout layout;
  Operand operand = Read(expr, layout);
  operand.shape = ImageShape(expr, layout);
  return operand;
}

Operand OperandReader::InResultLayout(const Expr& expr) {
  Operand operand = ElementWise(expr, root());
  if (operand.shape.size() != ShapeOf(expr).size()) throw Refusal{"reads operands of the result's rank only"};
  return operand;
}

Operand OperandReader::ElementWise(const Expr& expr, const Expr& result) {
  Layout layout;
  Operand operand = Read(expr, layout);
  const size_t own_rank = operand.shape.size();
  const size_t rank = ShapeOf(result).size();
  if (own_rank > rank) throw Refusal{"an operand has more dimensions than the result"};
  operand.shape.insert(operand.shape.begin(), rank - own_rank, 1);
  const Layout wanted = result_layout();
  const bool in_order = own_rank == rank && layout == wanted;
  if (!in_order && !IsOrderFree(operand.shape) && (wanted != Layout::kPlain || layout != Layout::kPlain)) {
    if (operand.constant < 0 || layout != Layout::kPlain) throw Refusal{"reads operands in the result's layout only"};
    Tensor& constant = constants_.at(static_cast<size_t>(operand.constant));
    const Tensor reordered = Tensor::Empty(constant.shape(), constant.dtype());
    ConvertLayout(constant.raw(), Layout::kPlain, reordered.raw(), wanted, operand.shape,
                  constant.dtype().size_bytes());
    constant = reordered;
  }
  if (wanted != Layout::kPlain && HasLayouts(rank)) operand.shape = PhysicalShape(operand.shape, wanted);
  return operand;
}

Operand OperandReader::Weights(const Expr& expr, const std::string& what) {
  Layout layout;
  Operand operand = Read(expr, layout);
  if (operand.constant < 0) throw Refusal{"takes constant " + what + " only, which are packed once"};
  return operand;
}

Operand OperandReader::Bias(const Expr& expr) {
  Quantisation quantisation{{1.0}, 0};
  Expr source = expr;
  if (const CallNode* dequantize = CallOf(expr, "qnn.dequantize")) {
    quantisation = QuantisationOf(*dequantize);
    source = dequantize->args()[0];
  } else if (TensorOf(expr).dtype() != kFloat32) {
    throw Refusal{"adds a bias of float32 only, got " + TensorOf(expr).dtype().ToString()};
  }
  source = Outside(source);
  const ConstantNode* constant = As<ConstantNode>(source);
  if (constant == nullptr) throw Refusal{"takes constant bias only, which is packed once"};
  const Tensor& values = constant->value();
  const Tensor bias = Tensor::Empty({values.num_elements()}, kFloat32);
  const std::vector<double>& scales = quantisation.scales;
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(i)];
    bias.Set(i, (values.At(i) - quantisation.zero_point) * scale);
  }
  Operand operand{-1, static_cast<int>(constants_.size()), bias.shape(), Element::kFloat32, {}};
  constants_.push_back(bias);
  return operand;
}

Shape OperandReader::ResultImage(const Expr& result) const { return ImageShape(result, result_layout()); }

Shape OperandReader::ResultInMemory() const {
  const Shape shape = ShapeOf(root());
  return result_layout() == Layout::kPlain ? shape : PhysicalShape(shape, result_layout());
}

size_t OperandReader::MemoryAxis(int64_t axis) const {
  const auto rank = static_cast<int64_t>(ShapeOf(root()).size());
  if (axis < 0) axis += rank;
  if (result_layout() == Layout::kPlain) return static_cast<size_t>(axis);
  const std::vector<int> order = PhysicalAxes(result_layout(), static_cast<int>(rank));
  return static_cast<size_t>(std::find(order.begin(), order.end(), static_cast<int>(axis)) - order.begin());
}

}  // namespace collage::xnnpack_toolchain
