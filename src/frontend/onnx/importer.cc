// importer.cc: the list of families of operators, and what cannot be converted.
#include "frontend/onnx/importer.h"

#include <new>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"
#include "frontend/onnx/converters/ml/ml.h"
#include "frontend/onnx/graph.h"

namespace collage {

const OnnxConverters& AllOnnxConverters() {
  static const OnnxConverters converters = [] {
    OnnxConverters all;
    AddMathConverters(all);
    AddMatrixConverters(all);
    AddNeuralConverters(all);
    AddTensorConverters(all);
    AddSlicingConverters(all);
    AddRecurrentConverters(all);
    AddQuantisedConverters(all);
    AddRandomConverters(all);
    AddTrainingConverters(all);
    AddNgramConverters(all);
    AddActivationConverters(all);
    AddNormalisationConverters(all);
    AddResizeConverters(all);
    AddIndexConverters(all);
    AddVisionConverters(all);
    AddSignalConverters(all);
    AddAttentionConverters(all);
    AddLossConverters(all);
    AddControlConverters(all);
    AddSequenceConverters(all);
    AddMicrosoftAttention(all);
    AddMicrosoftFused(all);
    AddMicrosoftNormalisation(all);
    AddMicrosoftQuantised(all);
    AddMicrosoftBlockQuantised(all);
    AddMlTrees(all);
    AddMlLinear(all);
    AddMlSupportVectors(all);
    AddMlFeatures(all);
    AddMlEncoders(all);
    return all;
  }();
  return converters;
}

const char* OnnxRefusal(const std::string& op_type) {
  static const std::unordered_map<std::string, const char*> reasons = [] {
    std::unordered_map<std::string, const char*> all;
    for (const char* op : {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"}) {
      all[op] = "strings are moved, compared and looked up, not read or made";
    }
    all["ImageDecoder"] = "images are decoded before a model runs";
    for (const char* op : {"ai.onnx.ml.CastMap", "ai.onnx.ml.DictVectorizer"}) all[op] = "there are no maps";
    return all;
  }();
  const auto it = reasons.find(op_type);
  return it == reasons.end() ? nullptr : it->second;
}

IRModule ImportOnnx(const std::filesystem::path& path, const ImportOptions& options) try {
  OnnxGraph graph(path, options);
  try {
    return graph.Import();
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kUnsupported || !graph.HasDynamicSizes()) throw;
    // Some arithmetic is one formula for all sizes but 0: (size - 1) / 8, which integers round towards 0.
    try {
      return OnnxGraph(path, options, /*least_size=*/1).Import();
    } catch (const Error&) {  // NOLINT: the first error tells more
    }
    throw;
  }
} catch (const std::bad_alloc&) {
  throw Error(ErrorCategory::kResource, "there is not enough memory to import the model", path.string());
}

std::vector<std::string> OnnxInputNames(const std::filesystem::path& path) { return OnnxGraph(path, {}).InputNames(); }

}  // namespace collage
