// machine_test.cc: what is known of this machine is plausible and stable.
#include "support/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace collage {
namespace {

TEST(Machine, IsDescribed) {
  const MachineInfo& machine = ThisMachine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_GE(machine.processors, 1);
  EXPECT_TRUE(std::is_sorted(machine.features.begin(), machine.features.end()));
  EXPECT_EQ(&machine, &ThisMachine());
}

TEST(Machine, FingerprintIsShortEnoughForAKey) {
  const std::string& fingerprint = ThisMachine().fingerprint;
  EXPECT_EQ(fingerprint.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-"), std::string::npos) << fingerprint;
  EXPECT_LT(fingerprint.size(), 40u) << fingerprint;
  EXPECT_TRUE(fingerprint.starts_with(ThisMachine().isa + "-")) << fingerprint;
}

#if defined(__x86_64__)
TEST(Machine, FeaturesAreWhatTheProcessorSays) {
  __builtin_cpu_init();
  const auto& features = ThisMachine().features;
  const auto has = [&](const char* name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
}
#endif

TEST(Machine, BytesAreAddedUpExactlyByEitherSetOfInstructions) {
  using Features = std::vector<std::string>;
  EXPECT_TRUE(HasVnni(Features{"avx512_vnni", "avx512f"}));
  EXPECT_TRUE(HasVnni(Features{"avx2", "avx_vnni"}));
  EXPECT_FALSE(HasVnni(Features{"avx2", "avx512bw", "avx512f"}));
  EXPECT_FALSE(HasVnni(Features{}));
}

}  // namespace
}  // namespace collage
