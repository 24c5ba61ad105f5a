// dot.cc: a graph in Graphviz's language, of one or more plans.
#include "viewers/dot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/text_names.h"
#include "report/units.h"

namespace collage {
namespace {

constexpr size_t kMostLines = 8;   // of operators in a box; its tooltip has all
constexpr size_t kNumColors = 12;  // of Graphviz's scheme set312

/// `a+b+c` on lines of their own, the last of many left out.
std::string OperatorLines(const std::string& label) {
  std::string lines;
  size_t num_lines = 0, begin = 0;
  while (begin < label.size()) {
    const size_t end = std::min(label.find('+', begin), label.size());
    if (++num_lines <= kMostLines) lines += "\n" + label.substr(begin, end - begin);
    begin = end + 1;
  }
  if (num_lines > kMostLines) lines += fmt::format("\nand {} more", num_lines - kMostLines);
  return lines;
}

/// A graph in Graphviz's language, of one or more plans.
class Drawing {
 public:
  explicit Drawing(const ViewedModel& model)
      : model_(model),
        all_seconds_(model.AllSeconds()),
        text_("digraph executable {\n  node [fontname=\"sans-serif\", colorscheme=set312];\n") {
    text_ += "  edge [fontname=\"sans-serif\", fontsize=10];\n";
  }

  void Add(const NamedPlan& named) {
    if (named.name.empty()) return AddPlan(named);
    text_ += fmt::format("  subgraph cluster_{} {{\n  label={};\n", num_plans_, QuotedText(named.name));
    AddPlan(named);
    text_ += "  }\n";
  }

  /// A kernel whose tensors' shapes a run knows: a box of its own.
  void Add(const StepProfile& kernel) {
    const std::string label = fmt::format("{}, {}{}", kernel.plan, kernel.toolchain, TimeLine(kernel));
    text_ += fmt::format("  dynamic_{} [shape=box, label={}, tooltip={}];\n", num_dynamic_++,
                         QuotedText(label + OperatorLines(kernel.operators)), QuotedText(TooltipOf(kernel)));
  }

  std::string Finish() && { return std::move(text_) + "}\n"; }

 private:
  void AddPlan(const NamedPlan& named) {
    const ExecutionPlan& plan = *named.plan;
    std::map<int, std::string> node_of;  // by value: what computes it
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      AddPort(plan, plan.inputs[i], Name("input", i));
      node_of[Root(plan, plan.inputs[i].value)] = Name("input", i);
    }
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const ExecutionPlan::Step& step = plan.steps[i];
      const std::string name = Name("step", i);
      text_ += fmt::format("  {} [{}];\n", name, Attributes(named, i));
      for (const int input : step.inputs) AddEdge(plan, input, name, node_of);
      for (const int output : step.outputs) node_of[Root(plan, output)] = name;
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      AddPort(plan, plan.outputs[i], Name("output", i));
      AddEdge(plan, plan.outputs[i].value, Name("output", i), node_of);
    }
    ++num_plans_;
  }

  std::string Name(const char* kind, size_t index) const { return fmt::format("{}_{}_{}", kind, num_plans_, index); }

  static const ExecutionPlan::Value& ValueOf(const ExecutionPlan& plan, int value) {
    return plan.values[static_cast<size_t>(value)];
  }

  static int Root(const ExecutionPlan& plan, int value) {
    const int root = ValueOf(plan, value).alias_of;
    return root >= 0 ? root : value;
  }

  static std::string TypeOf(const ExecutionPlan::Value& value) {
    std::string type = fmt::format("{} {}", value.dtype.ToString(), ToString(value.shape));
    if (value.layout != Layout::kPlain) type += fmt::format("\n{}", ToString(value.layout));
    return type;
  }

  void AddPort(const ExecutionPlan& plan, const ExecutionPlan::Port& port, const std::string& name) {
    text_ += fmt::format("  {} [label={}];\n", name, QuotedText(port.name + "\n" + TypeOf(ValueOf(plan, port.value))));
  }

  /// An arrow to `to` from what computes `value`; none for constants.
  void AddEdge(const ExecutionPlan& plan, int value, const std::string& to, const std::map<int, std::string>& node_of) {
    const auto from = node_of.find(Root(plan, value));
    if (from == node_of.end()) return;
    text_ += fmt::format("  {} -> {} [label={}];\n", from->second, to, QuotedText(TypeOf(ValueOf(plan, value))));
  }

  /// "\n1.20 ms, 12 %", or nothing where no time is known.
  std::string TimeLine(const StepProfile& step) const {
    const std::optional<double> seconds = SecondsOf(step);
    if (!seconds || all_seconds_ <= 0) return "";
    return fmt::format("\n{}, {:.0f} %", FormatSeconds(*seconds), 100 * *seconds / all_seconds_);
  }

  static std::string TooltipOf(const StepProfile& step) {
    return step.operators + fmt::format("\n{}", fmt::join(step.nodes, " "));
  }

  std::string Attributes(const NamedPlan& plan, size_t index) {
    const StepProfile& step = model_.StepOf(plan, index);
    if (!step.partition) return fmt::format("shape=cds, label={}", QuotedText(step.kind));
    const std::string label = fmt::format("{}: {}{}", *step.partition, step.toolchain, TimeLine(step));
    return fmt::format("shape=box, style=filled, fillcolor={}, label={}, tooltip={}", ColorOf(step.toolchain),
                       QuotedText(label + OperatorLines(step.operators)), QuotedText(TooltipOf(step)));
  }

  /// From 1 on, in the order in which toolchains come.
  size_t ColorOf(const std::string& toolchain) {
    return colors_.try_emplace(toolchain, colors_.size() % kNumColors + 1).first->second;
  }

  const ViewedModel& model_;
  const double all_seconds_;
  std::string text_;
  std::map<std::string, size_t> colors_;
  size_t num_plans_ = 0, num_dynamic_ = 0;
};

}  // namespace

std::string DotOf(const ViewedModel& model) {
  Drawing drawing(model);
  for (const NamedPlan& plan : model.plans()) drawing.Add(plan);
  for (const StepProfile& step : model.steps()) {
    if (step.kind == "any size") drawing.Add(step);
  }
  return std::move(drawing).Finish();
}

}  // namespace collage
