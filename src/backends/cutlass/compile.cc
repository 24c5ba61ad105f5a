// compile.cc: nvcc makes machine code of the text of an instance. Since this takes seconds, code is kept, by its text,
// architecture and compiler.
#include "backends/cutlass/compile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/cuda_driver/blob.h"
#include "backends/cuda_driver/toolkit.h"
#include "collage/support/error.h"
#include "support/dynamic_library.h"
#include "support/environment.h"
#include "support/file.h"
#include "support/file_cache.h"
#include "support/hash.h"
#include "support/programs/run_tool.h"

namespace collage::cutlass {
namespace {

constexpr const char* kHint =
    "run ./setup gpu, or install NVIDIA's CUDA toolkit and CUTLASS, and set CUDA_HOME and "
    "COLLAGE_CUDA_TEMPLATES to where they are";
constexpr const char* kHeader = "cutlass/version.h";

/// The folder with CUTLASS's headers: where $COLLAGE_CUDA_TEMPLATES says, else that of the wheel, else the toolkit's.
std::optional<std::filesystem::path> FindHeaders() {
  std::vector<std::filesystem::path> folders;
  if (const auto told = GetEnvironment("COLLAGE_CUDA_TEMPLATES")) {
    folders = {*told, std::filesystem::path(*told) / "include"};
  } else {
    if (const auto wheel = FindInPackages("cutlass_library/source/include")) folders.push_back(*wheel);
    folders.push_back(std::filesystem::path(cuda_driver::ToolkitFolder()) / "include");
  }
  for (const std::filesystem::path& folder : folders) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / kHeader, ignored)) return folder;
  }
  return std::nullopt;
}

/// The word behind `mark` in `text`; empty without it.
std::string WordBehind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return "";
  const size_t begin = std::min(text.find_first_not_of(' ', at + mark.size()), text.size());
  return std::string(text.substr(begin, text.find_first_of(" ,\n", begin) - begin));
}

/// "4.2.0".
std::string HeadersVersion(const std::filesystem::path& headers) {
  const std::string text = ReadFile(headers / kHeader);
  return fmt::format("{}.{}.{}", WordBehind(text, "#define CUTLASS_MAJOR"), WordBehind(text, "#define CUTLASS_MINOR"),
                     WordBehind(text, "#define CUTLASS_PATCH"));
}

/// The first line of nvcc's output that is an error, without the file's name.
std::string FirstError(std::string_view output) {
  constexpr std::string_view kMark = "error";
  const size_t at = output.find(kMark);
  if (at == std::string_view::npos) return std::string(output.substr(0, output.find('\n')));
  return std::string(output.substr(at, output.find('\n', at) - at));
}

Compiled RunCompiler(const Compiler& compiler, const std::string& text, const std::string& architecture) {
  const TemporaryFolder folder;
  const std::string input = (folder / "kernel.cu").string(), output = (folder / "kernel.cubin").string();
  WriteFile(input, text);
  const ToolResult result =
      RunTool({compiler.nvcc.string(), "-cubin", "-arch=" + architecture, "-std=c++17", "-O3", "-DNDEBUG", "-w",
               "--expt-relaxed-constexpr", "-Xptxas", "-v", "-I" + compiler.headers.string(), "-o", output, input});
  if (result.status != 0) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("nvcc makes no kernel for {}: {}", architecture, FirstError(result.output)), "cutlass");
  }
  const std::string code = ReadFile(output);
  const auto bytes = std::as_bytes(std::span(code));
  return {{bytes.begin(), bytes.end()}, result.output};
}

}  // namespace

Availability FindCompiler(Compiler& compiler) {
  compiler.nvcc = std::filesystem::path(cuda_driver::ToolkitFolder()) / "bin/nvcc";
  if (access(compiler.nvcc.c_str(), X_OK) != 0) {
    return {false, "", fmt::format("there is no '{}'", compiler.nvcc.string()), kHint};
  }
  const std::optional<std::filesystem::path> headers = FindHeaders();
  if (!headers) return {false, "", fmt::format("CUTLASS's headers ({}) are not there", kHeader), kHint};
  compiler.headers = *headers;
  const ToolResult told = RunTool({compiler.nvcc.string(), "--version"});
  if (told.status != 0) return {false, "", fmt::format("'{}' does not run", compiler.nvcc.string()), kHint};
  compiler.version = fmt::format("CUTLASS {}, CUDA {}", HeadersVersion(*headers), WordBehind(told.output, ", V"));
  return {true, compiler.version, "", ""};
}

Compiled Compile(const Compiler& compiler, const Instance& instance, const std::string& architecture) {
  const std::string text = DeviceText(instance);
  const std::string key = HexDigest(fmt::format("{} for {}\n{}", compiler.version, architecture, text));
  const std::optional<std::string> kept = KernelCache().Find(key);
  if (const auto parts = kept ? cuda_driver::SplitBlob(std::as_bytes(std::span(*kept))) : std::nullopt) {
    return {{parts->rest.begin(), parts->rest.end()}, std::string(parts->text)};
  }
  Compiled compiled = RunCompiler(compiler, text, architecture);
  const std::vector<std::byte> packed = cuda_driver::JoinBlob(compiled.notes, compiled.code);
  KernelCache().Put(key, {reinterpret_cast<const char*>(packed.data()), packed.size()});
  return compiled;
}

}  // namespace collage::cutlass
