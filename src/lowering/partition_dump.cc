// partition_dump.cc: names of files and their content.
#include "lowering/partition_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "support/file.h"
#include "support/hash.h"
#include "target/annotations.h"

namespace collage {
namespace {

// Longer names of operators are cut: file systems allow 255 bytes.
constexpr size_t kLongestLabel = 80;

/// `text` with only characters that are plain in every shell and file system.
std::string ForFileName(std::string text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '+'; };
  std::ranges::replace_if(
      text, [&](char c) { return !is_plain(static_cast<unsigned char>(c)); }, '_');
  return text;
}

nlohmann::ordered_json LayoutsJson(const std::vector<Layout>& layouts) {
  auto json = nlohmann::ordered_json::array();
  for (const Layout layout : layouts) json.push_back(ToString(layout));
  return json;
}

nlohmann::ordered_json ConstantsJson(const std::vector<Tensor>& constants) {
  auto json = nlohmann::ordered_json::array();
  for (const Tensor& constant : constants) {
    json.push_back({{"shape", constant.shape()}, {"dtype", constant.dtype().ToString()}});
  }
  return json;
}

}  // namespace

PartitionDump::PartitionDump(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error || !std::filesystem::is_directory(folder_)) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot make a folder: {}", error.message()), folder_.string());
  }
  if (!std::filesystem::is_empty(folder_)) {
    throw Error(ErrorCategory::kInput, "the folder for a dump has files already", folder_.string(),
                "name a folder that is empty or does not exist");
  }
}

void PartitionDump::Add(const Toolchain& toolchain, const PartitionRequest& request, const CompiledPartition& compiled,
                        const std::vector<std::string>& nodes) {
  const std::string label = OperatorLabel(request.function);
  const std::string name =
      fmt::format("{:03}-{}-{}", count_++, ForFileName(toolchain.name()), ForFileName(label).substr(0, kLongestLabel));
  const auto write = [&](const std::string& extension, const std::string& text) {
    WriteFile(folder_ / (name + "." + extension), text);
  };
  const std::string structure = StructuralHash(request.function, {.constants_by_shape = true});
  const std::string code(reinterpret_cast<const char*>(compiled.blob.data()), compiled.blob.size());
  const std::string content = structure + "/" + LayoutsText(request.layouts) + "/" + toolchain.name() + "/" +
                              request.schedule + "/" + HexDigest(code);
  const auto [first, is_first] = first_by_content_.emplace(content, name);
  nlohmann::ordered_json json{
      {"toolchain", toolchain.name()},
      {"operators", label},
      {"nodes", nodes},
      {"schedule", request.schedule},
      {"layouts", {{"inputs", LayoutsJson(request.layouts.inputs)}, {"outputs", LayoutsJson(request.layouts.outputs)}}},
      {"threads", request.num_threads},
      {"loader", compiled.loader},
      {"code_bytes", compiled.blob.size()},
      {"workspace_bytes", compiled.workspace_bytes},
      {"constants", ConstantsJson(compiled.constants)}};
  if (!is_first) json["same_as"] = first->second;
  write("json", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!is_first) return;
  const IRModule module = IRModule::FromFunction(request.function);
  write("relay", PrintModule(module, {.types = true, .metadata = false}));
  for (const Listing& listing : toolchain.Listings(request, compiled)) write(listing.extension, listing.text);
}

std::string OperatorLabel(const Function& function) {
  std::string label;
  PostOrder(function, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) label += (label.empty() ? "" : "+") + call->op()->name;
  });
  return label;
}

}  // namespace collage
