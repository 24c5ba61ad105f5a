// patterns.cc: operations, and what may follow them.
#include "backends/cudnn/patterns.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "backends/fused_matches/pattern_parts.h"

namespace collage::cudnn {
namespace {

using matches::Around;
using matches::kBias;
using matches::Part;

constexpr Part kSum{"_sum", "add({0}, *)"};

/// Functions that are operators, and ELU.
constexpr Part kOperators[] = {matches::kRelu, matches::kClip, matches::kSigmoid, matches::kTanh, matches::kElu};

/// Functions that fewer engines compute.
constexpr Part kFurther[] = {matches::kLeakyRelu, matches::kSwish,   matches::kGelu[0],
                             matches::kGelu[1],   matches::kGelu[2], matches::kGeluTanh};

/// Kinds of operators that may follow an anchor.
struct Following {
  bool sums = false;    ///< a tensor of the result's shape
  bool further = true;  ///< kFurther
};

class Table {
 public:
  explicit Table(Precision precision) : precision_(precision) {}
  std::vector<PatternTableEntry> Take() { return std::move(rows_); }

  void Add(const std::string& name, std::string pattern) {
    const auto predicate = [precision = precision_](const Function& composite) -> Result<void> {
      const auto plain = PlainLayouts(composite->params().size(), 1);
      const Result<Description> description = Describe(composite, plain, precision);
      if (!description) return description.reason();
      if (precision.allows_tf32 && !HasFactorsToRound(description->graph)) {
        return Reason{"multiplies no float32 values, and is the same without TF32", "cudnn"};
      }
      return {};
    };
    rows_.push_back({"cudnn." + name, std::move(pattern), predicate});
  }

  /// The anchor with a bias, a tensor and a function behind it, and alone.
  void AddAnchor(const std::string& name, const std::string& anchor, Following following) {
    const std::string biased = Around(kBias, anchor);
    for (const auto& [prefix, inner] : {std::pair{name + "_bias", biased}, std::pair{name, anchor}}) {
      if (following.sums) AddFunctions(prefix + kSum.suffix, Around(kSum, inner), following);
      AddFunctions(prefix, inner, following);
    }
  }

 private:
  void AddFunctions(const std::string& name, const std::string& inner, Following following) {
    if (following.further) {
      for (const Part& part : kFurther) Add(name + part.suffix, Around(part, inner));
    }
    for (const Part& part : kOperators) Add(name + part.suffix, Around(part, inner));
    Add(name, inner);
  }

  Precision precision_;
  std::vector<PatternTableEntry> rows_;
};

void AddAttention(Table& table) {
  const std::string scores = "reshape?(nn.batch_matmul(*, *))";
  const std::string scaled = fmt::format("(multiply({0}, const) | divide({0}, const))", scores);
  const auto add = [&](const std::string& name, const std::string& inner) {
    table.Add(name, fmt::format("nn.batch_matmul(reshape?(nn.softmax(reshape?({}))), *)", inner));
  };
  for (const auto& [name, inner] : {std::pair{"attention_scale", scaled}, std::pair{"attention", scores}}) {
    add(fmt::format("{}_mask", name), fmt::format("add({}, *)", inner));
    add(name, inner);
  }
}

}  // namespace

std::vector<PatternTableEntry> Patterns(Precision precision) {
  Table table(precision);
  AddAttention(table);
  for (int rank : {2, 1, 3}) {
    table.AddAnchor(fmt::format("conv{}d", rank), fmt::format("nn.conv{}d(*, const)", rank),
                    {.sums = true, .further = rank < 3});
  }
  for (int rank : {2, 1}) {
    table.AddAnchor(fmt::format("deconv{}d", rank), fmt::format("nn.conv{}d_transpose(*, const)", rank), {});
  }
  table.Add("deconv3d", "nn.conv3d_transpose(*, const)");
  table.AddAnchor("dense", "(nn.dense(*, *) | reshape(nn.dense(*, *)))", {.sums = true});
  table.AddAnchor("matmul", "(nn.matmul(*, *) | reshape(nn.matmul(*, *)))", {});
  table.Add("batch_matmul", "nn.batch_matmul(*, *)");
  for (int rank : {2, 1, 3}) {
    for (const char* kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
      table.Add(fmt::format("{}{}d", kind, rank), fmt::format("nn.{}{}d(*)", kind, rank));
    }
  }
  table.Add("layer_norm", "nn.layer_norm(*, *, *)");
  table.Add("instance_norm", "nn.instance_norm(*, *, *)");
  return table.Take();
}

}  // namespace collage::cudnn
