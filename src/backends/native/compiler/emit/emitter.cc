// emitter.cc: loops, functions and the module as MLIR text.
#include "backends/native/compiler/emit/emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collage/support/error.h"
#include "runtime/native_loader.h"

namespace collage::native {
namespace {

constexpr const char* kScratch = "collage_scratch";
constexpr const char* kScratchType = "(i64) -> !llvm.ptr";

}  // namespace

F32 Emitter::Float(double value) {
  return F32{Def(fmt::format("arith.constant 0x{:08X} : f32", std::bit_cast<uint32_t>(static_cast<float>(value))))};
}

I1 Emitter::IntCompare(const char* predicate, const I64& a, const I64& b) {
  return I1{Def(fmt::format("arith.cmpi {}, {}, {} : i64", predicate, a, b))};
}

I64 Emitter::SelectInt(const I1& condition, const I64& a, const I64& b) {
  return I64{Def(fmt::format("arith.select {}, {}, {} : i64", condition, a, b))};
}

I64 Emitter::MulInt(const I64& a, int64_t factor) {
  if (factor == 1) return a;
  return I64{Def(fmt::format("arith.muli {}, {} : i64", a, Int(factor)))};
}

I64 Emitter::Plus(const I64& a, int64_t addend) { return addend == 0 ? a : AddInt(a, Int(addend)); }

int64_t Emitter::Size(SizeFormula size) {
  const int64_t number = std::find(symbolic_.begin(), symbolic_.end(), size) - symbolic_.begin();
  if (number == static_cast<int64_t>(symbolic_.size())) symbolic_.push_back(std::move(size));
  return kFirstSymbolic + number;
}

// Factors that are no products themselves, in order, and one number.
int64_t Emitter::Times(int64_t a, int64_t b) {
  if (!IsSymbolic(a) && !IsSymbolic(b)) return a * b;
  if (a == 0 || b == 0) return 0;
  SizeFormula product{SizeFormula::kProduct, 1, {}, {}};
  for (const int64_t size : {a, b}) {
    if (!IsSymbolic(size)) {
      product.number *= size;
    } else if (const SizeFormula& of = DefinitionOf(size); of.kind == SizeFormula::kProduct) {
      product.number *= of.number;
      product.parts.insert(product.parts.end(), of.parts.begin(), of.parts.end());
    } else {
      product.parts.push_back(size);
    }
  }
  if (product.number == 1 && product.parts.size() == 1) return product.parts[0];
  std::sort(product.parts.begin(), product.parts.end());
  return Size(std::move(product));
}

int64_t Emitter::Added(int64_t a, int64_t b) {
  if (!IsSymbolic(a) && !IsSymbolic(b)) return a + b;
  if (a == 0 || b == 0) return a + b;
  return Size({SizeFormula::kSum, 1, {std::min(a, b), std::max(a, b)}, {}});
}

int64_t Emitter::CeilDivided(int64_t a, int64_t known) {
  if (!IsSymbolic(a)) return (a + known - 1) / known;
  return known == 1 ? a : Size({SizeFormula::kQuotient, known, {a}, {}});
}

int64_t Emitter::Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product = Times(product, size);
  return product;
}

std::vector<int64_t> Emitter::Strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = Times(stride, shape[i]);
  }
  return strides;
}

std::string Emitter::NameOf(int64_t size) const {
  const SizeFormula& of = DefinitionOf(size);
  return of.kind == SizeFormula::kValue ? of.value.name() : fmt::format("%n{}", size - kFirstSymbolic);
}

void Emitter::AddSymbolicSizes(ModuleText& to) const {
  if (sizes_.role == BufferRole::kNone || symbolic_.empty()) return;
  to += "  %n_slot = llvm.getelementptr %ctx[";
  to += sizes_;
  std::string lines =
      "] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
      "  %n_base = llvm.load %n_slot : !llvm.ptr -> !llvm.ptr\n";
  int constants = 0;
  const auto operand = [&](int64_t size) {
    if (IsSymbolic(size)) return NameOf(size);
    lines += fmt::format("  %n_c{} = arith.constant {} : i64\n", constants, size);
    return fmt::format("%n_c{}", constants++);
  };
  for (size_t i = 0; i < symbolic_.size(); ++i) {
    const SizeFormula& size = symbolic_[i];
    if (size.kind == SizeFormula::kValue) continue;
    if (size.kind == SizeFormula::kPlace) {
      lines += fmt::format(
          "  %n{0}_at = llvm.getelementptr %n_base[{1}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
          "  %n{0} = llvm.load %n{0}_at {{alignment = 8 : i64}} : !llvm.ptr -> i64\n",
          i, size.number);
    } else if (size.kind == SizeFormula::kSum) {
      const std::string a = operand(size.parts[0]), b = operand(size.parts[1]);
      lines += fmt::format("  %n{} = arith.addi {}, {} : i64\n", i, a, b);
    } else if (size.kind == SizeFormula::kQuotient) {
      const std::string more = operand(size.number - 1), by = operand(size.number);
      lines += fmt::format("  %n{0}_up = arith.addi {1}, {2} : i64\n  %n{0} = arith.divui %n{0}_up, {3} : i64\n", i,
                           NameOf(size.parts[0]), more, by);
    } else {
      std::string product = operand(size.number);
      for (size_t k = 0; k < size.parts.size(); ++k) {
        const std::string name = k + 1 == size.parts.size() ? fmt::format("%n{}", i) : fmt::format("%n{}_{}", i, k);
        lines += fmt::format("  {} = arith.muli {}, {} : i64\n", name, product, NameOf(size.parts[k]));
        product = name;
      }
    }
  }
  to += lines;
}

std::string Emitter::TypeOf(ElementKind kind) const {
  const char* element = kind == ElementKind::kFloat    ? "f32"
                        : kind == ElementKind::kDouble ? "f64"
                        : kind == ElementKind::kInt    ? "i64"
                                                       : "i1";
  return fmt::format("vector<{}x{}>", lanes_, element);
}

Vector Emitter::Splat(double value) {
  return Vector{Def(fmt::format("arith.constant dense<0x{:08X}> : {}",
                                std::bit_cast<uint32_t>(static_cast<float>(value)), FloatVector()))};
}

void Emitter::For(const I64& from, const I64& to, int64_t step, const std::function<void(const I64&)>& body) {
  const I64 variable{Fresh()};
  Open(fmt::format("scf.for {} = {} to {} step {} : i64 {{", variable, from, to, Int(step)));
  body(variable);
  Close();
}

Emitter::Texts Emitter::Loop(const I64& from, const I64& to, const Texts& start, const Texts& types,
                             const std::function<Texts(const I64&, const Texts&)>& body) {
  const I64 variable{Fresh()};
  const std::string result = Fresh();
  const auto separator = [](const std::string& list) { return list.empty() ? "" : ", "; };
  std::string inits, all_types, yields;
  Texts carried, results;
  for (size_t i = 0; i < start.size(); ++i) {
    carried.push_back(Fresh());
    inits += fmt::format("{}{} = {}", separator(inits), carried[i], start[i]);
    all_types += separator(all_types) + types[i];
    results.push_back(start.size() == 1 ? result : fmt::format("{}#{}", result, i));
  }
  const I64 step = Int(1);
  Open(fmt::format("{}{} = scf.for {} = {} to {} step {} iter_args({}) -> ({}) : i64 {{", result,
                   start.size() == 1 ? "" : fmt::format(":{}", start.size()), variable, from, to, step, inits,
                   all_types));
  for (const std::string& next : body(variable, carried)) yields += separator(yields) + next;
  Line(fmt::format("scf.yield {} : {}", yields, all_types));
  Close();
  return results;
}

namespace {

template <typename T>
std::vector<std::string> NamesOf(const std::vector<Ssa<T>>& values) {
  std::vector<std::string> names;
  for (const Ssa<T>& value : values) names.push_back(value.name());
  return names;
}

template <typename T>
std::vector<T> ValuesOf(const std::vector<std::string>& names) {
  std::vector<T> values;
  for (const std::string& name : names) values.emplace_back(name);
  return values;
}

}  // namespace

Vectors Emitter::ForCarrying(const I64& from, const I64& to, const Vectors& start, const std::string& type,
                             const std::function<Vectors(const I64&, const Vectors&)>& body) {
  return ValuesOf<Vector>(Loop(
      from, to, NamesOf(start), Texts(start.size(), type),
      [&](const I64& variable, const Texts& carried) { return NamesOf(body(variable, ValuesOf<Vector>(carried))); }));
}

I64s Emitter::ForCarrying(const I64& from, const I64& to, const I64s& start,
                          const std::function<I64s(const I64&, const I64s&)>& body) {
  return ValuesOf<I64>(
      Loop(from, to, NamesOf(start), Texts(start.size(), "i64"),
           [&](const I64& variable, const Texts& carried) { return NamesOf(body(variable, ValuesOf<I64>(carried))); }));
}

std::vector<Value> Emitter::ForValues(
    const I64& from, const I64& to, const std::vector<Value>& start,
    const std::function<std::vector<Value>(const I64&, const std::vector<Value>&)>& body) {
  Texts names, types;
  for (const Value& value : start) {
    names.push_back(value.name);
    types.push_back(TypeOf(value.kind));
  }
  const auto values_of = [&](const Texts& of) {
    std::vector<Value> values;
    for (size_t i = 0; i < of.size(); ++i) values.push_back({of[i], start[i].kind});
    return values;
  };
  return values_of(Loop(from, to, names, types, [&](const I64& variable, const Texts& carried) {
    Texts next;
    for (const Value& value : body(variable, values_of(carried))) next.push_back(value.name);
    return next;
  }));
}

I64 Emitter::CountDown(const I64& from, const std::function<I1(const I64& last)>& body) {
  const std::string result = Fresh(), count = Fresh(), before = Fresh();
  const I64 one = Int(1);
  Open(fmt::format("{} = scf.while ({} = {}) : (i64) -> i64 {{", result, count, from));
  const I64 last = IntOp("maxsi", IntOp("subi", I64{count}, one), Int(0));
  const I1 passes = And(IntCompare("sge", I64{count}, one), body(last));
  Line(fmt::format("scf.condition({}) {} : i64", passes, count));
  Close("} do {");
  indent_ += 2;
  Line(fmt::format("^bb0({}: i64):", before));
  Line(fmt::format("scf.yield {} : i64", IntOp("subi", I64{before}, one)));
  Close();
  return I64{result};
}

void Emitter::If(const I1& condition, const std::function<void()>& body) {
  Open(fmt::format("scf.if {} {{", condition));
  body();
  Close();
}

void Emitter::WithMask(const Mask& condition, const std::function<void()>& body) {
  const Mask before = mask_;
  mask_ = before.is_none() ? condition
                           : Mask{Def(fmt::format("arith.andi {}, {} : vector<{}xi1>", before, condition, lanes_))};
  const bool was_guarded = std::exchange(is_guarded_, true);
  body();
  is_guarded_ = was_guarded;
  mask_ = before;
}

void Emitter::Unobserved(const std::function<void()>& body) {
  const bool was_unobserved = std::exchange(is_unobserved_, true);
  body();
  is_unobserved_ = was_unobserved;
}

void Emitter::DryRun(const std::function<void()>& write) {
  const std::string body = body_;
  const auto pointers = pointers_;
  write();
  body_ = body;
  pointers_ = pointers;
}

void Emitter::ForLanes(int64_t count, const std::function<void(const I64&)>& body) {
  if (IsSymbolic(count)) return ForLanesBetween(Int(0), Int(count), body);
  const int64_t whole = count / lanes_ * lanes_;
  if (whole > 0) For(Int(0), Int(whole), lanes_, body);
  if (whole < count) MaskedRest(count, body);
}

namespace {

/// Writes a mask of the first lane alone that LLVM does not know to be one: with AVX-512, LLVM 22 stores narrow
/// integers under a known one by a scalar store that is wider than they are.
Mask FirstLaneOf(Emitter& e) {
  const std::string type = e.TypeOf(ElementKind::kInt);
  std::string numbers;
  for (int i = 0; i < e.lanes(); ++i) numbers += fmt::format("{}{}", i ? ", " : "", i);
  const std::string lanes = e.Def(fmt::format("arith.constant dense<[{}]> : {}", numbers, type));
  const I64 one{e.Def(fmt::format(R"(llvm.inline_asm "", "=r,0" {} : (i64) -> i64)", e.Int(1)))};
  const std::string count = e.Def(fmt::format("vector.broadcast {} : i64 to {}", one, type));
  return Mask{e.Def(fmt::format("arith.cmpi slt, {}, {} : {}", lanes, count, type))};
}

}  // namespace

void Emitter::MaskedBefore(const I64& first, const I64& end, const std::function<void()>& body) {
  const Mask before = mask_;
  const std::string type = TypeOf(ElementKind::kInt);
  std::string numbers;
  for (int i = 0; i < lanes_; ++i) numbers += fmt::format("{}{}", i ? ", " : "", i);
  const std::string lanes = Def(fmt::format("arith.constant dense<[{}]> : {}", numbers, type));
  const std::string count = Def(fmt::format("vector.broadcast {} : i64 to {}", IntOp("subi", end, first), type));
  mask_ = Mask{Def(fmt::format("arith.cmpi slt, {}, {} : {}", lanes, count, type))};
  body();
  mask_ = before;
}

void Emitter::ForLanesBetween(const I64& begin, const I64& end, const std::function<void(const I64& first)>& body) {
  if (lanes_ == 1) return For(begin, end, 1, body);
  const I64 left = IntOp("remui", IntOp("subi", end, begin), Int(lanes_));
  const I64 whole = IntOp("subi", end, left);
  For(begin, whole, lanes_, body);
  If(IntCompare("slt", whole, end), [&] { MaskedBefore(whole, end, [&] { body(whole); }); });
}

Mask Emitter::MaskOf(const std::function<bool(int64_t lane)>& has) {
  std::string bits;
  for (int i = 0; i < lanes_; ++i) bits += fmt::format("{}{}", i ? ", " : "", has(i) ? "true" : "false");
  return Mask{Def(fmt::format("arith.constant dense<[{}]> : vector<{}xi1>", bits, lanes_))};
}

void Emitter::MaskedRest(int64_t count, const std::function<void(const I64&)>& body) {
  const int64_t whole = count / lanes_ * lanes_;
  if (native_lanes_ == 16 && lanes_ > 1 && count - whole == 1) {
    mask_ = FirstLaneOf(*this);
  } else {
    mask_ = MaskOf([&](int64_t lane) { return whole + lane < count; });
  }
  body(Int(whole));
  mask_ = {};
}

void Emitter::Function(const std::string& name, const std::function<void(const I64&, const I64&)>& write) {
  body_.clear();
  pointers_.clear();
  write(I64{"%begin"}, I64{"%end"});
  functions_ += fmt::format("func.func private @{}(%ctx: !llvm.ptr, %begin: i64, %end: i64) {{\n", name);
  AddSymbolicSizes(functions_);
  for (const auto& [place, pointer] : pointers_) {
    functions_ += fmt::format("  {}_slot = llvm.getelementptr %ctx[", pointer);
    functions_ += place.first;
    functions_ += fmt::format(
        "] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        "  {0}_base = llvm.load {0}_slot : !llvm.ptr -> !llvm.ptr\n"
        "  {0} = llvm.getelementptr {0}_base[{1}] : (!llvm.ptr) -> !llvm.ptr, i8\n",
        pointer, place.second);
  }
  functions_ += body_ + "  return\n}\n";
}

Ptr Emitter::LoadAddress(const LibraryCall& call) {
  const size_t number = library_functions_.Add(call);
  const Ptr table{Def(fmt::format("llvm.mlir.addressof @{} : !llvm.ptr", kObjectAddresses))};
  const Ptr slot = ElementAt(table, static_cast<int64_t>(number), "!llvm.ptr");
  return Ptr{Def(fmt::format("llvm.load {} : !llvm.ptr -> !llvm.ptr", slot))};
}

void Emitter::Call(const std::string& name, int64_t count, bool parallel) {
  const int n = num_calls_++;
  calls_ += fmt::format("  %zero{0} = arith.constant 0 : i64\n", n);
  // A symbolic size is copied by adding 0.
  calls_ += IsSymbolic(count) ? fmt::format("  %count{0} = arith.addi {1}, %zero{0} : i64\n", n, NameOf(count))
                              : fmt::format("  %count{0} = arith.constant {1} : i64\n", n, count);
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

void Emitter::CallRepeatedly(int64_t count, const Buffer& counter, const std::function<void()>& body) {
  const int n = num_calls_++;
  calls_ += fmt::format(
      "  %cz{0} = arith.constant 0 : i64\n  %co{0} = arith.constant 1 : i64\n  %cn{0} = arith.constant {1} : i64\n"
      "  %cs{0} = llvm.getelementptr %ctx[",
      n, count);
  calls_ += counter.ref;
  calls_ += fmt::format(
      "] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
      "  %cb{0} = llvm.load %cs{0} : !llvm.ptr -> !llvm.ptr\n"
      "  %cp{0} = llvm.getelementptr %cb{0}[{1}] : (!llvm.ptr) -> !llvm.ptr, i8\n"
      "  scf.for %ci{0} = %cz{0} to %cn{0} step %co{0} : i64 {{\n"
      "  llvm.store %ci{0}, %cp{0} : i64, !llvm.ptr\n",
      n, counter.offset_bytes);
  body();
  calls_ += "  }\n";
}

void Emitter::CallScratch(int64_t bytes) {
  calls_ += fmt::format(
      "  %scratch = func.call @collage_scratch({}) : (i64) -> !llvm.ptr\n"
      "  %scratch_slot = llvm.getelementptr %ctx[",
      IsSymbolic(bytes) ? NameOf(bytes) : "%scratch_bytes");
  calls_ += WorkspaceRef();
  calls_ +=
      "] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
      "  llvm.store %scratch, %scratch_slot : !llvm.ptr, !llvm.ptr\n";
  if (!IsSymbolic(bytes)) scratch_size_ = fmt::format("  %scratch_bytes = arith.constant {} : i64\n", bytes);
  Declare(kScratch, kScratchType);
}

Ptr Emitter::Scratch(int64_t bytes) {
  Declare(kScratch, kScratchType);
  return Ptr{Def(fmt::format("func.call @collage_scratch({}) : (i64) -> !llvm.ptr", Int(bytes)))};
}

Vectors Emitter::CallDeclared(const std::string& name, const Vectors& arguments, size_t num_results) {
  std::string list;
  for (const Vector& argument : arguments) list += (list.empty() ? "" : ", ") + argument.name();
  const std::string call = fmt::format("func.call @{}({}) : {}", name, list, declared_.at(name));
  Vectors values;
  if (num_results == 0) {
    Line(call);
    return values;
  }
  const std::string results = Fresh();
  Line(fmt::format("{}:{} = {}", results, num_results, call));
  for (size_t i = 0; i < num_results; ++i) values.emplace_back(fmt::format("{}#{}", results, i));
  return values;
}

std::string Emitter::Module(const BufferCounts& counts) const {
  std::string declarations;
  for (const auto& [name, type] : declared_) declarations += fmt::format("func.func private @{}{}\n", name, type);
  ModuleText entry;
  AddSymbolicSizes(entry);
  return "func.func private @collage_parallel_for(i64, !llvm.ptr, !llvm.ptr)\n" + declarations +
         library_functions_.ToMlir() + functions_.Resolved(counts) + "func.func @collage_kernel(%ctx: !llvm.ptr) {\n" +
         entry.Resolved(counts) + scratch_size_ + calls_.Resolved(counts) + "  return\n}\n";
}

}  // namespace collage::native
