// file_cache_test.cc: what is kept, what is trusted, and what goes when there is too much.
#include "support/file_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "support/file.h"

namespace collage {
namespace {

int64_t NumFiles(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

TEST(FileCache, FindsWhatWasPutByAnyoneIntoItsFolder) {
  const TemporaryFolder folder;
  FileCache cache(folder / "inner/kernels", 1 << 20);
  EXPECT_FALSE(cache.Find("a"));
  std::string content(100'000, 'x');
  content[50'000] = '\0';
  cache.Put("a", content);
  cache.Put("b", "");
  EXPECT_EQ(cache.Find("a"), content);
  EXPECT_EQ(FileCache(folder / "inner/kernels", 1 << 20).Find("b"), "");
  EXPECT_FALSE(cache.Find("c"));
  EXPECT_EQ(NumFiles(folder / "inner/kernels"), 2);
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  EXPECT_EQ(std::filesystem::status(folder / "inner/kernels").permissions() & others, std::filesystem::perms::none);
}

TEST(FileCache, WhatIsTornOrChangedIsNotThere) {
  const TemporaryFolder folder;
  FileCache cache(folder.path(), 1 << 20);
  cache.Put("torn", "machine code");
  WriteFile(folder / "torn", ReadFile(folder / "torn").substr(0, 7));
  cache.Put("changed", "machine code");
  std::string changed = ReadFile(folder / "changed");
  changed[0] = 'M';
  WriteFile(folder / "changed", changed);
  WriteFile(folder / "short", "abc");
  for (const char* name : {"torn", "changed", "short"}) EXPECT_FALSE(cache.Find(name)) << name;
  EXPECT_EQ(NumFiles(folder.path()), 0);
}

TEST(FileCache, WhatWasNotAskedForLongestGoesFirst) {
  const TemporaryFolder folder;
  const std::string content(1000, 'x');
  {
    FileCache cache(folder.path(), 1 << 20);
    for (const char* name : {"a", "b", "c", "d", "e"}) cache.Put(name, content);
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  int age = 10;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    std::filesystem::last_write_time(folder / name, now - std::chrono::hours(age--));
  }
  FileCache cache(folder.path(), 5000);
  EXPECT_TRUE(cache.Find("a"));
  cache.Put("f", content);
  for (const char* name : {"a", "f"}) EXPECT_TRUE(cache.Find(name)) << name;
  for (const char* name : {"b", "c", "d", "e"}) EXPECT_FALSE(cache.Find(name)) << name;
}

TEST(FileCache, NeverFails) {
  FileCache nowhere("/dev/null/folder", 1 << 20);
  nowhere.Put("a", "content");
  EXPECT_FALSE(nowhere.Find("a"));
  FileCache none("", 1 << 20);
  none.Put("a", "content");
  EXPECT_FALSE(none.Find("a"));
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  FileCache cache(folder.path(), 1 << 20);
  cache.Put("a", "content");
  EXPECT_FALSE(cache.Find("a"));
  EXPECT_EQ(NumFiles(folder.path()), 1);
}

TEST(FileCache, ThreadsMayPutAndFindTheSame) {
  const TemporaryFolder folder;
  FileCache cache(folder.path(), 10'000);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&cache] {
      for (int i = 0; i < 100; ++i) {
        const std::string name = std::to_string(i % 10);
        const std::string content(500, name[0]);
        cache.Put(name, content);
        const std::optional<std::string> found = cache.Find(name);
        EXPECT_EQ(found.value_or(content), content);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FileCache, LiesWhereTheEnvironmentSays) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(UserCacheFolder(), "/x/collage");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(UserCacheFolder().filename(), "collage");
  if (before != nullptr) setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace collage
