// status.h: CUresult, as far as the stand-in for the driver gives it.
#pragma once

namespace standin::status {

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNoBinaryForGpu = 209;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotFound = 500;
inline constexpr int kNotReady = 600;
inline constexpr int kLaunchFailed = 719;
inline constexpr int kCannotBeCaptured = 900;
inline constexpr int kCaptureInvalidated = 901;

/// Null for a status that it never gives.
inline const char* NameOf(int status) {
  switch (status) {
    case kSuccess: return "CUDA_SUCCESS";
    case kInvalidValue: return "CUDA_ERROR_INVALID_VALUE";
    case kOutOfMemory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case kNotInitialized: return "CUDA_ERROR_NOT_INITIALIZED";
    case kNoDevice: return "CUDA_ERROR_NO_DEVICE";
    case kInvalidDevice: return "CUDA_ERROR_INVALID_DEVICE";
    case kInvalidContext: return "CUDA_ERROR_INVALID_CONTEXT";
    case kNoBinaryForGpu: return "CUDA_ERROR_NO_BINARY_FOR_GPU";
    case kInvalidHandle: return "CUDA_ERROR_INVALID_HANDLE";
    case kNotFound: return "CUDA_ERROR_NOT_FOUND";
    case kLaunchFailed: return "CUDA_ERROR_LAUNCH_FAILED";
    case kCannotBeCaptured: return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case kCaptureInvalidated: return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    default: return nullptr;
  }
}

}  // namespace standin::status
