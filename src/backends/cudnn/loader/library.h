// library.h: cuDNN 9 by a table of the functions of its backend API. Types, numbers and names are those of its
// documentation; "cudnnBackendFinalize" is called BackendFinalize here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cuda_driver/driver.h"
#include "backends/cudnn/loader/numbers.h"

namespace collage::cudnn {

/// cudnnStatus_t: 0 is success; thousands are categories.
using Status = int;
inline constexpr Status kVersionMismatch = 1003;  ///< CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH
inline constexpr Status kArchitectureMismatch = 3007;

// Objects of the library.
using Handle = struct HandleObject*;
using DescriptorPointer = void*;  ///< cudnnBackendDescriptor_t

// Name here, name in the library, parameters.
#define COLLAGE_CUDNN_FUNCTIONS(F)                                                                                  \
  F(Create, "cudnnCreate", (Handle * handle))                                                                       \
  F(Destroy, "cudnnDestroy", (Handle handle))                                                                       \
  F(SetStream, "cudnnSetStream", (Handle handle, cuda_driver::Stream stream))                                       \
  F(BackendCreateDescriptor, "cudnnBackendCreateDescriptor", (DescriptorKind kind, DescriptorPointer * descriptor)) \
  F(BackendDestroyDescriptor, "cudnnBackendDestroyDescriptor", (DescriptorPointer descriptor))                      \
  F(BackendSetAttribute, "cudnnBackendSetAttribute",                                                                \
    (DescriptorPointer descriptor, Attribute attribute, Type type, int64_t count, const void* elements))            \
  F(BackendGetAttribute, "cudnnBackendGetAttribute",                                                                \
    (DescriptorPointer descriptor, Attribute attribute, Type type, int64_t most, int64_t * count, void* elements))  \
  F(BackendFinalize, "cudnnBackendFinalize", (DescriptorPointer descriptor))                                        \
  F(BackendExecute, "cudnnBackendExecute", (Handle handle, DescriptorPointer plan, DescriptorPointer pack))

/// The functions that Collage calls.
struct Library {
#define COLLAGE_CUDNN_MEMBER(name, symbol, parameters) Status(*name) parameters = nullptr;
  COLLAGE_CUDNN_FUNCTIONS(COLLAGE_CUDNN_MEMBER)
#undef COLLAGE_CUDNN_MEMBER
  size_t (*GetVersion)() = nullptr;
  const char* (*GetErrorString)(Status status) = nullptr;
  void (*GetLastErrorString)(char* text, size_t bytes) = nullptr;

  /// Throws unless `status` is success: kUnavailable where versions or GPUs differ, kUnsupported where the library says
  /// so, else kInternal. `doing` says what failed.
  void Check(Status status, std::string_view doing) const;
};

/// The library of this machine, opened by the first call. Throws kUnavailable with the reason.
const Library& GetLibrary();

/// "cuDNN 9.19.0".
std::string LibraryVersion();

}  // namespace collage::cudnn
