// random_module.cc: a prelude, some global functions, and `@main`.
#include "property/random_module.h"

#include "collage/ir/infer_type.h"
#include "property/expression_generator.h"

namespace collage {

RandomModule MakeRandomModule(uint64_t seed, const RandomModuleOptions& options) {
  return MakeRandomModule(RandomSource(seed), options);
}

RandomModule MakeRandomModule(RandomSource source, const RandomModuleOptions& options) {
  ExpressionGenerator generator(std::move(source), options);
  RandomSource& random = generator.random();
  RandomModule result{generator.prelude(), {}};
  const int globals = random.Below(4);
  for (int i = 0; i < globals; ++i) {
    std::vector<Type> params;
    for (int p = random.Below(3); p >= 0; --p) params.push_back(generator.AnyType(1));
    const Type type = FuncType(params, generator.DataType(1));
    const std::string name = "f" + std::to_string(i);
    Attrs attrs;
    if (random.OneIn(3)) attrs.Set("Inline", 1);
    result.module.Set(name, generator.FunctionOf(type, options.size - 2, /*annotated=*/true, attrs));
    generator.AddGlobal(name, type);
  }
  std::vector<Type> params;
  for (int p = random.Below(4); p >= 0; --p) {
    Type type = generator.DataType(0);
    result.args.emplace_back(generator.TensorOf(type));
    params.push_back(std::move(type));
  }
  std::vector<Type> results;
  for (int r = random.Below(3); r >= 0; --r) results.push_back(generator.DataType(2));
  const Type type = FuncType(params, TupleType(std::move(results)));
  result.module.Set("main", generator.FunctionOf(type, options.size, /*annotated=*/true));
  result.module = InferTypes(std::move(result.module));
  return result;
}

}  // namespace collage
