#include "cost/worker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <vector>

namespace collage {
namespace {

std::string Misbehave(const std::string& request, const SendProgress& progress) {
  if (request == "crash") std::raise(SIGSEGV);
  if (request == "exit") _exit(3);
  if (request == "hang") pause();
  if (request == "throw") throw std::runtime_error("thrown on purpose");
  if (request == "garbage") std::puts("garbage on standard output");
  if (request == "memory") {
    std::vector<std::vector<char>> blocks;
    for (;;) blocks.emplace_back(size_t{64} << 20, 'x');
  }
  if (request == "progress") progress("half way");
  return "answer to " + request;
}

TEST(WorkerTest, SurvivesWhateverACallDoes) {
  Worker worker(Misbehave, {std::chrono::milliseconds(500), int64_t{1} << 30});
  EXPECT_EQ(*worker.Call("a"), "answer to a");
  EXPECT_NE(worker.Call("crash").reason().text.find("signal 11"), std::string::npos);
  EXPECT_NE(worker.Call("exit").reason().text.find("exit code 3"), std::string::npos);
  EXPECT_NE(worker.Call("hang").reason().text.find("did not answer"), std::string::npos);
  EXPECT_EQ(worker.Call("throw").reason().text, "thrown on purpose");
  EXPECT_FALSE(worker.Call("memory").ok());
  EXPECT_EQ(*worker.Call("garbage"), "answer to garbage");
  EXPECT_EQ(*worker.Call("b"), "answer to b");
}

TEST(WorkerTest, ProgressReachesTheCaller) {
  Worker worker(Misbehave, {});
  std::string seen;
  EXPECT_TRUE(worker.Call("progress", [&](const std::string& text) { seen = text; }).ok());
  EXPECT_EQ(seen, "half way");
}

}  // namespace
}  // namespace collage
