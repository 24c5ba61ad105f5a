#include "cost/database/tuning_key.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "unit/support/throws.h"

namespace collage {
namespace {

/// Keys of random kinds whose texts are short, so that some are equal, and hold what separators of old keys were.
class RandomKeys {
 public:
  explicit RandomKeys(unsigned seed) : random_(seed) {}

  TuningKey Timing() {
    const auto subject = [&]() -> decltype(TuningKey::subject) {
      switch (Below(7)) {
        case 0: return Partition();
        case 1: return ProbeKey{Text(), Text(), Text(), Text()};
        case 2: return SwitchKey{Text(), Text(), Text(), Text(), Text()};
        case 3: return RateKey{Text(), Text()};
        case 4: return TransitionKey{Text()};
        case 5: return ConversionKey{Text(), Text(), Text(), Text(), Text()};
        default: return CoverKey{Text(), Text(), Text()};
      }
    };
    return {subject(), Text(), static_cast<int>(Below(3))};
  }

  ResultKey Result() {
    const auto subject = [&]() -> decltype(ResultKey::subject) {
      switch (Below(3)) {
        case 0: return ScheduleListKey{Partition()};
        case 1: {
          ComparisonKey comparison;
          for (size_t i = Below(4); i > 0; --i) comparison.rivals.push_back(Partition());
          return comparison;
        }
        default: return PlayOffKey{Text(), Text(), Text()};
      }
    };
    return {subject(), Text(), static_cast<int>(Below(3))};
  }

 private:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  std::string Text() {
    const char* const parts[] = {"", "native", " by ", "/m5.2", "\"", "\n", "ü", " or ", ":", "default", "{}"};
    std::string text = parts[Below(std::size(parts))];
    return Below(2) == 0 ? text : text + parts[Below(std::size(parts))];
  }

  PartitionKey Partition() {
    PartitionKey key{Text(), Text(), Text(), Text(), Text(), std::nullopt};
    if (Below(2) == 0) key.schedule = Text();
    return key;
  }

  std::mt19937 random_;
};

TEST(TuningKeyTest, WhatIsPrintedIsReadBackAndTextsDifferAsKeysDo) {
  constexpr unsigned kSeed = 20261125;
  SCOPED_TRACE(kSeed);
  RandomKeys keys(kSeed);
  std::map<std::string, std::variant<TuningKey, ResultKey>> by_text;
  for (int i = 0; i < 2000; ++i) {
    std::variant<TuningKey, ResultKey> key;
    if (i % 2 == 0) {
      key = keys.Timing();
    } else {
      key = keys.Result();
    }
    const std::string text = std::visit([](const auto& one) { return ToText(one); }, key);
    EXPECT_EQ(KeyFromText(text), key) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(by_text.emplace(text, key).first->second, key) << "two keys have the text " << text;
  }
  EXPECT_GT(by_text.size(), 1000u);
}

TEST(TuningKeyTest, TextsStayAsTheyAre) {
  const PartitionKey partition{"dd82", "pc:c", "native -exact=1", "22.1.8+23f5", "m5.2.p90", "rows=3"};
  EXPECT_EQ(
      ToText(TuningKey{partition, "x86", 2}),
      R"({"kind":"partition","layouts":"pc:c","machine":"x86","method":"m5.2.p90","schedule":"rows=3","threads":2,)"
      R"("toolchain":"native -exact=1","version":"22.1.8+23f5","workload":"dd82"})");
  EXPECT_EQ(ToText(ResultKey{PlayOffKey{"a6f3", "dd82", "native"}, "x86", 1}),
            R"({"contender":"dd82","kind":"play_off","machine":"x86","name":"native","play_off":"a6f3","threads":1})");
}

TEST(TuningKeyTest, KnowsItsToolchain) {
  const PartitionKey partition{"w", "p:p", "acme", "1", "m5.0", std::nullopt};
  EXPECT_EQ(ToolchainOf(TuningKey{partition, "x86", 1}).name, "acme");
  EXPECT_EQ(ToolchainOf(TuningKey{SwitchKey{"native", "2", "acme", "1", "m5.0"}, "x86", 1}).version, "1");
  EXPECT_EQ(ToolchainOf(TuningKey{RateKey{"near", "m5"}, "x86", 1}).name, "");
  EXPECT_EQ(ToolchainOf(ResultKey{ScheduleListKey{partition}, "x86", 1}).name, "acme");
  EXPECT_EQ(ToolchainOf(ResultKey{ComparisonKey{{partition}}, "x86", 1}).version, "1");
  EXPECT_EQ(ToolchainOf(ResultKey{ComparisonKey{}, "x86", 1}).name, "");
}

TEST(TuningKeyTest, WhatIsNoKeyIsRefused) {
  for (const char* text : {"", "{}", "[1]", R"({"kind":"rate","machine":"x86","threads":1})",
                           R"({"kind":"rate","machine":"x86","threads":"one","rate":"near","method":"m5"})"}) {
    ExpectError([&] { KeyFromText(text); }, ErrorCategory::kInput, "no key of the tuning database");
  }
  ExpectError([] { KeyFromText(R"({"kind":"luck","machine":"x86","threads":1})"); }, ErrorCategory::kInput,
              "'luck' is no kind of key");
}

}  // namespace
}  // namespace collage
