// open_shapes_test.cc: random models with symbolic sizes, imported once, against imports with each of several sizes
// bound. An import may refuse a model, which is counted; what it takes must be right at all sizes that can be bound.
// COLLAGE_PROPERTY_MODULES says how many models, the others of for_random_modules.h as there; COLLAGE_PROPERTY_FOLDER
// names a folder where models that fail are left, made smaller. One model alone is printed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "backends/builtin_toolchains.h"
#include "collage/support/error.h"
#include "property/for_random_modules.h"
#include "property/open/open_case.h"
#include "property/open/open_graph_generator.h"
#include "worker/worker.h"

namespace collage {
namespace {

/// Seeds and cases are checked in a process of its own, since what is imported may crash, hang or take all memory.
class Checker {
 public:
  explicit Checker(OpenEngine engine)
      : engine_(engine),
        path_(std::filesystem::temp_directory_path() / fmt::format("collage_open_{}.onnx", getpid())),
        worker_([this](const std::string& request, const SendProgress&) { return Answer(request); },
                {.timeout = std::chrono::seconds(30), .memory_bytes = int64_t{4} << 30}) {}
  ~Checker() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  OpenVerdict Check(uint64_t seed) { return Ask("seed " + std::to_string(seed)); }
  OpenVerdict Check(const OpenCase& test) { return Ask("case " + Serialize(test)); }

 private:
  std::string Answer(const std::string& request) const {
    const std::string what = request.substr(5);
    const OpenCase test =
        request.starts_with("seed") ? OpenGraphGenerator(std::stoull(what)).Make() : DeserializeOpenCase(what);
    WriteModel(path_, test.model);
    const OpenVerdict verdict =
        CheckOpenModel(path_, test.sizes, {.engine = engine_, .constants = {}, .make_input = {}});
    return fmt::format("{} {} {} {}\n{}", static_cast<int>(verdict.kind), verdict.num_equal, verdict.num_refused,
                       verdict.num_lenient, verdict.text);
  }

  OpenVerdict Ask(const std::string& request) {
    const Result<std::string> answer = worker_.Call(request);
    OpenVerdict verdict;
    if (!answer.ok()) {
      verdict.kind = OpenVerdict::Kind::kWrong;
      verdict.text = answer.reason().text;
      return verdict;
    }
    int kind = 0;
    std::istringstream words(*answer);
    words >> kind >> verdict.num_equal >> verdict.num_refused >> verdict.num_lenient;
    verdict.kind = static_cast<OpenVerdict::Kind>(kind);
    verdict.text = answer->substr(answer->find('\n') + 1);
    return verdict;
  }

  OpenEngine engine_;
  std::filesystem::path path_;
  Worker worker_;
};

/// `text` without names, numbers and what is in brackets, so that like reasons are one.
std::string KindOfReason(const std::string& text) {
  std::string kind;
  bool is_quoted = false;
  int depth = 0;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '\'') is_quoted = !is_quoted;
    if (is_quoted && c != '\'') continue;
    if (c == ']') --depth;
    const bool is_digit = c >= '0' && c <= '9';
    if (depth == 0 && !is_digit) kind += c;
    if (depth == 0 && is_digit && !kind.ends_with('#')) kind += '#';
    if (c == '[') ++depth;
  }
  // Sizes that are written out follow a comma.
  const size_t size = kind.find(", which the model leaves open");
  const size_t comma = size == std::string::npos ? size : kind.rfind(", ", size - 1);
  if (comma != std::string::npos && comma > kind.find("): ")) kind.erase(comma, size - comma);
  return kind;
}

void CheckModels(OpenEngine engine, uint64_t fewest) {
  const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", fewest);
  const char* folder = std::getenv("COLLAGE_PROPERTY_FOLDER");
  Checker checker(engine);
  std::map<std::string, std::pair<int, uint64_t>> reasons;  // how many, and the first seed
  int num_right = 0, num_refused = 0, num_wrong = 0, num_equal = 0, num_both_refuse = 0, num_lenient = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const OpenVerdict verdict = checker.Check(seed);
    num_equal += verdict.num_equal;
    num_both_refuse += verdict.num_refused;
    num_lenient += verdict.num_lenient;
    if (verdict.kind == OpenVerdict::Kind::kRight) ++num_right;
    if (verdict.kind == OpenVerdict::Kind::kRefused) {
      ++num_refused;
      ++reasons.emplace(KindOfReason(verdict.text), std::pair{0, seed}).first->second.first;
    }
    if (verdict.kind != OpenVerdict::Kind::kWrong) continue;
    ++num_wrong;
    const OpenCase smallest = Shrink(OpenGraphGenerator(seed).Make(), [&](const OpenCase& test) {
      return checker.Check(test).kind == OpenVerdict::Kind::kWrong;
    });
    ADD_FAILURE() << "seed " << seed << ": " << verdict.text << "\nmade smaller: " << checker.Check(smallest).text
                  << "\n"
                  << ToString(smallest);
    if (folder != nullptr) WriteModel(std::filesystem::path(folder) / fmt::format("{}.onnx", seed), smallest.model);
    if (std::getenv("COLLAGE_PROPERTY_ALL") == nullptr) break;
  }
  if (count == 1) fmt::print("{}", ToString(OpenGraphGenerator(first).Make()));
  fmt::print("{} models right, {} refused, {} wrong; {} runs equal, {} refused by both imports, {} by the bound one\n",
             num_right, num_refused, num_wrong, num_equal, num_both_refuse, num_lenient);
  std::vector<std::pair<std::string, std::pair<int, uint64_t>>> sorted(reasons.begin(), reasons.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& reason) { return reason.second.first; });
  for (const auto& [reason, uses] : sorted) fmt::print("{:6} {} (seed {})\n", uses.first, reason, uses.second);
}

TEST(OpenShapesTest, OneImportIsRightAtAllSizes) { CheckModels(OpenEngine::kInterpreter, 150); }

TEST(OpenShapesTest, BytecodeIsRightAtAllSizes) {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  const Toolchain* native = ToolchainRegistry::Global().Native();
  if (native == nullptr || !native->Probe().available) GTEST_SKIP() << "no native toolchain";
  CheckModels(OpenEngine::kBytecode, 15);
}

}  // namespace
}  // namespace collage
