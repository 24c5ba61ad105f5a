// patterns.cc: operations, and what may follow them.
#include "backends/cutlass/patterns.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "backends/fused_matches/pattern_parts.h"

namespace collage::cutlass {
namespace {

using matches::Around;
using matches::Part;

constexpr Part kFunctions[] = {matches::kHardSwish[0], matches::kHardSwish[1], matches::kHardSwish[2],
                               matches::kSwish,        matches::kGelu[0],      matches::kGelu[1],
                               matches::kGelu[2],      matches::kGeluTanh,     matches::kRelu,
                               matches::kClip,         matches::kSigmoid,      matches::kTanh};
/// Functions of a convolution with bias that another tensor may follow.
constexpr Part kBeforeResidual[] = {matches::kHardSwish[0], matches::kHardSwish[1], matches::kHardSwish[2],
                                    matches::kSwish,        matches::kRelu,         matches::kSigmoid};
constexpr Part kResiduals[] = {{"_residual_add", "add({0}, *)"}, {"_residual_multiply", "multiply({0}, *)"}};

class Table {
 public:
  explicit Table(Precision precision) : precision_(precision) {}
  std::vector<PatternTableEntry> Take() { return std::move(rows_); }

  void Add(const std::string& name, std::string pattern) {
    const auto predicate = [precision = precision_](const collage::Function& composite) -> Result<void> {
      Result<Description> description = Describe(composite, NaturalLayouts(composite), precision);
      // Images that are moved may have any number of channels.
      if (!description) description = Describe(composite, PlainLayouts(composite->params().size(), 1), precision);
      if (!description) return description.reason();
      if (precision.allows_tf32 && description->instance.element != Element::kFloat32) {
        return Reason{"multiplies no float32 values, and is the same without TF32", "cutlass"};
      }
      return {};
    };
    rows_.push_back({"cutlass." + name, std::move(pattern), predicate});
  }

  /// The anchor with a bias, a function and another tensor behind it, and alone. `before` are functions that the tensor
  /// may follow.
  void AddAnchor(const std::string& name, const std::string& anchor, std::span<const Part> before) {
    const std::string biased = Around(matches::kBias, anchor);
    for (const Part& part : before) AddResiduals(name + "_bias" + part.suffix, Around(part, biased));
    for (const auto& [prefix, inner] : {std::pair{name + "_bias", biased}, std::pair{name, anchor}}) {
      AddResiduals(prefix, inner);
      for (const Part& part : kFunctions) Add(prefix + part.suffix, Around(part, inner));
      Add(prefix, inner);
    }
  }

 private:
  void AddResiduals(const std::string& name, const std::string& inner) {
    for (const Part& residual : kResiduals) {
      const std::string combined = Around(residual, inner);
      Add(name + residual.suffix + matches::kRelu.suffix, Around(matches::kRelu, combined));
      Add(name + residual.suffix, combined);
    }
  }

  Precision precision_;
  std::vector<PatternTableEntry> rows_;
};

}  // namespace

std::vector<PatternTableEntry> Patterns(Precision precision) {
  Table table(precision);
  for (int rank : {2, 1}) {
    table.AddAnchor(fmt::format("conv{}d", rank), fmt::format("nn.conv{}d(*, const)", rank), kBeforeResidual);
  }
  table.AddAnchor("dense", "(nn.dense(*, *) | reshape(nn.dense(*, *)))", {});
  table.AddAnchor("matmul", "(nn.matmul(*, *) | reshape(nn.matmul(*, *)))", {});
  table.AddAnchor("batch_matmul", "(nn.batch_matmul(*, *) | reshape(nn.batch_matmul(*, *)))", {});
  return table.Take();
}

}  // namespace collage::cutlass
