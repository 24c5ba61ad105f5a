// export_views.h: `collage export` of an executable: files that other viewers open.
#pragma once

#include <string>

namespace collage::cli {

struct ViewArguments {
  std::string executable;
  std::string format;   ///< one of kViewFormats
  std::string model;    ///< the user's ONNX model; empty: none is given
  std::string profile;  ///< a file of `collage profile --json`; empty: times are estimates
  std::string output;
  bool json = false;
};

/// Names of the formats, for help and errors.
inline constexpr const char* kViewFormats = "dot, model-explorer, node-data, onnx";

/// Whether `file` is an executable or a program, by its first bytes.
bool IsCompiled(const std::string& file);

/// Writes the executable in the format, and prints what was written. Throws kInput where arguments do not fit.
void ExportView(const ViewArguments& arguments);

}  // namespace collage::cli
