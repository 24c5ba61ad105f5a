// library_test.cc: what ONNX Runtime is told, by what the processor has.
#include "backends/onnxruntime/loader/library.h"

#include <gmock/gmock.h>

namespace collage::onnxruntime {
namespace {

using testing::Contains;
using testing::Not;
using testing::Pair;

TEST(OnnxRuntimeSettings, BytesAreMultipliedExactlyWhereTheProcessorWouldNot) {
  const auto precise = Pair("session.x64quantprecision", "1");
  EXPECT_THAT(SessionSettings({"avx", "avx2", "fma"}), Contains(precise));
  EXPECT_THAT(SessionSettings({"avx2", "avx512bw", "avx512f"}), Contains(precise));
  EXPECT_THAT(SessionSettings({"avx2", "avx_vnni"}), Not(Contains(precise)));
  EXPECT_THAT(SessionSettings({"avx512_vnni", "avx512f"}), Not(Contains(precise)));
}

TEST(OnnxRuntimeSettings, ThreadsNeverSpinBetweenRuns) {
  EXPECT_THAT(SessionSettings({}), Contains(Pair("session.force_spinning_stop", "1")));
  EXPECT_THAT(SessionSettings({"avx512_vnni"}), Contains(Pair("session.force_spinning_stop", "1")));
}

}  // namespace
}  // namespace collage::onnxruntime
