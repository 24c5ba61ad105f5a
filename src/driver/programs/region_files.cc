// region_files.cc: each region's part is a file of its own while the region is compiled.
#include "driver/programs/region_files.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "support/file.h"
#include "support/json_reader.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> ReadRegions(const std::filesystem::path& file) {
  const JsonReader json = JsonReader::Parse(ReadFile(file), file.string());
  json.AllowOnly({"format", "version", "regions"});
  std::vector<std::string> regions;
  for (const JsonReader& region : json.At("regions").Items()) regions.push_back(region.value().dump(2));
  return regions;
}

}  // namespace

RegionFiles::RegionFiles(const CompileOptions& options, const std::filesystem::path& folder)
    : options_(options), folder_(folder) {
  for (const std::filesystem::path& file : options.also) also_.push_back(ReadRegions(file));
  if (!options.partitioning.empty()) given_ = ReadRegions(options.partitioning);
}

void RegionFiles::CheckNumber(size_t num_regions) const {
  const auto check = [&](const std::vector<std::string>& given, const std::filesystem::path& file) {
    if (given.size() == num_regions) return;
    throw Error(ErrorCategory::kInput,
                fmt::format("the file chooses for {} regions, the program has {}", given.size(), num_regions),
                file.string());
  };
  if (!options_.partitioning.empty()) check(given_, options_.partitioning);
  for (size_t i = 0; i < also_.size(); ++i) check(also_[i], options_.also[i]);
}

void RegionFiles::SetFiles(size_t region, CompileOptions& own) const {
  if (!options_.write_partitioning.empty()) own.write_partitioning = Written(region, "json");
  if (!options_.write_module.empty()) own.write_module = Written(region, "relay");
  const auto split = [&](const std::string& content, const std::filesystem::path& of, size_t number) {
    const std::filesystem::path folder = folder_ / fmt::format("given{}-region{}", number, region);
    std::filesystem::create_directory(folder);
    WriteFile(folder / of.filename(), content);
    return folder / of.filename();
  };
  own.also.clear();
  for (size_t i = 0; i < also_.size(); ++i) own.also.push_back(split(also_[i][region], options_.also[i], i + 1));
  if (!options_.partitioning.empty()) own.partitioning = split(given_[region], options_.partitioning, 0);
}

void RegionFiles::Write(const IRModule& module, const std::vector<DistinctRegion>& regions) const {
  if (!options_.write_partitioning.empty()) WritePartitioning(regions.size());
  if (!options_.write_module.empty()) WriteModule(module, regions);
}

std::filesystem::path RegionFiles::Written(size_t region, const std::string& ending) const {
  return folder_ / fmt::format("written-region{}.{}", region, ending);
}

void RegionFiles::WritePartitioning(size_t num_regions) const {
  Json json{{"format", "collage-partitioning"}, {"version", 1}, {"regions", Json::array()}};
  for (size_t region = 0; region < num_regions; ++region) {
    json["regions"].push_back(Json::parse(ReadFile(Written(region, "json"))));
  }
  WriteWhole(options_.write_partitioning, json.dump(2) + "\n");
}

/// The program's module; each region in it is partitioned.
void RegionFiles::WriteModule(const IRModule& module, const std::vector<DistinctRegion>& regions) const {
  std::map<std::string, Function> partitioned;
  for (size_t region = 0; region < regions.size(); ++region) {
    const std::filesystem::path file = Written(region, "relay");
    partitioned.emplace(regions[region].digest, ParseModule(ReadFile(file), file.string()).main());
  }
  WriteWhole(options_.write_module, PrintModule(WithRegions(module, partitioned)));
}

}  // namespace collage
