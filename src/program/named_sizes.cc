// named_sizes.cc: combinations of sizes, and modules bound to them.
#include "program/named_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "collage/ir/infer_type.h"
#include "collage/ir/value.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"

namespace collage {
namespace {

constexpr size_t kMostCombinations = 64;

const TensorTypeNode* TypeOf(const Var& param) {
  return AsTensorType(param->checked_type() ? param->checked_type() : param->type_annotation());
}

/// The dynamic dimensions of parameters.
class DynamicDimensions {
 public:
  explicit DynamicDimensions(const Function& function) : function_(function), named_(DimensionsOf(function)) {
    for (size_t param = 0; param < function->params().size(); ++param) {
      const TensorTypeNode* type = TypeOf(function->params()[param]);
      if (type == nullptr) {
        throw Error(ErrorCategory::kInput,
                    fmt::format("parameter '{}' is no tensor, it has no sizes", function->params()[param]->name()));
      }
      for (size_t axis = 0; axis < type->shape().size(); ++axis) {
        const bool is_free = type->shape()[axis].is_any() && !named_.SumOf(param, axis);
        if (is_free) names_.insert(named_.NameOf(param, axis));
      }
    }
  }

  const std::set<std::string>& names() const { return names_; }
  const NamedDimensions& named() const { return named_; }

  /// Shapes of all parameters where dimensions have these sizes. Throws kInput for one without.
  std::vector<Shape> ShapesAt(const std::map<std::string, int64_t>& sizes) const {
    std::vector<Shape> shapes;
    std::vector<std::pair<Dim, int64_t>> known = KnownAt(sizes);
    for (size_t param = 0; param < function_->params().size(); ++param) {
      Shape& shape = shapes.emplace_back();
      for (const Dim& dim : TypeOf(function_->params()[param])->shape()) {
        const std::optional<SizeSum> sum = dim.is_any() ? named_.SumOf(param, shape.size()) : std::nullopt;
        const std::string name = dim.is_any() ? named_.NameOf(param, shape.size()) : "";
        const std::optional<int64_t> added = sum ? sum->Of(sizes) : std::nullopt;
        shape.push_back(added ? *added : dim.is_any() ? SizeOf(dim, name, sizes, known) : dim.size());
      }
    }
    return shapes;
  }

 private:
  std::vector<std::pair<Dim, int64_t>> KnownAt(const std::map<std::string, int64_t>& sizes) const {
    std::vector<std::pair<Dim, int64_t>> known;
    for (size_t param = 0; param < function_->params().size(); ++param) {
      const std::vector<Dim>& dims = TypeOf(function_->params()[param])->shape();
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (!dims[axis].is_any()) continue;
        const auto size = sizes.find(named_.NameOf(param, axis));
        if (size != sizes.end()) known.emplace_back(dims[axis], size->second);
      }
    }
    return known;
  }

  static int64_t SizeOf(const Dim& dim, const std::string& name, const std::map<std::string, int64_t>& sizes,
                        const std::vector<std::pair<Dim, int64_t>>& known) {
    if (const auto size = sizes.find(name); size != sizes.end()) return size->second;
    const auto same = std::ranges::find_if(known, [&](const auto& one) { return one.first.IsSame(dim); });
    if (same != known.end()) return same->second;
    throw Error(ErrorCategory::kInput, fmt::format("dimension '{}' is dynamic, too, and has no sizes", name),
                "--tune-at", fmt::format("name sizes of it, too: --tune-at {}=<sizes>", name));
  }

  const Function& function_;
  NamedDimensions named_;
  std::set<std::string> names_;
};

/// "batch=1 sequence=16".
std::string TextOf(const std::map<std::string, int64_t>& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  return text;
}

void CheckSizes(const DynamicDimensions& dims, const std::map<std::string, Shape>& sizes) {
  size_t combinations = 1;
  for (const auto& [name, values] : sizes) {
    if (!dims.names().contains(name)) {
      throw Error(ErrorCategory::kInput, fmt::format("the model has no dynamic dimension '{}'", name), "--tune-at",
                  dims.names().empty() ? "all its sizes are known"
                                       : fmt::format("there are: {}", fmt::join(dims.names(), ", ")));
    }
    const NamedDimensions::Ranges& ranges = dims.named().ranges();
    const auto given = ranges.find(name);
    const SizeRange range = given == ranges.end() ? SizeRange() : given->second;
    const auto wrong = std::ranges::find_if(
        values, [&](int64_t size) { return size < std::max<int64_t>(range.low, 1) || size > range.high; });
    if (wrong != values.end()) {
      throw Error(ErrorCategory::kInput, fmt::format("dimension '{}' cannot have size {}", name, *wrong), "--tune-at");
    }
    combinations *= std::max<size_t>(values.size(), 1);
    if (combinations > kMostCombinations) {
      throw Error(ErrorCategory::kInput, fmt::format("sizes combine in more than {} ways", kMostCombinations),
                  "--tune-at", "each combination is compiled by itself; name fewer sizes");
    }
  }
}

}  // namespace

NamedDimensions DimensionsOf(const Function& function) {
  std::vector<std::string> params;
  for (const Var& param : function->params()) params.push_back(param->name());
  return {function->attrs(), std::move(params)};
}

std::string GivenDimensionName(const Function& function, size_t param, size_t axis) {
  const NamedDimensions dimensions = DimensionsOf(function);
  const NamedDimensions::Names& names = dimensions.names();
  return param < names.size() && axis < names[param].size() ? names[param][axis] : "";
}

std::vector<NamedSizes> CombineSizes(const Function& function, const std::map<std::string, Shape>& sizes) {
  const DynamicDimensions dims(function);
  CheckSizes(dims, sizes);
  std::vector<std::map<std::string, int64_t>> combined{{}};
  for (const auto& [name, values] : sizes) {
    std::vector<std::map<std::string, int64_t>> more;
    for (const std::map<std::string, int64_t>& one : combined) {
      for (const int64_t value : std::set<int64_t>(values.begin(), values.end())) {
        more.push_back(one);
        more.back()[name] = value;
      }
    }
    combined = std::move(more);
  }
  std::vector<NamedSizes> all;
  for (const std::map<std::string, int64_t>& one : combined) {
    all.push_back({TextOf(one), dims.ShapesAt(one)});
  }
  return all;
}

std::vector<NamedSizes> SpreadSizes(const Function& function) {
  const DynamicDimensions dims(function);
  const NamedDimensions::Ranges& ranges = dims.named().ranges();
  std::vector<NamedSizes> all;
  for (const int64_t part : {1, 4, 16}) {
    std::map<std::string, int64_t> sizes;
    for (const std::string& name : dims.names()) {
      const auto range = ranges.find(name);
      if (range == ranges.end() || range->second.high == SizeRange().high) return {};
      sizes[name] = std::max({range->second.low, range->second.high / part, int64_t{1}});
    }
    NamedSizes one{TextOf(sizes), dims.ShapesAt(sizes)};
    if (std::ranges::find(all, one.text, &NamedSizes::text) == all.end()) all.push_back(std::move(one));
  }
  return all;
}

IRModule BindParameters(const IRModule& module, const std::vector<Shape>& shapes) {
  const Function& main = module.main();
  std::vector<Var> params;
  std::unordered_map<const ExprNode*, Expr> bound;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Var& param = main->params().at(i);
    params.push_back(MakeVar(param->name(), TensorType(shapes[i], TypeOf(param)->dtype())));
    params.back()->share_span(*param);
    bound.emplace(param.get(), params.back());
  }
  IRModule result = module;
  result.Set("main",
             MakeFunction(params, Substitute(main->body(), bound), nullptr, main->attrs(), main->type_params()));
  return RunPasses({"DynamicToStatic"}, InferTypes(std::move(result)));
}

IRModule WithSpecialised(IRModule program, const IRModule& bound, const std::string& text) {
  std::map<std::string, std::string> renamed;
  for (const auto& [name, _] : bound.functions()) {
    int number = 0;
    do {
      renamed[name] = fmt::format("{}_at_{}", name, ++number);
    } while (program.Has(renamed[name]) || bound.Has(renamed[name]));
  }
  for (const auto& [name, function] : bound.functions()) {
    const Expr body = Rewrite(function->body(), [&](const Expr& expr) -> Expr {
      const GlobalVarNode* global = As<GlobalVarNode>(expr);
      if (global == nullptr || !renamed.contains(global->name())) return expr;
      return std::make_shared<const GlobalVarNode>(renamed.at(global->name()));
    });
    Attrs attrs = function->attrs();
    attrs.Set(kAttrSizes, text);
    if (name == "main") attrs.Set(vm::kAttrSpecialises, name);
    program.Set(renamed.at(name), MakeFunction(function->params(), body, function->result_type(), std::move(attrs),
                                               function->type_params()));
  }
  return InferTypes(std::move(program));
}

}  // namespace collage
