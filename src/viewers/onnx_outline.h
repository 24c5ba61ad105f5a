// onnx_outline.h: the user's own ONNX model, as far as viewers need it: nodes and the tensors between them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace collage {

struct OnnxOutline {
  struct Node {
    std::string name;  ///< as executables call it: its own, or that of its first output
    std::string op_type;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
  };
  std::string graph;
  std::vector<Node> nodes;  ///< nodes of the main graph, in the file's order
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Reads a model's outline. Throws kInput for what is no ONNX model.
OnnxOutline ReadOutline(const std::filesystem::path& model);

/// Entries of `metadata_props`, by key.
using OnnxMetadata = std::map<std::string, std::string>;

/// Writes a copy of `model` in which each node that `by_node` names has these entries; nodes of nested graphs and of
/// functions, too. Weights in files beside the model stay there. Returns the number of nodes that got entries.
size_t WriteWithMetadata(const std::filesystem::path& model, const std::filesystem::path& copy,
                         const std::map<std::string, OnnxMetadata>& by_node);

}  // namespace collage
