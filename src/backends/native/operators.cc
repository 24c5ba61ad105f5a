// operators.cc: one row per operator: its name and what it cannot do. The lowerings themselves are the tables of
// compiler/elementwise.cc, compiler/indexing.cc and compiler/stages.cc.
#include "backends/native/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/shapes/dynamic_sizes.h"
#include "transform/passes.h"

namespace collage::native {
namespace {

/// What a call lacks; empty when it can be lowered.
using Check = std::function<std::string(const CallNode& call)>;

const TensorTypeNode& Argument(const CallNode& call, size_t i) { return *AsTensorType(call.args()[i]->checked_type()); }

std::string Nothing(const CallNode&) { return ""; }

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

/// Whose taps are written out one by one.
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

const std::map<std::string, Check, std::less<>>& Rows() {
  static const std::map<std::string, Check, std::less<>> rows = [] {
    std::map<std::string, Check, std::less<>> made;
    const auto add = [&](const Check& check, std::initializer_list<const char*> names) {
      for (const char* name : names) made[name] = check;
    };
    add(Nothing, {"abs",
                  "acos",
                  "acosh",
                  "add",
                  "asin",
                  "asinh",
                  "atan",
                  "atanh",
                  "bitwise_and",
                  "bitwise_not",
                  "bitwise_or",
                  "bitwise_xor",
                  "broadcast_to",
                  "cast",
                  "ceil",
                  "clip",
                  "copy",
                  "cos",
                  "cosh",
                  "divide",
                  "equal",
                  "erf",
                  "exp",
                  "expand_dims",
                  "floor",
                  "floor_divide",
                  "floor_mod",
                  "full",
                  "gather",
                  "gather_nd",
                  "greater",
                  "greater_equal",
                  "isfinite",
                  "isinf",
                  "isnan",
                  "layout_transform",
                  "less",
                  "less_equal",
                  "log",
                  "logical_and",
                  "logical_not",
                  "logical_or",
                  "logical_xor",
                  "maximum",
                  "minimum",
                  "mod",
                  "multiply",
                  "ndarray_size",
                  "negative",
                  "nn.batch_flatten",
                  "nn.bias_add",
                  "nn.depth_to_space",
                  "nn.dropout",
                  "nn.leaky_relu",
                  "nn.prelu",
                  "nn.space_to_depth",
                  "not_equal",
                  "one_hot",
                  "ones",
                  "power",
                  "qnn.dequantize",
                  "qnn.quantize",
                  "repeat",
                  "reshape",
                  "reverse",
                  "reverse_sequence",
                  "round",
                  "rsqrt",
                  "shape_of",
                  "sigmoid",
                  "sign",
                  "sin",
                  "sinh",
                  "split",
                  "sqrt",
                  "squeeze",
                  "strided_slice",
                  "subtract",
                  "take",
                  "tan",
                  "tanh",
                  "tile",
                  "transpose",
                  "trilu",
                  "trunc",
                  "where",
                  "zeros",
                  "all",
                  "any"});
    add(NoTruthValues, {"left_shift",
                        "right_shift",
                        "nn.relu",
                        "sum",
                        "mean",
                        "prod",
                        "max",
                        "min",
                        "argmax",
                        "argmin",
                        "cumprod",
                        "cumsum",
                        "sort",
                        "argsort",
                        "topk",
                        "scatter_elements",
                        "scatter_nd",
                        "nn.max_pool1d",
                        "nn.max_pool2d",
                        "nn.max_pool3d",
                        "nn.global_max_pool1d",
                        "nn.global_max_pool2d",
                        "nn.global_max_pool3d",
                        "nn.adaptive_max_pool1d",
                        "nn.adaptive_max_pool2d",
                        "nn.adaptive_max_pool3d",
                        "nn.avg_pool1d",
                        "nn.avg_pool2d",
                        "nn.avg_pool3d",
                        "nn.adaptive_avg_pool1d",
                        "nn.adaptive_avg_pool2d",
                        "nn.adaptive_avg_pool3d",
                        "nn.global_avg_pool1d",
                        "nn.global_avg_pool2d",
                        "nn.global_avg_pool3d",
                        "vision.roi_pool"});
    add(FloatsOnly, {"variance", "nn.batch_norm", "nn.lrn", "image.grid_sample", "linalg.det", "nn.deformable_conv2d",
                     "vision.all_class_non_max_suppression", "vision.roi_align"});
    add(InterpolatedFloats, {"image.resize1d", "image.resize2d", "image.resize3d"});
    add(NormalisedFloats,
        {"nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.l2_normalize"});
    add(WrittenTuple, {"concatenate", "stack"});
    add(SumsOfProducts, {"einsum"});
    add(SmallWindows, {"nn.max_pool1d_indices", "nn.max_pool2d_indices", "nn.max_pool3d_indices"});
    add(KnownPadMode, {"nn.pad"});
    add(WideBits, {"reinterpret"});
    add(Products, {"nn.dense", "nn.matmul", "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d",
                   "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"});
    add(Recurrent, {"nn.lstm", "nn.gru", "nn.rnn"});
    return made;
  }();
  return rows;
}

std::string WhyNotType(const Type& type, bool may_be_unknown) {
  for (const Type& leaf : FlattenTensorTypes(type)) {
    const TensorTypeNode* tensor = AsTensorType(leaf);
    if (tensor == nullptr || (!may_be_unknown && !tensor->is_static())) return "dynamic shapes";
    const DataType dtype = tensor->dtype();
    const bool is_whole =
        dtype.is_bool() || dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    const bool is_uint64 = dtype.code == DataType::Code::kUInt && dtype.bits == 64;
    if (!is_whole || is_uint64 || (dtype.is_floating() && dtype.bits == 8)) return dtype.ToString() + " tensors";
  }
  return "";
}

/// What a call lacks where its shapes are not known; beyond what it lacks anyway.
std::string WhyNotUnknown(const CallNode& call) {
  const std::string& name = call.op()->name;
  const auto is_known = [&](size_t argument, int64_t axis) {
    const TensorTypeNode& tensor = Argument(call, argument);
    const int64_t at = axis < 0 ? axis + tensor.rank() : axis;
    return at < tensor.rank() && !tensor.shape()[static_cast<size_t>(at)].is_any();
  };
  if (name == "strided_slice") {
    const std::vector<int64_t> begin = call.attrs().Ints("begin");
    for (size_t i = 0; i < begin.size(); ++i) {
      const int64_t axis = call.attrs().IsNone("axes") ? static_cast<int64_t>(i) : call.attrs().Ints("axes")[i];
      const bool counts_up = call.attrs().IsNone("strides") || i >= call.attrs().Ints("strides").size() ||
                             call.attrs().Ints("strides")[i] > 0;
      if (!is_known(0, axis) && (begin[i] < 0 || !counts_up)) return "a slice from the end of an unknown size";
    }
    return "";
  }
  if (name == "take") {
    if (call.attrs().IsNone("axis")) return "'take' of elements of all axes";
    return is_known(0, call.attrs().Int("axis")) ? "" : "'take' along an axis of unknown size";
  }
  if (name == "split") return is_known(0, call.attrs().Int("axis")) ? "" : "'split' along an axis of unknown size";
  if (name == "nn.group_norm") return is_known(0, call.attrs().Int("axis")) ? "" : "groups of unknown channels";
  if (name.starts_with("nn.max_pool") || name.starts_with("nn.avg_pool")) {
    const bool is_of_floats = !name.ends_with("_indices") && Argument(call, 0).dtype().is_floating();
    return is_of_floats ? "" : "pools of unknown shapes but of floats";
  }
  const bool is_norm = call.op()->pattern == OpPatternKind::kOutEWiseFusable;
  if (is_norm && Argument(call, 0).dtype().bits < 32) return "narrow elements of unknown shapes";
  const bool is_product = name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul";
  const bool is_convolution = name == "nn.conv1d" || name == "nn.conv2d" || name == "nn.conv3d";
  if (is_product || is_convolution) {
    const bool is_whole = Argument(call, 0).dtype() == kFloat32 || Argument(call, 0).dtype() == kFloat64;
    const bool is_one = Argument(call, 1).dtype() == Argument(call, 0).dtype() &&
                        AsTensorType(call.checked_type())->dtype() == Argument(call, 0).dtype();
    if (!is_whole || !is_one) return "products of unknown shapes but of floats";
  }
  if (is_convolution) {
    return is_known(0, 1) && Argument(call, 1).is_static() ? "" : "convolutions of unknown channels or windows";
  }
  if (is_product || name.starts_with("nn.global_")) return "";
  static const std::vector<std::string_view> names{"where",
                                                   "nn.bias_add",
                                                   "nn.prelu",
                                                   "transpose",
                                                   "concatenate",
                                                   "nn.softmax",
                                                   "nn.log_softmax",
                                                   "nn.layer_norm",
                                                   "nn.instance_norm",
                                                   "nn.l2_normalize",
                                                   "sum",
                                                   "mean",
                                                   "max",
                                                   "min",
                                                   "prod",
                                                   "all",
                                                   "any",
                                                   "variance",
                                                   "argmax",
                                                   "argmin"};
  if (call.op()->elementwise || std::ranges::find(names, name) != names.end()) return "";
  return fmt::format("'{}' of unknown shapes", name);
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

Result<void> IsRowLowered(const CallNode& call, bool may_be_unknown) {
  const auto no = [](std::string text) { return Reason{std::move(text), "native"}; };
  const std::string& name = call.op()->name;
  const auto row = Rows().find(name);
  if (row == Rows().end()) return no(fmt::format("'{}' has no native lowering", name));
  std::string reason = WhyNotType(call.checked_type(), may_be_unknown);
  for (const Expr& arg : call.args()) {
    if (reason.empty()) reason = WhyNotType(arg->checked_type(), may_be_unknown);
  }
  if (!reason.empty()) return no(reason);
  for (const char* attr : {"layout", "data_layout", "out_layout"}) {
    if (!IsChannelsFirst(call, attr)) return no(fmt::format("{} {}", attr, call.attrs().String(attr)));
  }
  reason = row->second(call);
  if (!reason.empty()) return no(reason);
  return {};
}

}  // namespace

Result<void> IsLowered(const CallNode& call) {
  return IsDialect(call) ? IsDialectLowered(call) : IsRowLowered(call, /*may_be_unknown=*/false);
}

Result<void> IsLoweredDynamic(const CallNode& call) {
  if (Result<void> lowered = IsRowLowered(call, /*may_be_unknown=*/true); !lowered.ok()) return lowered;
  const std::string reason = WhyNotUnknown(call);
  if (!reason.empty()) return Reason{reason, "native"};
  return {};
}

}  // namespace collage::native
