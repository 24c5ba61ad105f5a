// memory.cc: coordinates, and elements in memory as vectors.
#include <numeric>

#include "backends/native/compiler/emit/emitter.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

const char* ScalarType(DataType dtype) {
  if (dtype.code == DataType::Code::kBFloat) return "bf16";
  if (dtype.is_floating()) return dtype.bits == 64 ? "f64" : dtype.bits == 16 ? "f16" : "f32";
  return dtype.bits == 64 ? "i64" : dtype.bits == 32 ? "i32" : dtype.bits == 16 ? "i16" : "i8";
}

/// As which type elements are read and written. Processors without instructions for bfloat16 can move it as integers
/// only.
const char* MemoryType(DataType dtype) { return dtype == kBFloat16 ? "i16" : ScalarType(dtype); }

}  // namespace

ElementKind KindOf(DataType dtype) {
  if (dtype.is_bool()) return ElementKind::kBool;
  if (dtype.is_integer()) return ElementKind::kInt;
  return dtype == kFloat64 ? ElementKind::kDouble : ElementKind::kFloat;
}

// ---- coordinates ----

Index Emitter::Shifted(const Index& index, int64_t addend) {
  if (addend == 0) return index;
  if (!index.is_progression()) return IndexOp("addi", index, addend);
  return {Plus(index.base, addend), index.step, {}, IsSymbolic(addend) ? 1 : std::gcd(index.multiple, addend)};
}

Index Emitter::Scaled(const Index& index, int64_t factor) {
  if (factor == 1) return index;
  if (IsSymbolic(factor) && index.is_scalar()) return {MulInt(index.base, factor)};
  if (!index.is_progression() || IsSymbolic(factor)) return IndexOp("muli", index, factor);
  return {MulInt(index.base, factor), index.step * factor, {}, std::abs(index.multiple * factor)};
}

Index Emitter::Sum(const Index& a, const Index& b) {
  if (!a.is_progression() || !b.is_progression()) return IndexOp("addi", a, b);
  return {AddInt(a.base, b.base), a.step + b.step, {}, std::gcd(a.multiple, b.multiple)};
}

Lanes Emitter::LanesOf(const Index& index) {
  if (!index.is_progression()) return index.lanes;
  const std::string type = TypeOf(ElementKind::kInt);
  const Lanes base{Def(fmt::format("vector.broadcast {} : i64 to {}", index.base, type))};
  if (index.step == 0 || lanes_ == 1) return base;
  std::string offsets;
  for (int i = 0; i < lanes_; ++i) offsets += fmt::format("{}{}", i ? ", " : "", i * index.step);
  const Lanes steps{Def(fmt::format("arith.constant dense<[{}]> : {}", offsets, type))};
  return Lanes{Def(fmt::format("arith.addi {}, {} : {}", base, steps, type))};
}

Index Emitter::FromLanes(const Lanes& lanes) {
  if (lanes_ > 1) return {{}, 0, lanes};
  return {I64{Def(fmt::format("vector.extract {}[0] : i64 from {}", lanes, TypeOf(ElementKind::kInt)))}, 0};
}

Index Emitter::IndexOp(const char* op, const Index& a, const Index& b) {
  if ((a.is_scalar() && b.is_scalar()) || (lanes_ == 1 && a.is_progression() && b.is_progression())) {
    return {IntOp(op, a.base, b.base), 0};
  }
  return FromLanes(
      Lanes{Def(fmt::format("arith.{} {}, {} : {}", op, LanesOf(a), LanesOf(b), TypeOf(ElementKind::kInt)))});
}

Value Emitter::IndexCompare(const char* predicate, const Index& index, int64_t bound) {
  const Lanes limit = LanesOf({Int(bound), 0});
  return {Def(fmt::format("arith.cmpi {}, {}, {} : {}", predicate, LanesOf(index), limit, TypeOf(ElementKind::kInt))),
          ElementKind::kBool};
}

std::pair<Index, Index> Emitter::Divided(const Index& index, int64_t divisor) {
  if (divisor == 1) return {index, Zero()};
  if (IsSymbolic(divisor)) return {IndexOp("divui", index, divisor), IndexOp("remui", index, divisor)};
  // Lanes that cannot cross a multiple of the divisor share the quotient.
  const bool shared =
      index.is_progression() &&
      (index.step == 0 || lanes_ == 1 || (index.step == 1 && divisor % lanes_ == 0 && index.multiple % lanes_ == 0));
  if (shared) {
    const I64 size = Int(divisor);
    const int64_t multiple = std::gcd(index.multiple, divisor);
    return {{IntOp("divui", index.base, size), 0}, {IntOp("remui", index.base, size), index.step, {}, multiple}};
  }
  return {IndexOp("divui", index, divisor), IndexOp("remui", index, divisor)};
}

// ---- memory ----

namespace {

/// The name of a buffer in the text of functions, before positions are known: numbers from a first one of each role on,
/// with a letter where they would run into those of the next role.
std::string BufferName(BufferRef buffer) {
  constexpr int kConstants = 1000, kOutputs = 100000, kWorkspace = 200000;
  switch (buffer.role) {
    case BufferRole::kInput: return fmt::format("{}{}", buffer.index < kConstants ? "" : "i", buffer.index);
    case BufferRole::kConstant: {
      const int number = kConstants + buffer.index;
      return fmt::format("{}{}", number < kOutputs ? "" : "c", number);
    }
    case BufferRole::kOutput: {
      const int number = kOutputs + buffer.index;
      return fmt::format("{}{}", number < kWorkspace ? "" : "o", number);
    }
    case BufferRole::kWorkspace: return fmt::format("{}", kWorkspace);
    case BufferRole::kNone: break;
  }
  COLLAGE_CHECK(false) << "a tensor that lies nowhere is neither read nor written";
  return "";
}

}  // namespace

Ptr Emitter::Pointer(const Buffer& buffer) {
  auto [it, is_new] = pointers_.emplace(std::pair(buffer.ref, buffer.offset_bytes), Ptr());
  if (is_new) it->second = Ptr{fmt::format("%p{}_{}", BufferName(buffer.ref), buffer.offset_bytes)};
  return it->second;
}

/// The address in the piece that holds the element.
static Ptr SplitAddress(Emitter& e, const Buffer& buffer, const Indices& indices) {
  const auto axis = static_cast<size_t>(buffer.split_axis);
  COLLAGE_CHECK(indices[axis].is_progression()) << "a vector that crosses the pieces of a tensor";
  Ptr address;
  for (const BufferPiece& piece : buffer.pieces) {
    Indices inside = indices;
    inside[axis].base = e.Plus(inside[axis].base, -piece.begin);
    const Ptr own = e.Address({piece.ref, 0, buffer.dtype, piece.shape, piece.strides}, inside);
    if (address.is_none()) {
      address = own;
      continue;
    }
    const I1 is_behind = e.IntCompare("sge", indices[axis].base, e.Int(piece.begin));
    address = Ptr{e.Def(fmt::format("arith.select {}, {}, {} : !llvm.ptr", is_behind, own, address))};
  }
  return address;
}

Ptr Emitter::Address(const Buffer& buffer, const Indices& indices) {
  if (buffer.is_split()) return SplitAddress(*this, buffer, indices);
  I64 offset;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (buffer.strides[i] == 0 || buffer.shape[i] == 1 || !indices[i].is_progression()) continue;
    const I64 term = MulInt(indices[i].base, buffer.strides[i]);
    offset = offset.is_none() ? term : AddInt(offset, term);
  }
  if (offset.is_none()) return Pointer(buffer);
  return ElementAt(Pointer(buffer), offset, ScalarType(buffer.dtype));
}

Vector Emitter::VectorAt(const Ptr& address, bool masked) {
  if (!masked || mask_.is_none()) {
    return Vector{Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> {}", address, FloatVector()))};
  }
  const Vector zero = Splat(0);
  return Vector{
      Def(fmt::format("llvm.intr.masked.load {}, {}, {} {{alignment = 4 : i32}} : (!llvm.ptr, vector<{}xi1>, {}) -> {}",
                      address, mask_, zero, lanes_, FloatVector(), FloatVector()))};
}

void Emitter::Prefetch(const Ptr& address, const Fetch& fetch) {
  Line(
      fmt::format("\"llvm.intr.prefetch\"({}) <{{cache = 1 : i32, hint = {} : i32, rw = {} : i32}}> : "
                  "(!llvm.ptr) -> ()",
                  address, 4 - fetch.nearest, fetch.to_write ? 1 : 0));
}

/// Distance of neighbouring lanes in elements; kUneven when they are not evenly spaced.
int64_t Emitter::LaneStride(const Buffer& buffer, const Indices& indices) const {
  int64_t stride = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (buffer.shape[i] == 1 || buffer.strides[i] == 0) continue;
    if (!indices[i].is_progression()) return kUneven;
    if (indices[i].step == 0) continue;
    if (IsSymbolic(buffer.strides[i])) return kUneven;
    stride += indices[i].step * buffer.strides[i];
  }
  return stride;
}

Vector Emitter::Gather(const Buffer& buffer, const Indices& indices, int64_t lane_stride) {
  const std::string scalar = MemoryType(buffer.dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const std::string int_type = TypeOf(ElementKind::kInt);
  Lanes offsets;
  if (lane_stride != kUneven) {
    std::string list;
    for (int i = 0; i < lanes_; ++i) list += fmt::format("{}{}", i ? ", " : "", i * lane_stride);
    offsets = Lanes{Def(fmt::format("arith.constant dense<[{}]> : {}", list, int_type))};
  } else {
    Index sum = {Int(0), 0};
    for (size_t i = 0; i < indices.size(); ++i) {
      if (buffer.shape[i] == 1 || buffer.strides[i] == 0) continue;
      Index term = indices[i];
      if (term.is_progression()) term = {Int(0), term.step};  // the base is in the address
      sum = Sum(sum, Scaled(term, buffer.strides[i]));
    }
    offsets = LanesOf(sum);
  }
  Mask mask = mask_;
  if (mask.is_none()) mask = Mask{Def(fmt::format("arith.constant dense<true> : vector<{}xi1>", lanes_))};
  const std::string zero = Def(fmt::format("arith.constant dense<{}> : {}", scalar[0] == 'i' ? "0" : "0.0", raw_type));
  const std::string pointers =
      Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, vector<{}xi64>) -> vector<{}x!llvm.ptr>, {}",
                      Address(buffer, indices), offsets, lanes_, lanes_, scalar));
  return Vector{Def(fmt::format(
      "llvm.intr.masked.gather {}, {}, {} {{alignment = {} : i32}} : (vector<{}x!llvm.ptr>, vector<{}xi1>, {}) -> {}",
      pointers, mask, zero, buffer.dtype.size_bytes(), lanes_, lanes_, raw_type, raw_type))};
}

Vector Emitter::RawLoad(const Buffer& buffer, const Indices& indices, int64_t lane_stride) {
  const std::string scalar = MemoryType(buffer.dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const size_t align = buffer.dtype.size_bytes();
  const char* invariant = buffer.is_constant ? " invariant" : "";
  // Under a condition, addresses of lanes that are not read may lie anywhere.
  if (is_guarded_ && (lanes_ == 1 || lane_stride == 0)) return Gather(buffer, indices, 0);
  if (lane_stride == 0 || lanes_ == 1) {
    const std::string one = Def(fmt::format("llvm.load {}{} {{alignment = {} : i64}} : !llvm.ptr -> {}",
                                            Address(buffer, indices), invariant, align, scalar));
    return Vector{Def(fmt::format("vector.broadcast {} : {} to {}", one, scalar, raw_type))};
  }
  if (lane_stride != 1) return Gather(buffer, indices, lane_stride);
  return RawAt(Address(buffer, indices), buffer.dtype, buffer.is_constant);
}

Vector Emitter::RawAt(const Ptr& address, DataType dtype, bool is_constant) {
  const std::string scalar = MemoryType(dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const size_t align = dtype.size_bytes();
  if (mask_.is_none()) {
    return Vector{Def(fmt::format("llvm.load {}{} {{alignment = {} : i64}} : !llvm.ptr -> {}", address,
                                  is_constant ? " invariant" : "", align, raw_type))};
  }
  const std::string zero = Def(fmt::format("arith.constant dense<{}> : {}", scalar[0] == 'i' ? "0" : "0.0", raw_type));
  return Vector{Def(
      fmt::format("llvm.intr.masked.load {}, {}, {} {{alignment = {} : i32}} : (!llvm.ptr, vector<{}xi1>, {}) -> {}",
                  address, mask_, zero, align, lanes_, raw_type, raw_type))};
}

Value Emitter::Load(const Buffer& buffer, const Indices& indices) {
  const int64_t lane_stride = LaneStride(buffer, indices);
  if (is_unobserved_) return LoadNow(buffer, indices, lane_stride);
  const int number = num_loads_++;
  if (load_hook_) {
    if (std::optional<Value> value = load_hook_(number, lane_stride)) return *value;
  }
  const Value value = LoadNow(buffer, indices, lane_stride);
  if (capture_) capture_(number, value);
  return value;
}

Value Emitter::LoadNow(const Buffer& buffer, const Indices& indices, int64_t lane_stride) {
  return Widened(RawLoad(buffer, indices, lane_stride), buffer.dtype);
}

Value Emitter::LoadAt(const Ptr& address, DataType dtype) {
  return Widened(RawAt(address, dtype, /*is_constant=*/false), dtype);
}

Value Emitter::WidenBFloat16(const Vector& bits) {
  const std::string narrow = fmt::format("vector<{}xi16>", lanes_);
  const std::string wide = fmt::format("vector<{}xi32>", lanes_);
  const std::string extended = Def(fmt::format("arith.extui {} : {} to {}", bits, narrow, wide));
  const std::string sixteen = Def(fmt::format("arith.constant dense<16> : {}", wide));
  const std::string shifted = Def(fmt::format("arith.shli {}, {} : {}", extended, sixteen, wide));
  const std::string value = Def(fmt::format("arith.bitcast {} : {} to {}", shifted, wide, FloatVector()));
  bits_of_.emplace(value, bits);
  return {value, ElementKind::kFloat};
}

Vector Emitter::RoundBFloat16(const Value& value) {
  const auto known = bits_of_.find(value.name);
  if (known != bits_of_.end()) return known->second;
  const std::string narrow = fmt::format("vector<{}xbf16>", lanes_);
  const std::string rounded = Def(fmt::format("arith.truncf {} : {} to {}", value.name, FloatVector(), narrow));
  return Vector{Def(fmt::format("arith.bitcast {} : {} to vector<{}xi16>", rounded, narrow, lanes_))};
}

Value Emitter::Widened(const Vector& raw, DataType dtype) {
  const ElementKind kind = KindOf(dtype);
  if (dtype == kBFloat16) return WidenBFloat16(raw);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, ScalarType(dtype));
  if (kind == ElementKind::kBool) {
    const std::string zero = Def(fmt::format("arith.constant dense<0> : {}", raw_type));
    return {Def(fmt::format("arith.cmpi ne, {}, {} : {}", raw, zero, raw_type)), kind};
  }
  if (dtype == kFloat32 || dtype == kFloat64 || (kind == ElementKind::kInt && dtype.bits == 64)) {
    return {raw.name(), kind};
  }
  const char* widen = kind == ElementKind::kFloat ? "extf" : dtype.code == DataType::Code::kUInt ? "extui" : "extsi";
  return {Def(fmt::format("arith.{} {} : {} to {}", widen, raw, raw_type, TypeOf(kind))), kind};
}

void Emitter::Store(const Buffer& buffer, const Indices& indices, const Value& value) {
  COLLAGE_CHECK(value.kind == KindOf(buffer.dtype))
      << "a value of another kind than the tensor's " << buffer.dtype.ToString();
  const int64_t lane_stride = lanes_ == 1 ? 1 : LaneStride(buffer, indices);
  const bool is_single = lane_stride == 0 && !mask_.is_none();  // the one lane of a dimension of size 1
  COLLAGE_CHECK(lane_stride == 1 || is_single) << "results are stored along their innermost dimension";
  StoreAt(Address(buffer, indices), value, buffer.dtype);
}

void Emitter::StoreAt(const Ptr& address, const Value& value, DataType dtype) {
  const std::string scalar = MemoryType(dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const size_t align = dtype.size_bytes();
  std::string raw = value.name;
  if (value.kind == ElementKind::kBool) {
    raw = Def(fmt::format("arith.extui {} : vector<{}xi1> to {}", raw, lanes_, raw_type));
  } else if (dtype == kBFloat16) {
    raw = RoundBFloat16(value).name();
  } else if (TypeOf(value.kind) != raw_type) {
    raw = Def(fmt::format("arith.{} {} : {} to {}", value.kind == ElementKind::kInt ? "trunci" : "truncf", raw,
                          TypeOf(value.kind), raw_type));
  }
  if (lanes_ == 1) {
    const std::string one = Def(fmt::format("vector.extract {}[0] : {} from {}", raw, scalar, raw_type));
    Line(fmt::format("llvm.store {}, {} {{alignment = {} : i64}} : {}, !llvm.ptr", one, address, align, scalar));
  } else if (mask_.is_none()) {
    Line(fmt::format("llvm.store {}, {} {{alignment = {} : i64}} : {}, !llvm.ptr", raw, address, align, raw_type));
  } else {
    Line(fmt::format("llvm.intr.masked.store {}, {}, {} {{alignment = {} : i32}} : {}, vector<{}xi1> into !llvm.ptr",
                     raw, address, mask_, align, raw_type, lanes_));
  }
}

namespace {

/// One element has no mask: where no lane may be there, some element is read.
Ptr ScalarAddress(Emitter& e, const Buffer& buffer, const I64s& bases) {
  Indices indices;
  for (size_t i = 0; i < bases.size(); ++i) {
    I64 base = bases[i];
    if (e.is_guarded()) {
      base = e.IntOp("minsi", e.IntOp("maxsi", base, e.Int(0)), e.Plus(e.Int(buffer.shape[i]), -1));
    }
    indices.push_back({base, 0});
  }
  return e.Address(buffer, indices);
}

}  // namespace

F32 Emitter::LoadScalar(const Buffer& buffer, const I64s& bases) {
  return F32{
      Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> f32", ScalarAddress(*this, buffer, bases)))};
}

I64 Emitter::LoadInt(const Buffer& buffer, const I64s& bases) {
  return I64{
      Def(fmt::format("llvm.load {} {{alignment = 8 : i64}} : !llvm.ptr -> i64", ScalarAddress(*this, buffer, bases)))};
}

}  // namespace collage::native
