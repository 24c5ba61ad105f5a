// tile_code.cc: a line for each call. Places of elements are computed from rows and columns by divisions by constants.
#include "backends/triton/tile_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collage/ir/op.h"

namespace collage::triton {

using matches::Operand;
using matches::Refusal;

namespace {

constexpr const char* kOverRow[] = {"sum", "mean", "max", "min", "nn.softmax", "nn.log_softmax", "nn.layer_norm"};

Shape ShapeOf(const Expr& expr) { return matches::TensorOf(expr).static_shape(); }
DataType TypeOf(const Expr& expr) { return matches::TensorOf(expr).dtype(); }

/// `shape` with ones before it, up to `rank`.
Shape Aligned(Shape shape, size_t rank) {
  if (shape.size() < rank) shape.insert(shape.begin(), rank - shape.size(), 1);
  return shape;
}

/// Whether `own`, aligned, broadcasts to `result`.
bool Broadcasts(const Shape& own, const Shape& result) {
  if (own.size() != result.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] != result[i] && own[i] != 1) return false;
  }
  return true;
}

/// The axis of attribute `axis`, counted from the first one.
int64_t AxisOf(const CallNode& call, size_t rank) {
  const int64_t axis = call.attrs().Int("axis");
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

/// Whether a reduction is over the last axis alone.
bool ReducesLast(const CallNode& call, size_t rank) {
  if (call.attrs().Bool("exclude")) return false;
  const std::vector<int64_t> axes = call.attrs().Ints("axis");
  const auto last = static_cast<int64_t>(rank) - 1;
  return axes.empty() ? rank == 1 : axes.size() == 1 && (axes[0] == last || axes[0] == -1);
}

/// The shape of a bias along attribute `axis` of `result`, with ones behind it.
Shape AlongAxis(const CallNode& call, const Shape& result) {
  Shape shape(result.size() - static_cast<size_t>(AxisOf(call, result.size())), 1);
  shape[0] = result[result.size() - shape.size()];
  return shape;
}

}  // namespace

int64_t BytesOf(const Shape& shape, DataType dtype) {
  return NumElements(shape) * static_cast<int64_t>(dtype.size_bytes());
}

bool IsOverRow(const CallNode& call) {
  return call.op() != nullptr && std::ranges::find(kOverRow, call.op()->name) != std::end(kOverRow);
}

TileCode::TileCode(const matches::MatchReader& reader, std::vector<Tensor>& constants, int64_t rows, int64_t columns)
    : reader_(reader), constants_(constants), rows_(rows), columns_(columns) {}

/// Throws a Refusal for shapes that are not those of the tile.
TileCode::TileValue TileCode::Placed(std::string text, const Shape& shape) const {
  const int64_t all = NumElements(shape);
  if (!has_columns() && all == rows_) return {std::move(text), shape};
  if (has_columns() && !shape.empty()) {
    const int64_t last = shape.back();
    if (last == columns_ && all / last == rows_) return {std::move(text), shape};
    if (last == 1 && all == rows_) return {std::move(text), shape, /*is_reduced=*/true};
  }
  throw Refusal{fmt::format("computes values of one shape, got {}", ToString(shape))};
}

std::string TileCode::NewLine(const std::string& text) {
  const auto [known, is_new] = known_.try_emplace(text, fmt::format("t{}", lines_.size()));
  if (is_new) lines_.push_back(fmt::format("{} = {}", known->second, text));
  return known->second;
}

void TileCode::Set(const Call& call, const std::string& text) {
  values_[call.get()] = Placed(NewLine(text), ShapeOf(call));
}

void TileCode::Define(const Call& call) {
  has_value_ = true;
  values_[call.get()] = Placed("value", ShapeOf(call));
}

size_t TileCode::NumberOf(const Operand& operand) {
  const void* const key = operand.input >= 0 ? static_cast<const void*>(&constants_) : operand.constant.raw();
  for (size_t i = 0; i < others_.size(); ++i) {
    const ReadTensor& read = others_[i].read;
    if (keys_[i] == key && (read.is_constant || read.number == operand.input)) return i;
  }
  ReadTensor read{operand.input < 0, operand.input, BytesOf(operand.shape, operand.dtype)};
  if (read.is_constant) {
    read.number = static_cast<int64_t>(constants_.size());
    constants_.push_back(operand.constant);
  }
  others_.push_back({"", operand.dtype, read});
  keys_.push_back(key);
  return others_.size() - 1;
}

/// The place that the first `dims` dimensions of `own` add, as a text; empty for 0. A row of `result` is a number over
/// these dimensions. Dimensions that lie together in both are one.
std::string TileCode::RowIndex(const Shape& result, const Shape& own, size_t dims) const {
  struct Group {
    int64_t size, row_stride, own_stride;
  };
  std::vector<Group> groups;  // the innermost first
  int64_t row_stride = 1, own_stride = has_columns() ? own.back() : 1;
  for (size_t d = dims; d-- > 0;) {
    const bool is_read = own[d] != 1;
    if (result[d] != 1) {
      Group* last = groups.empty() ? nullptr : &groups.back();
      const int64_t stride = is_read ? own_stride : 0;
      if (last != nullptr && stride == last->own_stride * last->size) {
        last->size *= result[d];
      } else {
        groups.push_back({result[d], row_stride, stride});
      }
    }
    row_stride *= result[d];
    own_stride *= own[d];
  }
  std::vector<std::string> terms;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    if (group.own_stride == 0) continue;
    std::string term = "row";
    if (group.row_stride != 1) term += fmt::format(" // {}", group.row_stride);
    if (i + 1 < groups.size()) term += fmt::format(" % {}", group.size);
    if (group.own_stride != 1) term += fmt::format(" * {}", group.own_stride);
    terms.push_back(term);
  }
  return fmt::format("{}", fmt::join(terms, " + "));
}

/// The elements of `operand`, which is read as of shape `own`, that `result` has them at.
std::string TileCode::Load(const Operand& operand, const Shape& result, const Shape& own) {
  if (operand.layout != Layout::kPlain) throw Refusal{"reads plain tensors only"};
  const std::optional<ValueKind> kind = KindOf(operand.dtype);
  if (!kind) throw Refusal{"computes with no " + operand.dtype.ToString()};
  const Shape shape = Aligned(own, result.size());
  if (!Broadcasts(shape, result)) {
    throw Refusal{fmt::format("takes tensors that broadcast to {}, got {}", ToString(result), ToString(operand.shape))};
  }
  const size_t dims = has_columns() ? result.size() - 1 : result.size();
  std::string index = RowIndex(result, shape, dims);
  std::string mask = index.empty() ? "" : "row_there";
  if (has_columns() && shape.back() != 1) {
    index += index.empty() ? "column" : " + column";
    mask += mask.empty() ? "column_there" : " & column_there";
  }
  std::string text = fmt::format("others[{}]", NumberOf(operand));
  text = index.empty() ? fmt::format("tl.load({})", text)
                       : fmt::format("tl.load({} + {}, mask={}, other=0)", text, index, mask);
  if (*kind == ValueKind::kFloat && operand.dtype != kFloat32) text += ".to(tl.float32)";
  if (*kind == ValueKind::kBool) text += " != 0";
  return NewLine(text);
}

/// `expr`, of shape `own`, as an argument of a call of shape `result`.
std::string TileCode::TextOf(const Expr& expr, const Shape& result, const Shape& own) {
  const auto known = values_.find(expr.get());
  if (known != values_.end()) {
    const Shape& shape = known->second.shape;
    const bool is_whole = shape == result;
    const bool is_of_rows = has_columns() && shape.size() == result.size() && shape.back() == 1 &&
                            std::equal(shape.begin(), shape.end() - 1, result.begin());
    if (!is_whole && !is_of_rows) {
      throw Refusal{fmt::format("computes values of one shape, got {} and {}", ToString(shape), ToString(result))};
    }
    return known->second.text;
  }
  const Operand operand = reader_.OperandOf(expr);
  const std::optional<ValueKind> kind = KindOf(operand.dtype);
  // Scalars are part of the code; other constants may have other values the next time.
  if (operand.input < 0 && operand.shape.empty() && kind) return Literal(operand.constant.At(0), *kind);
  return Load(operand, result, own);
}

void TileCode::Emit(const Call& call) {
  if (call->op() == nullptr) throw Refusal{"computes operators only"};
  const Shape shape = ShapeOf(call);
  if (has_columns() && EmitOverRow(call)) return;
  if (call->op()->is_reshape) {
    const Expr& data = call->args()[0];
    if (!Has(data)) throw Refusal{"reshapes what it has computed only"};
    const TileValue moved = Placed(values_.at(data.get()).text, shape);
    if (moved.is_reduced != IsReduced(data)) throw Refusal{"reshapes whole rows only"};
    values_[call.get()] = moved;
    return;
  }
  EmitElement(call, shape);
}

void TileCode::EmitElement(const Call& call, const Shape& shape) {
  const std::string& name = call->op()->name;
  const std::vector<std::string_view> known = ElementOperators();
  if (std::ranges::find(known, name) == known.end()) throw Refusal{fmt::format("computes no '{}'", name)};
  std::vector<std::string> args;
  for (size_t i = 0; i < call->args().size(); ++i) {
    const Shape own = i == 1 && name == "nn.bias_add" ? AlongAxis(*call, shape) : ShapeOf(call->args()[i]);
    args.push_back(TextOf(call->args()[i], shape, own));
  }
  const auto is_name = [](const std::string& text) { return text[0] == 't' || text[0] == 'v'; };
  const std::optional<std::string> text = ComputeElement(*call, args);
  if (!text) throw Refusal{fmt::format("computes no '{}' of {}", name, TypeOf(call->args().back()).ToString())};
  if (std::ranges::none_of(args, is_name)) throw Refusal{"computes nothing of numbers alone"};
  Set(call, *text);
}

std::string TileCode::Sum(const std::string& text) {
  return fmt::format("tl.sum(tl.where(column_there, {}, 0.0), axis=1, keep_dims=True)", text);
}

std::string TileCode::Largest(const std::string& text) {
  return fmt::format("tl.max(tl.where(column_there, {}, float(\"-inf\")), axis=1, keep_dims=True)", text);
}

void TileCode::CheckWholeRow(const Expr& data) const {
  const Shape shape = ShapeOf(data);
  if (shape.empty() || shape.back() != columns_ || NumElements(shape) != rows_ * columns_) {
    throw Refusal{fmt::format("computes rows of one length, got {}", ToString(shape))};
  }
  if (!TypeOf(data).is_floating()) throw Refusal{"reduces floats only"};
}

bool TileCode::EmitOverRow(const Call& call) {
  if (!IsOverRow(*call)) return false;
  const Expr& data = call->args()[0];
  CheckWholeRow(data);
  const std::string& name = call->op()->name;
  const size_t rank = ShapeOf(data).size();
  const bool is_reduction = !name.starts_with("nn.");
  const bool is_last = is_reduction ? ReducesLast(*call, rank) : AxisOf(*call, rank) == static_cast<int64_t>(rank) - 1;
  if (!is_last) throw Refusal{"computes over the last axis only"};
  if (is_reduction) {
    EmitReduction(call);
  } else if (name == "nn.layer_norm") {
    EmitLayerNorm(call);
  } else {
    EmitSoftmax(call);
  }
  return true;
}

void TileCode::EmitReduction(const Call& call) {
  const Expr& data = call->args()[0];
  const Shape shape = ShapeOf(data);
  const std::string x = TextOf(data, shape, shape);
  const std::string& name = call->op()->name;
  std::string text;
  if (name == "max") {
    text = Largest(x);
  } else if (name == "min") {
    text = fmt::format("tl.min(tl.where(column_there, {}, float(\"inf\")), axis=1, keep_dims=True)", x);
  } else {
    text = Sum(x);
    if (name == "mean") text += fmt::format(" / {}.0", columns_);
  }
  // Calls behind it know rows by the dimension that is left of them.
  Shape reduced = shape;
  reduced.back() = 1;
  values_[call.get()] = {NewLine(text), call->attrs().Bool("keepdims") ? reduced : ShapeOf(call), true};
}

void TileCode::EmitSoftmax(const Call& call) {
  const Shape shape = ShapeOf(call);
  const std::string x = TextOf(call->args()[0], shape, shape);
  const std::string below = NewLine(fmt::format("{} - {}", x, NewLine(Largest(x))));
  const std::string power = NewLine(fmt::format("tl.exp({})", below));
  const std::string sum = NewLine(Sum(power));
  const bool is_log = call->op()->name == "nn.log_softmax";
  Set(call, is_log ? fmt::format("{} - libdevice.log({})", below, sum) : fmt::format("{} / {}", power, sum));
}

void TileCode::EmitLayerNorm(const Call& call) {
  const Shape shape = ShapeOf(call);
  const auto mean = [&](const std::string& text) { return NewLine(fmt::format("{} / {}.0", Sum(text), columns_)); };
  const std::string x = TextOf(call->args()[0], shape, shape);
  const std::string centred = NewLine(fmt::format("{} - {}", x, mean(x)));
  const std::string square = NewLine(fmt::format("{0} * {0}", centred));
  const std::string epsilon = Literal(call->attrs().Double("epsilon"), ValueKind::kFloat);
  std::string text = fmt::format("{} / tl.sqrt_rn({} + {})", centred, mean(square), epsilon);
  const Shape vector{columns_};
  if (call->attrs().Bool("scale")) text = fmt::format("{} * {}", text, TextOf(call->args()[1], shape, vector));
  if (call->attrs().Bool("center")) text = fmt::format("{} + {}", text, TextOf(call->args()[2], shape, vector));
  Set(call, text);
}

std::string TileCode::Function(const Expr& result) const {
  std::string text = "@triton.jit\ndef behind(";
  text += has_value_ ? "value, " : "";
  text += has_columns() ? "row, column, row_there, column_there, others):\n" : "row, row_there, others):\n";
  for (const std::string& line : lines_) text += fmt::format("    {}\n", line);
  return text + fmt::format("    return {}\n", values_.at(result.get()).text);
}

}  // namespace collage::triton
