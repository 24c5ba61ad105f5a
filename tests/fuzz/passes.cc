// passes.cc: passes keep what a module computes.
#include "collage/transform/passes.h"

#include <set>
#include <vector>

#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "fuzz/target.h"
#include "ir/eval/interpreter.h"
#include "property/random_module.h"

namespace collage::fuzz {
namespace {

// Elements may differ by rounding, since passes fold and reassociate.
constexpr double kTolerance = 1e-3;

/// All but those that change precision on purpose, and those that do nothing unless a toolchain is named.
std::vector<Pass> PassesThatKeepResults() {
  const std::set<std::string> excluded{"ToMixedPrecision", "AnnotateTarget", "MergeComposite"};
  std::vector<Pass> passes;
  for (const Pass& pass : AllPasses()) {
    if (!excluded.contains(pass.name)) passes.push_back(pass);
  }
  return passes;
}

}  // namespace

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
    Require(ValuesEqual(expected, actual, kTolerance), "another result after" + names);
  } catch (const Error& error) {
    Require(false, names + ": " + error.Format() + "\n" + PrintModule(random.module));
  }
}

}  // namespace collage::fuzz
