// native_loader_test.cc: kernels that are machine code, opened from memory.
#include "runtime/native_loader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "collage/runtime/thread_pool.h"
#include "support/file.h"
#include "test_paths.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

constexpr int64_t kCount = 1000;  // of the kernels in kernels/add.c

std::vector<std::byte> ObjectBytes(const std::string& name) {
  const std::string text = ReadFile(std::string(kTestKernels) + "/test_kernel_" + name + ".so");
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

/// A loaded kernel with its memory.
class LoadedKernel {
 public:
  LoadedKernel(KernelLoader& loader, const std::string& name, float amount, bool in_place = false)
      : blob_(ObjectBytes(name)) {
    SetAmount(amount);
    kernel_ = loader.Load({blob_, constants_, 1, in_place});
    blob_.assign(blob_.size(), std::byte{0});  // the loader must not need it any more to run
  }

  /// What is added to each element, or -1 when it is not the same for all.
  double Run() {
    for (int64_t i = 0; i < kCount; ++i) input_.Set(i, static_cast<double>(i));
    kernel_->Bind(std::vector<void*>{input_.raw()}, std::vector<void*>{output_.raw()}, workspace_.raw());
    kernel_->Run();
    for (int64_t i = 0; i < kCount; ++i) {
      if (output_.At(i) - static_cast<double>(i) != output_.At(0)) return -1;
    }
    return output_.At(0);
  }

  void SetAmount(float amount) { constants_[0].Set(0, amount); }
  const Tensor& workspace() const { return workspace_; }

 private:
  std::vector<std::byte> blob_;
  std::vector<Tensor> constants_{Tensor::Zeros({1}, kFloat32)};
  Tensor input_ = Tensor::Zeros({kCount}, kFloat32);
  Tensor output_ = Tensor::Zeros({kCount}, kFloat32);
  Tensor workspace_ = Tensor::Zeros({1}, kFloat32);
  std::unique_ptr<Kernel> kernel_;
};

TEST(ObjectLoader, BuffersAreInputsConstantsOutputsWorkspace) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  LoadedKernel kernel(*loader, "add_10", 0.5f);
  kernel.workspace().Set(0, 77);
  EXPECT_EQ(kernel.Run(), 10.5);
  EXPECT_EQ(kernel.workspace().At(0), 0);  // the kernel stores its first input there
}

TEST(ObjectLoader, GeneratedCodeUsesThePool) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  LoadedKernel kernel(*loader, "add_10", 0.0f);
  SetNumThreads(3);
  EXPECT_EQ(kernel.Run(), 10);
  SetNumThreads(1);
}

/// The dynamic linker knows libraries by their paths, and descriptors of memory files are used again.
TEST(ObjectLoader, ObjectsThatAreOpenAtOnceKeepTheirOwnCode) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  LoadedKernel ten(*loader, "add_10", 0.0f);
  LoadedKernel twenty(*loader, "add_20", 0.0f);
  EXPECT_EQ(ten.Run(), 10);
  EXPECT_EQ(twenty.Run(), 20);
}

/// Debuggers and profilers open loaded libraries by the paths that the dynamic linker has; "/proc/self" is not this
/// process to them, and what their descriptor of that number is may block them.
TEST(ObjectLoader, PathsOfObjectsNameThisProcess) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  const LoadedKernel kernel(*loader, "add_10", 0.0f);
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (std::string_view(info->dlpi_name).starts_with("/proc/")) {
          static_cast<std::vector<std::string>*>(found)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) EXPECT_TRUE(path.starts_with(fmt::format("/proc/{}/fd", getpid()))) << path;
}

TEST(ObjectLoader, ConstantsAreCopiedUnlessTheyAreReadInPlace) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  LoadedKernel copied(*loader, "add_10", 0.5f);
  LoadedKernel in_place(*loader, "add_10", 0.5f, /*in_place=*/true);
  copied.SetAmount(2);
  in_place.SetAmount(2);
  EXPECT_EQ(copied.Run(), 10.5);
  EXPECT_EQ(in_place.Run(), 12);
}

TEST(ObjectLoader, EqualObjectsShareCodeButNotConstants) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  LoadedKernel a(*loader, "add_10", 1.0f);
  LoadedKernel b(*loader, "add_10", 2.0f);
  EXPECT_EQ(a.Run(), 11);
  EXPECT_EQ(b.Run(), 12);
}

TEST(ObjectLoader, ManyLoadsAndUnloads) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  for (int i = 0; i < 300; ++i) {
    LoadedKernel kernel(*loader, i % 3 == 0 ? "add_20" : "add_10", 0.0f);
    ASSERT_EQ(kernel.Run(), i % 3 == 0 ? 20 : 10);
  }
}

TEST(ObjectLoader, WhatIsNoKernelIsCorrupt) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  const std::vector<std::byte> garbage(100, std::byte{'x'});
  ExpectError([&] { loader->Load({garbage, {}, 1}); }, ErrorCategory::kCorrupt, "cannot load a kernel: ");
  ExpectError([&] { loader->Load({{}, {}, 1}); }, ErrorCategory::kCorrupt, "file too short");
  const std::vector<std::byte> no_entry = ObjectBytes("no_entry");
  ExpectError(
      [&] {
        loader->Load({no_entry, {}, 1});
      },
      ErrorCategory::kCorrupt, "lacks its entry point 'collage_kernel'");
}

TEST(ObjectLoader, WhatCallsALibraryThatIsMissingIsRefused) {
  const std::unique_ptr<KernelLoader> loader = MakeObjectLoader();
  const std::vector<std::byte> calls = ObjectBytes("calls");
  const auto load = [&] { loader->Load({calls, {}, 1}); };
  ExpectError(load, ErrorCategory::kUnavailable,
              "a kernel calls 'nobodys', which is not here: cannot open module 'libcollage_rt_nobodys.so'");
  ExpectError(load, ErrorCategory::kUnavailable, "hint: apt-get install nobodys");
}

/// Kernels that call a C library, found in the folder of the test's.
class CLibraryTest : public testing::Test {
 protected:
  CLibraryTest() { setenv("COLLAGE_LIBRARY_PATH", fmt::format("/nowhere:{}", kTestKernels).c_str(), 1); }
  ~CLibraryTest() override { unsetenv("COLLAGE_LIBRARY_PATH"); }

  /// A new loader: none of its objects is open.
  static std::unique_ptr<Kernel> Load(const std::string& name) {
    const std::vector<std::byte> bytes = ObjectBytes(name);
    return MakeObjectLoader()->Load({bytes, {}, 1});
  }
};

TEST_F(CLibraryTest, IsCalled) {
  const Tensor from = Tensor::Zeros({1}, kFloat32), to = Tensor::Zeros({1}, kFloat32);
  from.Set(0, 21);
  const std::unique_ptr<Kernel> kernel = Load("vendor_vendor_double");
  kernel->Bind(std::vector<void*>{from.raw()}, std::vector<void*>{to.raw()}, nullptr);
  kernel->Run();
  EXPECT_EQ(to.At(0), 42);
}

TEST_F(CLibraryTest, WithoutTheSymbolIsRefused) {
  const auto load = [] { Load("vendor_vendor_treble"); };
  ExpectError(
      load, ErrorCategory::kUnavailable,
      fmt::format("a kernel calls 'vendor_treble' of 'test_kernel_vendor.so': library '{}/test_kernel_vendor.so' "
                  "lacks the symbol 'vendor_treble'",
                  kTestKernels));
  ExpectError(load, ErrorCategory::kUnavailable,
              "hint: install vendor 2; libraries are looked for in $COLLAGE_LIBRARY_PATH");
}

TEST_F(CLibraryTest, ThatIsMissingIsNamed) {
  const auto load = [] { Load("nobodys_vendor_double"); };
  ExpectError(
      load, ErrorCategory::kUnavailable,
      "a kernel calls 'vendor_double' of 'test_kernel_nobodys.so': cannot open library 'test_kernel_nobodys.so': "
      "test_kernel_nobodys.so: cannot open shared object file");
  ExpectError(load, ErrorCategory::kUnavailable, "hint: install vendor 2");
}

TEST(KernelLoaders, AreFoundByNameAndReplaced) {
  KernelLoader& object = GetKernelLoader("object");
  EXPECT_EQ(&object, &GetKernelLoader("object"));
  ExpectError([] { GetKernelLoader("none"); }, ErrorCategory::kUnavailable, "libcollage_rt_none.so");
  AddKernelLoader("mine", MakeObjectLoader());
  KernelLoader& first = GetKernelLoader("mine");
  EXPECT_EQ(&first, &GetKernelLoader("mine"));
}

}  // namespace
}  // namespace collage
