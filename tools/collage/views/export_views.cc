// export_views.cc: a table of formats, a function for each.
#include "export_views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "collage/support/error.h"
#include "command.h"
#include "support/file.h"
#include "viewers/dot.h"
#include "viewers/model_explorer.h"
#include "viewers/node_placements.h"
#include "viewers/onnx_outline.h"

namespace collage::cli {
namespace {

constexpr double kMicrosecond = 1e-6;

Fact Written(const std::string& path) {
  return Fact::Record("", "",
                      {Fact::Text("output", "", path),
                       Fact::Bytes("bytes", "", static_cast<int64_t>(std::filesystem::file_size(path)))})
      .Says("{output}: {bytes}");
}

/// The result of an export.
struct Exported {
  std::vector<std::string> files;
  std::optional<int64_t> nodes;  ///< nodes of the user's model that are in a partition
  std::optional<int64_t> nodes_of_model;
};

void CheckHasNodes(size_t nodes, const ViewArguments& arguments) {
  if (nodes > 0) return;
  throw Error(ErrorCategory::kInput,
              fmt::format("no node of the model is in '{}', which has its nodes' names", arguments.executable),
              arguments.model, "give the ONNX model that it was compiled from");
}

Exported WriteDot(const ViewedModel& viewed, const ViewArguments& arguments) {
  WriteWhole(arguments.output, DotOf(viewed));
  return {{arguments.output}, {}, {}};
}

Exported WriteGraphs(const ViewedModel& viewed, const ViewArguments& arguments) {
  if (arguments.model.empty()) {
    WriteWhole(arguments.output, ModelExplorerGraphs(viewed, nullptr));
    return {{arguments.output}, {}, {}};
  }
  const OnnxOutline outline = ReadOutline(arguments.model);
  const size_t nodes = ModelExplorerNodeData(viewed, outline).nodes;
  CheckHasNodes(nodes, arguments);
  WriteWhole(arguments.output, ModelExplorerGraphs(viewed, &outline));
  return {{arguments.output}, static_cast<int64_t>(nodes), static_cast<int64_t>(outline.nodes.size())};
}

Exported WriteNodeData(const ViewedModel& viewed, const ViewArguments& arguments) {
  const OnnxOutline outline = ReadOutline(arguments.model);
  const NodeDataFiles data = ModelExplorerNodeData(viewed, outline);
  CheckHasNodes(data.nodes, arguments);
  const std::filesystem::path folder = arguments.output;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot make a folder: {}", error.message()), arguments.output);
  }
  Exported exported{{}, static_cast<int64_t>(data.nodes), static_cast<int64_t>(outline.nodes.size())};
  const std::array files{std::pair("microseconds", &data.microseconds), std::pair("share", &data.share),
                         std::pair("toolchain", &data.toolchain), std::pair("partition", &data.partition)};
  for (const auto& [name, text] : files) {
    exported.files.push_back((folder / (std::string(name) + ".json")).string());
    WriteWhole(exported.files.back(), *text);
  }
  return exported;
}

Exported WriteOnnx(const ViewedModel& viewed, const ViewArguments& arguments) {
  std::error_code error;
  if (std::filesystem::equivalent(arguments.model, arguments.output, error)) {
    throw Error(ErrorCategory::kInput, "the copy would replace the model", arguments.output, "give -o another name");
  }
  std::map<std::string, OnnxMetadata> by_node;
  for (const auto& [node, placement] : PlacementsOf(viewed)) {
    OnnxMetadata& entries = by_node[node];
    entries["collage.toolchain"] = fmt::format("{}", fmt::join(placement.toolchains, ", "));
    entries["collage.partition"] = fmt::format("{}", fmt::join(placement.partitions, ", "));
    entries["collage.operators"] = fmt::format("{}", fmt::join(placement.operators, "; "));
    if (!placement.seconds) continue;
    const std::string suffix = viewed.is_measured() ? "" : "_estimated";
    entries["collage.microseconds" + suffix] = fmt::format("{:.3f}", *placement.seconds / kMicrosecond);
    entries["collage.partition_microseconds" + suffix] =
        fmt::format("{:.3f}", *placement.partition_seconds / kMicrosecond);
  }
  const size_t nodes = WriteWithMetadata(arguments.model, arguments.output, by_node);
  CheckHasNodes(nodes, arguments);
  const size_t all = ReadOutline(arguments.model).nodes.size();
  return {{arguments.output}, static_cast<int64_t>(nodes), static_cast<int64_t>(all)};
}

struct Format {
  const char* name;
  bool needs_model;
  Exported (*write)(const ViewedModel& viewed, const ViewArguments& arguments);
};
constexpr std::array kFormats{Format{"dot", false, WriteDot}, Format{"model-explorer", false, WriteGraphs},
                              Format{"node-data", true, WriteNodeData}, Format{"onnx", true, WriteOnnx}};

const Format& FormatOf(const ViewArguments& arguments) {
  if (arguments.format.empty()) {
    throw Error(ErrorCategory::kInput, "an executable is exported for a viewer, and none is named",
                arguments.executable, fmt::format("give --format, one of {}", kViewFormats));
  }
  const auto found = std::ranges::find_if(kFormats, [&](const Format& one) { return one.name == arguments.format; });
  if (found == kFormats.end()) {
    throw Error(ErrorCategory::kInput, fmt::format("there is no format '{}'", arguments.format), "--format",
                arguments.format == "trace" ? "`collage profile --trace FILE` writes one of a run"
                                            : fmt::format("there are {}", kViewFormats));
  }
  if (found->needs_model && arguments.model.empty()) {
    throw Error(ErrorCategory::kInput, fmt::format("format '{}' is about your ONNX model", arguments.format), "--model",
                "give the model that was compiled: --model model.onnx");
  }
  return *found;
}

}  // namespace

bool IsCompiled(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::array<char, 4> begin{};
  stream.read(begin.data(), begin.size());
  return (stream && std::string_view(begin.data(), begin.size()) == "CLGE") || vm::Executable::IsBytecode(file);
}

void ExportView(const ViewArguments& arguments) {
  const Format& format = FormatOf(arguments);
  ViewedModel viewed(arguments.executable);
  if (!arguments.profile.empty()) viewed.TakeTimes(ReadFile(arguments.profile), arguments.profile);
  const Exported exported = format.write(viewed, arguments);
  std::vector<Fact> rows;
  for (const std::string& file : exported.files) rows.push_back(Written(file));
  PrintReport(
      Fact::Report(1, {Fact::Table("files", "", std::move(rows)),
                       Fact::Line("", {Fact::Count("nodes", "", exported.nodes),
                                       Fact::Count("nodes_of_model", "", exported.nodes_of_model),
                                       Fact::Flag("measured", "", viewed.is_measured())})
                           .Says("[{nodes} of {nodes_of_model} nodes are in partitions; others are constants or "
                                 "views of others' memory]{?measured}")}),
      arguments.json);
}

}  // namespace collage::cli
