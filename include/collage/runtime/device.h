// device.h: memories that values lie in, and the devices that own them. Kernels of a device get addresses in its
// memory; the executor moves values between memories where a plan says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace collage {

/// A memory: that of a type of device, and a scope within it (RFC 0.81's SEScope, later VirtualDevice). One table
/// defines each (src/runtime/device.cc). Numbers are in executables: new ones come last.
enum class Memory : uint8_t {
  kHost,          ///< the processor's, whatever the scope
  kExtDev,        ///< an external device's: an accelerator that has no type of its own
  kExtDevVtcm,    ///< its scratchpad, scope "global.vtcm"
  kCuda,          ///< an NVIDIA GPU's
  kOpencl,        ///< an OpenCL device's
  kOpenclTexture  ///< its images, scope "global.texture"
};

/// All memories, by number.
std::span<const Memory> AllMemories();
/// DLPack's number for the type of device that `memory` belongs to: 1 for the host's.
int DeviceTypeOf(Memory memory);
/// "host", "ext_dev", "ext_dev:global.vtcm".
std::string_view ToString(Memory memory);
/// The memory of that type of device in that scope; "" and "global" stand for its main memory, and the processor has
/// one memory only. Nothing where there is none.
std::optional<Memory> MemoryOf(int device_type, std::string_view scope = "");
/// "cpu", "cuda", "ext_dev"; "device 9" for types without a memory.
std::string DeviceName(int device_type);

/// A device of this machine that has memory of its own. Kernels of its toolchains may still run when `Kernel::Run`
/// returns: what is asked for afterwards, copies included, happens after what was asked for before. Called from one
/// thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  /// `bytes` of `memory`, one of this device's, at an address that is a multiple of 64. Throws kResource.
  virtual void* Allocate(size_t bytes, Memory memory) = 0;
  virtual void Free(void* address) noexcept = 0;
  /// To the device: `source` is the host's, and may change when this returns.
  virtual void CopyIn(void* target, const void* source, size_t bytes) = 0;
  /// To the host: done when this returns.
  virtual void CopyOut(void* target, const void* source, size_t bytes) = 0;
  /// Within the device, between any of its memories.
  virtual void CopyWithin(void* target, const void* source, size_t bytes) = 0;
  /// Returns when all that was asked for is done.
  virtual void Synchronize() = 0;
};

/// The device that owns `memory`: one that was added, or that of module `libcollage_device_NAME.so` (C symbol
/// `collage_make_device`, of type MakeDeviceFn), NAME being the type's, looked for as kernel loaders are. Throws
/// kUnavailable with the reason when there is none. Not for the host's memory.
Device& GetDevice(Memory memory);
/// Adds a device of type `device_type` to this process, replacing one of the same type.
void AddDevice(int device_type, std::unique_ptr<Device> device);

using MakeDeviceFn = Device*();

/// Bytes of a device's memory, all zero at first.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws as GetDevice and Device::Allocate do.
  DeviceBuffer(Memory memory, size_t bytes);
  void* address() const { return address_.get(); }
  Device& device() const { return *device_; }

 private:
  Device* device_ = nullptr;
  std::shared_ptr<void> address_;
};

}  // namespace collage
