// replaced_calls.cc: functions in which nothing was replaced stay the same nodes.
#include "transform/passes/dynamic/replaced_calls.h"

#include "collage/ir/infer_type.h"
#include "transform/rewriting.h"

namespace collage {

IRModule WithReplacedCalls(const IRModule& module,
                           const std::function<Expr(const CallNode& original, const CallNode& call)>& replace,
                           const std::map<std::string, Function>& added) {
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) {
    const Expr body =
        RewriteNodes(function->body(), IsOrdinary, [&](const Expr& original, const Expr& rewritten, const Rewritten&) {
          const CallNode* call = As<CallNode>(original);
          if (call == nullptr || call->op() == nullptr) return rewritten;
          const Expr made = replace(*call, static_cast<const CallNode&>(*rewritten));
          return made == nullptr ? rewritten : made;
        });
    if (body == function->body()) continue;
    result.Set(name, MakeFunction(function->params(), body, function->result_type(), function->attrs(),
                                  function->type_params()));
  }
  for (const auto& [name, function] : added) result.Set(name, function);
  return InferTypes(std::move(result));
}

}  // namespace collage
