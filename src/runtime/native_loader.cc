// native_loader.cc: dlopen from an anonymous file; equal objects are opened once.
#include "runtime/native_loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "collage/support/error.h"
#include "runtime/library_calls.h"
#include "runtime/weight_memory.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/machine.h"

namespace collage {
namespace {

using KernelEntryPoint = void(void* const* buffers);

/// A file in memory that holds `blob`. The caller closes it.
int WriteMemoryFile(std::span<const std::byte> blob) {
  const int fd = memfd_create("collage-kernel", MFD_CLOEXEC);
  if (fd < 0) throw Error(ErrorCategory::kResource, fmt::format("cannot load a kernel: {}", std::strerror(errno)));
  if (!WriteAll(fd, blob.data(), blob.size())) {
    const int code = errno;
    close(fd);
    throw Error(ErrorCategory::kResource, fmt::format("cannot load a kernel: {}", std::strerror(code)));
  }
  return fd;
}

/// A path of `fd` that no earlier call gave. The dynamic linker takes equal paths for the same library without looking
/// at the file, and descriptors are used again once closed; so a counter is spelled in the path, one bit a segment:
/// "/." or "/". The path names the process by number: debuggers and profilers open it, too, and "self" would be them.
std::string UniquePath(int fd) {
  static std::atomic<uint64_t> counter{0};
  std::error_code ignored;
  const std::string self = std::filesystem::read_symlink("/proc/self", ignored).string();
  std::string path = fmt::format("/proc/{}/fd", self.empty() ? "self" : self);
  for (uint64_t bits = ++counter; bits != 0; bits >>= 1) path += (bits & 1) != 0 ? "/." : "/";
  return path + fmt::format("/{}", fd);
}

/// Throws kUnavailable for code of another kind of processor. The dynamic linker refuses files that are not ELF.
void CheckKind(std::span<const std::byte> blob) {
  Elf64_Ehdr header;
  if (blob.size() < sizeof header || std::memcmp(blob.data(), ELFMAG, SELFMAG) != 0) return;
  std::memcpy(&header, blob.data(), sizeof header);
  const std::string isa = header.e_machine == EM_X86_64    ? "x86-64"
                          : header.e_machine == EM_AARCH64 ? "aarch64"
                                                           : fmt::format("machine {} of ELF", header.e_machine);
  if (isa == ThisMachine().isa) return;
  throw Error(ErrorCategory::kUnavailable, fmt::format("a kernel is code for {}; this machine is {} ({})", isa,
                                                       ThisMachine().isa, ThisMachine().cpu));
}

/// Throws kUnavailable, naming what this processor lacks. Objects that say nothing are taken.
void CheckNeeds(void* handle) {
  const auto* needs = static_cast<const char*>(dlsym(handle, kObjectNeeds));
  std::istringstream words(needs == nullptr ? "" : needs);
  std::string missing;
  for (std::string word; words >> word;) {
    if (!HasInstructionSet(word)) missing += (missing.empty() ? "" : ", ") + word;
  }
  if (missing.empty()) return;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("a kernel needs {}, which this processor ({}) lacks", missing, ThisMachine().cpu), "",
              "compile for a lower level: --target 'llvm -mcpu=x86-64-v2'");
}

/// Fills in the addresses of the libraries' functions that the code calls.
void ResolveCalls(void* handle) {
  const auto* calls = static_cast<const char*>(dlsym(handle, kObjectCalls));
  auto** address = static_cast<void**>(dlsym(handle, kObjectAddresses));
  if (calls == nullptr) return;
  if (address == nullptr) throw Error(ErrorCategory::kCorrupt, "a kernel's code lacks a place for what it calls");
  std::istringstream lines(calls);
  for (std::string line; std::getline(lines, line);) *address++ = Resolve(LibraryCall::Parse(line));
}

/// The results that the code may write where parameters lie.
std::vector<InPlaceResult> ReadInPlace(void* handle) {
  const auto* pairs = static_cast<const char*>(dlsym(handle, kObjectInPlace));
  std::istringstream numbers(pairs == nullptr ? "" : pairs);
  std::vector<InPlaceResult> in_place;
  for (InPlaceResult one; numbers >> one.input >> one.output;) in_place.push_back(one);
  return in_place;
}

/// Kernels are opened through /proc, which a bare container may lack.
[[noreturn]] void ThrowNotLoaded(const std::string& reason) {
  std::error_code ignored;
  if (!std::filesystem::exists("/proc/self/fd", ignored)) {
    throw Error(ErrorCategory::kUnavailable, "cannot load a kernel: there is no /proc", "",
                "mount it: mount -t proc proc /proc");
  }
  throw Error(ErrorCategory::kCorrupt, fmt::format("cannot load a kernel: {}", reason));
}

/// An opened object; closed when the last kernel of it goes.
class LoadedObject {
 public:
  explicit LoadedObject(std::span<const std::byte> blob) {
    CheckKind(blob);
    const int fd = WriteMemoryFile(blob);
    handle_ = dlopen(UniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string reason = handle_ == nullptr ? dlerror() : "";
    close(fd);
    if (handle_ == nullptr) ThrowNotLoaded(reason);
    try {
      CheckNeeds(handle_);
      ResolveCalls(handle_);
      in_place_ = ReadInPlace(handle_);
    } catch (...) {
      dlclose(handle_);
      throw;
    }
    entry_ = reinterpret_cast<KernelEntryPoint*>(dlsym(handle_, "collage_kernel"));
    if (entry_ == nullptr) {
      dlclose(handle_);
      throw Error(ErrorCategory::kCorrupt, "a kernel's code lacks its entry point 'collage_kernel'");
    }
  }
  ~LoadedObject() { dlclose(handle_); }
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  KernelEntryPoint* entry() const { return entry_; }
  const std::vector<InPlaceResult>& in_place() const { return in_place_; }

 private:
  void* handle_ = nullptr;
  KernelEntryPoint* entry_ = nullptr;
  std::vector<InPlaceResult> in_place_;
};

class ObjectKernel : public Kernel {
 public:
  ObjectKernel(std::shared_ptr<LoadedObject> object, std::vector<Tensor> constants)
      : object_(std::move(object)), entry_(object_->entry()), constants_(std::move(constants)) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    buffers_.assign(inputs.begin(), inputs.end());
    for (const Tensor& constant : constants_) buffers_.push_back(constant.raw());
    buffers_.insert(buffers_.end(), outputs.begin(), outputs.end());
    buffers_.push_back(workspace);
  }

  std::vector<InPlaceResult> in_place() const override { return object_->in_place(); }
  void Run() override { entry_(buffers_.data()); }

 private:
  std::shared_ptr<LoadedObject> object_;
  KernelEntryPoint* entry_;
  std::vector<Tensor> constants_;
  std::vector<void*> buffers_;
};

class ObjectLoader : public KernelLoader {
 public:
  /// Kernels call collage_parallel_for, which the dynamic linker finds only in libraries that are visible to all. This
  /// one is not when it came with a plug-in, such as a Python module.
  ObjectLoader() {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&MakeObjectLoader), &info) == 0 || info.dli_fname == nullptr) return;
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }

  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    Hasher hasher;
    hasher.Add(image.blob.data(), image.blob.size());
    const std::lock_guard lock(mutex_);
    std::weak_ptr<LoadedObject>& known = objects_[hasher.Hex()];
    std::shared_ptr<LoadedObject> object = known.lock();
    if (!object) {
      object = std::make_shared<LoadedObject>(image.blob);
      known = object;
    }
    std::vector<Tensor> constants = image.in_place ? std::vector<Tensor>(image.constants.begin(), image.constants.end())
                                                   : constants_.Get(image.constants);
    return std::make_unique<ObjectKernel>(std::move(object), std::move(constants));
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<LoadedObject>> objects_;
  ResidentConstants constants_;
};

}  // namespace

std::unique_ptr<KernelLoader> MakeObjectLoader() { return std::make_unique<ObjectLoader>(); }

}  // namespace collage

/// For generated machine code. Grows by more than is asked for: lengths that grow step by step ask again and again.
extern "C" void* collage_scratch(int64_t bytes) {
  constexpr size_t kAlignment = 64;
  struct Scratch {
    void* memory = nullptr;
    size_t bytes = 0;
    ~Scratch() { std::free(memory); }
  };
  thread_local Scratch scratch;
  const auto wanted = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (wanted > scratch.bytes) {
    std::free(scratch.memory);
    scratch.bytes = (wanted + wanted / 2 + kAlignment - 1) / kAlignment * kAlignment;
    scratch.memory = std::aligned_alloc(kAlignment, scratch.bytes);
    COLLAGE_CHECK(scratch.memory != nullptr) << "no memory for a kernel's workspace";
  }
  return scratch.memory;
}
