// patterns.cc: operations with what usually follows them, by name, and chains of any operators, for searches.
#include "backends/triton/patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>

#include "backends/fused_matches/pattern_parts.h"
#include "backends/triton/operators.h"
#include "collage/ir/visitor.h"
#include "dataflow/pattern.h"

namespace collage::triton {
namespace {

using matches::Around;
using matches::Part;

constexpr Part kFunctions[] = {
    matches::kHardSwish[0], matches::kHardSwish[1], matches::kHardSwish[2], matches::kSwish,    matches::kGelu[0],
    matches::kGelu[1],      matches::kGelu[2],      matches::kGeluTanh,     matches::kElu,      matches::kRelu,
    matches::kClip,         matches::kSigmoid,      matches::kTanh,         matches::kLeakyRelu};
constexpr Part kResiduals[] = {{"_residual_add", "add({0}, *)"}, {"_residual_multiply", "multiply({0}, *)"}};

size_t NumCalls(const Function& function) {
  size_t count = 0;
  PostOrderInScope(function->body(), [&](const Expr& expr) { count += As<CallNode>(expr) != nullptr ? 1 : 0; });
  return count;
}

/// Whether `pattern` matches all of `function`, of `num_calls` calls.
bool MatchesAll(const DFPattern& pattern, const DataflowGraph& graph, size_t num_calls) {
  bool is_whole = false;
  MatchPattern(graph, pattern, graph.IndexOf(graph.function()->body()), [&](const std::vector<int>& inside) {
    size_t count = 0;
    for (const int index : inside) count += As<CallNode>(graph.node(index).expr) != nullptr ? 1 : 0;
    is_whole = is_whole || count == num_calls;
  });
  return is_whole;
}

class Table {
 public:
  explicit Table(Precision precision) : precision_(precision) {}
  std::vector<PatternTableEntry> Take() { return std::move(rows_); }

  void Add(const std::string& name, const std::string& pattern) {
    named_->push_back(ParsePattern(pattern));
    rows_.push_back({"triton." + name, pattern,
                     [precision = precision_](const Function& composite) { return Supports(composite, precision); }});
  }

  /// A row that only searches take matches of: those that are not of a row before.
  void AddOthers(const std::string& name, const std::string& pattern) {
    const auto predicate = [precision = precision_, named = named_](const Function& composite) -> Result<void> {
      if (Result<void> supported = Supports(composite, precision); !supported.ok()) return supported;
      const DataflowGraph graph(composite);
      const size_t num_calls = NumCalls(composite);
      for (const DFPatternPtr& row : *named) {
        if (MatchesAll(*row, graph, num_calls)) return Reason{"is a match of another row", "triton"};
      }
      return {};
    };
    rows_.push_back({"triton." + name, pattern, predicate, /*is_greedy=*/false});
  }

  /// The product with a bias, a function and another tensor behind it, and alone.
  void AddProduct(const std::string& name, const std::string& product) {
    const std::string biased = Around(matches::kBias, product);
    for (const auto& [prefix, inner] : {std::pair{name + "_bias", biased}, std::pair{name, product}}) {
      AddResiduals(prefix, inner);
      for (const Part& part : kFunctions) Add(prefix + part.suffix, Around(part, inner));
      Add(prefix, inner);
    }
  }

 private:
  static Result<void> Supports(const Function& composite, Precision precision) {
    const Result<Description> description = Describe(composite, PlainLayouts(composite->params().size(), 1), precision);
    if (!description) return description.reason();
    const bool multiplies = !description->multipliers.empty() && description->instance.factor == kFloat32;
    if (precision.allows_tf32 && !multiplies) {
      return Reason{"multiplies no float32 values, and is the same without TF32", "triton"};
    }
    return {};
  }

  void AddResiduals(const std::string& name, const std::string& inner) {
    for (const Part& residual : kResiduals) {
      const std::string combined = Around(residual, inner);
      Add(name + residual.suffix + matches::kRelu.suffix, Around(matches::kRelu, combined));
      Add(name + residual.suffix, combined);
    }
  }

  Precision precision_;
  std::vector<PatternTableEntry> rows_;
  std::shared_ptr<std::vector<DFPatternPtr>> named_ = std::make_shared<std::vector<DFPatternPtr>>();
};

/// x / sqrt(mean(x * x) + epsilon), also times a number for each column.
void AddRmsNorm(Table& table) {
  const std::string mean = "sqrt(add(mean((multiply($x, $x) | power($x, const))), const))";
  const std::string reciprocal =
      "(rsqrt(add(mean((multiply($x, $x) | power($x, const))), const)) | divide(const, " + mean + "))";
  const std::string norm = fmt::format("(divide($x, {}) | multiply($x, {}))", mean, reciprocal);
  table.Add("rms_norm_scale", fmt::format("multiply({}, *)", norm));
  table.Add("rms_norm", norm);
}

void AddAttention(Table& table, const std::string& elements) {
  const std::string in_place = fmt::format("({} | reshape | expand_dims | squeeze)(...)", elements);
  table.Add("attention",
            fmt::format("dominates(dominates(nn.batch_matmul(*, *), {0}, nn.softmax(*)), {0}, nn.batch_matmul(*, *))",
                        in_place));
}

}  // namespace

std::vector<PatternTableEntry> Patterns(Precision precision) {
  Table table(precision);
  const std::string elements = fmt::format("{}", fmt::join(ElementOperators(), " | "));
  const std::string moved = fmt::format("({} | reshape | expand_dims | squeeze)(...)", elements);
  AddAttention(table, elements);
  const std::string products[] = {"nn.dense", "nn.matmul", "nn.batch_matmul"};
  for (const std::string& product : products) {
    table.AddProduct(product.substr(3), fmt::format("({0}(*, *) | reshape({0}(*, *)))", product));
  }
  AddRmsNorm(table);
  table.Add("softmax", "nn.softmax(*)");
  table.Add("log_softmax", "nn.log_softmax(*)");
  table.Add("layer_norm", "nn.layer_norm(*, *, *)");
  for (const std::string& product : products) {
    const std::string anchor = product + "(*, *)";
    table.AddOthers(product.substr(3) + "_chain", fmt::format("dominates({}, {}, {})", anchor, moved, moved));
  }
  const std::string over_rows = "sum | mean | max | min | nn.softmax | nn.log_softmax | nn.layer_norm";
  const std::string any = fmt::format("({} | {} | reshape | expand_dims | squeeze)(...)", elements, over_rows);
  table.AddOthers("chain", fmt::format("dominates({0}, {0}, {0})", any));
  table.AddOthers("single", fmt::format("({} | {})(...)", elements, over_rows));
  return table.Take();
}

}  // namespace collage::triton
