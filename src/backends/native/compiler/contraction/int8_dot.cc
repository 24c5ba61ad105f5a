// int8_dot.cc: reading products of 8-bit integers, their operands in words, and the instructions.
#include "backends/native/compiler/contraction/int8_dot.h"

#include <algorithm>

#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"
#include "backends/native/compiler/stages/padded_data.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

constexpr DataType kInt16 = DataType::Int(16);

bool IsByte(const Expr& expr) { return TensorTypeOf(expr).dtype() == kInt8 || TensorTypeOf(expr).dtype() == kUInt8; }

const CallNode* CallOf(const Expr& expr, std::string_view name) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == name ? call : nullptr;
}

/// The one element of a constant; nothing for all else.
std::optional<double> OneNumber(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || constant->value().num_elements() != 1) return std::nullopt;
  return constant->value().At(0);
}

/// Data as they are written: bytes less a zero point, and the scale where numbers are meant.
struct Data {
  Expr bytes;
  int64_t zero = 0;
  Expr late_zero;
  std::optional<double> scale;

  /// Whether the zero point is a byte of the data's type for sure.
  bool IsZeroByte() const {
    const DataType dtype = TensorTypeOf(bytes).dtype();
    if (late_zero) {
      const CallNode* cast = CallOf(late_zero, "cast");
      return cast != nullptr && TensorTypeOf(cast->args()[0]).dtype() == dtype;
    }
    const int64_t least = dtype == kInt8 ? -128 : 0;
    return zero >= least && zero <= least + 255;
  }
};

std::optional<Data> ReadData(const Expr& expr) {
  if (IsByte(expr)) return Data{expr, 0, nullptr, std::nullopt};
  if (const CallNode* call = CallOf(expr, "qnn.dequantize")) {
    const std::optional<double> scale = OneNumber(call->args()[1]), zero = OneNumber(call->args()[2]);
    if (!IsByte(call->args()[0]) || !scale || !zero || TensorTypeOf(expr).dtype() != kFloat32) return std::nullopt;
    return Data{call->args()[0], static_cast<int64_t>(*zero), nullptr, scale};
  }
  if (TensorTypeOf(expr).dtype() != kInt32) return std::nullopt;
  const CallNode* subtract = CallOf(expr, "subtract");
  const CallNode* cast = CallOf(subtract == nullptr ? expr : subtract->args()[0], "cast");
  if (cast == nullptr || !IsByte(cast->args()[0]) || ShapeOf(cast->args()[0]) != ShapeOf(expr)) return std::nullopt;
  if (subtract == nullptr) return Data{cast->args()[0], 0, nullptr, std::nullopt};
  const Expr& zero = subtract->args()[1];
  if (NumElements(ShapeOf(zero)) != 1) return std::nullopt;
  if (const std::optional<double> known = OneNumber(zero)) {
    return Data{cast->args()[0], static_cast<int64_t>(*known), nullptr, std::nullopt};
  }
  return Data{cast->args()[0], 0, zero, std::nullopt};
}

/// Known weights as int32 less their zero points, and the scales of their channels where numbers are meant.
struct Weights {
  Tensor values;
  std::vector<double> scales;
};

std::optional<Weights> ReadWeights(const Expr& expr, size_t channels) {
  const CallNode* call = CallOf(expr, "qnn.dequantize");
  const Expr& source = call == nullptr ? expr : call->args()[0];
  const DataType dtype = TensorTypeOf(source).dtype();
  if (!dtype.is_integer() || dtype.bits > 32 || dtype == DataType::UInt(32)) return std::nullopt;
  const std::optional<Tensor> known = ConstantValue(source);
  if (!known) return std::nullopt;
  Weights weights{known->Cast(kInt32), {}};
  if (call == nullptr) return weights;
  const std::optional<Tensor> scale = ConstantValue(call->args()[1]), zero = ConstantValue(call->args()[2]);
  if (!IsByte(source) || !scale || !zero) return std::nullopt;
  const size_t axis = AxisAttr(*call, "axis", known->shape().size());
  const bool has_many = scale->num_elements() > 1 || zero->num_elements() > 1;
  if (has_many && axis != channels) return std::nullopt;
  for (int64_t i = 0; i < scale->num_elements(); ++i) weights.scales.push_back(scale->At(i));
  int64_t inner = 1;
  for (size_t d = channels + 1; d < known->shape().size(); ++d) inner *= known->shape()[d];
  const int64_t count = known->shape()[channels];
  std::vector<int32_t> zeros;
  for (int64_t i = 0; i < zero->num_elements(); ++i) zeros.push_back(static_cast<int32_t>(zero->At(i)));
  // Cast may have given the tensor itself.
  Tensor shifted = Tensor::Empty(known->shape(), kInt32);
  for (int64_t i = 0; i < shifted.num_elements(); ++i) {
    const int32_t less = zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(i / inner % count)];
    shifted.data<int32_t>()[i] = weights.values.data<int32_t>()[i] - less;
  }
  weights.values = std::move(shifted);
  return weights;
}

bool AreWithin(const Tensor& values, int32_t low, int32_t high) {
  const int32_t* first = values.data<int32_t>();
  return std::all_of(first, first + values.num_elements(), [&](int32_t w) { return w >= low && w <= high; });
}

/// `bytes` less `zero` as int32.
Expr LessZero(PartitionState& state, const Expr& bytes, int64_t zero) {
  const Expr wide = MakeCall("cast", {bytes}, {{"dtype", kInt32}});
  const Expr less = MakeCall("subtract", {wide, MakeScalar(static_cast<double>(zero), kInt32)});
  InferType(less);
  state.synthetic.push_back(less);
  return less;
}

/// The integers less their zero point that `expr`, read as `data`, is made of.
Expr WithoutScale(PartitionState& state, const Expr& expr, const Data& data) {
  return data.scale ? LessZero(state, data.bytes, data.zero) : expr;
}

/// Both known at run time only.
std::optional<Int8Dot> ReadLate(PartitionState& state, const Expr& data, const Data& read, const Expr& weight) {
  const std::optional<Data> other = ReadData(weight);
  if (!state.target.has_int16_products || !other || !read.IsZeroByte() || !other->IsZeroByte()) return std::nullopt;
  Int8Dot product;
  product.factors = DotKind::kInt16;
  product.per_word = 2;
  product.data = WithoutScale(state, data, read);
  product.dtype = kInt16;
  product.late_weight = WithoutScale(state, weight, *other);
  if (read.scale) product.scales = {static_cast<float>(*read.scale * *other->scale)};
  return product;
}

/// `count` neighbours along `axis` as one int32.
Buffer AsWords(Buffer buffer, size_t axis, int64_t count) {
  COLLAGE_CHECK(buffer.shape[axis] % count == 0) << "these are no whole words";
  buffer.dtype = kInt32;
  buffer.shape[axis] /= count;
  for (size_t i = 0; i < buffer.strides.size(); ++i) {
    if (i != axis) buffer.strides[i] /= count;
  }
  return buffer;
}

/// `bytes` of the product's data at `indices`, as they lie in memory.
Value Element(PartitionState& state, const Int8Dot& product, const Indices& indices) {
  return state.math().Convert(state.expressions.At(product.data, indices), product.dtype);
}

/// The word of a pixel that has no more channels than fit in it.
Value PixelWord(PartitionState& state, const Int8Dot& product, const Indices& pixel) {
  VectorMath& m = state.math();
  const int64_t bits = 32 / product.per_word;
  Value word;
  for (int64_t c = 0; c < ShapeOf(product.data)[1]; ++c) {
    Indices at = pixel;
    at[1] = {state.emitter.Int(c), 0};
    Value part = m.And(Element(state, product, at), m.Integer((int64_t{1} << bits) - 1));
    if (c > 0) part = m.Binary("arith.shli", part, m.Integer(c * bits));
    word = c == 0 ? part : m.Or(word, part);
  }
  return word;
}

/// Rows of `packed` [groups, panels, rows, width], so many of them side by side in each element of a word.
Tensor Interleaved(const Tensor& packed, int64_t per_word) {
  Shape shape = packed.shape();
  const int64_t width = shape[3];
  const int64_t rows = shape[0] * shape[1] * shape[2];
  shape[2] /= per_word;
  Tensor words = Tensor::Empty(shape, kInt32);
  const auto size = static_cast<int64_t>(packed.dtype().size_bytes());
  const char* from = packed.data<char>();
  char* to = words.data<char>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i, from += size) {
      std::copy_n(from, size, to + ((row / per_word * width + i) * per_word + row % per_word) * size);
    }
  }
  return words;
}

/// For each channel of each panel -zero times the sum of its weights.
Tensor Starts(const Tensor& packed, int64_t zero) {
  const Shape& shape = packed.shape();
  const Tensor weights = packed.Cast(kInt32);
  Tensor starts = Tensor::Zeros({shape[0], shape[1], shape[3]}, kInt32);
  const int32_t* from = weights.data<int32_t>();
  for (int64_t panel = 0; panel < shape[0] * shape[1]; ++panel) {
    int32_t* const sums = starts.data<int32_t>() + panel * shape[3];
    for (int64_t row = 0; row < shape[2]; ++row) {
      for (int64_t i = 0; i < shape[3]; ++i) sums[i] = static_cast<int32_t>(sums[i] - zero * *from++);
    }
  }
  return starts;
}

}  // namespace

std::optional<Int8Dot> ReadInt8Dot(PartitionState& state, const Expr& data, const Expr& weight, size_t channels,
                                   bool is_padded, bool may_be_late) {
  if (!state.target.has_int16_products && !state.target.has_byte_products) return std::nullopt;
  const std::optional<Data> read = ReadData(data);
  if (!read) return std::nullopt;
  const std::optional<Weights> weights = ReadWeights(weight, channels);
  if (!weights && may_be_late) return ReadLate(state, data, *read, weight);
  if (!weights || read->scale.has_value() == weights->scales.empty()) return std::nullopt;
  Int8Dot product;
  product.weight = weights->values;
  for (const double scale : weights->scales) product.scales.push_back(static_cast<float>(scale * *read->scale));
  if (state.target.has_byte_products && (read->IsZeroByte() || !is_padded) && AreWithin(product.weight, -128, 127)) {
    product.data = read->bytes;
    product.dtype = TensorTypeOf(read->bytes).dtype();
    product.zero = read->zero;
    product.late_zero = read->late_zero;
    product.flips_signs = product.dtype == kInt8;
    return product;
  }
  // The sum of two products of int16 is an int32 unless all four are -32768, which neither such data nor weights are.
  if (!state.target.has_int16_products || !read->IsZeroByte() || !AreWithin(product.weight, -32767, 32767)) {
    return std::nullopt;
  }
  product.factors = DotKind::kInt16;
  product.per_word = 2;
  product.data = WithoutScale(state, data, *read);
  product.dtype = kInt16;
  return product;
}

Value Int8Dot::Zero(PartitionState& state) const {
  if (!late_zero) return state.math().Integer(zero);
  return state.expressions.At(late_zero, Indices(ShapeOf(late_zero).size(), state.emitter.Zero()));
}

void PadWeight(Int8Dot& product, size_t axis) {
  if (product.late_weight) return;
  const Tensor& weight = product.weight;
  Shape shape = weight.shape();
  shape[axis] = product.RoundUp(shape[axis]);
  if (shape == weight.shape()) return;
  Tensor padded = Tensor::Zeros(shape, kInt32);
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t from = weight.shape()[axis] * inner;
  const int64_t to = shape[axis] * inner;
  for (int64_t i = 0; from > 0 && i < weight.num_elements() / from; ++i) {
    std::copy_n(weight.data<int32_t>() + i * from, from, padded.data<int32_t>() + i * to);
  }
  product.weight = std::move(padded);
}

Buffer WordMatrix(PartitionState& state, const Int8Dot& product, bool is_turned) {
  Shape shape = ShapeOf(product.data);
  const size_t last = shape.size() - 1;
  if (!is_turned && shape[last] % product.per_word == 0) {
    const Buffer own = MaterialiseAs(state, product.data, Layout::kPlain, product.dtype);
    if (own.is_contiguous()) return AsWords(own, last, product.per_word);
  }
  if (is_turned) std::swap(shape[last - 1], shape[last]);
  // The bytes that fill the last word are multiplied by 0.
  Shape whole = shape;
  whole[last] = product.RoundUp(shape[last]);
  const Buffer rows = state.AddWorkspace(whole, Layout::kPlain, product.dtype);
  Buffer inside = rows;
  inside.shape = shape;
  EmitElements(state, inside, [&](const Indices& at) {
    Indices from = at;
    if (is_turned) std::swap(from[last - 1], from[last]);
    return Element(state, product, from);
  });
  return AsWords(rows, last, product.per_word);
}

Buffer WordImage(PartitionState& state, const Int8Dot& product, const std::vector<int64_t>& before,
                 const std::vector<int64_t>& after) {
  const Shape shape = ShapeOf(product.data);
  if (shape[1] % product.per_word == 0) {
    const auto zero = [&] { return product.Zero(state); };
    return AsWords(PaddedData(state, product.data, before, after, product.dtype, zero), 1, product.per_word);
  }
  // The bytes that fill a pixel's last word are multiplied by 0.
  Shape whole = shape;
  whole[1] = product.RoundUp(shape[1]);
  int64_t frame = 0;
  for (size_t d = 0; d < before.size(); ++d) {
    whole[d + 2] += before[d] + after[d];
    frame += before[d] + after[d];
  }
  const Buffer image = state.AddWorkspace(whole, Layout::kChannelsLast, product.dtype);
  if (frame > 0) {
    Buffer all = image;
    all.shape = {NumElements(whole)};
    all.strides = {1};
    EmitElements(state, all, [&](const Indices&) { return product.Zero(state); });
  }
  const bool is_word = whole[1] == product.per_word;
  const Buffer words = AsWords(image, 1, product.per_word);
  Buffer inside = is_word ? words : image;
  inside.shape = shape;
  if (is_word) inside.shape[1] = 1;
  for (size_t d = 0; d < before.size(); ++d) {
    inside.offset_bytes += before[d] * inside.strides[d + 2] * static_cast<int64_t>(inside.dtype.size_bytes());
  }
  EmitElements(state, inside, [&](const Indices& at) {
    return is_word ? PixelWord(state, product, at) : Element(state, product, at);
  });
  return words;
}

void PackedWords::ReadBy(Contraction& form, PartitionState& state) const {
  Emitter& e = state.emitter;
  const auto reader = [&e](const Buffer& buffer, const char* element) {
    return [&e, buffer, element](const I64s& outer, const I64& panel, int64_t from) {
      return Vector{e.Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> vector<{}x{}>",
                                      e.Address(buffer, Bases({outer[0], panel, e.Int(from)})), e.lanes(), element))};
    };
  };
  if (scale.exists()) form.scale = reader(scale, "f32");
  if (start.exists()) form.start = reader(start, "i32");
  if (!slope.exists()) return;
  form.start = [&e, &state, zero = late_zero, before = form.start, slopes = reader(slope, "i32")](
                   const I64s& outer, const I64& panel, int64_t from) {
    const std::string type = fmt::format("vector<{}xi32>", e.lanes());
    const Value wide = state.expressions.At(zero, Indices(ShapeOf(zero).size(), e.Zero()));
    const Vector z{e.Def(fmt::format("arith.trunci {} : {} to {}", wide.name, e.TypeOf(wide.kind), type))};
    const Vector more{e.Def(fmt::format("arith.muli {}, {} : {}", slopes(outer, panel, from), z, type))};
    if (!before) return more;
    return Vector{e.Def(fmt::format("arith.addi {}, {} : {}", before(outer, panel, from), more, type))};
  };
}

namespace {

/// A matrix that is not known, packed in words.
Buffer PackLate(PartitionState& state, const Int8Dot& product, const PackedWeights& packing) {
  const int64_t width = PanelWidth(state, kInt32);
  const int64_t panels = (packing.channels + width - 1) / width;
  const int64_t depth = packing.inner[0];
  const Shape shape{packing.groups, panels, product.RoundUp(depth), width};
  const Buffer packed = state.AddWorkspace(shape, Layout::kPlain, product.dtype);
  Buffer inside = packed;
  inside.shape[2] = depth;
  EmitPacked(state, product.late_weight, packing, inside);
  if (depth != shape[2]) {
    Buffer rest = packed;
    rest.shape[2] = shape[2] - depth;
    rest.offset_bytes += depth * width * static_cast<int64_t>(product.dtype.size_bytes());
    EmitElements(state, rest, [&](const Indices&) { return state.math().Integer(0); });
  }
  return InterleaveRows(state, packed, kInt16);
}

}  // namespace

PackedWords PackWords(PartitionState& state, const Int8Dot& product, const PackedWeights& packing) {
  const int64_t width = PanelWidth(state, kInt32);
  PackedWords result;
  Tensor packed;
  if (product.late_weight) {
    result.words = PackLate(state, product, packing);
  } else {
    const DataType dtype = product.factors == DotKind::kBytes ? kInt8 : kInt16;
    packed = *PackedConstant(MakeConstant(product.weight), packing, dtype, width);
    result.words = state.AddConstant(Interleaved(packed, product.per_word));
  }
  if (product.factors == DotKind::kBytes) {
    const int64_t zero = product.zero + (product.flips_signs ? 128 : 0);
    if (zero != 0) result.start = state.AddConstant(Starts(packed, zero));
    if (product.late_zero) result.slope = state.AddConstant(Starts(packed, 1));
    result.late_zero = product.late_zero;
  }
  if (product.scales.empty()) return result;
  const int64_t panels = result.words.shape[1];
  Tensor scales = Tensor::Zeros({packing.groups, panels, width}, kFloat32);
  for (int64_t g = 0; g < packing.groups; ++g) {
    for (int64_t c = 0; c < packing.channels; ++c) {
      const int64_t of = (g * packing.channels + c) % static_cast<int64_t>(product.scales.size());
      scales.data<float>()[(g * panels + c / width) * width + c % width] = product.scales[static_cast<size_t>(of)];
    }
  }
  result.scale = state.AddConstant(scales);
  return result;
}

Vector AddIntegerProducts(Emitter& e, DotKind factors, bool has_vnni, const Vector& a, const Vector& b,
                          const Vector& sum) {
  const std::string sums = fmt::format("vector<{}xi32>", e.lanes());
  const std::string parts = factors == DotKind::kBytes ? fmt::format("vector<{}xi8>", 4 * e.lanes())
                                                       : fmt::format("vector<{}xi16>", 2 * e.lanes());
  const auto as_parts = [&](const Vector& words) {
    return Vector{e.Def(fmt::format("vector.bitcast {} : {} to {}", words, sums, parts))};
  };
  const Vector first = as_parts(a);
  const Vector second = as_parts(b);
  if (has_vnni) {
    return Vector{e.Def(fmt::format("llvm.call_intrinsic \"llvm.x86.avx512.{}.{}\"({}, {}, {}) : ({}, {}, {}) -> {}",
                                    factors == DotKind::kBytes ? "vpdpbusd" : "vpdpwssd", 32 * e.lanes(), sum, first,
                                    second, sums, parts, parts, sums))};
  }
  COLLAGE_CHECK(factors == DotKind::kInt16) << "products of bytes take VNNI";
  const char* name = e.lanes() == 16 ? "avx512.pmaddw.d.512" : e.lanes() == 8 ? "avx2.pmadd.wd" : "sse2.pmadd.wd";
  const Vector products{e.Def(fmt::format("llvm.call_intrinsic \"llvm.x86.{}\"({}, {}) : ({}, {}) -> {}", name, first,
                                          second, parts, parts, sums))};
  return Vector{e.Def(fmt::format("arith.addi {}, {} : {}", sum, products, sums))};
}

Vector BytePairs(Emitter& e, const Vector& a, const Vector& b) {
  const std::string words = fmt::format("vector<{}xi32>", e.lanes());
  const std::string bytes = fmt::format("vector<{}xi8>", 4 * e.lanes());
  const std::string sums = fmt::format("vector<{}xi16>", 2 * e.lanes());
  const auto as_bytes = [&](const Vector& word) {
    return e.Def(fmt::format("vector.bitcast {} : {} to {}", word, words, bytes));
  };
  const std::string first = as_bytes(a), second = as_bytes(b);
  const char* name = e.lanes() == 16  ? "avx512.pmaddubs.w.512"
                     : e.lanes() == 8 ? "avx2.pmadd.ub.sw"
                                      : "ssse3.pmadd.ub.sw.128";
  return Vector{e.Def(fmt::format("llvm.call_intrinsic \"llvm.x86.{}\"({}, {}) : ({}, {}) -> {}", name, first, second,
                                  bytes, bytes, sums))};
}

std::pair<Vector, Vector> SignsMoved(Emitter& e, const Vector& a, const Vector& b) {
  const std::string words = fmt::format("vector<{}xi32>", e.lanes());
  const std::string bytes = fmt::format("vector<{}xi8>", 4 * e.lanes());
  const auto as = [&](const std::string& value, const std::string& from, const std::string& to) {
    return e.Def(fmt::format("vector.bitcast {} : {} to {}", value, from, to));
  };
  const std::string first = as(a.name(), words, bytes), second = as(b.name(), words, bytes);
  const std::string zero = e.Def(fmt::format("arith.constant dense<0> : {}", bytes));
  const std::string is_negative = e.Def(fmt::format("arith.cmpi slt, {}, {} : {}", first, zero, bytes));
  const auto turned = [&](const std::string& value) {
    const std::string negative = e.Def(fmt::format("arith.subi {}, {} : {}", zero, value, bytes));
    const std::string chosen = e.Def(
        fmt::format("arith.select {}, {}, {} : vector<{}xi1>, {}", is_negative, negative, value, 4 * e.lanes(), bytes));
    return Vector{as(chosen, bytes, words)};
  };
  return {turned(first), turned(second)};
}

Vector AddByteProducts(Emitter& e, const Vector& a, const Vector& b, const Vector& sum) {
  const std::string type = fmt::format("vector<{}xi32>", e.lanes());
  const auto number = [&](int bits) { return e.Def(fmt::format("arith.constant dense<{}> : {}", bits, type)); };
  const auto apply = [&](const char* op, const std::string& value, const std::string& other) {
    return e.Def(fmt::format("arith.{} {}, {} : {}", op, value, other, type));
  };
  const std::string top = number(24);
  std::string result = sum.name();
  for (int byte = 0; byte < 4; ++byte) {
    // Left, and down again with the sign's copies or with zeros.
    const std::string up = number(24 - 8 * byte);
    const std::string first = apply("shrui", apply("shli", a.name(), up), top);
    const std::string second = apply("shrsi", apply("shli", b.name(), up), top);
    result = apply("addi", result, apply("muli", first, second));
  }
  return Vector{result};
}

Vector FlipSigns(Emitter& e, const Vector& words) {
  const std::string type = fmt::format("vector<{}xi32>", e.lanes());
  constexpr int32_t kSigns = -0x7f7f7f80;  // the highest bit of each byte
  const Vector signs{e.Def(fmt::format("arith.constant dense<{}> : {}", kSigns, type))};
  return Vector{e.Def(fmt::format("arith.xori {}, {} : {}", words, signs, type))};
}

}  // namespace collage::native
