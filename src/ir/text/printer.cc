// printer.cc: expressions to Relay text. Within a block, what an expression needs is bound before it (`%0 = …;`), found
// with an explicit stack; only blocks inside blocks (functions, branches, arms) nest on the machine's stack.
#include <fmt/format.h>

#include <cctype>
#include <unordered_map>
#include <utility>

#include "collage/ir/op.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/metadata.h"
#include "ir/node_map.h"
#include "ir/print_type.h"
#include "ir/print_value.h"
#include "ir/text/module_text.h"
#include "ir/text_names.h"

namespace collage {
namespace {

// Depth that the parser reads back; see kDeepestNesting in parser.cc.
constexpr int kDeepestNesting = 100;

bool IsAtom(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kConstructor: return true;
    default: return false;
  }
}

/// The children that are evaluated in the same block as `expr`, in the order in which they are bound.
std::vector<Expr> Operands(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kFunction:
    case ExprKind::kLet: return {};
    case ExprKind::kIf: return {static_cast<const IfNode&>(*expr).condition()};
    case ExprKind::kMatch: return {static_cast<const MatchNode&>(*expr).data()};
    case ExprKind::kCall: {
      const auto& call = static_cast<const CallNode&>(*expr);
      std::vector<Expr> operands = call.args();
      operands.push_back(call.callee());
      return operands;
    }
    default: return Children(expr);
  }
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string Module(const IRModule& module) {
    std::string text = options_.header ? "#[version = \"0.0.5\"]\n" : "";
    if (options_.header && !module.attrs.empty()) text += "#[attributes = {" + AttrsText(module.attrs) + "}]\n";
    for (const auto& [name, type] : module.types()) types_.Reserve(name);
    for (const auto& [name, type] : module.types()) text += TypeDefinition(type) + "\n";
    for (const auto& [name, function] : module.functions()) {
      text += (text.ends_with("}\n") ? "\n" : "") + Definition(name, function);
    }
    if (options_.metadata && !constants_.empty()) text += "\n#[metadata]\n" + WriteMetadata(constants_);
    return text;
  }

  /// The constants that are no literals, by the number that the text calls them by.
  const std::vector<Constant>& constants() const { return constants_; }

  std::string Single(const Expr& expr) {
    Begin(expr);
    for (const Var& var : FreeVars(expr)) Line(fmt::format("free_var {};", VarText(var)));
    Block(expr);
    return std::move(out_);
  }

 private:
  // ---- definitions ----

  std::string TypeDefinition(const TypeData& type) {
    std::string text = "type " + NameText(type.header->name()) + types_.Enter(type.type_vars);
    if (type.constructors.empty()) {
      types_.Leave(type.type_vars);
      return "extern " + text + "\n";
    }
    text += " {\n";
    for (const Constructor& constructor : type.constructors) {
      std::string inputs;
      for (const Type& input : constructor->inputs()) inputs += (inputs.empty() ? "" : ", ") + types_.Text(input);
      text += "  " + NameText(constructor->name()) + (inputs.empty() ? "" : "(" + inputs + ")") + ",\n";
    }
    types_.Leave(type.type_vars);
    return text + "}\n";
  }

  std::string Definition(const std::string& name, const Function& function) {
    Begin(function);
    return fmt::format("def @{}{}\n", NameText(name), FunctionText(*function));
  }

  /// Forgets names and bindings: they hold within one definition.
  void Begin(const Expr& root) {
    out_.clear();
    indent_ = 0;
    next_binding_ = 0;
    bound_ = {};
    names_ = {};
    taken_ = {};
    uses_ = {};
    PostOrder(root, [this](const Expr& expr) {
      for (size_t i = 0; const Expr* child = ChildAt(*expr, i); ++i) {
        if (*child) ++uses_[child->get()];
      }
    });
  }

  /// `(params, attributes) -> type { body }`, what follows `fn` or `def @name`.
  std::string FunctionText(const FunctionNode& function) {
    const std::string type_params = types_.Enter(function.type_params());
    std::string inside;
    const auto add = [&](const std::string& item) { inside += (inside.empty() ? "" : ", ") + item; };
    for (const Var& param : function.params()) add(VarText(param));
    if (!(function.virtual_device() == VirtualDevice())) add(DeviceText(function.virtual_device()));
    if (!function.attrs().empty()) add(AttrsText(function.attrs()));
    const FuncTypeNode* type = AsFuncType(function.checked_type());
    const Type result = function.result_type() ? function.result_type() : type != nullptr ? type->result() : nullptr;
    const std::string arrow = result ? " -> " + types_.Text(result) : "";
    std::string text = fmt::format("{}({}){} {}", type_params, inside, arrow, Braces(function.body()));
    types_.Leave(function.type_params());
    return text;
  }

  // ---- blocks ----

  void Line(const std::string& text) { out_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + text + "\n"; }

  /// The lines of a block, one level further in, between `open` and `close`.
  std::string Enclosed(const char* open, const Expr& body, const char* close) {
    if (indent_ >= kDeepestNesting) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("functions, branches and clauses nest more than {} deep", kDeepestNesting));
    }
    std::string outer = std::move(out_);
    out_.clear();
    ++indent_;
    Block(body);
    --indent_;
    std::swap(outer, out_);
    return open + ("\n" + outer) + std::string(static_cast<size_t>(indent_) * 2, ' ') + close;
  }
  std::string Braces(const Expr& body) { return Enclosed("{", body, "}"); }

  void Block(const Expr& body) {
    Expr current = body;
    while (const LetNode* let = IsShared(current) ? nullptr : As<LetNode>(current)) {
      const std::string value = Inline(let->value());
      Line(fmt::format("let {} = {};", VarText(let->var(), /*annotation_only=*/true), value));
      current = let->body();
    }
    Line(Inline(current));
  }

  /// Used in several places, so that it must be bound to be printed once.
  bool IsShared(const Expr& expr) const {
    const int* uses = uses_.Find(expr.get());
    return uses != nullptr && *uses > 1;
  }

  /// Text of `expr` with its operands bound before; its name instead when it is shared.
  std::string Inline(const Expr& expr) {
    if (IsAtom(expr) || IsShared(expr)) return Bind(expr);
    for (const Expr& operand : Operands(expr)) Bind(operand);
    return Text(expr) + Comment(expr);
  }

  /// The name of `root`'s value, after writing the bindings that are missing for it.
  std::string Bind(const Expr& root) {
    struct Frame {
      Expr expr;
      std::vector<Expr> operands;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    if (!IsReady(root)) stack.push_back({root, Operands(root), 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next < frame.operands.size()) {
        const Expr operand = frame.operands[frame.next++];
        if (!IsReady(operand)) stack.push_back({operand, Operands(operand), 0});
        continue;
      }
      const Expr expr = frame.expr;
      stack.pop_back();
      if (IsReady(expr)) continue;
      const std::string text = Text(expr);
      const int number = next_binding_++;
      Line(fmt::format("%{} = {}{};", number, text, Comment(expr)));
      bound_.Emplace(expr.get(), number);
    }
    return Name(root);
  }

  bool IsReady(const Expr& expr) const { return IsAtom(expr) || bound_.Contains(expr.get()); }

  /// Returns the comment behind a value that the options ask for.
  std::string Comment(const Expr& expr) const {
    std::string text;
    if (options_.types && expr->checked_type() && expr->kind() != ExprKind::kFunction) {
      text += " ty=" + types_.Text(expr->checked_type());
    }
    const Span& span = expr->span();
    if (options_.spans && !span.source.empty()) {
      text += " span=" + span.source + (span.line > 0 ? fmt::format(":{}:{}", span.line, span.column) : "");
    }
    return text.empty() ? "" : " /*" + WithoutCommentMarks(std::move(text)) + " */";
  }

  // ---- expressions ----

  std::string Name(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kVar: return VarName(static_cast<const VarNode&>(*expr));
      case ExprKind::kGlobalVar: return "@" + NameText(static_cast<const GlobalVarNode&>(*expr).name());
      case ExprKind::kOp: return static_cast<const OpNode&>(*expr).name();
      case ExprKind::kConstructor: return NameText(static_cast<const ConstructorNode&>(*expr).name());
      case ExprKind::kConstant: return ConstantText(AsShared<ConstantNode>(expr));
      default: return fmt::format("%{}", *bound_.Find(expr.get()));
    }
  }

  std::string Names(const std::vector<Expr>& exprs) {
    std::string text;
    for (const Expr& expr : exprs) text += (text.empty() ? "" : ", ") + Name(expr);
    return text;
  }

  /// One node whose operands have names.
  std::string Text(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kTuple: {
        const auto& fields = static_cast<const TupleNode&>(*expr).fields();
        return "(" + Names(fields) + (fields.size() == 1 ? ",)" : ")");
      }
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(*expr);
        return fmt::format("{}.{}", Name(item.tuple()), item.index());
      }
      case ExprKind::kCall: return CallText(static_cast<const CallNode&>(*expr));
      case ExprKind::kFunction: {
        const auto& function = static_cast<const FunctionNode&>(*expr);
        return "fn " + FunctionText(function);
      }
      case ExprKind::kLet: return LetText(expr);
      case ExprKind::kIf: {
        const auto& branch = static_cast<const IfNode&>(*expr);
        const std::string then_text = Braces(branch.then_branch());
        return fmt::format("if ({}) {} else {}", Name(branch.condition()), then_text, Braces(branch.else_branch()));
      }
      case ExprKind::kMatch: return MatchText(static_cast<const MatchNode&>(*expr));
      case ExprKind::kRefCreate: return "ref(" + Name(static_cast<const RefCreateNode&>(*expr).value()) + ")";
      case ExprKind::kRefRead: return "ref_read(" + Name(static_cast<const RefReadNode&>(*expr).ref()) + ")";
      case ExprKind::kRefWrite: {
        const auto& write = static_cast<const RefWriteNode&>(*expr);
        return fmt::format("ref_write({}, {})", Name(write.ref()), Name(write.value()));
      }
      default: return Name(expr);
    }
  }

  /// A let that is not the end of a block, in parentheses.
  std::string LetText(const Expr& let) {
    const int count = std::exchange(uses_[let.get()], 1);
    std::string text = Enclosed("(", let, ")");
    uses_[let.get()] = count;
    return text;
  }

  std::string CallText(const CallNode& call) {
    if (call.callee()->kind() == ExprKind::kConstructor && call.args().empty()) return Name(call.callee());
    std::string inside = Names(call.args());
    const OpDef* op = call.op();
    for (const auto& [name, value] : call.attrs()) {
      const AttrField* field = op == nullptr ? nullptr : op->FindAttr(name);
      if (field != nullptr && !field->required && field->default_value == value) continue;
      inside += (inside.empty() ? "" : ", ") + AttrNameText(name) + "=" + AttrText(value);
    }
    return Name(call.callee()) + "(" + inside + ")";
  }

  std::string MatchText(const MatchNode& match) {
    std::string text = fmt::format("match{} ({}) {{\n", match.complete() ? "" : "?", Name(match.data()));
    ++indent_;
    const std::string margin(static_cast<size_t>(indent_) * 2, ' ');
    for (const Clause& clause : match.clauses()) {
      const std::string pattern = PatternText(clause.pattern);
      text += fmt::format("{}{} => {},\n", margin, pattern, Braces(clause.body));
    }
    --indent_;
    return text + std::string(static_cast<size_t>(indent_) * 2, ' ') + "}";
  }

  std::string PatternText(const Pattern& pattern) {
    if (pattern.kind == Pattern::Kind::kWildcard) return "_";
    if (pattern.kind == Pattern::Kind::kVar) return VarText(pattern.var, /*annotation_only=*/true);
    std::string inside;
    for (const Pattern& sub : pattern.sub_patterns) inside += (inside.empty() ? "" : ", ") + PatternText(sub);
    if (pattern.kind == Pattern::Kind::kTuple) return "(" + inside + (pattern.sub_patterns.size() == 1 ? ",)" : ")");
    return NameText(pattern.constructor->name()) + (inside.empty() ? "" : "(" + inside + ")");
  }

  std::string ConstantText(const Constant& constant) {
    const std::string literal = LiteralText(constant->value());
    if (!literal.empty()) return literal;
    auto [it, is_new] = constant_index_.emplace(constant.get(), constants_.size());
    if (is_new) constants_.push_back(constant);
    return fmt::format("meta[relay.Constant][{}] /*{}*/", it->second, ToString(constant->checked_type()));
  }

  // ---- names ----

  /// `%name: type`; the inferred type where there is no annotation, unless only annotations are wanted.
  std::string VarText(const Var& var, bool annotation_only = false) {
    const Type type = var->type_annotation() || annotation_only ? var->type_annotation() : var->checked_type();
    const bool is_placed = !(var->virtual_device() == VirtualDevice());
    const std::string device = is_placed ? " {" + DeviceText(var->virtual_device()) + "}" : "";
    return VarName(*var) + device + (type ? ": " + types_.Text(type) : "");
  }

  std::string VarName(const VarNode& var) {
    if (const std::string* known = names_.Find(&var)) return *known;
    std::string base;
    for (char c : var.name()) base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0) base = "v" + base;
    std::string name = base;
    int& counter = taken_[base];
    while (counter > 0 && taken_.count(name = base + std::to_string(counter)) != 0) ++counter;
    ++counter;
    if (name != base) taken_[name] = 1;
    return *names_.Emplace(&var, "%" + name).first;
  }

  PrintOptions options_;
  std::string out_;
  int indent_ = 0;
  int next_binding_ = 0;
  NodeMap<int> bound_;  // the number behind %
  NodeMap<std::string> names_;
  std::unordered_map<std::string, int> taken_;  // name → next number to try behind it
  TypePrinter types_;
  NodeMap<int> uses_;
  std::vector<Constant> constants_;
  std::unordered_map<const ExprNode*, size_t> constant_index_;
};

}  // namespace

ModuleText PrintWithoutConstants(const IRModule& module) {
  Printer printer({.metadata = false});
  std::string text = printer.Module(module);
  return {std::move(text), printer.constants()};
}

std::string PrintModule(const IRModule& module, const PrintOptions& options) { return Printer(options).Module(module); }

std::string PrintExpr(const Expr& expr, const PrintOptions& options) { return Printer(options).Single(expr); }

}  // namespace collage
