// micro_kernels_test.cc: how functions of libraries are asked for.
#include "collage/runtime/micro_kernels.h"

#include <gtest/gtest.h>

#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(TileProductTest, TextIsReadBack) {
  const TileProduct tile{kFloat64, 64, 32, 768, 769, 33, 34, /*adds=*/true, /*transposes_a=*/true};
  EXPECT_EQ(tile.ToString(), "product float64 m=64 n=32 k=768 lda=769 ldb=33 ldc=34 beta=1 ta=1");
  EXPECT_EQ(TileProduct::Parse(tile.ToString()), tile);
  EXPECT_EQ(TileProduct::Parse(TileProduct().ToString()), TileProduct());
}

TEST(TileProductTest, WhatIsNoneIsCorrupt) {
  for (const char* text : {"", "sum float32", "product float33 m=1 n=1 k=1 lda=1 ldb=1 ldc=1 beta=0 ta=0",
                           "product float32 m=1 n=1 k=1 lda=1 ldb=1 ldc=1 beta=0",
                           "product float32 n=1 m=1 k=1 lda=1 ldb=1 ldc=1 beta=0 ta=0",
                           "product float32 m=one n=1 k=1 lda=1 ldb=1 ldc=1 beta=0 ta=0"}) {
    ExpectError([&] { TileProduct::Parse(text); }, ErrorCategory::kCorrupt, "is no product of tiles");
  }
}

}  // namespace
}  // namespace collage
