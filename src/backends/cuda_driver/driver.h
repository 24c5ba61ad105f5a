// driver.h: NVIDIA's driver by a table of its functions (CUDA Driver API, version 12 and later).
//
// Types, numbers and names are those of the interface's documentation. A function "cuMemAlloc_v2" is called MemAlloc
// here; its documentation is that of cuMemAlloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage::cuda_driver {

/// CUresult: 0 is success.
using Status = int;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kInvalidPtx = 218;
inline constexpr Status kPtxOfLaterVersion = 222;

/// CUdevice: the number of a GPU.
using DeviceNumber = int;
/// CUdeviceptr: an address in a GPU's memory.
using Address = uint64_t;
// Objects of the driver.
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;

/// CUdevice_attribute.
enum class Attribute : int { kL2CacheBytes = 38, kComputeMajor = 75, kComputeMinor = 76 };

/// CUevent_flags.
inline constexpr unsigned kEventWithTime = 0;
inline constexpr unsigned kEventWithoutTime = 2;
/// CUstreamCaptureMode: what cannot be captured fails, where this thread does it.
inline constexpr int kCaptureOfThread = 1;
/// CUstream_flags: not ordered with work on the default stream.
inline constexpr unsigned kStreamAlone = 1;

/// CUfunction_attribute: the most bytes that a launch may say that threads of a block share.
inline constexpr int kMostDynamicSharedBytes = 8;
/// Up to so many it may say in any case.
inline constexpr int64_t kUsualSharedBytes = int64_t{48} << 10;

// Name here, name in the library, parameters.
#define COLLAGE_CUDA_DRIVER_FUNCTIONS(F)                                                                       \
  F(GetErrorName, "cuGetErrorName", (Status status, const char** text))                                        \
  F(GetErrorString, "cuGetErrorString", (Status status, const char** text))                                    \
  F(Init, "cuInit", (unsigned flags))                                                                          \
  F(DriverGetVersion, "cuDriverGetVersion", (int* version))                                                    \
  F(DeviceGetCount, "cuDeviceGetCount", (int* count))                                                          \
  F(DeviceGet, "cuDeviceGet", (DeviceNumber * device, int number))                                             \
  F(DeviceGetName, "cuDeviceGetName", (char* name, int size, DeviceNumber device))                             \
  F(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char* text, int size, DeviceNumber device))                     \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, Attribute attribute, DeviceNumber device))        \
  F(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, DeviceNumber device))                              \
  F(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context * context, DeviceNumber device))              \
  F(CtxSetCurrent, "cuCtxSetCurrent", (Context context))                                                       \
  F(MemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                            \
  F(MemAlloc, "cuMemAlloc_v2", (Address * address, size_t bytes))                                              \
  F(MemFree, "cuMemFree_v2", (Address address))                                                                \
  F(MemAllocHost, "cuMemAllocHost_v2", (void** address, size_t bytes))                                         \
  F(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (Address to, const void* from, size_t bytes, Stream stream))      \
  F(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, Address from, size_t bytes, Stream stream))            \
  F(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (Address to, Address from, size_t bytes, Stream stream))          \
  F(StreamCreate, "cuStreamCreate", (Stream * stream, unsigned flags))                                         \
  F(StreamSynchronize, "cuStreamSynchronize", (Stream stream))                                                 \
  F(EventCreate, "cuEventCreate", (Event * event, unsigned flags))                                             \
  F(EventRecord, "cuEventRecord", (Event event, Stream stream))                                                \
  F(EventSynchronize, "cuEventSynchronize", (Event event))                                                     \
  F(EventElapsedTime, "cuEventElapsedTime", (float* milliseconds, Event begin, Event end))                     \
  F(StreamBeginCapture, "cuStreamBeginCapture_v2", (Stream stream, int mode))                                  \
  F(StreamEndCapture, "cuStreamEndCapture", (Stream stream, Graph * graph))                                    \
  F(GraphInstantiate, "cuGraphInstantiateWithFlags", (GraphExec * exec, Graph graph, uint64_t flags))          \
  F(GraphLaunch, "cuGraphLaunch", (GraphExec exec, Stream stream))                                             \
  F(GraphExecDestroy, "cuGraphExecDestroy", (GraphExec exec))                                                  \
  F(GraphDestroy, "cuGraphDestroy", (Graph graph))                                                             \
  F(MemsetD32Async, "cuMemsetD32Async", (Address to, unsigned word, size_t words, Stream stream))              \
  F(ModuleLoadData, "cuModuleLoadData", (Module * module, const void* image))                                  \
  F(ModuleUnload, "cuModuleUnload", (Module module))                                                           \
  F(ModuleGetFunction, "cuModuleGetFunction", (Function * function, Module module, const char* name))          \
  F(FuncSetAttribute, "cuFuncSetAttribute", (Function function, int attribute, int value))                     \
  F(LaunchKernel, "cuLaunchKernel",                                                                            \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra))

/// The functions that Collage calls.
struct Driver {
#define COLLAGE_CUDA_MEMBER(name, symbol, parameters) Status(*name) parameters = nullptr;
  COLLAGE_CUDA_DRIVER_FUNCTIONS(COLLAGE_CUDA_MEMBER)
#undef COLLAGE_CUDA_MEMBER

  /// Throws kInternal, or kResource where memory is missing, unless `status` is success; `doing` says what failed.
  void Check(Status status, std::string_view doing) const;
};

/// The driver of this machine, opened and initialised by the first call. Throws kUnavailable with the reason: the
/// library or one of its functions is missing, or it finds no GPU. A process that was forked from one that has called
/// this cannot use the driver.
const Driver& GetDriver();

/// "NVIDIA H100 80GB HBM3, sm_90, 79.6 GB, driver of CUDA 13.0": the GPU that Collage computes on. Throws as GetDriver.
std::string DescribeGpu();

/// "sm_90": the code that it runs; "emulated" for a driver without a GPU. Throws as GetDriver.
std::string GpuArchitecture();

}  // namespace collage::cuda_driver
