// patterns.cc: products, and what may follow them.
#include "backends/cublas/patterns.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "backends/cublas/describe.h"
#include "backends/fused_matches/pattern_parts.h"

namespace collage::cublas {
namespace {

using matches::Around;
using matches::Part;

constexpr Part kNothing{"", "{0}"};
constexpr Part kScale{"_scale", "(multiply({0}, const) | divide({0}, const))"};
constexpr Part kSum{"_sum", "add({0}, *)"};

class Table {
 public:
  explicit Table(Precision precision) : precision_(precision) {}
  std::vector<PatternTableEntry> Take() { return std::move(rows_); }

  void Add(const std::string& name, std::string pattern) {
    const auto predicate = [precision = precision_](const Function& composite) -> Result<void> {
      const auto description = Describe(composite, PlainLayouts(composite->params().size(), 1), precision);
      if (!description) return description.reason();
      return {};
    };
    rows_.push_back({"cublas." + name, std::move(pattern), predicate});
  }

  /// A product of 8-bit integers, quantised or left as floats.
  void AddQuantised(const std::string& name, const std::string& product) {
    Add("qnn." + name, fmt::format("(qnn.quantize(reshape?({0}), const, const) | {0})", product));
  }

  /// A product of floats with all that may follow, and alone. Sequences are flattened before it and given their shape
  /// back behind it.
  void AddProduct(const std::string& name, const std::string& product, bool is_scaled) {
    const std::string inner = fmt::format("reshape?({})", product);
    if (is_scaled) {
      const std::string scaled = Around(kScale, inner);
      AddEnds(name + kScale.suffix, fmt::format("reshape?({})", scaled));
      Add(name + kScale.suffix, scaled);
    }
    AddEnds(name, inner);
    Add(name, product);
  }

 private:
  void AddEnds(const std::string& name, const std::string& inner) {
    for (const Part& bias : {matches::kBias, kNothing}) {
      for (const Part& sum : {kSum, kNothing}) {
        const std::string summed = Around(sum, Around(bias, inner));
        for (const Part& function : {matches::kGeluTanh, matches::kRelu, kNothing}) {
          const std::string suffix = std::string(bias.suffix) + sum.suffix + function.suffix;
          if (!suffix.empty()) Add(name + suffix, Around(function, summed));
        }
      }
    }
  }

  Precision precision_;
  std::vector<PatternTableEntry> rows_;
};

}  // namespace

std::vector<PatternTableEntry> Patterns(Precision precision) {
  Table table(precision);
  // Scores of attention are scaled, and what Gemm of ONNX becomes; exporters scale the weights of a layer.
  for (const auto& [op, is_scaled] : {std::pair{"batch_matmul", true}, {"matmul", true}, {"dense", false}}) {
    table.AddProduct(op, fmt::format("nn.{}(*, *)", op), is_scaled);
    table.Add(fmt::format("integer_{}", op), fmt::format("nn.{}(cast(*), (cast(*) | const))", op));
    const std::string quantised = fmt::format("nn.{0}({1}, {1})", op, "qnn.dequantize(*, const, const)");
    const std::string scaled = Around(kScale, fmt::format("reshape?({})", quantised));
    if (is_scaled) table.AddQuantised(std::string(op) + kScale.suffix, scaled);
    table.AddQuantised(op, quantised);
  }
  return table.Take();
}

}  // namespace collage::cublas
