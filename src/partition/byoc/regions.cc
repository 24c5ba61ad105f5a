// regions.cc: regions are flooded from their ends back to their begins.
#include "partition/byoc/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/place.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

Expr Annotation(const char* op, const Expr& value, const std::string& compiler) {
  const Expr call = MakeCall(op, {value}, {{"compiler", compiler}});
  call->share_span(*value);
  if (value->checked_type()) call->set_checked_type(value->checked_type());
  return call;
}

class RegionFinder {
 public:
  explicit RegionFinder(const Expr& root) {
    PostOrder(root, [&](const Expr& expr) {
      position_[expr.get()] = static_cast<int>(order_.size());
      order_.push_back(expr);
    });
    parent_.resize(order_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    compiler_.resize(order_.size());
  }

  std::vector<Region> Run() {
    for (const Expr& expr : order_) {
      if (AsCallOf(expr, kCompilerEnd) != nullptr) Flood(expr);
    }
    return Collect();
  }

 private:
  static bool IsLeaf(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kFunction:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstructor: return true;
      default: return false;
    }
  }

  int Top(int index) {
    while (parent_[index] != index) {
      index = parent_[index] = parent_[parent_[index]];
    }
    return index;
  }

  /// Everything from which `end` takes its value without crossing a begin is in one region with it.
  void Flood(const Expr& end) {
    const std::string& compiler = CompilerOf(end);
    std::vector<Expr> stack{end};
    Enter(end, compiler);
    while (!stack.empty()) {
      const Expr expr = std::move(stack.back());
      stack.pop_back();
      if (AsCallOf(expr, kCompilerBegin) != nullptr) continue;
      for (const Expr& child : Children(expr)) {
        if (IsLeaf(child)) continue;
        const bool is_new = compiler_[position_.at(child.get())].empty();
        Enter(child, compiler);
        parent_[Top(position_.at(child.get()))] = Top(position_.at(expr.get()));
        if (is_new) stack.push_back(child);
      }
    }
  }

  void Enter(const Expr& expr, const std::string& compiler) {
    std::string& own = compiler_[position_.at(expr.get())];
    const bool is_begin = AsCallOf(expr, kCompilerBegin) != nullptr;
    if (expr->kind() == ExprKind::kVar || (!own.empty() && own != compiler) ||
        (is_begin && CompilerOf(expr) != compiler)) {
      throw Error(ErrorCategory::kInput, fmt::format("a region of '{}' ends that did not begin", compiler),
                  PlaceOf(expr->span()));
    }
    own = compiler;
  }

  std::vector<Region> Collect() {
    std::vector<Region> regions;
    std::unordered_map<int, size_t> by_top;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (compiler_[i].empty()) continue;
      const auto [it, is_new] = by_top.emplace(Top(static_cast<int>(i)), regions.size());
      if (is_new) regions.push_back({compiler_[i], {}, {}, {}});
      Region& region = regions[it->second];
      const Expr& expr = order_[i];
      auto& list = AsCallOf(expr, kCompilerBegin) != nullptr ? region.inputs
                   : AsCallOf(expr, kCompilerEnd) != nullptr ? region.outputs
                                                             : region.nodes;
      list.push_back(expr);
    }
    std::sort(regions.begin(), regions.end(), [&](const Region& a, const Region& b) {
      return position_.at(a.outputs.back().get()) < position_.at(b.outputs.back().get());
    });
    return regions;
  }

  std::vector<Expr> order_;
  std::unordered_map<const ExprNode*, int> position_;
  std::vector<int> parent_;            ///< union-find over positions
  std::vector<std::string> compiler_;  ///< of each position; empty outside of regions
};

}  // namespace

Expr CompilerBegin(const Expr& value, const std::string& compiler) {
  return Annotation(kCompilerBegin, value, compiler);
}

Expr CompilerEnd(const Expr& value, const std::string& compiler) { return Annotation(kCompilerEnd, value, compiler); }

const std::string& CompilerOf(const Expr& annotation) { return As<CallNode>(annotation)->attrs().String("compiler"); }

std::vector<Region> FindRegions(const Expr& root) { return RegionFinder(root).Run(); }

}  // namespace collage
