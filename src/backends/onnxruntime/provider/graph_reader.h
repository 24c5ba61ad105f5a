// graph_reader.h: graphs of ONNX Runtime → ONNX models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "backends/onnxruntime/loader/api_table.h"
#include "backends/onnxruntime/provider/api.h"
#include "onnx/onnx-ml.pb.h"
#include "support/hash.h"

namespace collage::onnxruntime {

/// ONNX Runtime's table, with what a provider asks of graphs.
class ProviderApi : public ApiTable {
 public:
  /// Throws kUnavailable for an ONNX Runtime before 1.23.
  explicit ProviderApi(const ApiBase& base);

  /// As Check, of what a graph is asked.
  template <typename Entry, typename... Args>
  void Ask(Args... args) const {
    Check<Entry>(ErrorCategory::kInternal, "describe the model", args...);
  }
  /// The text that `Entry` gives of an object; empty for null.
  template <typename Entry, typename Object>
  std::string Text(const Object* object) const {
    const char* text = nullptr;
    Ask<Entry>(object, &text);
    return text != nullptr ? text : "";
  }
  /// All that `Get` lists, as many as `Count` says.
  template <typename Count, typename Get, typename Item, typename Object>
  std::vector<const Item*> All(const Object* object) const {
    size_t count = 0;
    Ask<Count>(object, &count);
    std::vector<const Item*> items(count);
    if (count > 0) Ask<Get>(object, items.data(), count);
    return items;
  }
  std::vector<const Node*> NodesOf(const Graph* graph) const;
  std::vector<const ValueInfo*> InputsOf(const Node* node) const;
  std::vector<const ValueInfo*> OutputsOf(const Node* node) const;
  /// The name of a value; empty for one that is left out.
  std::string NameOf(const ValueInfo* value) const;
  /// The bytes of an attribute; texts of a list are each ended by a zero.
  std::string Bytes(const AttributeValue* attribute, AttributeType type) const;
  bool KnowsShapes() const { return version_ >= kVersionOfHasShape; }

  /// An error as ONNX Runtime wants it.
  Status* ToStatus(const std::exception& error) const;
  void Log(const Logger* logger, int severity, const std::string& message) const;

 private:
  uint32_t version_ = 0;
};

/// A graph of ONNX Runtime, written as an ONNX model whose nodes are in the graph's order.
struct ReadGraph {
  onnx::ModelProto model;
  std::filesystem::path weights;          ///< the file that the model names
  std::string weights_digest;             ///< the digest of that file
  std::vector<const Node*> nodes;         ///< the graph's, by place in the model
  std::map<int, std::string> unreadable;  ///< nodes that no model can be written of, by place, with the reason
};

/// Reads graphs, and writes the tensors of their initializers to one file, which models name as external data.
class GraphReader {
 public:
  /// `weights`: the file, which is made. Tensors of a few bytes stay in the model.
  GraphReader(const ProviderApi& api, std::filesystem::path weights);
  ~GraphReader();
  GraphReader(const GraphReader&) = delete;
  GraphReader& operator=(const GraphReader&) = delete;

  /// Throws kResource when the file cannot be written.
  ReadGraph Read(const Graph* graph);

 private:
  void AddNode(const Node* node, onnx::NodeProto& proto);
  void AddAttributes(const Node* node, onnx::NodeProto& proto);
  void AddAttribute(const AttributeValue* attribute, AttributeType type, onnx::AttributeProto& proto);
  void AddInitializers(const Graph* graph, onnx::GraphProto& proto);
  /// A graph within a node: all of it.
  void AddGraph(const Graph* graph, onnx::GraphProto& proto);
  void AddPorts(const Graph* graph, onnx::GraphProto& proto) const;
  void SetType(const ValueInfo* value, onnx::ValueInfoProto& proto) const;
  void SetShape(const ShapeInfo* info, onnx::TypeProto::Tensor& type) const;
  void SetTensor(const Value* value, onnx::TensorProto& proto);

  const ProviderApi& api_;
  std::filesystem::path weights_;
  int file_ = -1;
  int64_t written_ = 0;
  Hasher hasher_;  ///< has seen all that was written
};

}  // namespace collage::onnxruntime
