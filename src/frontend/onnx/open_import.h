// open_import.h: models whose inputs have dimensions that only a run knows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collage/frontend/onnx.h"

namespace collage {

/// An input of which the model leaves dimensions open, each a number below 0: the same where the model calls them by
/// the same name.
struct OpenInput {
  std::string name;
  Shape shape;
};

/// Imports a model whose inputs `open` keep their open dimensions, as `?`.
///
/// Converters know all shapes. So the model is imported twice, with other sizes in place of those that are open, and
/// what differs between the two is what these sizes decide: dimensions of types become `?`, attributes are written such
/// that they mean the same for every size, and constants that follow a size (ranges, repetitions, lists of sizes) are
/// computed, as far as there is a way to. Throws kInput where there is none.
IRModule ImportOpen(const std::filesystem::path& path, const ImportOptions& options,
                    const std::vector<OpenInput>& open);

}  // namespace collage
