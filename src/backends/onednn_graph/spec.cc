// spec.cc: the JSON of a graph.
#include "backends/onednn_graph/spec.h"

#include <fmt/format.h>

#include <stdexcept>

#include "collage/support/error.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

json ToValue(const GraphTensor& tensor) {
  json value{{"shape", tensor.shape}, {"dtype", tensor.dtype.ToString()}};
  if (tensor.input >= 0) value["input"] = tensor.input;
  if (tensor.constant >= 0) value["constant"] = tensor.constant;
  if (tensor.layout != Layout::kPlain) value["layout"] = static_cast<int>(tensor.layout);
  return value;
}

GraphTensor TensorFrom(const json& value) {
  GraphTensor tensor;
  value.at("shape").get_to(tensor.shape);
  tensor.dtype = DataType::FromString(value.at("dtype").get<std::string>());
  tensor.input = value.value("input", -1);
  tensor.constant = value.value("constant", -1);
  const int layout = value.value("layout", 0);
  if (layout < 0 || layout > static_cast<int>(Layout::kChannelsLast)) throw std::out_of_range("layout");
  tensor.layout = static_cast<Layout>(layout);
  return tensor;
}

void CheckNumbers(const std::vector<int>& numbers, size_t count) {
  for (int number : numbers) {
    if (number < 0 || static_cast<size_t>(number) >= count) throw std::out_of_range("tensor");
  }
}

}  // namespace

std::string ToJson(const GraphSpec& spec) {
  json tensors = json::array();
  for (const GraphTensor& tensor : spec.tensors) tensors.push_back(ToValue(tensor));
  json ops = json::array();
  for (const GraphOp& op : spec.ops) {
    ops.push_back({{"kind", op.kind}, {"attrs", op.attrs}, {"inputs", op.inputs}, {"outputs", op.outputs}});
  }
  return json{{"tensors", tensors}, {"ops", ops}, {"outputs", spec.outputs}}.dump();
}

GraphSpec FromJson(std::string_view text) {
  try {
    const json value = json::parse(text);
    GraphSpec spec;
    for (const json& tensor : value.at("tensors")) spec.tensors.push_back(TensorFrom(tensor));
    for (const json& op : value.at("ops")) {
      spec.ops.push_back({op.at("kind"), op.at("attrs"), op.at("inputs"), op.at("outputs")});
      CheckNumbers(spec.ops.back().inputs, spec.tensors.size());
      CheckNumbers(spec.ops.back().outputs, spec.tensors.size());
    }
    value.at("outputs").get_to(spec.outputs);
    CheckNumbers(spec.outputs, spec.tensors.size());
    return spec;
  } catch (const std::exception& error) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("no graph of oneDNN: {}", error.what()));
  }
}

}  // namespace collage::onednn_graph
