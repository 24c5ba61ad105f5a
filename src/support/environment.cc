// environment.cc: the table. Rows for variables that only Python, or the C++ library, reads are here for the reader.
#include "support/environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "collage/support/error.h"

namespace collage {
namespace {

// tests/project/environment_test.py reads these rows: a row is three string literals.
constexpr std::array kVariables{
    EnvironmentVariable{"COLLAGE_COMMAND", "the command that measures on a Ray node",
                        "'collage' beside the node's Python, else on PATH"},
    EnvironmentVariable{"COLLAGE_CPU", "the processor that native kernels are compiled for, as LLVM names it",
                        "this processor"},
    EnvironmentVariable{"COLLAGE_CUDA_TEMPLATES", "the folder of NVIDIA's templates for kernels, or of their headers",
                        "that of the Python wheel, else the CUDA toolkit's"},
    EnvironmentVariable{"COLLAGE_DATABASE", "the tuning database: a file, or a postgresql:// URL",
                        "tuning.db in the cache folder"},
    EnvironmentVariable{"COLLAGE_KERNEL_CACHE", "the folder for machine code of kernels; empty: none is kept",
                        "kernels in the cache folder"},
    EnvironmentVariable{"COLLAGE_LIBRARY_PATH",
                        "folders, separated by colons, that hold the C libraries that kernels call",
                        "where the system looks, always the last"},
    EnvironmentVariable{"COLLAGE_LINKER", "the linker of native kernels",
                        "a bundle's, else binutils' ld; lld for other processors"},
    EnvironmentVariable{"COLLAGE_MODULE_PATH", "folders, separated by colons, that hold toolchain modules",
                        "the folder of Collage's libraries, always the last"},
    EnvironmentVariable{"COLLAGE_NO_WORKER", "any value: compile and measure in this process, for a debugger",
                        "in a forked worker"},
    EnvironmentVariable{"COLLAGE_ONNXRUNTIME", "the shared library of ONNX Runtime", "that of the Python wheel"},
    EnvironmentVariable{"COLLAGE_PYTHON", "the Python that has Ray, for --runner ray, and wheels of toolchains",
                        "the Python of the build, else python3"},
    EnvironmentVariable{"COLLAGE_TOOLCHAINS", "Python modules, separated by commas, that register toolchains", "none"},
    EnvironmentVariable{"CUDA_HOME", "the folder of NVIDIA's CUDA toolkit, whose ptxas and nvcc make machine code",
                        "/usr/local/cuda, else NVIDIA's Python packages"},
    EnvironmentVariable{"HOME", "the home folder, which holds the cache folder .cache/collage", "the current folder"},
    EnvironmentVariable{"MKLROOT", "the folder of Intel MKL", "/opt/intel/oneapi/mkl/latest"},
    EnvironmentVariable{"TERM", "the kind of terminal; dumb: progress is a line now and then", "dumb"},
    EnvironmentVariable{"TMPDIR", "the folder of temporary files", "/tmp"},
    EnvironmentVariable{"XDG_CACHE_HOME", "the folder whose sub-folder 'collage' is the cache folder", "~/.cache"},
    EnvironmentVariable{"XDG_RUNTIME_DIR", "the folder of the lock that lets processes take turns at timing",
                        "/tmp/collage-UID"},
};

}  // namespace

std::span<const EnvironmentVariable> EnvironmentVariables() { return kVariables; }

std::optional<std::string> GetEnvironment(const char* name) {
  const bool is_listed = std::any_of(kVariables.begin(), kVariables.end(), [&](const EnvironmentVariable& variable) {
    return std::string_view(variable.name) == name;
  });
  COLLAGE_CHECK(is_listed) << "environment variable '" << name << "' is not in the table";
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace collage
