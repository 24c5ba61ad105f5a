// emitter.h: writes the MLIR text of one partition: buffers, loops, and values at an index.
//
// Everything is computed in vectors of `lanes()` elements along one dimension. A value's place is an Index per logical
// dimension: a base that is the same for all lanes, and how much it grows from lane to lane. So a broadcast operand is
// one scalar load, a contiguous one a vector load, a transposed one a gather, and no operator needs to know which.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/native/compiler/emit/buffer.h"
#include "backends/native/compiler/emit/value.h"
#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "target/call_table.h"

namespace collage::native {

/// Text of one partition's module under construction.
class Emitter {
 public:
  explicit Emitter(int lanes) : native_lanes_(lanes), lanes_(lanes) {}

  // ---- text ----
  int lanes() const { return lanes_; }
  /// Sets the number of lanes; 1 writes scalar code in the same way.
  void SetLanes(int lanes) { lanes_ = lanes; }
  int native_lanes() const { return native_lanes_; }

  std::string Fresh() { return fmt::format("%v{}", next_++); }
  /// "%vN = TEXT"; returns the name.
  std::string Def(const std::string& text) {
    std::string name = Fresh();
    Line(name + " = " + text);
    return name;
  }
  void Line(const std::string& text) { body_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n"; }
  void Open(const std::string& text) {
    Line(text);
    indent_ += 2;
  }
  void Close(const std::string& text = "}") {
    indent_ -= 2;
    Line(text);
  }

  I64 Int(int64_t value) {
    return I64{IsSymbolic(value) ? NameOf(value) : Def(fmt::format("arith.constant {} : i64", value))};
  }
  F32 Float(double value);
  I64 AddInt(const I64& a, const I64& b) { return I64{Def(fmt::format("arith.addi {}, {} : i64", a, b))}; }
  I64 MulInt(const I64& a, int64_t factor);
  /// base + constant.
  I64 Plus(const I64& a, int64_t addend);

  std::string FloatVector() const { return fmt::format("vector<{}xf32>", lanes_); }
  std::string TypeOf(ElementKind kind) const;
  /// A vector of float32, all of them `value`.
  Vector Splat(double value);
  Vector Broadcast(const F32& scalar) {
    return Vector{Def(fmt::format("vector.broadcast {} : f32 to {}", scalar, FloatVector()))};
  }

  /// `for i in [from, to) step step`: the body gets the induction variable.
  void For(const I64& from, const I64& to, int64_t step, const std::function<void(const I64&)>& body);
  /// A loop that carries vectors of `type`: `body` gets the induction variable and the values, and returns the next
  /// ones.
  Vectors ForCarrying(const I64& from, const I64& to, const Vectors& start, const std::string& type,
                      const std::function<Vectors(const I64&, const Vectors&)>& body);
  /// As above for numbers.
  I64s ForCarrying(const I64& from, const I64& to, const I64s& start,
                   const std::function<I64s(const I64&, const I64s&)>& body);
  /// As above for vectors of several kinds, which `body` must keep.
  std::vector<Value> ForValues(const I64& from, const I64& to, const std::vector<Value>& start,
                               const std::function<std::vector<Value>(const I64&, const std::vector<Value>&)>& body);
  /// The largest number of at most `from` that is 0, or whose predecessor `body` finds no reason to pass.
  I64 CountDown(const I64& from, const std::function<I1(const I64& last)>& body);
  /// Runs `body` where `condition` holds.
  void If(const I1& condition, const std::function<void()>& body);
  /// `op` of arith on two values, "addi" for one.
  I64 IntOp(const char* op, const I64& a, const I64& b) {
    return I64{Def(fmt::format("arith.{} {}, {} : i64", op, a, b))};
  }
  /// Compares two values by `predicate` ("slt" …).
  I1 IntCompare(const char* predicate, const I64& a, const I64& b);
  /// `condition` ? a : b.
  I64 SelectInt(const I1& condition, const I64& a, const I64& b);
  /// 1 where `condition` holds, else 0.
  I64 ToInt(const I1& condition) { return I64{Def(fmt::format("arith.extui {} : i1 to i64", condition))}; }
  /// Returns the integer in the first lane.
  I64 FirstLane(const Value& numbers) {
    return I64{Def(fmt::format("vector.extract {}[0] : i64 from {}", numbers.name, TypeOf(ElementKind::kInt)))};
  }
  /// The largest of all lanes of integers.
  I64 LargestLane(const Value& numbers) {
    return I64{Def(fmt::format("vector.reduction <maxsi>, {} : {} into i64", numbers.name, TypeOf(ElementKind::kInt)))};
  }
  /// Returns the truth value in the first lane.
  I1 FirstTruth(const Value& truths) {
    return I1{Def(fmt::format("vector.extract {}[0] : i1 from {}", truths.name, TypeOf(ElementKind::kBool)))};
  }
  I1 True() { return I1{Def("arith.constant true")}; }
  I1 And(const I1& a, const I1& b) { return I1{Def(fmt::format("arith.andi {}, {} : i1", a, b))}; }
  I1 Or(const I1& a, const I1& b) { return I1{Def(fmt::format("arith.ori {}, {} : i1", a, b))}; }
  I1 Not(const I1& a) { return I1{Def(fmt::format("arith.xori {}, {} : i1", a, True()))}; }

  /// Runs `body` for whole vectors of [0, count) and once, masked, for the rest. `body` gets the first position.
  void ForLanes(int64_t count, const std::function<void(const I64& first)>& body);
  /// As ForLanes from `begin` to `end`, which may be any numbers.
  void ForLanesBetween(const I64& begin, const I64& end, const std::function<void(const I64& first)>& body);
  /// Runs `body` with a mask of the lanes from `first` on that come before `end`.
  void MaskedBefore(const I64& first, const I64& end, const std::function<void()>& body);
  /// The masked turn of ForLanes alone, for the rest of `count` behind the whole vectors.
  void MaskedRest(int64_t count, const std::function<void(const I64& first)>& body);
  /// The mask of the lanes that exist; none when all do.
  const Mask& mask() const { return mask_; }
  /// A mask that has the lanes for which `has` holds.
  Mask MaskOf(const std::function<bool(int64_t lane)>& has);
  /// While `body` runs, only lanes of `condition` that are lanes of the mask, too, are read and written.
  void WithMask(const Mask& condition, const std::function<void()>& body);
  /// Whether that is so now: any lane may be one that is not read.
  bool is_guarded() const { return is_guarded_; }

  // ---- dynamic sizes ----
  /// They are read from `sizes`, a buffer of int64.
  void SetSizes(BufferRef sizes) { sizes_ = sizes; }
  /// The size in place `place` of that buffer.
  int64_t Symbolic(int64_t place) { return Size({SizeFormula::kPlace, place, {}, {}}); }
  /// A size that is `value`, for the function that is being written.
  int64_t SizeOf(const I64& value) { return Size({SizeFormula::kValue, 1, {}, value}); }
  /// Product, sum, and quotient rounded up, of sizes that may be symbolic; equal ones are the same number.
  int64_t Times(int64_t a, int64_t b);
  int64_t Added(int64_t a, int64_t b);
  int64_t CeilDivided(int64_t a, int64_t known);
  int64_t Product(const std::vector<int64_t>& sizes);
  /// Row-major strides.
  std::vector<int64_t> Strides(const Shape& shape);

  // ---- coordinates ----
  Index Zero() { return {Int(0), 0, {}, 0}; }
  Index Shifted(const Index& index, int64_t addend);
  Index Scaled(const Index& index, int64_t factor);
  Index Sum(const Index& a, const Index& b);
  /// `index` lane by lane.
  Lanes LanesOf(const Index& index);
  Index FromLanes(const Lanes& lanes);
  /// An operation of arith on two coordinates, or on a coordinate and a number: per lane, or once when both are scalar.
  Index IndexOp(const char* op, const Index& a, const Index& b);
  Index IndexOp(const char* op, const Index& a, int64_t b) { return IndexOp(op, a, Index{Int(b), 0}); }
  /// Per lane: whether `predicate` holds between `index` and `bound`.
  Value IndexCompare(const char* predicate, const Index& index, int64_t bound);
  /// Quotient and remainder by a positive constant of a coordinate that is not negative.
  std::pair<Index, Index> Divided(const Index& index, int64_t divisor);

  // ---- bfloat16 ----
  /// Its bits as float32. These are moved: of conversions, LLVM makes comparisons of bfloat16, not all of which it has
  /// instructions for.
  Value WidenBFloat16(const Vector& bits);
  /// The bits of a float32 value, rounded; those that it was widened from, if it was.
  Vector RoundBFloat16(const Value& value);

  // ---- memory ----
  Value Load(const Buffer& buffer, const Indices& indices);
  void Store(const Buffer& buffer, const Indices& indices, const Value& value);
  /// One element of a buffer of float32.
  F32 LoadScalar(const Buffer& buffer, const I64s& bases);
  /// The address of the element at the bases of `indices`.
  Ptr Address(const Buffer& buffer, const Indices& indices);
  /// The address `count` elements of `type` ("f32", "i8" …) behind `base`.
  Ptr ElementAt(const Ptr& base, const I64& count, const std::string& type) {
    return Ptr{Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr, i64) -> !llvm.ptr, {}", base, count, type))};
  }
  Ptr ElementAt(const Ptr& base, int64_t count, const std::string& type) {
    return Ptr{Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr) -> !llvm.ptr, {}", base, count, type))};
  }
  /// A vector of float32.
  Vector VectorAt(const Ptr& address, bool masked);
  struct Fetch {
    int nearest = 1;  ///< into the caches from the first (1) or the second (2) on
    bool to_write = false;
  };
  /// Brings the line at `address`, which may lie anywhere, nearer.
  void Prefetch(const Ptr& address, const Fetch& fetch);
  /// Stores such elements as the mask has lanes.
  void StoreAt(const Ptr& address, const Value& value, DataType dtype);
  /// Elements of `dtype` that follow each other from `address` on; zeros where the mask has no lanes.
  Value LoadAt(const Ptr& address, DataType dtype);
  /// One element of an int64 buffer, as a scalar.
  I64 LoadInt(const Buffer& buffer, const I64s& bases);

  /// Called for every Load while set: number of the load since then, its distance between lanes in elements (kUneven
  /// when lanes are not evenly spaced); may give the value instead of reading it.
  using LoadHook = std::function<std::optional<Value>(int number, int64_t lane_stride)>;
  void SetLoadHook(LoadHook hook) {
    load_hook_ = std::move(hook);
    num_loads_ = 0;
  }
  /// Called for every Load while set, with its value.
  using LoadCapture = std::function<void(int number, const Value& value)>;
  void SetCapture(LoadCapture capture) {
    capture_ = std::move(capture);
    num_loads_ = 0;
  }
  /// Runs `body`, the inside of a loop, whose loads are neither numbered for hooks and captures nor shown to them.
  void Unobserved(const std::function<void()>& body);
  /// Runs `write` and discards its output.
  void DryRun(const std::function<void()>& write);

  // ---- functions ----
  /// Makes a function of `type`, "(i64) -> i64" for one, known, which code that is made of the text defines.
  void Declare(const std::string& name, const std::string& type) { declared_.emplace(name, type); }
  Vectors CallDeclared(const std::string& name, const Vectors& arguments, size_t num_results);
  /// Writes a function `NAME(ctx, begin, end)` whose body `write` makes, given the bounds.
  void Function(const std::string& name, const std::function<void(const I64& begin, const I64& end)>& write);
  /// The address that the loader finds for `call` (runtime/native_loader.h): a library's function, or an object of it.
  Ptr LoadAddress(const LibraryCall& call);
  /// Adds to the entry point: run `name` over [0, count), on all threads when `parallel`.
  void Call(const std::string& name, int64_t count, bool parallel);
  /// Adds to the entry point: for each step from 0 to count - 1, write the step into the int64 `counter` and make the
  /// calls that `body` adds.
  void CallRepeatedly(int64_t count, const Buffer& counter, const std::function<void()>& body);
  /// Adds to the entry point: the workspace is `bytes` of memory, a size that may be symbolic, that is the thread's
  /// own.
  void CallScratch(int64_t bytes);
  /// The address of `bytes` of memory that is the thread's own, for the function that is being written. Not together
  /// with CallScratch.
  Ptr Scratch(int64_t bytes);
  /// The finished module of a kernel with `counts` buffers.
  std::string Module(const BufferCounts& counts) const;

 private:
  using Texts = std::vector<std::string>;

  Ptr Pointer(const Buffer& buffer);
  /// A loop that carries values of `types`, all given by their names.
  Texts Loop(const I64& from, const I64& to, const Texts& start, const Texts& types,
             const std::function<Texts(const I64&, const Texts&)>& body);
  int64_t Size(SizeFormula size);
  const SizeFormula& DefinitionOf(int64_t size) const { return symbolic_[static_cast<size_t>(size - kFirstSymbolic)]; }
  std::string NameOf(int64_t size) const;
  /// Adds to the beginning of a function the instructions that read or compute all symbolic sizes.
  void AddSymbolicSizes(ModuleText& to) const;
  int64_t LaneStride(const Buffer& buffer, const Indices& indices) const;
  Value LoadNow(const Buffer& buffer, const Indices& indices, int64_t lane_stride);
  Vector RawLoad(const Buffer& buffer, const Indices& indices, int64_t lane_stride);
  Vector RawAt(const Ptr& address, DataType dtype, bool is_constant);
  Value Widened(const Vector& raw, DataType dtype);
  Vector Gather(const Buffer& buffer, const Indices& indices, int64_t lane_stride);

  int native_lanes_;
  int lanes_;
  int next_ = 0;
  std::unordered_map<std::string, Vector> bits_of_;  ///< widened value → the vector that it was widened from
  int indent_ = 2;
  std::string body_;
  Mask mask_;
  bool is_guarded_ = false;                                ///< within WithMask
  std::map<std::pair<BufferRef, int64_t>, Ptr> pointers_;  ///< pointers of the function being written
  LoadHook load_hook_;
  LoadCapture capture_;
  int num_loads_ = 0;
  bool is_unobserved_ = false;  ///< within Unobserved
  ModuleText functions_;
  std::string scratch_size_;  ///< defines, before all calls, how much memory of the thread there is
  ModuleText calls_;
  std::map<std::string, std::string> declared_;  ///< types by name
  CallTable library_functions_;
  BufferRef sizes_;
  std::vector<SizeFormula> symbolic_;
  int num_calls_ = 0;
};

}  // namespace collage::native
