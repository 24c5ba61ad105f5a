// main.cc: libFuzzer's functions. The executable's name says what is fuzzed: fuzz_onnx reads ONNX models.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>
#include <string>

#include "collage/support/error.h"
#include "fuzz/target.h"

namespace collage::fuzz {
namespace {

using Target = void (*)(const std::string&);

const std::map<std::string, Target> kTargets{
    {"text", ReadText},     {"onnx", ReadOnnx},   {"executable", ReadExecutable}, {"json", ReadJson},
    {"arrays", ReadArrays}, {"words", ReadWords}, {"passes", RunPasses}};
Target target = nullptr;

}  // namespace

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

int TakeNumber(std::string& bytes) {
  if (bytes.empty()) return 0;
  const int number = static_cast<unsigned char>(bytes.front());
  bytes.erase(0, 1);
  return number;
}

}  // namespace collage::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  using namespace collage::fuzz;
  const std::string name = std::filesystem::path((*argv)[0]).filename();
  const auto found = kTargets.find(name.substr(name.find('_') + 1));
  Require(found != kTargets.end(), "the name of the executable is none of a target: " + name);
  target = found->second;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collage::fuzz;
  try {
    target(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const collage::Error& error) {
    Require(error.category() != collage::ErrorCategory::kInternal, "an internal error: " + error.Format());
  } catch (const std::bad_alloc&) {  // libFuzzer's limit says which sizes are too large
  }
  return 0;
}
