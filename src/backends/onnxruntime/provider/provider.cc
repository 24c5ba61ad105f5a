// provider.cc: what is taken, and what becomes of it.
#include "backends/onnxruntime/provider/provider.h"

#include <exception>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "backends/onnxruntime/provider/compile_group.h"
#include "backends/onnxruntime/provider/compiled_group.h"
#include "backends/onnxruntime/provider/context_node.h"
#include "backends/onnxruntime/provider/groups.h"
#include "collage/frontend/onnx.h"
#include "frontend/onnx/tensor_reader.h"
#include "support/file.h"

namespace collage::onnxruntime {
namespace {

// A smaller part of a model takes as long to compile as it is to gain nothing.
constexpr size_t kFewestNodes = 3;

std::vector<std::string> NamesOf(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  return names;
}

/// Calls `body`, whose exception becomes the status that is returned.
template <typename Body>
Status* Guarded(const ProviderApi& api, const Body& body) {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return api.ToStatus(error);
  }
}

/// The values of a graph whose elements are no numbers of whole bytes: strings, and numbers of few bits.
std::set<std::string> ValuesOfOtherTypes(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto* values : {&graph.value_info(), &graph.input(), &graph.output()}) {
    for (const auto& value : *values) {
      const auto& type = value.type();
      if (type.has_tensor_type() && !OnnxDType(type.tensor_type().elem_type())) names.insert(value.name());
    }
  }
  return names;
}

/// Which nodes of a model, which is written to `file`, can be converted; `log` gets the reasons of the others.
template <typename Log>
std::vector<bool> Convertible(const ReadGraph& read, const std::filesystem::path& file, const Log& log) {
  std::vector<bool> taken(read.nodes.size(), true);
  const auto refuse = [&](size_t place, const std::string& reason) {
    if (!taken[place]) return;
    taken[place] = false;
    const onnx::NodeProto& node = read.model.graph().node(static_cast<int>(place));
    log(fmt::format("leaves node '{}' ({}): {}", node.name(), node.op_type(), reason));
  };
  for (const auto& [place, reason] : read.unreadable) refuse(static_cast<size_t>(place), reason);
  const std::set<std::string> others = ValuesOfOtherTypes(read.model.graph());
  for (size_t place = 0; place < taken.size(); ++place) {
    const onnx::NodeProto& node = read.model.graph().node(static_cast<int>(place));
    for (const auto* values : {&node.input(), &node.output()}) {
      for (const std::string& name : *values) {
        if (others.contains(name)) refuse(place, fmt::format("'{}' has elements of another type than numbers", name));
      }
    }
  }
  WriteFile(file, read.model.SerializeAsString());
  for (const RefusedOnnxNode& refused : RefusedOnnxNodes(file)) refuse(refused.place, refused.reason);
  return taken;
}

}  // namespace

Provider::Provider(const ProviderApi& api, const ApiTable& ep_api, ProviderOptions options, const Logger* logger)
    : api_(api), ep_api_(ep_api), options_(std::move(options)), logger_(logger) {
  get_name = [](const EpTable*) { return kProviderName; };
  get_capability = [](EpTable* self, const Graph* graph, EpGraphSupportInfo* support) -> Status* {
    auto* provider = static_cast<Provider*>(self);
    return Guarded(provider->api_, [&] { provider->FindGroups(graph, support); });
  };
  compile = [](EpTable* self, const Graph** graphs, const Node** fused, size_t count, NodeComputeTable** computes,
               Node** contexts) -> Status* {
    auto* provider = static_cast<Provider*>(self);
    return Guarded(provider->api_, [&] { provider->CompileGroups(graphs, fused, count, computes, contexts); });
  };
  release_node_compute_infos = [](EpTable*, NodeComputeTable** computes, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<CompiledGroup*>(computes[i]);
  };
}

void Provider::Fuse(EpGraphSupportInfo* support, const std::vector<const Node*>& nodes) {
  const FusionOptions fusion;
  ep_api_.Throw(ErrorCategory::kInternal, "take a group of nodes",
                ep_api_.Call<AddNodesToFuse>(support, nodes.data(), nodes.size(), &fusion));
}

void Provider::FindGroups(const Graph* graph, EpGraphSupportInfo* support) {
  const Node* parent = nullptr;
  api_.Ask<GraphGetParentNode>(graph, &parent);
  if (parent != nullptr) return;  // it is compiled with the node that it is in
  for (const Node* node : api_.NodesOf(graph)) {
    if (IsOurContext(api_, node)) Fuse(support, {node});
  }
  const TemporaryFolder folder;
  const ReadGraph read = GraphReader(api_, folder / "weights").Read(graph);
  if (read.nodes.empty()) return;
  const std::vector<bool> taken =
      Convertible(read, folder / "model.onnx", [&](const std::string& line) { Log(kLogInfo, line); });
  for (const NodeGroup& group : GroupNodes(read.model.graph(), taken)) {
    if (group.size() < kFewestNodes && group.size() < read.nodes.size()) continue;
    TakeGroup(read, group, support);
  }
}

void Provider::TakeGroup(const ReadGraph& read, const std::vector<int>& group, EpGraphSupportInfo* support) {
  Outcome outcome;
  try {
    const onnx::ModelProto model = ModelOfGroup(read.model, group);
    outcome.executable = CompileGroup(model, read, options_, [&](const std::string& line) { Log(kLogInfo, line); });
    const CompiledGroup is_usable(api_, LoadExecutable(outcome.executable), NamesOf(model.graph().input()),
                                  NamesOf(model.graph().output()));
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kUnsupported || error.category() == ErrorCategory::kInternal) {
      return Log(kLogWarning, fmt::format("leaves {} nodes to ONNX Runtime: {}", group.size(), error.Format()));
    }
    // Options that are wrong, and a machine that lacks something, are the user's to mend. Errors of this function are
    // logged, those of CompileGroups end the making of the session.
    outcome.error = error;
  }
  std::vector<const Node*> nodes;
  for (const int place : group) {
    nodes.push_back(read.nodes[static_cast<size_t>(place)]);
    for (const std::string& output : OutputNames(api_, nodes.back())) {
      if (!output.empty()) outcomes_[output] = outcome;
    }
  }
  Fuse(support, nodes);
}

void Provider::CompileGroups(const Graph** graphs, const Node** fused, size_t count, NodeComputeTable** computes,
                             Node** contexts) {
  for (size_t i = 0; i < count; ++i) {
    const std::vector<const Node*> nodes = api_.NodesOf(graphs[i]);
    const std::vector<std::string> inputs = InputNames(api_, fused[i]), outputs = OutputNames(api_, fused[i]);
    if (nodes.size() == 1 && IsOurContext(api_, nodes.front())) {
      computes[i] = new CompiledGroup(api_, LoadContext(api_, graphs[i], nodes.front()), inputs, outputs);
      continue;
    }
    const auto found = outcomes_.find(outputs.at(0));
    if (found == outcomes_.end()) {
      throw Error(ErrorCategory::kInternal, fmt::format("no group of nodes makes '{}'", outputs.at(0)));
    }
    const auto& [executable, error] = found->second;
    if (error) throw *error;
    computes[i] = new CompiledGroup(api_, LoadExecutable(executable), inputs, outputs);
    if (options_.writes_context) contexts[i] = MakeContext(api_, graphs[i], fused[i], executable, options_);
  }
}

// ---- the factory ----

namespace {

/// Makes the provider of each session; one a process.
class Factory : public EpFactoryTable {
 public:
  explicit Factory(const ApiBase& base) : api_(base), ep_api_(api_.Call<GetEpApi>()) {
    get_name = [](const EpFactoryTable*) { return kProviderName; };
    get_vendor = [](const EpFactoryTable*) { return "Collage"; };
    get_vendor_id = [](const EpFactoryTable*) -> uint32_t { return 0; };
    get_version = [](const EpFactoryTable*) { return collage_version(); };
    get_supported_devices = [](EpFactoryTable* self, const HardwareDevice* const* devices, size_t count,
                               EpDevice** supported, size_t most, size_t* num_supported) -> Status* {
      auto* factory = static_cast<Factory*>(self);
      return Guarded(factory->api_, [&] {
        *num_supported = factory->FindDevices({devices, count}, {supported, most});
      });
    };
    create_ep = [](EpFactoryTable* self, const HardwareDevice* const*, const KeyValuePairs* const*, size_t,
                   const SessionOptions* session, const Logger* logger, EpTable** made) -> Status* {
      auto* factory = static_cast<Factory*>(self);
      return Guarded(factory->api_, [&] {
        *made = new Provider(factory->api_, factory->ep_api_, ReadOptions(factory->api_, session), logger);
      });
    };
    release_ep = [](EpFactoryTable*, EpTable* provider) { delete static_cast<Provider*>(provider); };
    create_allocator = [](EpFactoryTable*, const MemoryInfo*, const KeyValuePairs*, void** allocator) -> Status* {
      *allocator = nullptr;  // the processor's default
      return nullptr;
    };
    release_allocator = [](EpFactoryTable*, void*) {};
    create_data_transfer = [](EpFactoryTable*, void** transfer) -> Status* {
      *transfer = nullptr;
      return nullptr;
    };
    is_stream_aware = [](const EpFactoryTable*) { return false; };
  }

 private:
  size_t FindDevices(std::span<const HardwareDevice* const> devices, std::span<EpDevice*> supported) {
    size_t count = 0;
    for (const HardwareDevice* device : devices) {
      if (api_.Call<HardwareDeviceType>(device) != kCpuDevice || count == supported.size()) continue;
      ep_api_.Throw(ErrorCategory::kInternal, "take a device",
                    ep_api_.Call<CreateEpDevice>(static_cast<EpFactoryTable*>(this), device,
                                                 static_cast<const KeyValuePairs*>(nullptr),
                                                 static_cast<const KeyValuePairs*>(nullptr), &supported[count]));
      ++count;
    }
    return count;
  }

  ProviderApi api_;
  ApiTable ep_api_;
};

}  // namespace

Status* CreateFactories(const ApiBase* base, EpFactoryTable** factories, size_t most, size_t* count) {
  *count = 0;
  const ApiTable any(base->get_api(kApiVersion));  // for an ONNX Runtime that is too old
  try {
    if (most == 0) return nullptr;
    factories[0] = std::make_unique<Factory>(*base).release();
    *count = 1;
    return nullptr;
  } catch (const std::exception& error) {
    return any.Call<CreateStatus>(kFail, error.what());
  }
}

void ReleaseFactory(EpFactoryTable* factory) { delete static_cast<Factory*>(factory); }

}  // namespace collage::onnxruntime
