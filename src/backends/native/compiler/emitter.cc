// emitter.cc: loops, vectors and memory as MLIR text.
#include "backends/native/compiler/emitter.h"

#include <bit>

#include "collage/support/error.h"

namespace collage::native {

std::vector<int64_t> LayoutStrides(const Shape& shape, Layout layout) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  const std::vector<int> axes = PhysicalAxes(layout, static_cast<int>(shape.size()));
  for (size_t i = axes.size(); i-- > 0;) {
    strides[static_cast<size_t>(axes[i])] = stride;
    stride *= shape[static_cast<size_t>(axes[i])];
  }
  return strides;
}

std::string Emitter::Float(double value) {
  return Def(fmt::format("arith.constant 0x{:08X} : f32", std::bit_cast<uint32_t>(static_cast<float>(value))));
}

std::string Emitter::MulInt(const std::string& a, int64_t factor) {
  if (factor == 1) return a;
  return Def(fmt::format("arith.muli {}, {} : i64", a, Int(factor)));
}

std::string Emitter::Plus(const std::string& a, int64_t addend) { return addend == 0 ? a : AddInt(a, Int(addend)); }

std::string Emitter::TypeOf(ElementKind kind) const {
  const char* element = kind == ElementKind::kFloat ? "f32" : kind == ElementKind::kInt ? "i64" : "i1";
  return fmt::format("vector<{}x{}>", lanes_, element);
}

std::string Emitter::Splat(double value) {
  return Def(fmt::format("arith.constant dense<0x{:08X}> : {}", std::bit_cast<uint32_t>(static_cast<float>(value)),
                         FloatVector()));
}

void Emitter::For(const std::string& from, const std::string& to, int64_t step,
                  const std::function<void(const std::string&)>& body) {
  const std::string variable = Fresh();
  Open(fmt::format("scf.for {} = {} to {} step {} : i64 {{", variable, from, to, Int(step)));
  body(variable);
  Close();
}

std::vector<std::string> Emitter::ForCarrying(
    const std::string& from, const std::string& to, const std::vector<std::string>& start, const std::string& type,
    const std::function<std::vector<std::string>(const std::string&, const std::vector<std::string>&)>& body) {
  const std::string variable = Fresh();
  const std::string result = Fresh();
  std::string inits;
  std::string types;
  std::string yields;
  std::vector<std::string> carried;
  std::vector<std::string> results;
  for (size_t i = 0; i < start.size(); ++i) {
    carried.push_back(Fresh());
    inits += fmt::format("{}{} = {}", i ? ", " : "", carried[i], start[i]);
    types += (i ? ", " : "") + type;
    results.push_back(start.size() == 1 ? result : fmt::format("{}#{}", result, i));
  }
  const std::string step = Int(1);
  Open(fmt::format("{}{} = scf.for {} = {} to {} step {} iter_args({}) -> ({}) : i64 {{", result,
                   start.size() == 1 ? "" : fmt::format(":{}", start.size()), variable, from, to, step, inits, types));
  const std::vector<std::string> next = body(variable, carried);
  for (size_t i = 0; i < next.size(); ++i) yields += (i ? ", " : "") + next[i];
  Line(fmt::format("scf.yield {} : {}", yields, types));
  Close();
  return results;
}

void Emitter::ForLanes(int64_t count, const std::function<void(const std::string&)>& body) {
  const int64_t whole = count / lanes_ * lanes_;
  if (whole > 0) For(Int(0), Int(whole), lanes_, body);
  if (whole < count) MaskedRest(count, body);
}

void Emitter::MaskedRest(int64_t count, const std::function<void(const std::string&)>& body) {
  const int64_t whole = count / lanes_ * lanes_;
  std::string bits;
  for (int i = 0; i < lanes_; ++i) bits += fmt::format("{}{}", i ? ", " : "", whole + i < count ? "true" : "false");
  mask_ = Def(fmt::format("arith.constant dense<[{}]> : vector<{}xi1>", bits, lanes_));
  body(Int(whole));
  mask_.clear();
}

std::string Emitter::Pointer(const Buffer& buffer) {
  auto [it, is_new] = pointers_.emplace(std::pair(buffer.number, buffer.offset_bytes), "");
  if (is_new) it->second = fmt::format("%p{}_{}", buffer.number, buffer.offset_bytes);
  return it->second;
}

std::string Emitter::Address(const Buffer& buffer, const Indices& indices) {
  std::string offset;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (buffer.strides[i] == 0 || buffer.shape[i] == 1) continue;
    const std::string term = MulInt(indices[i].base, buffer.strides[i]);
    offset = offset.empty() ? term : AddInt(offset, term);
  }
  if (offset.empty()) return Pointer(buffer);
  const size_t bytes = buffer.dtype.size_bytes();
  const char* element = bytes == 1 ? "i8" : bytes == 2 ? "i16" : bytes == 8 ? "i64" : "i32";
  return Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, i64) -> !llvm.ptr, {}", Pointer(buffer), offset, element));
}

std::string Emitter::VectorAt(const std::string& address, bool masked) {
  if (!masked || mask_.empty()) {
    return Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> {}", address, FloatVector()));
  }
  const std::string zero = Splat(0);
  return Def(fmt::format("llvm.intr.masked.load {}, {}, {} {{alignment = 4 : i32}} : (!llvm.ptr, vector<{}xi1>, {}) -> {}",
                         address, mask_, zero, lanes_, FloatVector(), FloatVector()));
}

namespace {

const char* ScalarType(DataType dtype) {
  if (dtype == kFloat32) return "f32";
  if (dtype == kFloat16) return "f16";
  if (dtype == kInt64) return "i64";
  if (dtype == kInt32) return "i32";
  if (dtype == kBool || dtype == kUInt8 || dtype == kInt8) return "i8";
  throw Error(ErrorCategory::kUnsupported, "native kernels do not read tensors of " + dtype.ToString());
}

}  // namespace

Value Emitter::Load(const Buffer& buffer, const Indices& indices) {
  const std::string address = Address(buffer, indices);
  int64_t lane_stride = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (buffer.shape[i] != 1) lane_stride += indices[i].step * buffer.strides[i];
  }
  const std::string scalar = ScalarType(buffer.dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const auto align = static_cast<int>(buffer.dtype.size_bytes());
  std::string raw;
  if (lane_stride == 0 || lanes_ == 1) {
    const std::string one = Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", address, align, scalar));
    raw = Def(fmt::format("vector.broadcast {} : {} to {}", one, scalar, raw_type));
  } else if (lane_stride == 1 && mask_.empty()) {
    raw = Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", address, align, raw_type));
  } else {
    std::string mask = mask_;
    if (mask.empty()) mask = Def(fmt::format("arith.constant dense<true> : vector<{}xi1>", lanes_));
    const bool is_float = scalar[0] == 'f';
    const std::string zero = Def(fmt::format("arith.constant dense<{}> : {}", is_float ? "0.0" : "0", raw_type));
    if (lane_stride == 1) {
      raw = Def(fmt::format("llvm.intr.masked.load {}, {}, {} {{alignment = {} : i32}} : (!llvm.ptr, vector<{}xi1>, {}) -> {}",
                            address, mask, zero, align, lanes_, raw_type, raw_type));
    } else {
      std::string offsets;
      for (int i = 0; i < lanes_; ++i) offsets += fmt::format("{}{}", i ? ", " : "", i * lane_stride);
      const std::string vector = Def(fmt::format("arith.constant dense<[{}]> : vector<{}xi64>", offsets, lanes_));
      const std::string pointers = Def(fmt::format(
          "llvm.getelementptr {}[{}] : (!llvm.ptr, vector<{}xi64>) -> vector<{}x!llvm.ptr>, {}", address, vector, lanes_, lanes_, scalar));
      raw = Def(fmt::format("llvm.intr.masked.gather {}, {}, {} {{alignment = {} : i32}} : (vector<{}x!llvm.ptr>, vector<{}xi1>, {}) -> {}",
                            pointers, mask, zero, align, lanes_, lanes_, raw_type, raw_type));
    }
  }
  if (buffer.dtype == kFloat32) return {raw, ElementKind::kFloat};
  if (buffer.dtype == kFloat16) return {Def(fmt::format("arith.extf {} : {} to {}", raw, raw_type, FloatVector())), ElementKind::kFloat};
  if (buffer.dtype == kInt64) return {raw, ElementKind::kInt};
  if (buffer.dtype == kBool) {
    const std::string zero = Def(fmt::format("arith.constant dense<0> : {}", raw_type));
    return {Def(fmt::format("arith.cmpi ne, {}, {} : {}", raw, zero, raw_type)), ElementKind::kBool};
  }
  const char* extend = buffer.dtype == kUInt8 ? "extui" : "extsi";
  return {Def(fmt::format("arith.{} {} : {} to {}", extend, raw, raw_type, TypeOf(ElementKind::kInt))), ElementKind::kInt};
}

void Emitter::Store(const Buffer& buffer, const Indices& indices, const Value& value) {
  const std::string address = Address(buffer, indices);
  int64_t lane_stride = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (buffer.shape[i] != 1) lane_stride += indices[i].step * buffer.strides[i];
  }
  const std::string scalar = ScalarType(buffer.dtype);
  const std::string raw_type = fmt::format("vector<{}x{}>", lanes_, scalar);
  const auto align = static_cast<int>(buffer.dtype.size_bytes());
  std::string raw = value.name;
  if (buffer.dtype == kFloat16) raw = Def(fmt::format("arith.truncf {} : {} to {}", raw, FloatVector(), raw_type));
  if (buffer.dtype == kBool) raw = Def(fmt::format("arith.extui {} : vector<{}xi1> to {}", raw, lanes_, raw_type));
  if (value.kind == ElementKind::kInt && buffer.dtype != kInt64) {
    raw = Def(fmt::format("arith.trunci {} : {} to {}", raw, TypeOf(ElementKind::kInt), raw_type));
  }
  if (lanes_ == 1) {
    const std::string one = Def(fmt::format("vector.extract {}[0] : {} from {}", raw, scalar, raw_type));
    Line(fmt::format("llvm.store {}, {} {{alignment = {} : i64}} : {}, !llvm.ptr", one, address, align, scalar));
    return;
  }
  COLLAGE_CHECK(lane_stride == 1) << "results are stored along their innermost dimension";
  if (mask_.empty()) {
    Line(fmt::format("llvm.store {}, {} {{alignment = {} : i64}} : {}, !llvm.ptr", raw, address, align, raw_type));
  } else {
    Line(fmt::format("llvm.intr.masked.store {}, {}, {} {{alignment = {} : i32}} : {}, vector<{}xi1> into !llvm.ptr", raw,
                     address, mask_, align, raw_type, lanes_));
  }
}

std::string Emitter::LoadScalar(const Buffer& buffer, const std::vector<std::string>& bases) {
  Indices indices;
  for (const std::string& base : bases) indices.push_back({base, 0});
  return Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> f32", Address(buffer, indices)));
}

void Emitter::Function(const std::string& name, const std::function<void(const std::string&, const std::string&)>& write) {
  body_.clear();
  pointers_.clear();
  write("%begin", "%end");
  functions_ += fmt::format("func.func private @{}(%ctx: !llvm.ptr, %begin: i64, %end: i64) {{\n", name);
  for (const auto& [key, pointer] : pointers_) {
    functions_ += fmt::format(
        "  {0}_slot = llvm.getelementptr %ctx[{1}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        "  {0}_base = llvm.load {0}_slot : !llvm.ptr -> !llvm.ptr\n"
        "  {0} = llvm.getelementptr {0}_base[{2}] : (!llvm.ptr) -> !llvm.ptr, i8\n",
        pointer, key.first, key.second);
  }
  functions_ += body_ + "  return\n}\n";
}

void Emitter::Call(const std::string& name, int64_t count, bool parallel) {
  const int n = num_calls_++;
  calls_ += fmt::format("  %zero{0} = arith.constant 0 : i64\n  %count{0} = arith.constant {1} : i64\n", n, count);
  if (!parallel) {
    calls_ += fmt::format("  func.call @{1}(%ctx, %zero{0}, %count{0}) : (!llvm.ptr, i64, i64) -> ()\n", n, name);
    return;
  }
  calls_ += fmt::format(
      "  %f{0} = func.constant @{1} : (!llvm.ptr, i64, i64) -> ()\n"
      "  %fp{0} = builtin.unrealized_conversion_cast %f{0} : (!llvm.ptr, i64, i64) -> () to !llvm.ptr\n"
      "  func.call @collage_parallel_for(%count{0}, %fp{0}, %ctx) : (i64, !llvm.ptr, !llvm.ptr) -> ()\n",
      n, name);
}

std::string Emitter::Module() const {
  return "func.func private @collage_parallel_for(i64, !llvm.ptr, !llvm.ptr)\n" + functions_ +
         "func.func @collage_kernel(%ctx: !llvm.ptr) {\n" + calls_ + "  return\n}\n";
}

}  // namespace collage::native
