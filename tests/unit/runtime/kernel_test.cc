// kernel_test.cc: finding loaders by name.
#include "collage/runtime/kernel.h"

#include <gtest/gtest.h>

#include "collage/support/error.h"

namespace collage {
namespace {

TEST(KernelLoaderTest, ThatOfAToolchainOfPythonIsNotLookedForInModules) {
  try {
    GetKernelLoader("python.acme");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_EQ(error.message(),
              "kernels of toolchain 'acme' are run by Python, and it is not registered in this process");
    EXPECT_NE(error.hint().find("collage.register_toolchain"), std::string::npos);
  }
}

/// A name out of a file must not lead to a library elsewhere.
TEST(KernelLoaderTest, NamesArePlain) {
  for (const char* name : {"", "/../../tmp/evil", "a b", "a\n"}) {
    try {
      GetKernelLoader(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << name;
    }
  }
}

class NoKernels : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage&) override { return nullptr; }
};

TEST(KernelLoaderTest, OneThatWasAddedIsFoundByItsName) {
  auto loader = std::make_unique<NoKernels>();
  const KernelLoader* added = loader.get();
  AddKernelLoader("python.added", std::move(loader));
  EXPECT_EQ(&GetKernelLoader("python.added"), added);
}

}  // namespace
}  // namespace collage
