// node_cases.cc: files of ONNX's own test cases, and the process in which one runs.
#include "conformance/onnx/node_cases.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "collage/support/error.h"
#include "runtime/npy.h"

namespace collage {
namespace {

constexpr unsigned kMostSeconds = 60;

/// The arrays "PREFIX.0", "PREFIX.1", …, and those of sequences; `lengths` becomes the length of each that is one.
std::vector<Tensor> ArraysOf(const StoredArrays& arrays, const std::string& prefix,
                             std::vector<std::optional<int64_t>>* lengths = nullptr) {
  std::vector<Tensor> result;
  for (size_t i = 0;; ++i) {
    const std::string name = fmt::format("{}.{}", prefix, i);
    const auto length = arrays.find(name + ".length");
    if (lengths != nullptr) lengths->emplace_back();
    if (length != arrays.end()) {
      const std::vector<Tensor> elements = ArraysOf(arrays, name);
      result.insert(result.end(), elements.begin(), elements.end());
      if (lengths != nullptr) lengths->back() = static_cast<int64_t>(length->second.tensor.At(0));
      continue;
    }
    const auto plain = arrays.find(name);
    const auto brain = arrays.find(name + ":bfloat16");
    if (plain != arrays.end()) {
      result.push_back(plain->second.tensor);
    } else if (brain != arrays.end()) {
      const Tensor& bits = brain->second.tensor;
      result.push_back(Tensor::View(bits.shape(), kBFloat16, bits.raw(), std::make_shared<Tensor>(bits)));
    } else {
      return result;
    }
  }
}

/// Results of 16 bits may be off by some units in their last place: values between operators are rounded, too.
Tolerance ToleranceOf(DataType dtype, Tolerance tolerance) {
  const double unit = dtype == kBFloat16 ? 0x1p-8 : dtype == kFloat16 ? 0x1p-11 : 0;
  return {std::max(tolerance.relative, 4 * unit), std::max(tolerance.absolute, unit)};
}

}  // namespace

std::vector<Refusal> ReadTable(const std::filesystem::path& path) {
  std::vector<Refusal> table;
  std::ifstream file(path);
  if (!file) throw Error(ErrorCategory::kInput, "cannot read " + path.string());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Refusal refusal;
    words >> refusal.op >> refusal.pattern >> std::ws;
    std::getline(words, refusal.reason);
    if (refusal.reason.empty()) throw Error(ErrorCategory::kInput, "no reason in line: " + line, path.string());
    table.push_back(std::move(refusal));
  }
  return table;
}

bool Fits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

Refusal* FindRefusal(std::vector<Refusal>& table, const std::string& name) {
  const auto row = std::ranges::find_if(table, [&](const Refusal& refusal) { return Fits(refusal.pattern, name); });
  return row == table.end() ? nullptr : &*row;
}

std::vector<std::filesystem::path> ModelsIn(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") models.insert(entry.path());
  }
  return {models.begin(), models.end()};
}

NodeCase ReadNodeCase(const std::filesystem::path& path) {
  NodeCase result;
  const StoredArrays arrays = ReadNpz(path, result.strings);
  result.outputs = ArraysOf(arrays, "out");
  result.tolerance = {arrays.at("rtol").tensor.At(0), arrays.at("atol").tensor.At(0)};
  result.inputs = ArraysOf(arrays, "in", &result.lengths);
  // The cases' own absolute tolerance is below what a sum of float32 is off by.
  result.tolerance.absolute = std::max(result.tolerance.absolute, 1e-6);
  result.is_random = arrays.contains("random");
  return result;
}

Tensor Renumbered(const Tensor& tensor, const StringNumbers& from, StringNumbers& to) {
  const Tensor result = Tensor::Empty(tensor.shape(), kInt64);
  for (int64_t i = 0; i < result.num_elements(); ++i)
    result.data<int64_t>()[i] = to.Add(from.TextOf(tensor.data<int64_t>()[i]));
  return result;
}

std::vector<std::string> TensorNames(const NodeCase& data, const std::vector<std::string>& inputs,
                                     std::map<std::string, int64_t>& lengths) {
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<int64_t> length = i < data.lengths.size() ? data.lengths[i] : std::nullopt;
    if (length) lengths[inputs[i]] = *length;
    for (int64_t j = 0; j < length.value_or(0); ++j) names.push_back(fmt::format("{}.{}", inputs[i], j));
    if (!length) names.push_back(inputs[i]);
  }
  return names;
}

std::string Difference(const std::vector<Tensor>& actual, const NodeCase& wanted) {
  if (actual.size() != wanted.outputs.size()) {
    return fmt::format("{} outputs where {} are wanted", actual.size(), wanted.outputs.size());
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor& output = wanted.outputs[i];
    const bool is_alike = actual[i].dtype() == output.dtype() && actual[i].shape() == output.shape();
    if (wanted.is_random && is_alike) continue;
    const Comparison comparison = Compare(actual[i], output, ToleranceOf(output.dtype(), wanted.tolerance));
    if (!comparison.agrees) return fmt::format("output {}: {}", i, comparison.difference);
  }
  return "";
}

std::string RunApart(const std::function<std::string()>& run,
                     const std::function<std::string(const std::string& what)>& failed) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    alarm(kMostSeconds);
    const std::string message = run();
    const bool written = write(ends[1], message.data(), message.size()) == static_cast<ssize_t>(message.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string message;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) message.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return failed(fmt::format("ends with signal {}", WTERMSIG(status)));
  if (message.empty()) return failed("ends without a word");
  return message;
}

int ReportUnused(const std::vector<Refusal>& table) {
  int unused = 0;
  for (const Refusal& row : table) {
    if (row.uses > 0) continue;
    ++unused;
    fmt::print("FAIL the table's pattern '{}' fits no case\n", row.pattern);
  }
  return unused;
}

int RunConformance(int argc, char** argv, int least, const char* usage, int (*run)(int argc, char** argv)) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc <= least) {
    fmt::print(stderr, "usage: {}\n", usage);
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}

}  // namespace collage
