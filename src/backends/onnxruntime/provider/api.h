// api.h: the part of ONNX Runtime's C API by which it asks an execution provider of somebody else. As in
// loader/c_api.h, functions are named by their places in tables that only grow at the end. The tables of functions that
// a provider hands over are declared as far as version 1.23 has them, the first in which they were declared stable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/onnxruntime/loader/c_api.h"

namespace collage::onnxruntime {

/// The version of tables that are asked for, and that the structures below say they follow.
constexpr uint32_t kProviderApiVersion = 23;

// Opaque objects of the library.
struct AttributeValue;
struct EpDevice;
struct EpGraphSupportInfo;
struct Graph;
struct HardwareDevice;
struct KernelContext;
struct KeyValuePairs;
struct Logger;
struct Node;
struct NodeComputeContext;
struct ShapeInfo;
struct TypeInfo;
struct ValueInfo;

constexpr int kFail = 1;         ///< OrtErrorCode
constexpr int kCpuDevice = 0;    ///< OrtHardwareDeviceType
constexpr int kTensorValue = 1;  ///< ONNXType
constexpr int kLogInfo = 1;      ///< OrtLoggingLevel
constexpr int kLogWarning = 2;   ///< OrtLoggingLevel

/// OrtOpAttrType.
enum class AttributeType : int { kUndefined, kInt, kInts, kFloat, kFloats, kString, kStrings, kGraph, kTensor };

// ---- OrtApi ----

using CreateStatus = Entry<0, Status*(int code, const char* message)>;
using GetTensorMutableData = Entry<51, Status*(Value*, void** data)>;
using GetStringTensorDataLength = Entry<53, Status*(const Value*, size_t* bytes)>;
using CastTypeInfoToTensorInfo = Entry<55, Status*(const TypeInfo*, const ShapeInfo**)>;
using GetOnnxTypeFromTypeInfo = Entry<56, Status*(const TypeInfo*, int* type)>;
using GetTensorElementType = Entry<60, Status*(const ShapeInfo*, int* type)>;
using GetDimensionsCount = Entry<61, Status*(const ShapeInfo*, size_t* rank)>;
using GetDimensions = Entry<62, Status*(const ShapeInfo*, int64_t* sizes, size_t rank)>;
using GetSymbolicDimensions = Entry<63, Status*(const ShapeInfo*, const char** names, size_t rank)>;
using GetTensorTypeAndShape = Entry<65, Status*(const Value*, ShapeInfo**)>;
using KernelContextGetInput = Entry<90, Status*(const KernelContext*, size_t index, const Value**)>;
using KernelContextGetOutput =
    Entry<91, Status*(KernelContext*, size_t index, const int64_t* sizes, size_t rank, Value**)>;
using ReleaseShapeInfo = Entry<99, void(ShapeInfo*)>;
using CreateOpAttr =
    Entry<211, Status*(const char* name, const void* data, int length, AttributeType type, AttributeValue**)>;
using ReleaseOpAttr = Entry<212, void(AttributeValue*)>;
using LogMessage = Entry<247, Status*(const Logger*, int severity, const char* message, const char* file, int line,
                                      const char* function)>;
/// A `length` that is too small is an error, and `needed` is set all the same.
using ReadOpAttr =
    Entry<272, Status*(const AttributeValue*, AttributeType type, void* data, size_t length, size_t* needed)>;
using GetValueInfoName = Entry<289, Status*(const ValueInfo*, const char** name)>;
using GetValueInfoTypeInfo = Entry<290, Status*(const ValueInfo*, const TypeInfo**)>;
using GetModelEditorApi = Entry<291, const void* const*()>;
using GetKeyValuePairs =
    Entry<298, void(const KeyValuePairs*, const char* const** keys, const char* const** values, size_t* count)>;
using ReleaseKeyValuePairs = Entry<300, void(KeyValuePairs*)>;
using HardwareDeviceType = Entry<307, int(const HardwareDevice*)>;
using GetEpApi = Entry<317, const void* const*()>;
using GetTensorSizeInBytes = Entry<318, Status*(const Value*, size_t* bytes)>;
using GetInitializerValue = Entry<326, Status*(const ValueInfo*, const Value**)>;
using IsGraphOutput = Entry<330, Status*(const ValueInfo*, bool*)>;
using IsConstantInitializer = Entry<331, Status*(const ValueInfo*, bool*)>;
using GraphGetModelPath = Entry<334, Status*(const Graph*, const char** path)>;
using GraphGetNumOperatorSets = Entry<336, Status*(const Graph*, size_t* count)>;
using GraphGetOperatorSets = Entry<337, Status*(const Graph*, const char** domains, int64_t* versions, size_t count)>;
using GraphGetNumInputs = Entry<338, Status*(const Graph*, size_t* count)>;
using GraphGetInputs = Entry<339, Status*(const Graph*, const ValueInfo**, size_t count)>;
using GraphGetNumOutputs = Entry<340, Status*(const Graph*, size_t* count)>;
using GraphGetOutputs = Entry<341, Status*(const Graph*, const ValueInfo**, size_t count)>;
using GraphGetNumInitializers = Entry<342, Status*(const Graph*, size_t* count)>;
using GraphGetInitializers = Entry<343, Status*(const Graph*, const ValueInfo**, size_t count)>;
using GraphGetNumNodes = Entry<344, Status*(const Graph*, size_t* count)>;
using GraphGetNodes = Entry<345, Status*(const Graph*, const Node**, size_t count)>;
using GraphGetParentNode = Entry<346, Status*(const Graph*, const Node**)>;
using NodeGetName = Entry<349, Status*(const Node*, const char**)>;
using NodeGetOperatorType = Entry<350, Status*(const Node*, const char**)>;
using NodeGetDomain = Entry<351, Status*(const Node*, const char**)>;
using NodeGetNumInputs = Entry<353, Status*(const Node*, size_t* count)>;
using NodeGetInputs = Entry<354, Status*(const Node*, const ValueInfo**, size_t count)>;
using NodeGetNumOutputs = Entry<355, Status*(const Node*, size_t* count)>;
using NodeGetOutputs = Entry<356, Status*(const Node*, const ValueInfo**, size_t count)>;
using NodeGetNumImplicitInputs = Entry<357, Status*(const Node*, size_t* count)>;
using NodeGetImplicitInputs = Entry<358, Status*(const Node*, const ValueInfo**, size_t count)>;
using NodeGetNumAttributes = Entry<359, Status*(const Node*, size_t* count)>;
using NodeGetAttributes = Entry<360, Status*(const Node*, const AttributeValue**, size_t count)>;
using NodeGetAttributeByName = Entry<361, Status*(const Node*, const char* name, const AttributeValue**)>;
/// The tensor is the caller's to release.
using GetTensorAttribute = Entry<362, Status*(const AttributeValue*, Value**)>;
using GetAttributeType = Entry<363, Status*(const AttributeValue*, AttributeType*)>;
using GetAttributeName = Entry<364, Status*(const AttributeValue*, const char**)>;
using NodeGetNumSubgraphs = Entry<365, Status*(const Node*, size_t* count)>;
using NodeGetSubgraphs = Entry<366, Status*(const Node*, const Graph**, size_t count, const char** attribute_names)>;
using GetTensorData = Entry<378, Status*(const Value*, const void** data)>;
using GetSessionConfigEntries = Entry<379, Status*(const SessionOptions*, KeyValuePairs**)>;
/// Since version 1.24: before it, a tensor of unknown rank looks like a scalar.
using HasShape = Entry<390, bool(const ShapeInfo*)>;
constexpr uint32_t kVersionOfHasShape = 24;

// ---- OrtModelEditorApi ----

using CreateNode = Entry<6, Status*(const char* op, const char* domain, const char* name, const char* const* inputs,
                                    size_t num_inputs, const char* const* outputs, size_t num_outputs,
                                    AttributeValue** attributes, size_t num_attributes, Node**)>;

// ---- OrtEpApi ----

struct EpFactoryTable;

/// OrtNodeFusionOptions.
struct FusionOptions {
  uint32_t version = kProviderApiVersion;
  bool drop_constant_initializers = true;
};

using CreateEpDevice = Entry<0, Status*(EpFactoryTable*, const HardwareDevice*, const KeyValuePairs* metadata,
                                        const KeyValuePairs* options, EpDevice**)>;
using AddNodesToFuse = Entry<2, Status*(EpGraphSupportInfo*, const Node* const*, size_t count, const FusionOptions*)>;

// ---- tables of functions that a provider hands over ----

/// OrtNodeComputeInfo: how a group of nodes is computed.
struct NodeComputeTable {
  uint32_t version = kProviderApiVersion;
  Status* (*create_state)(NodeComputeTable*, NodeComputeContext*, void** state) = nullptr;
  Status* (*compute)(NodeComputeTable*, void* state, KernelContext*) = nullptr;
  void (*release_state)(NodeComputeTable*, void* state) = nullptr;
};

/// OrtEp: the provider in one session. There is a default for all that is null.
struct EpTable {
  uint32_t version = kProviderApiVersion;
  const char* (*get_name)(const EpTable*) = nullptr;
  Status* (*get_capability)(EpTable*, const Graph*, EpGraphSupportInfo*) = nullptr;
  Status* (*compile)(EpTable*, const Graph**, const Node** fused, size_t count, NodeComputeTable**,
                     Node** context_nodes) = nullptr;
  void (*release_node_compute_infos)(EpTable*, NodeComputeTable**, size_t count) = nullptr;
  void* get_preferred_data_layout = nullptr;
  void* should_convert_data_layout_for_op = nullptr;
  void* set_dynamic_options = nullptr;
  void* on_run_start = nullptr;
  void* on_run_end = nullptr;
  void* create_allocator = nullptr;
  void* create_sync_stream_for_device = nullptr;
  void* get_compiled_model_compatibility_info = nullptr;
};

/// OrtEpFactory: makes the provider of each session.
struct EpFactoryTable {
  uint32_t version = kProviderApiVersion;
  const char* (*get_name)(const EpFactoryTable*) = nullptr;
  const char* (*get_vendor)(const EpFactoryTable*) = nullptr;
  Status* (*get_supported_devices)(EpFactoryTable*, const HardwareDevice* const*, size_t count, EpDevice**, size_t most,
                                   size_t* num_supported) = nullptr;
  Status* (*create_ep)(EpFactoryTable*, const HardwareDevice* const*, const KeyValuePairs* const* metadata,
                       size_t count, const SessionOptions*, const Logger*, EpTable**) = nullptr;
  void (*release_ep)(EpFactoryTable*, EpTable*) = nullptr;
  uint32_t (*get_vendor_id)(const EpFactoryTable*) = nullptr;
  const char* (*get_version)(const EpFactoryTable*) = nullptr;
  void* validate_compiled_model_compatibility_info = nullptr;
  Status* (*create_allocator)(EpFactoryTable*, const MemoryInfo*, const KeyValuePairs*, void** allocator) = nullptr;
  void (*release_allocator)(EpFactoryTable*, void* allocator) = nullptr;
  Status* (*create_data_transfer)(EpFactoryTable*, void** transfer) = nullptr;
  bool (*is_stream_aware)(const EpFactoryTable*) = nullptr;
  void* create_sync_stream_for_device = nullptr;
};

}  // namespace collage::onnxruntime
