// passes.cc: passes keep what a module computes.
#include <vector>

#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "fuzz/target.h"
#include "ir/eval/interpreter.h"
#include "property/passes_that_keep_results.h"
#include "property/random_module.h"

namespace collage::fuzz {
void RunPasses(const std::string& given) {
  static const std::vector<Pass> passes = PassesThatKeepResults();
  std::string bytes = given;
  std::vector<Pass> pipeline;
  for (int left = 1 + TakeNumber(bytes) % 4; left > 0; --left) {
    pipeline.push_back(passes[static_cast<size_t>(TakeNumber(bytes)) % passes.size()]);
  }
  const RandomModule random = MakeRandomModule(RandomSource(bytes));
  const Value expected = Interpret(random.module, "main", random.args);
  IRModule module = random.module;
  std::string names;
  try {
    for (const Pass& pass : pipeline) {
      names += " " + pass.name;
      module = RunPass(pass, module);
    }
    const Value actual = Interpret(module, "main", random.args);
    Require(ValuesEqual(expected, actual, kPassTolerance), "another result after" + names);
  } catch (const Error& error) {
    Require(false, names + ": " + error.Format() + "\n" + PrintModule(random.module));
  }
}

}  // namespace collage::fuzz
