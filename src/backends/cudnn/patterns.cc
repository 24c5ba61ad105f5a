// patterns.cc: operations, and what may follow them.
#include "backends/cudnn/patterns.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace collage::cudnn {
namespace {

/// A suffix of a pattern's name and the text around `{0}`, the pattern so far.
struct Part {
  const char* suffix;
  const char* text;
};

constexpr Part kBias{"_bias", "(add({0}, const) | nn.bias_add({0}, const))"};
constexpr Part kSum{"_sum", "add({0}, *)"};

/// Functions that are operators, and clip.
constexpr Part kOperators[] = {
    {"_relu", "nn.relu({0})"},
    {"_clip", "clip({0})"},
    {"_sigmoid", "sigmoid({0})"},
    {"_tanh", "tanh({0})"},
    {"_elu",
     "add(nn.relu({0}), (add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const) | "
     "multiply((add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const)), const)))"},
};

/// Functions that fewer engines compute. Numbers in them are checked by activation.cc.
constexpr Part kFurther[] = {
    {"_leaky_relu", "nn.leaky_relu({0})"},
    {"_swish", "multiply({0}, sigmoid({0}))"},
    {"_gelu", "multiply(multiply({0}, add(erf((divide({0}, const) | multiply({0}, const))), const)), const)"},
    {"_gelu", "multiply(multiply({0}, const), add(erf((divide({0}, const) | multiply({0}, const))), const))"},
    {"_gelu", "multiply({0}, multiply(add(erf((divide({0}, const) | multiply({0}, const))), const), const))"},
    {"_gelu_tanh",
     "multiply((multiply({0}, const) | {0}), (add(tanh(multiply(add({0}, multiply((power({0}, const) | "
     "multiply({0}, multiply({0}, {0}))), const)), const)), const) | multiply(add(tanh(multiply(add({0}, "
     "multiply((power({0}, const) | multiply({0}, multiply({0}, {0}))), const)), const)), const), const)))"},
};

/// Kinds of operators that may follow an anchor.
struct Following {
  bool sums = false;    ///< a tensor of the result's shape
  bool further = true;  ///< kFurther
};

std::string Around(const Part& part, const std::string& inner) {
  std::string result;
  for (std::string_view rest = part.text; !rest.empty();) {
    const size_t hole = rest.find("{0}");
    result += rest.substr(0, hole);
    if (hole == std::string_view::npos) break;
    result += inner;
    rest.remove_prefix(hole + 3);
  }
  return result;
}

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
  for (const auto& [name, inner] : {std::pair{"attention_scale", scaled}, std::pair{"attention", scores}}) {
    table.Add(name, fmt::format("nn.batch_matmul(reshape?(nn.softmax(reshape?({}))), *)", inner));
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
  return table.Take();
}

}  // namespace collage::cudnn
