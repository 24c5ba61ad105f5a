// Properties of random modules: printing and parsing gives the same module, and passes keep what it computes.
#include <gtest/gtest.h>

#include <set>

#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "property/for_random_modules.h"
#include "property/passes_that_keep_results.h"

namespace collage {
namespace {

TEST(LanguagePropertyTest, PrintingAndParsingGivesTheSameModule) {
  ForRandomModules(500, [](const RandomModule& random, uint64_t) {
    const std::string text = PrintModule(random.module);
    const IRModule again = ParseModule(text, "printed");
    ASSERT_EQ(again.functions().size(), random.module.functions().size());
    for (const auto& [name, function] : random.module.functions()) {
      ASSERT_TRUE(StructuralEqual(function, again.Lookup(name))) << name << " in\n" << text;
    }
    ASSERT_EQ(PrintModule(again), text);
  });
}

TEST(LanguagePropertyTest, PassesKeepWhatAModuleComputes) {
  std::set<std::string> failed;
  ForRandomModules(150, [&](const RandomModule& random, uint64_t) {
    const Value expected = Interpret(random.module, "main", random.args);
    for (const Pass& pass : PassesThatKeepResults()) {
      if (failed.contains(pass.name)) continue;
      SCOPED_TRACE(pass.name);
      const auto fail = [&](const std::string& what) {
        failed.insert(pass.name);
        ADD_FAILURE() << what << "\nbefore:\n" << PrintModule(random.module);
      };
      try {
        const IRModule after = RunPass(pass, random.module);
        const Value actual = Interpret(after, "main", random.args);
        if (!ValuesEqual(expected, actual, kPassTolerance)) {
          fail(ToString(expected) + " became " + ToString(actual) + "\nafter:\n" + PrintModule(after));
        }
      } catch (const Error& error) {
        fail(error.Format());
      }
    }
  });
}

TEST(LanguagePropertyTest, BytecodeComputesWhatTheInterpreterDoes) {
  ForRandomModules(500, [](const RandomModule& random, uint64_t) {
    const Value expected = Interpret(random.module, "main", random.args);
    const vm::Executable executable = vm::Compile(random.module);
    const vm::Executable loaded = vm::Executable::Deserialize(executable.Serialize());
    ASSERT_EQ(loaded.Disassemble(), executable.Disassemble());
    const Value actual = vm::Machine(loaded).Invoke("main", random.args);
    ASSERT_TRUE(ValuesEqual(expected, actual)) << ToString(expected) << " became " << ToString(actual) << "\n"
                                               << PrintModule(random.module) << executable.Disassemble();
  });
}

}  // namespace
}  // namespace collage
