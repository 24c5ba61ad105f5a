// c_api.h: the part of ONNX Runtime's C API that the kernel loader and a benchmark use. Its table of functions only
// grows at the end ("stable ABI", https://onnxruntime.ai/docs/reference/compatibility.html), so places in it are as
// good as names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::onnxruntime {

// Opaque objects of the library.
struct Env;
struct Status;
struct MemoryInfo;
struct Session;
struct SessionOptions;
struct Value;
struct IoBinding;
struct RunOptions;

/// Result of the library's one exported symbol, OrtGetApiBase.
struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*version)();
};

/// The table that is asked for. Its first entries are the same in every later one.
constexpr uint32_t kApiVersion = 8;

constexpr int kLogErrors = 3;        ///< OrtLoggingLevel
constexpr int kOptimizeAll = 99;     ///< GraphOptimizationLevel
constexpr int kDeviceAllocator = 0;  ///< OrtAllocatorType
constexpr int kMemTypeDefault = 0;   ///< OrtMemType

/// Function `Place` of the table.
template <size_t Place, typename Function>
struct Entry {
  static Function* Of(const void* const* api) { return reinterpret_cast<Function*>(const_cast<void*>(api[Place])); }
};

using GetErrorMessage = Entry<2, const char*(const Status*)>;
using CreateEnv = Entry<3, Status*(int severity, const char* name, Env**)>;
using CreateSession = Entry<7, Status*(const Env*, const char* path, const SessionOptions*, Session**)>;
using CreateSessionFromArray =
    Entry<8, Status*(const Env*, const void* model, size_t size, const SessionOptions*, Session**)>;
using CreateSessionOptions = Entry<10, Status*(SessionOptions**)>;
using SetSessionGraphOptimizationLevel = Entry<23, Status*(SessionOptions*, int level)>;
using SetIntraOpNumThreads = Entry<24, Status*(SessionOptions*, int count)>;
using SetInterOpNumThreads = Entry<25, Status*(SessionOptions*, int count)>;
using CreateTensorWithDataAsOrtValue = Entry<49, Status*(const MemoryInfo*, void* data, size_t bytes,
                                                         const int64_t* shape, size_t rank, int element_type, Value**)>;
using CreateCpuMemoryInfo = Entry<69, Status*(int allocator, int memory, MemoryInfo**)>;
using ReleaseStatus = Entry<93, void(Status*)>;
using ReleaseMemoryInfo = Entry<94, void(MemoryInfo*)>;
using ReleaseSession = Entry<95, void(Session*)>;
using ReleaseValue = Entry<96, void(Value*)>;
using ReleaseSessionOptions = Entry<100, void(SessionOptions*)>;
using AddSessionConfigEntry = Entry<130, Status*(SessionOptions*, const char* key, const char* value)>;
using RunWithBinding = Entry<133, Status*(Session*, const RunOptions*, const IoBinding*)>;
using CreateIoBinding = Entry<134, Status*(Session*, IoBinding**)>;
using ReleaseIoBinding = Entry<135, void(IoBinding*)>;
using BindInput = Entry<136, Status*(IoBinding*, const char* name, const Value*)>;
using BindOutput = Entry<137, Status*(IoBinding*, const char* name, const Value*)>;

}  // namespace collage::onnxruntime
