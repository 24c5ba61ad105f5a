// partition_graph.cc: each region becomes a global function for its toolchain, and its results are what a call of it
// gives. Tuples at the boundary are flattened; constants go into the function.
#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "partition/byoc/regions.h"
#include "partition/passes.h"
#include "target/annotations.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// `value`'s tensors, as projections of it where it is a tuple.
void FlattenValue(const Expr& value, const Type& type, std::vector<Expr>& tensors) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return tensors.push_back(value);
  for (size_t i = 0; i < tuple->fields().size(); ++i) {
    const Expr item = MakeTupleGetItem(value, static_cast<int>(i));
    FlattenValue(item, tuple->fields()[i], tensors);
  }
}

/// The inverse: a value of `type` from the next of `tensors`.
Expr UnflattenValue(const Type& type, const std::vector<Expr>& tensors, size_t& next) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return tensors[next++];
  std::vector<Expr> fields;
  for (const Type& field : tuple->fields()) fields.push_back(UnflattenValue(field, tensors, next));
  return MakeTuple(std::move(fields));
}

/// A region's function and, for each value that leaves it, its flattened results.
struct Partition {
  Function function;
  std::vector<Expr> args;  ///< originals, each a tensor or a tuple, in the order of the parameters
  std::unordered_map<const ExprNode*, size_t> first_result;  ///< by the value inside
  size_t num_results = 0;
};

class PartitionMaker {
 public:
  PartitionMaker(const Region& region, bool bind_constants) : region_(region), bind_constants_(bind_constants) {}

  Partition Make(const std::string& name) {
    for (const Expr& begin : region_.inputs) inside_[begin.get()] = Parameter(As<CallNode>(begin)->args()[0]);
    for (const Expr& expr : region_.nodes) {
      std::vector<Expr> children = Children(expr);
      for (Expr& child : children) child = Inside(child);
      inside_[expr.get()] = WithChildren(expr, children);
    }
    std::vector<Expr> results;
    for (const Expr& end : region_.outputs) {
      const Expr& value = As<CallNode>(end)->args()[0];
      if (!partition_.first_result.emplace(value.get(), results.size()).second) continue;
      FlattenValue(Inside(value), value->checked_type(), results);
    }
    partition_.num_results = results.size();
    const Expr body = results.size() == 1 ? results[0] : MakeTuple(results);
    partition_.function =
        MakeFunction(params_, body, InferType(body),
                     {{kAttrPrimitive, 1}, {kAttrCompiler, region_.compiler}, {"global_symbol", name}});
    return std::move(partition_);
  }

 private:
  Expr Inside(const Expr& expr) {
    auto it = inside_.find(expr.get());
    if (it != inside_.end()) return it->second;
    const ConstantNode* constant = As<ConstantNode>(expr);
    return constant == nullptr || bind_constants_ || constant->is_scalar() ? expr : Parameter(expr);
  }

  /// Returns the parameter for `value`, one for all its uses.
  Expr Parameter(const Expr& value) {
    Expr& known = inside_[value.get()];
    if (known) return known;
    const Type type = InferType(value);
    std::vector<Expr> tensors;
    for (const Type& leaf : FlattenTensorTypes(type)) {
      params_.push_back(MakeVar("p" + std::to_string(params_.size()), leaf));
      tensors.push_back(params_.back());
    }
    partition_.args.push_back(value);
    size_t next = 0;
    known = UnflattenValue(type, tensors, next);
    return known;
  }

  const Region& region_;
  bool bind_constants_;
  std::unordered_map<const ExprNode*, Expr> inside_;
  std::vector<Var> params_;
  Partition partition_;
};

/// Rewrites one function. A region's results depend on all that enters it, so that nodes are visited in an order of
/// their own.
class Partitioner {
 public:
  Partitioner(std::string name, const Function& function, bool bind_constants, IRModule& module)
      : name_(std::move(name)), function_(function), module_(module), regions_(FindRegions(function)) {
    for (size_t i = 0; i < regions_.size(); ++i) {
      for (const Expr& end : regions_[i].outputs) region_of_[end.get()] = i;
    }
    for (const Region& region : regions_) {
      names_.push_back(fmt::format("default_{}_{}_{}", region.compiler, name_, names_.size()));
      partitions_.push_back(PartitionMaker(region, bind_constants).Make(names_.back()));
    }
    calls_.resize(regions_.size());
  }

  void Run() {
    if (regions_.empty()) return;
    const Expr result = Rebuild();
    module_.Set(name_, AsShared<FunctionNode>(result));
    for (size_t i = 0; i < regions_.size(); ++i) module_.Set(names_[i], partitions_[i].function);
  }

 private:
  /// Returns the values that `expr` needs first: a region's result needs all inputs of the region.
  std::vector<Expr> Needs(const Expr& expr) const {
    auto it = region_of_.find(expr.get());
    if (it != region_of_.end()) return partitions_[it->second].args;
    const FunctionNode* inner = As<FunctionNode>(expr);
    return inner != nullptr && !IsOrdinary(*inner) ? std::vector<Expr>{} : Children(expr);
  }

  Expr Rebuild() {
    struct Frame {
      Expr expr;
      std::vector<Expr> needs;
      size_t next = 0;
    };
    std::unordered_map<const ExprNode*, bool> open;
    std::vector<Frame> stack;
    stack.push_back({function_, Needs(function_), 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.needs.size()) {
        done_[frame.expr.get()] = Replace(frame.expr, frame.needs);
        open.erase(frame.expr.get());
        stack.pop_back();
        continue;
      }
      const Expr child = frame.needs[frame.next++];
      if (done_.contains(child.get())) continue;
      if (!open.emplace(child.get(), true).second) {
        throw Error(ErrorCategory::kInput, fmt::format("regions of '@{}' depend on each other in a circle", name_));
      }
      stack.push_back({child, Needs(child), 0});
    }
    return done_.at(function_.get());
  }

  Expr Replace(const Expr& expr, std::vector<Expr> needs) {
    for (Expr& need : needs) need = done_.at(need.get());
    auto it = region_of_.find(expr.get());
    if (it != region_of_.end()) return ResultOf(it->second, expr, needs);
    return needs.empty() ? expr : WithChildren(expr, needs);
  }

  Expr ResultOf(size_t index, const Expr& end, const std::vector<Expr>& inputs) {
    const Partition& partition = partitions_[index];
    Expr& call = calls_[index];
    if (!call) {
      std::vector<Expr> args;
      for (size_t i = 0; i < inputs.size(); ++i) FlattenValue(inputs[i], partition.args[i]->checked_type(), args);
      call = MakeCall(std::make_shared<GlobalVarNode>(names_[index]), std::move(args));
      call->share_span(*end);
    }
    if (partition.num_results == 1) return call;
    const Expr& value = As<CallNode>(end)->args()[0];
    std::vector<Expr> tensors;
    size_t next = partition.first_result.at(value.get());
    const size_t count = next + FlattenTensorTypes(value->checked_type()).size();
    for (size_t i = 0; i < count; ++i) tensors.push_back(MakeTupleGetItem(call, static_cast<int>(i)));
    return UnflattenValue(value->checked_type(), tensors, next);
  }

  std::string name_;
  Function function_;
  IRModule& module_;
  std::vector<Region> regions_;
  std::vector<std::string> names_;
  std::vector<Partition> partitions_;
  std::vector<Expr> calls_;
  std::unordered_map<const ExprNode*, size_t> region_of_;  ///< by the call of compiler_end
  Rewritten done_;
};

}  // namespace

IRModule PartitionGraph(IRModule module, const PassContext& context) {
  const IRModule before = module;
  for (const auto& [name, function] : before.functions()) {
    if (!IsOrdinary(*function)) continue;
    Partitioner(name, function, context.ConfigBool("relay.PartitionGraph.bind_constants"), module).Run();
  }
  return module;
}

}  // namespace collage
