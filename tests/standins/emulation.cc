// emulation.cc: objects that are opened, and their kernels.
#include "emulation.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda_driver/emulation.h"
#include "cutlass.h"
#include "engine.h"
#include "triton/open.h"

namespace standin {
namespace {

/// Bytes of an ELF file, whose last part is the table of its sections; 0 for what is none.
size_t SizeOf(const void* image) {
  Elf64_Ehdr header;
  if (std::memcmp(image, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

}  // namespace

std::unique_ptr<EmulatedModule> EmulatedModule::Open(const void* image) {
  for (const auto open : {OpenInstance, OpenTriton}) {
    std::vector<std::unique_ptr<EmulatedKernel>> kernels = open(image);
    if (kernels.empty()) continue;
    std::unique_ptr<EmulatedModule> module(new EmulatedModule(nullptr, -1));
    module->kernels_ = std::move(kernels);
    return module;
  }
  const size_t size = SizeOf(image);
  const int file = size == 0 ? -1 : memfd_create("code of a device", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  const bool is_written = write(file, image, size) == static_cast<ssize_t>(size);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* handle = is_written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) {
    close(file);
    return nullptr;
  }
  std::unique_ptr<EmulatedModule> module(new EmulatedModule(handle, file));
  auto* table = static_cast<void**>(dlsym(handle, collage::cuda_driver::kEmulationTable));
  if (table == nullptr) return nullptr;
  FillTable(table);
  return module;
}

EmulatedModule::~EmulatedModule() {
  if (handle_ == nullptr) return;
  dlclose(handle_);
  close(file_);
}

const EmulatedKernel* EmulatedModule::Find(const std::string& name) {
  const auto known = std::ranges::find(kernels_, name, [](const auto& kernel) { return kernel->name; });
  if (known != kernels_.end()) return known->get();
  if (handle_ == nullptr) return nullptr;
  void* thread = dlsym(handle_, name.c_str());
  const auto* sizes =
      static_cast<const uint64_t*>(dlsym(handle_, (name + collage::cuda_driver::kEmulationSizes).c_str()));
  if (thread == nullptr || sizes == nullptr) return nullptr;
  auto kernel = std::make_unique<EmulatedKernel>();
  kernel->name = name;
  kernel->thread = reinterpret_cast<void (*)(void* const*)>(thread);
  for (; *sizes != 0; ++sizes) kernel->parameter_sizes.push_back(*sizes);
  return kernels_.emplace_back(std::move(kernel)).get();
}

std::string RunGrid(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters,
                    const FindMemory& find) {
  if (kernel.whole) return kernel.whole(grid, parameters, find);
  return RunThreads(kernel, grid, parameters, find);
}

}  // namespace standin

/// The only attribute that is known here is the most memory that threads of a block may share.
extern "C" int cuFuncSetAttribute(void* function, int attribute, int value) {
  constexpr int kMostDynamicSharedBytes = 8, kInvalidValue = 1, kMostShared = 163 << 10;
  if (function == nullptr || attribute != kMostDynamicSharedBytes || value < 0 || value > kMostShared) {
    return kInvalidValue;
  }
  static_cast<standin::EmulatedKernel*>(function)->most_shared_bytes = static_cast<uint32_t>(value);
  return 0;
}
