// entry.cc: the functions that ONNX Runtime looks for in a library of execution providers.
#include "backends/onnxruntime/provider/provider.h"

using collage::onnxruntime::ApiBase;
using collage::onnxruntime::EpFactoryTable;
using collage::onnxruntime::Logger;
using collage::onnxruntime::Status;

extern "C" {

__attribute__((visibility("default"))) Status* CreateEpFactories(const char* /*registered_name*/, const ApiBase* base,
                                                                 const Logger* /*logger*/, EpFactoryTable** factories,
                                                                 size_t most, size_t* count) {
  return collage::onnxruntime::CreateFactories(base, factories, most, count);
}

__attribute__((visibility("default"))) Status* ReleaseEpFactory(EpFactoryTable* factory) {
  collage::onnxruntime::ReleaseFactory(factory);
  return nullptr;
}
}
