// text.cc: a module survives being written and read again.
#include "collage/ir/text.h"

#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "fuzz/target.h"

namespace collage::fuzz {

void ReadText(const std::string& bytes) {
  const IRModule module = ParseModule(bytes, "fuzz");
  const std::string printed = PrintModule(module);
  try {
    const IRModule again = ParseModule(printed, "printed");
    for (const auto& [name, function] : module.functions()) {
      Require(StructuralEqual(function, again.Lookup(name)), "another structure after printing\n" + printed);
    }
    Require(PrintModule(again) == printed, "another text after printing\n" + printed);
  } catch (const Error& error) {
    Require(false, error.Format() + "\n" + printed);
  }
}

}  // namespace collage::fuzz
