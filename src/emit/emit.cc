// emit.cc: the executable as data, beside the runtime that the build has linked (tools/embedded).
#include "emit/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "emit/object_file.h"
#include "runtime/native_loader.h"
#include "runtime/plan/embedded_file.h"
#include "support/dynamic_library.h"
#include "support/edit_distance.h"
#include "support/environment.h"
#include "support/file.h"
#include "support/programs/run_tool.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "collage_model_program";
constexpr const char* kRuntime = "collage_runtime.o";
constexpr const char* kLibraryStart = "library_start.o";

/// A part that the build, or an installation, has beside the libraries.
fs::path PartOf(const char* name) {
  if (const auto file = FindBesideModules(std::string("collage/") + name)) return *file;
  throw Error(ErrorCategory::kUnavailable, fmt::format("'{}' is not beside the libraries", name), "--emit",
              "this Collage was packed without it: use one that was built or installed by CMake");
}

/// Throws kUnsupported where something else than native kernels and conversions of layouts would have to be linked.
void CheckIsNative(const fs::path& file) {
  const Executable executable = Executable::Load(file);
  std::set<std::string> others;
  for (const ExecutionPlan::KernelEntry& kernel : executable.plan().kernels) {
    if (kernel.loader != kObjectLoaderName) others.insert(kernel.toolchain.empty() ? kernel.loader : kernel.toolchain);
  }
  if (others.empty()) return;
  throw Error(
      ErrorCategory::kUnsupported,
      fmt::format("the model has kernels of {}, whose libraries cannot be linked into it", fmt::join(others, ", ")),
      file.string(), "compile it with --toolchains native");
}

/// A name that C allows, of the file's: "mobilenet_v2" of "libmobilenet-v2.so".
std::string NameOf(const fs::path& output) {
  std::string name = output.stem();
  if (name.starts_with("lib")) name = name.substr(3);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "model_" + name;
  return name;
}

/// How a program reaches the model: in a library of its own by a function, else by its data, which it is linked with.
std::string Declarations(const std::string& name, EmitKind kind) {
  if (kind == EmitKind::kShared) {
    return fmt::format(
        R"(/* Loads the model, without a copy of its weights. Release it by collage_executable_release. */
collage_status {}_load(collage_executable** executable);
)",
        name);
  }
  return fmt::format(R"(extern const unsigned char {0}_begin[];
extern const unsigned char {0}_end[];

/* Loads the model, without a copy of its weights. Release it by collage_executable_release. */
static inline collage_status {0}_load(collage_executable** executable) {{
  return collage_executable_load_static({0}_begin, (size_t)({0}_end - {0}_begin), "{0}", executable);
}}
)",
                     name);
}

std::string Header(const std::string& name, EmitKind kind, const std::string& how) {
  return fmt::format(R"(/* A model that Collage compiled, written by `collage compile --emit`. {1} */
#ifndef {0}_MODEL_H_
#define {0}_MODEL_H_

#include <collage/runtime/c_api.h>

#ifdef __cplusplus
extern "C" {{
#endif

{2}
#ifdef __cplusplus
}}
#endif

#endif
)",
                     name, how, Declarations(name, kind));
}

/// Runs a tool of binutils. Throws kUnavailable with what it said.
void Link(const std::vector<std::string>& words) {
  const ToolResult result = RunTool(words);
  if (result.status == 0) return;
  throw Error(ErrorCategory::kUnavailable, fmt::format("{} failed: {}", words[0], result.output), "",
              "install binutils");
}

std::string Linker() {
  const std::string chosen = GetEnvironment("COLLAGE_LINKER").value_or("");
  return chosen.empty() ? "ld" : chosen;
}

/// The C API, and what loads the model, are what others see.
std::string VersionScript(const std::string& name) {
  return fmt::format("{{ global: collage_*; {}_load; local: *; }};\n", name);
}

void WriteLibrary(const std::string& object, const std::string& name, EmitKind kind, const fs::path& output) {
  const TemporaryFolder folder;
  WriteFile(folder / "model.o", object);
  const std::string model = (folder / "model.o").string(), made = (folder / "made").string();
  const std::string runtime = PartOf(kRuntime).string();
  if (kind == EmitKind::kStatic) {
    Link({"ar", "rcs", made, model, runtime});
  } else {
    WriteFile(folder / "symbols.map", VersionScript(name));
    Link({Linker(),
          "-shared",
          "-z",
          "noexecstack",
          "-z",
          "relro",
          "--hash-style=gnu",
          "--eh-frame-hdr",
          "-soname",
          output.filename().string(),
          "--version-script=" + (folder / "symbols.map").string(),
          "--defsym=" + name + "_load=embedded_load",
          "-o",
          made,
          model,
          runtime,
          PartOf(kLibraryStart).string(),
          "-L/lib/x86_64-linux-gnu",
          "-L/usr/lib/x86_64-linux-gnu",
          "-L/usr/lib64",
          "-L/usr/lib",
          "-l:libstdc++.so.6",
          "-l:libm.so.6",
          "-l:libgcc_s.so.1",
          "-l:libc.so.6"});
  }
  WriteWhole(output, ReadFile(made));
}

void WriteProgram(std::span<const std::byte> executable, const fs::path& output) {
  WriteWhole(output, WithEmbedded(ReadFile(PartOf(kProgram)), executable));
  constexpr auto kAll = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  std::error_code failed;
  fs::permissions(output, kAll, fs::perm_options::add, failed);
  if (failed) throw Error(ErrorCategory::kResource, "cannot make it executable: " + failed.message(), output.string());
}

std::string HowToLink(EmitKind kind) {
  switch (kind) {
    case EmitKind::kObject: return "Link the object file with libcollage_runtime.";
    case EmitKind::kStatic: return "Link the library, then -lstdc++ -lm.";
    default: return "Link the library.";
  }
}

}  // namespace

const std::vector<std::string>& EmitKinds() {
  static const std::vector<std::string> kinds{"program", "shared", "static", "object"};
  return kinds;
}

EmitKind EmitKindOf(const std::string& name) {
  const auto found = std::ranges::find(EmitKinds(), name);
  if (found != EmitKinds().end()) return static_cast<EmitKind>(found - EmitKinds().begin());
  const std::string near = DidYouMean(name, EmitKinds());
  throw Error(ErrorCategory::kInput, fmt::format("'{}' is nothing that a model can become", name), "--emit",
              near.empty() ? fmt::format("there are: {}", fmt::join(EmitKinds(), ", ")) : near);
}

Emitted Emit(const fs::path& executable, EmitKind kind, const fs::path& output) {
  CheckIsNative(executable);
  const std::shared_ptr<MappedFile> file = MappedFile::Open(executable);
  Emitted emitted{{output}, 0, ""};
  if (kind == EmitKind::kProgram) {
    WriteProgram(file->bytes(), output);
  } else {
    emitted.name = NameOf(output);
    const std::string object = DataObject(file->bytes(), kind == EmitKind::kShared ? "embedded" : emitted.name);
    kind == EmitKind::kObject ? WriteWhole(output, object) : WriteLibrary(object, emitted.name, kind, output);
    fs::path header = output;
    WriteWhole(header.replace_extension(".h"), Header(emitted.name, kind, HowToLink(kind)));
    emitted.files.push_back(header);
  }
  for (const fs::path& one : emitted.files) emitted.bytes += static_cast<int64_t>(fs::file_size(one));
  return emitted;
}

}  // namespace collage
