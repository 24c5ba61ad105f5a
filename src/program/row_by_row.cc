// row_by_row.cc: operator by operator, which dimension is the batch's.
#include "program/row_by_row.h"

#include <algorithm>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/shapes/unknown_sizes.h"

namespace collage {
namespace {

bool IsStatic(const Type& type) {
  const TensorTypeNode* tensor = type == nullptr ? nullptr : AsTensorType(type);
  return tensor != nullptr && tensor->is_static();
}

/// Whether axes that `call` names are others than the first.
bool LeavesFirst(const CallNode& call, const char* name) {
  if (call.op()->FindAttr(name) == nullptr || call.attrs().IsNone(name)) return false;
  const int64_t rank = AsTensorType(call.args()[0]->checked_type())->rank();
  std::vector<int64_t> axes;
  if (call.attrs().Get(name).as_int() != nullptr) axes = {call.attrs().Int(name)};
  if (axes.empty()) axes = call.attrs().Ints(name);
  return std::ranges::all_of(axes, [&](int64_t axis) { return axis != 0 && axis != -rank; });
}

bool KeepsRowsApart(const CallNode& call) {
  static const std::set<std::string_view> images{"nn.conv1d",
                                                 "nn.conv2d",
                                                 "nn.conv3d",
                                                 "nn.conv1d_transpose",
                                                 "nn.conv2d_transpose",
                                                 "nn.conv3d_transpose",
                                                 "nn.max_pool1d",
                                                 "nn.max_pool2d",
                                                 "nn.max_pool3d",
                                                 "nn.avg_pool1d",
                                                 "nn.avg_pool2d",
                                                 "nn.avg_pool3d",
                                                 "nn.lrn",
                                                 "nn.instance_norm",
                                                 "nn.global_avg_pool1d",
                                                 "nn.global_avg_pool2d",
                                                 "nn.global_avg_pool3d",
                                                 "nn.global_max_pool1d",
                                                 "nn.global_max_pool2d",
                                                 "nn.global_max_pool3d",
                                                 "nn.adaptive_avg_pool1d",
                                                 "nn.adaptive_avg_pool2d",
                                                 "nn.adaptive_avg_pool3d",
                                                 "nn.adaptive_max_pool1d",
                                                 "nn.adaptive_max_pool2d",
                                                 "nn.adaptive_max_pool3d",
                                                 "image.resize1d",
                                                 "image.resize2d",
                                                 "image.resize3d",
                                                 "nn.depth_to_space",
                                                 "nn.space_to_depth",
                                                 "nn.batch_flatten",
                                                 "nn.group_norm"};
  const std::string& name = call.op()->name;
  const Attrs& attrs = call.attrs();
  const auto is_batch = [&](size_t argument) { return AreRows(call.args()[argument]->checked_type()); };
  const auto is_one_batch = [&] {
    for (size_t i = 1; i < call.args().size(); ++i) {
      if (is_batch(i)) return false;
    }
    return is_batch(0);
  };
  if (images.contains(name) || name == "nn.dense") return is_one_batch();
  if (name == "nn.matmul") return is_one_batch() && !attrs.Bool("transpose_a");
  if (name == "nn.bias_add" || name == "nn.prelu") return is_one_batch() && LeavesFirst(call, "axis");
  if (IsPlaceByPlace(*call.op())) {
    const int rank = AsTensorType(call.checked_type())->rank();
    return std::ranges::all_of(call.args(), [&](const Expr& arg) {
      return !AreRows(arg->checked_type()) || AsTensorType(arg->checked_type())->rank() == rank;
    });
  }
  if (name == "nn.softmax" || name == "nn.log_softmax" || name == "nn.layer_norm" || name == "nn.l2_normalize") {
    return is_one_batch() && LeavesFirst(call, "axis");
  }
  if (call.op()->pattern == OpPatternKind::kCommReduce) {
    return LeavesFirst(call, "axis") && (call.op()->FindAttr("exclude") == nullptr || !attrs.Bool("exclude"));
  }
  if (name == "transpose") return !attrs.IsNone("axes") && attrs.Ints("axes")[0] == 0;
  if (name == "expand_dims") return attrs.Int("axis") > 0;
  if (name == "squeeze") return LeavesFirst(call, "axis");
  if (name == "concatenate") {
    const int64_t axis = attrs.Int("axis");
    return axis != 0 && axis != -AsTensorType(call.checked_type())->rank();
  }
  if (name == "strided_slice") return LeavesFirst(call, "axes");
  if (name == "reshape") {
    // The first dimension is what is left of all others, which are as many elements as they were.
    const std::vector<int64_t> sizes = attrs.Ints("newshape");
    const auto row = [](const Type& type) {
      int64_t elements = 1;
      const std::vector<Dim>& shape = AsTensorType(type)->shape();
      for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i].size();
      return elements;
    };
    return !sizes.empty() && (sizes[0] == -1 || sizes[0] == 0) &&
           row(call.checked_type()) == row(call.args()[0]->checked_type());
  }
  return false;
}

class RowFinder {
 public:
  RowFinder(const DataflowGraph& graph, const std::function<bool(const CallNode&)>& takes)
      : graph_(graph), takes_(takes) {}

  std::vector<bool> Run() {
    std::vector<bool> answer(graph_.size());
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      batch_.push_back(index);
      answer[static_cast<size_t>(index)] = IsRowByRow(index);
    }
    return answer;
  }

 private:
  /// Notes of which batch the rows are.
  bool IsRowByRow(int index) {
    const DataflowGraph::Node& node = graph_.node(index);
    const Expr& expr = node.expr;
    const bool is_call = graph_.OpAt(index) != nullptr;
    if (!is_call && As<TupleNode>(expr) == nullptr) return false;
    int batch = -1;
    std::vector<Expr> read;
    for (const Expr& arg : is_call ? static_cast<const CallNode&>(*expr).args() : Children(expr)) {
      const TupleNode* tuple = As<TupleNode>(arg);
      if (tuple == nullptr) read.push_back(arg);
      if (tuple != nullptr) read.insert(read.end(), tuple->fields().begin(), tuple->fields().end());
    }
    for (const Expr& arg : read) {
      if (IsStatic(arg->checked_type())) continue;
      if (!AreRows(arg->checked_type())) return false;
      const int own = batch_[static_cast<size_t>(graph_.IndexOf(arg))];
      if (batch >= 0 && own != batch) return false;
      batch = own;
    }
    if (batch < 0) return false;
    if (!is_call) {
      return std::ranges::all_of(read, [](const Expr& field) { return AreRows(field->checked_type()); });
    }
    const auto& call = static_cast<const CallNode&>(*expr);
    if (node.is_in_primitive || !AreRows(call.checked_type()) || !KeepsRowsApart(call) || !IsTaken(call)) return false;
    batch_[static_cast<size_t>(index)] = batch;
    return true;
  }

  bool IsTaken(const CallNode& call) const {
    const std::function<Expr(const Expr&)> of_one = [&](const Expr& arg) -> Expr {
      if (arg->kind() == ExprKind::kConstant) return arg;
      if (const TupleNode* tuple = As<TupleNode>(arg)) {
        std::vector<Expr> fields;
        for (const Expr& field : tuple->fields()) fields.push_back(of_one(field));
        return MakeTuple(fields);
      }
      return MakeVar("x", WithRows(arg->checked_type(), 1));
    };
    std::vector<Expr> args;
    for (const Expr& arg : call.args()) args.push_back(of_one(arg));
    const Expr one = MakeCall(call.callee(), args, call.attrs());
    try {
      InferType(one);
    } catch (const Error&) {
      return false;
    }
    return takes_(static_cast<const CallNode&>(*one));
  }

  const DataflowGraph& graph_;
  const std::function<bool(const CallNode&)>& takes_;
  std::vector<int> batch_;  ///< by node, the one that its rows come from
};

}  // namespace

std::vector<bool> FindRowByRow(const DataflowGraph& graph, const std::function<bool(const CallNode&)>& takes) {
  return RowFinder(graph, takes).Run();
}

}  // namespace collage
