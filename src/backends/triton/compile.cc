// compile.cc: a program of Python has Triton compile an instance. Since this takes a second, code is kept, by its text,
// architecture and compiler.
#include "backends/triton/compile.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "backends/cuda_driver/blob.h"
#include "backends/cuda_driver/emulation.h"
#include "collage/support/error.h"
#include "support/file.h"
#include "support/file_cache.h"
#include "support/hash.h"
#include "support/json_fields.h"
#include "support/programs/find_python.h"
#include "support/programs/run_tool.h"
#include "triton_kernel_texts.h"

namespace collage::triton {
namespace {

constexpr const char* kHint =
    "run ./setup gpu, or pip install triton for a Python, and set COLLAGE_PYTHON to where that is";
constexpr const char* kAskForVersion = "import importlib.metadata; print(importlib.metadata.version('triton'))";

/// The last line of a Python program's output: the error that ended it.
std::string LastLine(std::string_view output) {
  while (!output.empty() && (output.back() == '\n' || output.back() == ' ')) output.remove_suffix(1);
  return std::string(output.substr(output.find_last_of('\n') + 1));
}

/// Facts that the program tells of a kernel, and the kinds and sizes of the images behind them.
struct Facts {
  int64_t warps = 4, shared_bytes = 0, parameters = 0;
  std::vector<std::string> kinds;
  std::vector<int64_t> sizes;
  std::string notes;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, Facts>
void VisitFields(Self& facts, Visitor& visit) {
  visit.Field("warps", facts.warps);
  visit.Field("shared_bytes", facts.shared_bytes);
  visit.Field("parameters", facts.parameters);
  visit.OptionalField("kinds", facts.kinds);
  visit.OptionalField("sizes", facts.sizes);
  visit.OptionalField("notes", facts.notes);
}

std::string Pack(const Compiled& compiled) {
  Facts facts{compiled.warps, compiled.shared_bytes, compiled.num_parameters, {}, {}, compiled.notes};
  std::vector<std::byte> bytes;
  for (const cuda_driver::GpuImage& image : compiled.images) {
    facts.kinds.push_back(image.kind);
    facts.sizes.push_back(static_cast<int64_t>(image.bytes.size()));
    bytes.insert(bytes.end(), image.bytes.begin(), image.bytes.end());
  }
  const std::vector<std::byte> packed = cuda_driver::JoinBlob(ToJsonText(facts), bytes);
  return {reinterpret_cast<const char*>(packed.data()), packed.size()};
}

Compiled With(const Facts& facts) { return {{}, facts.warps, facts.shared_bytes, facts.parameters, facts.notes}; }

/// Nothing where it is not what Pack made.
std::optional<Compiled> Unpack(const std::string& packed) {
  const auto parts = cuda_driver::SplitBlob(std::as_bytes(std::span(packed)));
  if (!parts) return std::nullopt;
  const auto facts = FromJsonText<Facts>(parts->text);
  Compiled compiled = With(facts);
  auto rest = parts->rest;
  for (size_t i = 0; i < facts.kinds.size(); ++i) {
    const auto bytes = rest.first(static_cast<size_t>(facts.sizes.at(i)));
    compiled.images.push_back({facts.kinds[i], {bytes.begin(), bytes.end()}});
    rest = rest.subspan(bytes.size());
  }
  return compiled;
}

cuda_driver::GpuImage ImageOf(std::string kind, const std::string& content) {
  const auto bytes = std::as_bytes(std::span(content));
  return {std::move(kind), {bytes.begin(), bytes.end()}};
}

/// Texts have a 0 behind them.
cuda_driver::GpuImage TextImageOf(std::string kind, std::string text) {
  text.push_back('\0');
  return ImageOf(std::move(kind), text);
}

/// Text for GPUs of one architecture, such as "sm_90a", is of no use to others.
bool IsForLaterGpus(const std::string& ptx) {
  constexpr std::string_view kMark = ".target sm_";
  const size_t at = ptx.find(kMark);
  if (at == std::string::npos) return false;
  const size_t end = ptx.find_first_not_of("0123456789", at + kMark.size());
  return end == std::string::npos || ptx[end] == '\n' || ptx[end] == ',';
}

Compiled RunCompiler(const Compiler& compiler, const Instance& instance, const std::string& generated,
                     const std::string& architecture) {
  const TemporaryFolder folder;
  WriteFile(folder / "kernel.py", ProgramText(instance.program));
  WriteFile(folder / "generated.py", generated);
  WriteFile(folder / "compile.py", kCompileText);
  const ToolResult result =
      RunTool({compiler.python, (folder / "compile.py").string(), folder.path().string(), architecture});
  if (result.status != 0) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("Triton makes no kernel for {}: {}", architecture, LastLine(result.output)), "triton");
  }
  auto facts = FromJsonText<Facts>(ReadFile(folder / "kernel.json"));
  facts.notes = result.output;
  Compiled compiled = With(facts);
  if (architecture == cuda_driver::kEmulatedArchitecture) {
    compiled.images.push_back(TextImageOf(architecture, kEmulatedText + ReadFile(folder / "kernel.ttir")));
    return compiled;
  }
  compiled.images.push_back(ImageOf(architecture, ReadFile(folder / "kernel.cubin")));
  const std::string ptx = ReadFile(folder / "kernel.ptx");
  if (IsForLaterGpus(ptx)) compiled.images.push_back(TextImageOf(cuda_driver::kPtx, ptx));
  return compiled;
}

}  // namespace

const char* ProgramText(Program program) {
  switch (program) {
    case Program::kProduct: return kProductText;
    case Program::kAttention: return kAttentionText;
    case Program::kRows: return kRowsText;
    case Program::kElements: break;
  }
  return kElementsText;
}

Availability FindCompiler(Compiler& compiler) {
  compiler.python = FindPython();
  try {
    const ToolResult told = RunTool({compiler.python, "-c", kAskForVersion});
    if (told.status != 0) return {false, "", fmt::format("'{}' has no module 'triton'", compiler.python), kHint};
    compiler.version = "Triton " + LastLine(told.output);
  } catch (const Error& error) {
    return {false, "", error.message(), kHint};
  }
  return {true, compiler.version, "", ""};
}

Compiled Compile(const Compiler& compiler, const Instance& instance, const Schedule& schedule,
                 const std::string& architecture) {
  const std::string generated = GeneratedText(instance, schedule);
  const std::string key = HexDigest(fmt::format("{} for {}\n{}\n{}\n{}", compiler.version, architecture, kCompileText,
                                                ProgramText(instance.program), generated));
  if (const std::optional<std::string> kept = KernelCache().Find(key)) {
    if (std::optional<Compiled> compiled = Unpack(*kept)) return *std::move(compiled);
  }
  Compiled compiled = RunCompiler(compiler, instance, generated, architecture);
  KernelCache().Put(key, Pack(compiled));
  return compiled;
}

}  // namespace collage::triton
