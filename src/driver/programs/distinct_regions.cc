// distinct_regions.cc: finds equal regions, and puts others in their places.
#include "driver/programs/distinct_regions.h"

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "cost/machine/roofline.h"

namespace collage {

std::vector<DistinctRegion> Distinct(const ProgramRegions& program) {
  std::vector<DistinctRegion> distinct;
  std::map<std::string, size_t> known;
  double all = 0;
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const Function& region = program.regions[i];
    const Function plain = MakeFunction(region->params(), region->body());
    const auto [it, is_new] = known.emplace(DigestOf(*region), distinct.size());
    if (is_new) {
      distinct.push_back({plain, it->first, program.functions[i], 0, 1 + WorkOf(plain).multiply_adds});
    }
    ++distinct[it->second].num_equal;
  }
  for (const DistinctRegion& region : distinct) all += region.share;
  for (DistinctRegion& region : distinct) region.share /= all;
  return distinct;
}

std::string DigestOf(const FunctionNode& function) {
  return StructuralHash(Expr(MakeFunction(function.params(), function.body())));
}

IRModule WithRegions(const IRModule& module, const std::map<std::string, Function>& by_digest) {
  IRModule result = module;
  for (const auto& [name, function] : module.functions()) {
    const Expr body = Rewrite(function->body(), [&](const Expr& expr) -> Expr {
      const FunctionNode* inner = As<FunctionNode>(expr);
      if (inner == nullptr) return expr;
      const auto it = by_digest.find(DigestOf(*inner));
      return it == by_digest.end() ? expr : Expr(it->second);
    });
    result.Set(name, MakeFunction(function->params(), body, function->result_type(), function->attrs(),
                                  function->type_params()));
  }
  return InferTypes(std::move(result));
}

}  // namespace collage
