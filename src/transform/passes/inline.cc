// inline.cc: global functions with attribute Inline are put where they are called, and vanish.
#include <set>

#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// The global functions that `function` mentions.
std::set<std::string> Mentions(const Function& function) {
  std::set<std::string> names;
  PostOrder(function, [&](const Expr& expr) {
    if (const GlobalVarNode* global = As<GlobalVarNode>(expr)) names.insert(global->name());
  });
  return names;
}

/// Whether `name` mentions itself, directly or through others: such a function would never be inlined to an end.
bool IsRecursive(const IRModule& module, const std::string& name) {
  std::set<std::string> seen;
  std::vector<std::string> stack{name};
  while (!stack.empty()) {
    const std::string current = stack.back();
    stack.pop_back();
    if (!module.Has(current)) continue;
    for (const std::string& next : Mentions(module.Lookup(current))) {
      if (next == name) return true;
      if (seen.insert(next).second) stack.push_back(next);
    }
  }
  return false;
}

/// `callee` with its arguments in place of its parameters; bound to them, where the order of evaluation counts.
Expr Expand(const Function& callee, const CallNode& call, bool keep_order) {
  if (!keep_order) return InlinedCall(callee, call.args());
  const Function copy = WithFreshVars(callee);
  Expr body = copy->body();
  for (size_t i = call.args().size(); i-- > 0;) {
    body = std::make_shared<LetNode>(copy->params()[i], call.args()[i], body);
    body->share_span(call);
  }
  return body;
}

/// `function` with calls of `targets`, whose own bodies are inlined already, replaced.
Function InlineCalls(const Function& function, const IRModule& targets, bool keep_order) {
  return AsShared<FunctionNode>(RewriteNodes(function, [&](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
    const CallNode* call = As<CallNode>(expr);
    const GlobalVarNode* global = call == nullptr ? nullptr : As<GlobalVarNode>(call->callee());
    if (global == nullptr || !targets.Has(global->name())) return expr;
    return Expand(targets.Lookup(global->name()), *call, keep_order);
  }));
}

}  // namespace

IRModule Inline(IRModule module, const PassContext&) {
  const bool keep_order = WritesReferences(module);
  std::set<std::string> wanted;
  for (const auto& [name, function] : module.functions()) {
    if (function->attrs().IntOr("Inline", 0) != 0 && function->type_params().empty() && !IsRecursive(module, name)) {
      wanted.insert(name);
    }
  }
  // Functions that call no waiting ones come first; without recursion there always is one.
  IRModule targets;
  while (!wanted.empty()) {
    for (auto it = wanted.begin(); it != wanted.end();) {
      bool ready = true;
      for (const std::string& name : Mentions(module.Lookup(*it))) ready = ready && !wanted.contains(name);
      if (!ready) {
        ++it;
        continue;
      }
      targets.Set(*it, InlineCalls(module.Lookup(*it), targets, keep_order));
      it = wanted.erase(it);
    }
  }
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) result.Set(name, InlineCalls(function, targets, keep_order));
  // A function that is handed on as a value is still needed.
  std::set<std::string> mentioned{"main"};
  for (const auto& [name, function] : result.functions()) mentioned.merge(Mentions(function));
  for (const auto& [name, function] : targets.functions()) {
    if (!mentioned.contains(name)) result.Remove(name);
  }
  return result;
}

}  // namespace collage
