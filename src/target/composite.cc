// composite.cc
#include "collage/target/composite.h"

namespace collage {

CompositeBody::CompositeBody(const Function& partition) : root_(partition->body()) {
  const CallNode* call = As<CallNode>(root_);
  if (call == nullptr || call->callee()->kind() != ExprKind::kFunction) return;
  const Function composite = AsShared<FunctionNode>(call->callee());
  for (size_t i = 0; i < composite->params().size(); ++i) {
    arguments_[composite->params()[i].get()] = call->args().at(i);
  }
  root_ = composite->body();
}

Expr CompositeBody::Outside(const Expr& expr) const {
  const auto it = arguments_.find(expr.get());
  return it == arguments_.end() ? expr : it->second;
}

}  // namespace collage
