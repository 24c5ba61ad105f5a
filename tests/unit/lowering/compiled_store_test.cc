#include "lowering/compiled_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/file.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Constants may be updated if `updates`.
class Library : public testing_graphs::AnyToolchain {
 public:
  explicit Library(const std::string& name, bool updates = false) : AnyToolchain(name), updates_(updates) {}
  std::vector<Hook> Hooks() const override {
    if (!updates_) return {Hook::kRelayToRuntime};
    return {Hook::kRelayToRuntime, Hook::kUpdateConstants};
  }

 private:
  bool updates_;
};

/// x + `value`.
PartitionRequest AddRequest(float value) {
  const Var x = testing_graphs::Param("x", {2, 3});
  const Tensor constant = Tensor::Zeros({2, 3}, kFloat32);
  constant.Set(0, value);
  return {testing_graphs::Typed({x}, MakeCall("add", {x, MakeConstant(constant)})), PlainLayouts(1, 1), 1};
}

CompiledPartition Compiled() {
  CompiledPartition compiled;
  compiled.loader = "loader";
  compiled.blob = {std::byte{0}, std::byte{10}, std::byte{255}};
  compiled.workspace_bytes = 7;
  compiled.source = "a\n\xff";
  compiled.constants = {Tensor::Zeros({}, kInt8), Tensor::Zeros({2, 3}, kFloat32), Tensor::Zeros({0}, kInt64)};
  compiled.constants[1].Set(5, 0.1);
  return compiled;
}

TEST(CompiledStoreTest, PartitionsAreReadBack) {
  const TemporaryFolder folder;
  CompiledStore store(folder / "compiled");
  const Library library("library");
  const PartitionRequest request = AddRequest(1);
  EXPECT_FALSE(store.Find(library, request).has_value());
  const CompiledPartition compiled = Compiled();
  store.Put(library, request, compiled);
  const std::optional<CompiledPartition> found = CompiledStore(folder / "compiled").Find(library, AddRequest(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->loader, compiled.loader);
  EXPECT_EQ(found->blob, compiled.blob);
  EXPECT_EQ(found->workspace_bytes, compiled.workspace_bytes);
  EXPECT_EQ(found->source, compiled.source);
  ASSERT_EQ(found->constants.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found->constants[i].shape(), compiled.constants[i].shape());
    EXPECT_EQ(found->constants[i].dtype(), compiled.constants[i].dtype());
    const size_t size = compiled.constants[i].size_bytes();
    EXPECT_TRUE(size == 0 || std::memcmp(found->constants[i].raw(), compiled.constants[i].raw(), size) == 0);
  }
}

TEST(CompiledStoreTest, WhateverACompilerMayLookAtIsInTheKey) {
  const TemporaryFolder folder;
  CompiledStore store(folder / "compiled");
  const Library library("library"), other("library -fast=1");
  const PartitionRequest request = AddRequest(1);
  store.Put(library, request, Compiled());
  EXPECT_FALSE(store.Find(library, AddRequest(2)).has_value());
  EXPECT_FALSE(store.Find(other, request).has_value());
  PartitionRequest changed = request;
  changed.num_threads = 2;
  EXPECT_FALSE(store.Find(library, changed).has_value());
  changed = request;
  changed.schedule = "tile=8";
  EXPECT_FALSE(store.Find(library, changed).has_value());
  EXPECT_TRUE(store.Find(library, request).has_value());
}

TEST(CompiledStoreTest, OneOfTheSameStructureIsFoundForToolchainsThatUpdateConstants) {
  const TemporaryFolder folder;
  CompiledStore store(folder / "compiled");
  const Library updates("updates", true), fixed("fixed");
  for (const Library* library : {&updates, &fixed}) store.Put(*library, AddRequest(1), Compiled());
  EXPECT_TRUE(store.FindLike(updates, AddRequest(2)).has_value());
  EXPECT_FALSE(store.FindLike(fixed, AddRequest(2)).has_value());
}

}  // namespace
}  // namespace collage
