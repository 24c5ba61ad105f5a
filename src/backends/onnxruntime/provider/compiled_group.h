// compiled_group.h: a group of nodes, as ONNX Runtime runs it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/onnxruntime/provider/graph_reader.h"
#include "collage/runtime/c_api.h"

namespace collage::onnxruntime {

/// An executable in the place of a node. Sessions may run it from several threads at once.
class CompiledGroup : public NodeComputeTable {
 public:
  /// `executable` becomes its own. `inputs` and `outputs` are the names of the node's, in order; empty for inputs that
  /// are left out. Throws kCorrupt where the executable has not all of them.
  CompiledGroup(const ProviderApi& api, collage_executable* executable, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs);
  ~CompiledGroup();
  CompiledGroup(const CompiledGroup&) = delete;
  CompiledGroup& operator=(const CompiledGroup&) = delete;

 private:
  struct Release {
    void operator()(collage_instance* instance) const { collage_instance_release(instance); }
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  /// An instance, and memory for those outputs that ONNX Runtime wants where none can be bound.
  struct Run {
    std::unique_ptr<collage_instance, Release> instance;
    std::map<size_t, std::unique_ptr<void, Free>> aligned = {};
  };
  struct Port {
    size_t of_node;  ///< its number among the node's
    size_t of_executable;
    bool is_open;  ///< whether a run decides on its shape
    std::vector<int64_t> shape;
    size_t bytes;  ///< 0 if it is open
  };

  void Compute(KernelContext* context);
  void BindInputs(KernelContext* context, collage_instance* instance) const;
  /// Lets outputs of known shapes be written where ONNX Runtime wants them; returns those that are to be copied there.
  std::vector<std::pair<const Port*, void*>> BindOutputs(KernelContext* context, Run& run) const;
  void CopyOpenOutput(KernelContext* context, collage_instance* instance, const Port& port) const;
  Run Take();
  void GiveBack(Run run);

  const ProviderApi& api_;
  collage_executable* executable_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::mutex mutex_;
  std::vector<Run> idle_;  ///< guarded by mutex_
};

/// Loads the executable at `path`. Throws what Collage reports.
collage_executable* LoadExecutable(const std::filesystem::path& path);
/// Loads one from memory; `name` is for errors.
collage_executable* LoadExecutable(const std::string& bytes, const std::string& name);

}  // namespace collage::onnxruntime
