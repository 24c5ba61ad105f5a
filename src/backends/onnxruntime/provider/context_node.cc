// context_node.cc: attributes of EPContext nodes.
#include "backends/onnxruntime/provider/context_node.h"

#include <optional>

#include "backends/onnxruntime/provider/compiled_group.h"
#include "support/file.h"

namespace collage::onnxruntime {
namespace {

constexpr const char* kOperator = "EPContext";
constexpr const char* kDomain = "com.microsoft";
constexpr const char* kSource = "source";
constexpr const char* kContent = "ep_cache_context";
constexpr const char* kEmbedMode = "embed_mode";

std::optional<std::string> AttributeBytes(const ProviderApi& api, const Node* node, const char* name,
                                          AttributeType type) {
  const AttributeValue* attribute = nullptr;
  Status* missing = api.Call<NodeGetAttributeByName>(node, name, &attribute);
  if (missing != nullptr) api.Call<ReleaseStatus>(missing);
  if (attribute == nullptr) return std::nullopt;
  return api.Bytes(attribute, type);
}

std::string AttributeText(const ProviderApi& api, const Node* node, const char* name) {
  return AttributeBytes(api, node, name, AttributeType::kString).value_or("");
}

std::filesystem::path FolderOf(const ProviderApi& api, const Graph* graph) {
  return std::filesystem::path(api.Text<GraphGetModelPath>(graph)).parent_path();
}

/// The model that the session writes: as it was told, or else beside the one that it reads.
std::filesystem::path WrittenModel(const ProviderApi& api, const Graph* graph, const ProviderOptions& options) {
  if (!options.context_file.empty()) return options.context_file;
  const std::filesystem::path read = api.Text<GraphGetModelPath>(graph);
  return read.parent_path() / (read.stem().string() + "_ctx.onnx");
}

/// Attributes of a node that is being made.
class Attributes {
 public:
  explicit Attributes(const ProviderApi& api) : api_(api) {}

  void Add(const char* name, const std::string& text) {
    AttributeValue* made = nullptr;
    api_.Ask<CreateOpAttr>(name, static_cast<const void*>(text.data()), static_cast<int>(text.size()),
                           AttributeType::kString, &made);
    values_.push_back(made);
  }
  void Add(const char* name, int64_t number) {
    AttributeValue* made = nullptr;
    api_.Ask<CreateOpAttr>(name, static_cast<const void*>(&number), 1, AttributeType::kInt, &made);
    values_.push_back(made);
  }
  /// They belong to the node then.
  std::vector<AttributeValue*>& values() { return values_; }

 private:
  const ProviderApi& api_;
  std::vector<AttributeValue*> values_;
};

std::vector<const char*> Pointers(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

std::vector<std::string> NamesOf(const ProviderApi& api, const std::vector<const ValueInfo*>& values) {
  std::vector<std::string> names;
  for (const ValueInfo* value : values) names.push_back(api.NameOf(value));
  return names;
}

}  // namespace

std::vector<std::string> InputNames(const ProviderApi& api, const Node* node) {
  return NamesOf(api, api.InputsOf(node));
}

std::vector<std::string> OutputNames(const ProviderApi& api, const Node* node) {
  return NamesOf(api, api.OutputsOf(node));
}

bool IsOurContext(const ProviderApi& api, const Node* node) {
  return api.Text<NodeGetOperatorType>(node) == kOperator && AttributeText(api, node, kSource) == kProviderName;
}

collage_executable* LoadContext(const ProviderApi& api, const Graph* graph, const Node* node) {
  const std::string content = AttributeText(api, node, kContent);
  const std::string mode = AttributeBytes(api, node, kEmbedMode, AttributeType::kInt).value_or("");
  const bool is_inside = mode.empty() || mode.front() != 0;  // an integer's lowest byte; 1 is the default
  if (is_inside) return LoadExecutable(content, api.Text<NodeGetName>(node));
  return LoadExecutable(FolderOf(api, graph) / content);
}

Node* MakeContext(const ProviderApi& api, const Graph* graph, const Node* fused, const std::filesystem::path& path,
                  const ProviderOptions& options) {
  const std::string name = api.Text<NodeGetName>(fused);
  std::string content;
  if (options.embeds) {
    content = ReadFile(path);
  } else {
    const std::filesystem::path model = WrittenModel(api, graph, options);
    content = fmt::format("{}_{}.clg", model.stem().string(), name);
    WriteWhole(model.parent_path() / content, ReadFile(path));
  }
  Attributes attributes(api);
  attributes.Add(kSource, kProviderName);
  attributes.Add("main_context", 1);
  attributes.Add(kEmbedMode, options.embeds ? 1 : 0);
  attributes.Add(kContent, content);
  attributes.Add("partition_name", name);
  const std::vector<std::string> inputs = InputNames(api, fused);
  const std::vector<std::string> outputs = OutputNames(api, fused);
  const ApiTable editor(api.Call<GetModelEditorApi>());
  Node* made = nullptr;
  api.Throw(ErrorCategory::kInternal, "make a node",
            editor.Call<CreateNode>(kOperator, kDomain, name.c_str(), Pointers(inputs).data(), inputs.size(),
                                    Pointers(outputs).data(), outputs.size(), attributes.values().data(),
                                    attributes.values().size(), &made));
  return made;
}

}  // namespace collage::onnxruntime
