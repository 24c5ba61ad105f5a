// export.cc: the list of families of rows, tensors, files.
#include <fmt/format.h>

#include <cstring>

#include "collage/frontend/onnx_export.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "frontend/onnx/tensor_reader.h"
#include "frontend/onnx_export/graph_writer.h"
#include "support/file.h"

namespace collage {
namespace {

// Size limit of protobuf.
constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;
// Constants that are smaller stay in the model.
constexpr size_t kLeastOutside = 1024;
// Alignment of constants in the file beside the model, so that they can be mapped.
constexpr size_t kAlignment = 4096;

onnx::ModelProto ModelOf(const IRModule& module, const OnnxExportOptions& options) {
  InferTypes(module);
  return OnnxGraphWriter(module).Write(module.main(), options);
}

std::string Serialise(const onnx::ModelProto& model) {
  if (static_cast<int64_t>(model.ByteSizeLong()) > kMostBytes) {
    throw Error(ErrorCategory::kResource, fmt::format("an ONNX model of {} bytes is too large", model.ByteSizeLong()),
                "", "write it to a file: its constants go beside it");
  }
  return model.SerializeAsString();
}

void SetEntry(onnx::TensorProto& tensor, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(value);
}

/// Moves large constants out of the model, into `file`.
void MoveConstants(onnx::GraphProto& graph, AtomicFile& file, const std::string& name) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const std::string bytes = std::move(*tensor.mutable_raw_data());
    if (bytes.size() < kLeastOutside) {
      tensor.set_raw_data(bytes);
      continue;
    }
    tensor.clear_raw_data();
    file.Align(kAlignment);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    SetEntry(tensor, "location", name);
    SetEntry(tensor, "offset", std::to_string(file.position()));
    SetEntry(tensor, "length", std::to_string(bytes.size()));
    file.Write(bytes);
  }
}

}  // namespace

const OnnxExportRows& AllOnnxExportRows() {
  static const OnnxExportRows rows = [] {
    OnnxExportRows all;
    AddElementwiseRows(all);
    AddContractionRows(all);
    AddNeuralRows(all);
    AddNormalisationRows(all);
    AddShapeRows(all);
    AddDynamicRows(all);
    AddIndexRows(all);
    AddReductionRows(all);
    AddQuantisedRows(all);
    AddRecurrentRows(all);
    AddVisionRows(all);
    AddTreeRows(all);
    return all;
  }();
  return rows;
}

int64_t OnnxTypeOf(DataType dtype) {
  if (dtype.lanes == 1) {
    for (int type = onnx::TensorProto::DataType_MIN; type <= onnx::TensorProto::DataType_MAX; ++type) {
      if (onnx::TensorProto::DataType_IsValid(type) && OnnxDType(type) == dtype) return type;
    }
  }
  throw Error(ErrorCategory::kUnsupported, fmt::format("ONNX has no tensors of {}", dtype.ToString()));
}

void WriteTensor(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_data_type(static_cast<int32_t>(OnnxTypeOf(tensor.dtype())));
  for (int64_t size : tensor.shape()) proto.add_dims(size);
  proto.set_raw_data(tensor.raw(), tensor.size_bytes());
}

std::string ExportOnnx(const IRModule& module, const OnnxExportOptions& options) {
  return Serialise(ModelOf(module, options));
}

std::string ExportOnnx(const Function& function, const OnnxExportOptions& options) {
  return ExportOnnx(IRModule::FromFunction(function), options);
}

int64_t WriteOnnx(const IRModule& module, const std::filesystem::path& path, const OnnxExportOptions& options,
                  int64_t most_inside_bytes) {
  onnx::ModelProto model = ModelOf(module, options);
  int64_t constant_bytes = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    constant_bytes += static_cast<int64_t>(tensor.raw_data().size());
  }
  int64_t written = 0;
  if (constant_bytes > most_inside_bytes) {
    std::filesystem::path beside = path;
    beside += ".data";
    AtomicFile data(beside);
    MoveConstants(*model.mutable_graph(), data, beside.filename().string());
    written += static_cast<int64_t>(data.position());
    data.Commit();
  }
  const std::string bytes = Serialise(model);
  WriteWhole(path, bytes);
  return written + static_cast<int64_t>(bytes.size());
}

Result<void> CanExportOnnx(const CallNode& call) {
  // Weights are not copied only to find out: no row looks into large constants.
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Expr& arg : call.args()) {
    const auto* constant = As<ConstantNode>(arg);
    if (constant != nullptr && constant->value().size_bytes() < kLeastOutside) {
      args.push_back(arg);
    } else {
      params.push_back(MakeVar("x", arg->checked_type()));
      args.push_back(params.back());
    }
  }
  try {
    ExportOnnx(MakeFunction(params, MakeCall(call.callee(), args, call.attrs())));
    return {};
  } catch (const Error& error) {
    return Reason{error.message(), "onnx"};
  }
}

std::vector<std::string> OnnxExportableOps() {
  std::vector<std::string> names;
  for (const auto& [name, row] : AllOnnxExportRows()) names.push_back(name);
  return names;
}

}  // namespace collage
