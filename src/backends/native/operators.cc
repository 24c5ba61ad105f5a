// operators.cc: what calls lack to be computed by native kernels, by the rows of operator_rows.inc.
#include "backends/native/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "transform/passes.h"

namespace collage::native {
namespace {

/// Says why a call cannot be lowered; empty when it can.
using Check = std::function<std::string(const CallNode& call)>;

const TensorTypeNode& Argument(const CallNode& call, size_t i) { return *AsTensorType(call.args()[i]->checked_type()); }

std::string Anything(const CallNode&) { return ""; }

std::string OneTensor(const CallNode& call) {
  return AsTensorType(call.checked_type()) != nullptr ? "" : "no kernel takes a tuple as a whole";
}

std::string WithinTheProcessor(const CallNode& call) {
  constexpr int kProcessor = 1;  // DLDeviceType
  const bool is_within =
      call.attrs().Int("src_device_type") == kProcessor && call.attrs().Int("dst_device_type") == kProcessor;
  return is_within ? OneTensor(call) : "it is for another device than the processor";
}

std::string NoTruthValues(const CallNode& call) {
  return Argument(call, 0).dtype().is_bool() ? fmt::format("'{}' of truth values", call.op()->name) : "";
}

std::string FloatsOnly(const CallNode& call) {
  if (!Argument(call, 0).dtype().is_floating())
    return fmt::format("'{}' of {}", call.op()->name, Argument(call, 0).dtype().ToString());
  return "";
}

/// Integers are what a sum is cut to, and one that is whole may be a little less by rounding.
std::string InterpolatedFloats(const CallNode& call) {
  if (Argument(call, 0).dtype().is_floating() || call.attrs().String("method") == "nearest_neighbor") return "";
  return fmt::format("'{}' of {} between pixels", call.op()->name, Argument(call, 0).dtype().ToString());
}

/// Normalisations, in the data's own dtype.
std::string NormalisedFloats(const CallNode& call) {
  if (Argument(call, 0).rank() == 0) return "normalising a scalar";
  return FloatsOnly(call);
}

std::string WrittenTuple(const CallNode& call) {
  return As<TupleNode>(call.args()[0]) == nullptr ? "joins tuples that are written out only" : "";
}

std::string SumsOfProducts(const CallNode& call) {
  if (As<TupleNode>(call.args()[0]) == nullptr) return WrittenTuple(call);
  return AsTensorType(call.checked_type())->dtype().is_bool() ? "'einsum' of truth values" : "";
}

/// Operators whose taps are written out one by one.
std::string SmallWindows(const CallNode& call) {
  constexpr int64_t kMostTaps = 64;
  int64_t taps = 1;
  const auto rank = static_cast<size_t>(Argument(call, 0).rank()) - 2;
  const std::vector<int64_t> size = call.attrs().Ints("pool_size");
  for (size_t d = 0; d < rank; ++d) taps *= size[size.size() == 1 ? 0 : d];
  if (taps > kMostTaps) return fmt::format("'{}' of windows of {} elements", call.op()->name, taps);
  return NoTruthValues(call);
}

std::string KnownPadMode(const CallNode& call) {
  const std::string& mode = call.attrs().String("pad_mode");
  if (mode == "constant" || mode == "edge" || mode == "reflect" || mode == "wrap") return "";
  return "pad_mode " + mode;
}

/// Slices by computed ends, whose strides are known.
std::string KnownStrides(const CallNode& call) {
  const ConstantNode* strides = As<ConstantNode>(call.args()[3]);
  if (strides == nullptr || Argument(call, 1).shape() != Argument(call, 3).shape()) return "slices of unknown strides";
  return "";
}

std::string EqualRanks(const CallNode& call) {
  return AsTensorType(call.checked_type())->rank() == Argument(call, 0).rank() ? "" : "tiles of more dimensions";
}

std::string WideBits(const CallNode& call) {
  const DataType from = Argument(call, 0).dtype();
  const DataType to = call.attrs().Type("dtype");
  if (!from.is_floating() && !to.is_floating()) return "";
  return from.bits < 32 && from != to ? "reinterpreting " + from.ToString() : "";
}

std::string Products(const CallNode& call) {
  const DataType dtype = Argument(call, 0).dtype();
  const DataType result = AsTensorType(call.checked_type())->dtype();
  if (dtype.is_bool()) return NoTruthValues(call);
  if (dtype.is_floating() != result.is_floating())
    return fmt::format("products of {} as {}", dtype.ToString(), result.ToString());
  return "";
}

/// Recurrent layers whose weights are known, in float32.
std::string Recurrent(const CallNode& call) {
  if (Argument(call, 0).dtype() != kFloat32) return "recurrent layers of " + Argument(call, 0).dtype().ToString();
  return "";
}

std::string WhyNotType(const Type& type, bool may_be_dynamic) {
  for (const Type& leaf : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(leaf);
    if (tensor == nullptr || (!may_be_dynamic && !tensor->is_static())) return "dynamic shapes";
    const DataType dtype = tensor->dtype();
    const bool is_whole =
        dtype.is_bool() || dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    const bool is_uint64 = dtype.code == DataType::Code::kUInt && dtype.bits == 64;
    if (!is_whole || is_uint64 || (dtype.is_floating() && dtype.bits == 8)) return dtype.ToString() + " tensors";
  }
  return "";
}

// ---- dynamic shapes: what a call lacks beyond what it lacks anyway ----

/// Whether dimension `axis` of argument `i` is the same in every run.
bool IsStatic(const CallNode& call, size_t i, int64_t axis) {
  const TensorTypeNode& tensor = Argument(call, i);
  const int64_t at = axis < 0 ? axis + tensor.rank() : axis;
  return at < tensor.rank() && !tensor.shape()[static_cast<size_t>(at)].is_any();
}

/// Stages have vectors of whole floats only.
std::string Dynamic(const CallNode& call) {
  const bool is_stage = call.op()->pattern == OpPatternKind::kOutEWiseFusable;
  return is_stage && Argument(call, 0).dtype().bits < 32 ? "narrow elements of dynamic shapes" : "";
}

std::string NotDynamic(const CallNode& call) {
  const std::string reason = Dynamic(call);
  return reason.empty() ? fmt::format("'{}' of dynamic shapes", call.op()->name) : reason;
}

/// Scales and zero points of which it is known whether there is one.
std::string StaticScales(const CallNode& call) {
  return Argument(call, 1).is_static() && Argument(call, 2).is_static() ? "" : "a dynamic number of scales";
}

std::string WideElements(const CallNode& call) {
  return Argument(call, 0).dtype().bits < 32 ? "narrow elements of dynamic shapes" : "";
}

/// Index tuples, if there are such, of one length in every run.
std::string StaticTuples(const CallNode& call) {
  const bool has_tuples = call.op()->name.ends_with("_nd");
  return !has_tuples || IsStatic(call, 1, 0) ? "" : "index tuples of a dynamic length";
}

std::string TakesAlongAnAxis(const CallNode& call) {
  return call.attrs().IsNone("axis") ? "'take' of elements of all axes" : "";
}

std::string StaticAxis(const CallNode& call) {
  if (IsStatic(call, 0, call.attrs().Int("axis"))) return "";
  return fmt::format("'{}' along a dynamic dimension", call.op()->name);
}

std::string StaticChannels(const CallNode& call) {
  return IsStatic(call, 0, call.attrs().Int("axis")) ? "" : "a dynamic number of channels";
}

std::string NoDynamicIndices(const CallNode&) { return "pools of dynamic shapes, except of floats"; }

std::string DynamicPools(const CallNode& call) {
  return Argument(call, 0).dtype().is_floating() ? "" : NoDynamicIndices(call);
}

std::string DynamicProducts(const CallNode& call) {
  if (std::string reason = Dynamic(call); !reason.empty()) return reason;
  const DataType dtype = Argument(call, 0).dtype();
  const bool is_whole = dtype == kFloat32 || dtype == kFloat64;
  const bool is_one = Argument(call, 1).dtype() == dtype && AsTensorType(call.checked_type())->dtype() == dtype;
  return is_whole && is_one ? "" : "products of dynamic shapes, except of float32 or float64";
}

/// Products with weights of few bits, which are packed again when they are compiled.
std::string PackedProducts(const CallNode& call) {
  constexpr int64_t kLanes = 16;
  if (Argument(call, 0).dtype().bits > 32) return "products of float64 with packed weights";
  for (size_t i = 1; i < call.args().size(); ++i) {
    if (As<ConstantNode>(call.args()[i]) == nullptr) return "packed weights that are not known";
  }
  const int64_t block = call.attrs().Int("block_size");
  return block % kLanes == 0 ? "" : fmt::format("packed weights in blocks of {}", block);
}

std::string DynamicPackedProducts(const CallNode& call) {
  if (Argument(call, 0).dtype() != kFloat32) return "products with packed weights, except of float32";
  const Dim depth = Argument(call, 0).shape()[1];
  const int64_t block = call.attrs().Int("block_size");
  return !depth.is_any() && depth.size() % block == 0 ? "" : "packed weights whose last block is not whole";
}

std::string DynamicConvolutions(const CallNode& call) {
  if (std::string reason = DynamicProducts(call); !reason.empty()) return reason;
  return IsStatic(call, 0, 1) && Argument(call, 1).is_static() ? ""
                                                               : "a dynamic number of channels or a dynamic window";
}

// ---- rows ----

struct Row {
  Check takes;
  Check takes_dynamic;
};

/// By name, from operator_rows.inc.
const RowsByName<Row>& Rows() {
  static const RowsByName<Row> rows = [] {
    RowsByName<Row> made;
#define NATIVE_OPERATOR(names, takes, takes_dynamic, ...) AddRow(names, Row{takes, takes_dynamic}, made);
#include "backends/native/operator_rows.inc"
#undef NATIVE_OPERATOR
    return made;
  }();
  return rows;
}

/// Whether it is of the quantised dialect, which is lowered as what it stands for.
bool IsDialect(const CallNode& call) {
  return call.op()->name.starts_with("qnn.") && Rows().find(call.op()->name) == Rows().end();
}

/// The first call in `function` for which `what` holds; null when there is none.
const CallNode* FindCall(const Function& function, const std::function<bool(const CallNode& call)>& what) {
  const CallNode* found = nullptr;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (found == nullptr && call != nullptr && call->op() != nullptr && what(*call)) found = call;
  });
  return found;
}

/// A call as a function of its arguments, constants excepted.
Function FunctionOf(const CallNode& call) {
  std::vector<Var> params;
  const std::function<Expr(const Expr&)> stand_in = [&](const Expr& arg) -> Expr {
    if (As<ConstantNode>(arg) != nullptr) return arg;
    if (const TupleNode* tuple = As<TupleNode>(arg)) {
      std::vector<Expr> fields;
      for (const Expr& field : tuple->fields()) fields.push_back(stand_in(field));
      return MakeTuple(fields);
    }
    params.push_back(MakeVar(fmt::format("x{}", params.size()), arg->checked_type()));
    return params.back();
  };
  std::vector<Expr> args;
  for (const Expr& arg : call.args()) args.push_back(stand_in(arg));
  const Function function = MakeFunction(params, MakeCall(call.op()->name, args, call.attrs()));
  InferType(function);
  return function;
}

/// Whether what a call of the quantised dialect stands for can be lowered.
Result<void> IsDialectLowered(const CallNode& call) {
  const Function plain = WithoutDialect(FunctionOf(call));
  Result<void> answer;
  FindCall(plain, [&](const CallNode& inner) {
    answer = IsDialect(inner) ? Reason{fmt::format("'{}' has no native lowering", inner.op()->name), "native"}
                              : IsLowered(inner);
    return !answer.ok();
  });
  return answer;
}

/// Whether attribute `name`, if there is one, is channels-first or says nothing.
bool IsChannelsFirst(const CallNode& call, const char* name) {
  if (call.op()->FindAttr(name) == nullptr || call.attrs().Get(name).as_string() == nullptr) return true;
  const std::string& layout = call.attrs().String(name);
  return layout.empty() || layout == "NCW" || layout == "NCHW" || layout == "NCDHW";
}

}  // namespace

Function WithoutDialect(const Function& function) {
  if (FindCall(function, IsDialect) == nullptr) return function;
  Function plain = QnnCanonicalizeOps(function);
  InferType(plain);
  return plain;
}

namespace {

Result<void> IsRowLowered(const CallNode& call, bool may_be_dynamic) {
  const auto no = [](std::string text) { return Reason{std::move(text), "native"}; };
  const std::string& name = call.op()->name;
  const auto row = Rows().find(name);
  if (row == Rows().end()) return no(fmt::format("'{}' has no native lowering", name));
  std::string reason = WhyNotType(call.checked_type(), may_be_dynamic);
  for (const Expr& arg : call.args()) {
    if (reason.empty()) reason = WhyNotType(arg->checked_type(), may_be_dynamic);
  }
  if (!reason.empty()) return no(reason);
  for (const char* attr : {"layout", "data_layout", "out_layout"}) {
    if (!IsChannelsFirst(call, attr)) return no(fmt::format("{} {}", attr, call.attrs().String(attr)));
  }
  reason = row->second.takes(call);
  if (!reason.empty()) return no(reason);
  return {};
}

}  // namespace

Result<void> IsLowered(const CallNode& call) {
  return IsDialect(call) ? IsDialectLowered(call) : IsRowLowered(call, /*may_be_dynamic=*/false);
}

Result<void> IsLoweredDynamic(const CallNode& call) {
  if (Result<void> lowered = IsRowLowered(call, /*may_be_dynamic=*/true); !lowered.ok()) return lowered;
  const std::string reason = Rows().find(call.op()->name)->second.takes_dynamic(call);
  if (!reason.empty()) return Reason{reason, "native"};
  return {};
}

}  // namespace collage::native
