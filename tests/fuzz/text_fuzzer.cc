// text_fuzzer.cc: whatever bytes are parsed, the answer is a module or an Error for the user; and a module survives
// being written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"

namespace {

void Require(bool condition, const char* what, const std::string& text) {
  if (condition) return;
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  collage::IRModule module;
  try {
    module = collage::ParseModule(text, "fuzz");
  } catch (const collage::Error& error) {
    Require(error.category() != collage::ErrorCategory::kInternal, "an internal error", error.Format());
    return 0;
  }
  const std::string printed = collage::PrintModule(module);
  try {
    const collage::IRModule again = collage::ParseModule(printed, "printed");
    for (const auto& [name, function] : module.functions()) {
      Require(collage::StructuralEqual(function, again.Lookup(name)), "another structure after printing", printed);
    }
    Require(collage::PrintModule(again) == printed, "another text after printing", printed);
  } catch (const collage::Error& error) {
    Require(false, error.Format().c_str(), printed);
  }
  return 0;
}
