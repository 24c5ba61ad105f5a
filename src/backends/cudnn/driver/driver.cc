// driver.cc: NVIDIA's driver as far as cuDNN wants one to make plans for GPUs that are not here: code is loaded, and
// kernels are found in it, but there is no GPU, and nothing runs. Opened only where there is no driver.
//
// Types, numbers and names are those of the CUDA Driver API.
#include <cstdint>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotFound = 500;
constexpr int kNotSupported = 801;
constexpr int kVersion = 13000;

/// Stands for each object of the driver.
int object = 0;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kSuccess; }

int cuDriverGetVersion(int* version) {
  *version = kVersion;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  *count = 0;
  return kSuccess;
}

int cuCtxGetCurrent(void** context) {
  *context = nullptr;
  return kSuccess;
}

int cuLibraryLoadData(void** library, const void*, int*, void**, unsigned, int*, void**, unsigned) {
  *library = &object;
  return kSuccess;
}

int cuLibraryUnload(void*) { return kSuccess; }

int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &object;
  return kSuccess;
}

int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

int cuGetErrorName(int, const char** text) {
  *text = "there is no GPU";
  return kSuccess;
}

int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }

// Looked up, and not called to make plans.
#define COLLAGE_ABSENT(name) \
  int name() { return kNotSupported; }
COLLAGE_ABSENT(cuDeviceGet)
COLLAGE_ABSENT(cuCtxGetLimit)
COLLAGE_ABSENT(cuCtxPopCurrent)
COLLAGE_ABSENT(cuCtxPushCurrent)
COLLAGE_ABSENT(cuStreamGetCtx)
COLLAGE_ABSENT(cuLinkCreate)
COLLAGE_ABSENT(cuLinkAddData)
COLLAGE_ABSENT(cuLinkComplete)
COLLAGE_ABSENT(cuLinkDestroy)
COLLAGE_ABSENT(cuLaunchKernel)
COLLAGE_ABSENT(cuLaunchKernelEx)
COLLAGE_ABSENT(cuLaunchCooperativeKernel)
COLLAGE_ABSENT(cuLibraryLoadFromFile)
COLLAGE_ABSENT(cuKernelSetAttribute)
COLLAGE_ABSENT(cuKernelGetAttribute)
COLLAGE_ABSENT(cuOccupancyMaxPotentialClusterSize)
#undef COLLAGE_ABSENT

}  // extern "C"
