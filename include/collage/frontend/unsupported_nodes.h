// unsupported_nodes.h: the error of models with operators that Collage does not have.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/support/error.h"

namespace collage {

/// A node of an ONNX model that cannot be imported.
struct UnsupportedNode {
  std::string name;
  std::string op;      ///< "Conv"; "com.example::Conv" of another domain
  std::string reason;  ///< empty: there is no such operator
};

/// An error of category kUnsupported that lists the nodes which cause it: all whose operators are unknown, or the first
/// that has a form which cannot be imported.
class UnsupportedNodesError : public Error {
 public:
  UnsupportedNodesError(std::vector<UnsupportedNode> nodes, std::string message, std::string where,
                        std::string hint = "")
      : Error(ErrorCategory::kUnsupported, std::move(message), std::move(where), std::move(hint)),
        nodes_(std::move(nodes)) {}

  const std::vector<UnsupportedNode>& nodes() const { return nodes_; }

 private:
  std::vector<UnsupportedNode> nodes_;
};

}  // namespace collage
