// Regions of random programs: taking them out keeps what is computed, and what is taken out can be compiled.
#include "program/regions.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "property/for_random_modules.h"

namespace collage {
namespace {

TEST(RegionsPropertyTest, TakingRegionsOutKeepsWhatAProgramComputes) {
  constexpr double kTolerance = 1e-3;  // preparation reassociates
  size_t num_modules = 0, num_regions = 0, num_operators = 0;
  ForRandomModules(300, [&](const RandomModule& random, uint64_t) {
    ++num_modules;
    const Value expected = Interpret(random.module, "main", random.args);
    const ProgramRegions program = FindRegions(PrepareForPartitioning(random.module), /*few_elements=*/0);
    num_regions += program.regions.size();
    for (const Function& region : program.regions) {
      EXPECT_TRUE(FreeVars(region).empty());
      EXPECT_FALSE(IsProgram(IRModule::FromFunction(MakeFunction(region->params(), region->body()))));
      PostOrder(region->body(), [&](const Expr& expr) {
        const CallNode* call = As<CallNode>(expr);
        num_operators += call != nullptr && call->op() != nullptr ? 1 : 0;
      });
    }
    const Value actual = vm::Machine(vm::Compile(program.module)).Invoke("main", random.args);
    ASSERT_TRUE(ValuesEqual(expected, actual, kTolerance))
        << ToString(expected) << " became " << ToString(actual) << "\n"
        << PrintModule(random.module) << "\n"
        << PrintModule(program.module);
  });
  EXPECT_GT(num_regions, num_modules) << "random programs have hardly a region";
  EXPECT_GT(num_operators, num_regions);
}

}  // namespace
}  // namespace collage
