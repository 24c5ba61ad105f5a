// blas_test.cc: products of matrices by each BLAS library that is here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "backends/blas/libraries.h"
#include "collage/runtime/kernel.h"
#include "conformance/product_cases.h"
#include "target/matrix_product.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::Input;

const Toolchain& Blas() { return BuiltinToolchain("blas"); }

class BlasTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Blas().Probe().available) GTEST_SKIP() << Blas().Probe().reason;
  }
};

TEST_F(BlasTest, TheFastestLibraryComputesProducts) { conformance::ExpectProducts(Blas(), 90, 12); }

TEST_F(BlasTest, EveryLibraryComputesProducts) {
  for (const blas_toolchain::Library& library : blas_toolchain::FindLibraries()) {
    SCOPED_TRACE(library.path);
    const auto chosen = Blas().WithOptions({{"library", library.name}});
    conformance::ExpectProducts(*chosen, 300, 12);
  }
}

TEST_F(BlasTest, LibrariesWorkSideBySide) {
  const Var a = Input("a", {70, 33}), b = Input("b", {33, 65});
  for (int turn = 0; turn < 2; ++turn) {
    for (const blas_toolchain::Library& library : blas_toolchain::FindLibraries()) {
      const Function function = MakeFunction({a, b}, MakeCall("nn.matmul", {a, b}));
      conformance::ExpectRow(*Blas().WithOptions({{"library", library.name}}), "blas.matmul", function,
                             {.num_threads = 2});
    }
  }
}

int NumTasks() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(BlasTest, LibrariesLeaveNoThreads) {
  // In a process of its own, in which nothing else has threads.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Var a = Input("a", {70, 33}), b = Input("b", {33, 65});
  const Function function = MakeFunction({a, b}, MakeCall("nn.matmul", {a, b}));
  const auto tasks_after = [&] {
    for (const blas_toolchain::Library& library : blas_toolchain::FindLibraries()) {
      conformance::ExpectRow(*Blas().WithOptions({{"library", library.name}}), "blas.matmul", function);
    }
    return NumTasks();
  };
  EXPECT_EXIT(std::exit(tasks_after() == 1 ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST_F(BlasTest, DeclinesWithReasons) { conformance::ExpectProductRefusals(Blas()); }

TEST_F(BlasTest, AnUnknownLibraryIsRefused) {
  EXPECT_THROW(Blas().WithOptions({{"library", "atlas"}}), Error);
  // A kernel of a library that is not here says so.
  MatrixProduct product;
  std::vector<std::byte> blob = ToBlob(product);
  for (char letter : std::string("atlas")) blob.push_back(static_cast<std::byte>(letter));
  try {
    GetKernelLoader("blas").Load({blob, {}, 1});
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_EQ(error.message(), "the BLAS library 'atlas' is not here");
  }
}

TEST_F(BlasTest, ABrokenKernelIsCorrupt) {
  MatrixProduct product;
  product.b = -3;  // a constant that is not there
  for (const std::vector<std::byte>& blob : {std::vector<std::byte>(5), ToBlob(product)}) {
    try {
      GetKernelLoader("blas").Load({blob, {}, 1});
      FAIL() << "loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kCorrupt);
    }
  }
}

}  // namespace
}  // namespace collage
