// runner.cc: which runner a text means, and where Ray's helper is.
#include "cost/runner/runner.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "collage/support/error.h"
#include "cost/runner/external_runner.h"
#include "cost/runner/measuring_worker.h"
#include "support/programs/find_python.h"

namespace collage {
namespace {

constexpr const char* kRayHelper = "ray_runner.py";

/// Returns Ray's address of the cluster; nothing if `text` is no Ray runner.
std::optional<std::string> RayAddress(const std::string& text) {
  if (text == "ray") return "auto";
  const bool is_client = text.starts_with("ray://");
  if (!is_client && !text.starts_with("ray:")) return std::nullopt;
  const std::string address = text.substr(is_client ? 6 : 4);
  const size_t colon = address.rfind(':');
  const bool is_complete = colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
                           address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!is_complete) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed runner '{}'", text), "--runner",
                "write ray://HOST:PORT with the client's port (10001), or ray:HOST:PORT with the cluster's (6379)");
  }
  return is_client ? text : address;
}

/// In the build tree, in a wheel, or where CMake installs it: all are found from the library that holds this function.
std::filesystem::path FindRayHelper() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MakeRunner), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code ignored;
    const auto folder = std::filesystem::weakly_canonical(info.dli_fname, ignored).parent_path();
    for (const char* place : {"../python/collage", "..", "../share/collage", "../../share/collage"}) {
      const auto path = (folder / place / kRayHelper).lexically_normal();
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("'{}' is not installed beside the Collage libraries", kRayHelper));
}

}  // namespace

void CheckRunner(const std::string& text) {
  if (text == "local" || RayAddress(text)) return;
  throw Error(ErrorCategory::kInput, fmt::format("there is no runner '{}'", text), "--runner",
              "there are: local, ray, ray:HOST:PORT, ray://HOST:PORT");
}

std::unique_ptr<Runner> MakeRunner(const std::string& text, RunnerContext context) {
  CheckRunner(text);
  if (text == "local") return MakeLocalRunner(context.candidates, context.limits, context.compiled);
  const std::optional<std::string> address = RayAddress(text);
  HelperProgram program;
  program.name = text;
  program.command = {context.python.empty() ? FindPython() : context.python, FindRayHelper().string(), *address};
  for (std::string& argument : WorkerArguments(context)) program.command.push_back(std::move(argument));
  program.on_warning = std::move(context.on_warning);
  return MakeExternalRunner(std::move(program));
}

}  // namespace collage
