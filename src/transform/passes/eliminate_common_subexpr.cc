// eliminate_common_subexpr.cc: equal calls of equal arguments become one node, and so do equal constants, such as
// the tables of positions that each layer has.
#include <map>
#include <string>
#include <vector>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/ops/random/random.h"
#include "transform/passes.h"

namespace collage {
namespace {

/// Key of equal pure expressions: operator or projection, children, attributes.
using Key = std::pair<std::vector<const void*>, std::vector<std::pair<std::string, AttrValue>>>;

/// Constants that are compared by their values: weights that equal others are rare, and all of them would be read.
constexpr size_t kMostConstantBytes = size_t{64} << 10;

bool KeyOf(const Expr& expr, Key* key) {
  if (const CallNode* call = As<CallNode>(expr)) {
    if (call->op() == nullptr || DrawsNumbers(*call->op())) return false;
    key->first.push_back(call->callee().get());
    for (const Expr& arg : call->args()) key->first.push_back(arg.get());
    key->second.assign(call->attrs().begin(), call->attrs().end());
    return true;
  }
  if (const TupleGetItemNode* item = As<TupleGetItemNode>(expr)) {
    key->first = {item->tuple().get()};
    key->second = {{"index", item->index()}};
    return true;
  }
  if (const TupleNode* tuple = As<TupleNode>(expr)) {
    key->second = {{"tuple", 1}};
    for (const Expr& field : tuple->fields()) key->first.push_back(field.get());
    return true;
  }
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    const Tensor& value = constant->value();
    if (value.size_bytes() > kMostConstantBytes) return false;
    key->second = {{"bytes", std::string(value.data<char>(), value.size_bytes())},
                   {"type", value.dtype().ToString() + ToString(value.shape())}};
    return true;
  }
  return false;
}

}  // namespace

Function EliminateCommonSubexpr(const Function& function) {
  std::map<Key, Expr> known;
  return AsShared<FunctionNode>(Rewrite(function, [&](const Expr& expr) -> Expr {
    Key key;
    if (!KeyOf(expr, &key)) return expr;
    return known.emplace(std::move(key), expr).first->second;
  }));
}

}  // namespace collage
