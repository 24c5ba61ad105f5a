// region_files.h: files that hold something of each region of a program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "driver/programs/distinct_regions.h"

namespace collage {

/// Partitionings and modules of a program, which users read and write as one file for all regions.
///
///     {"format": "collage-partitioning", "version": 1, "regions": [region 0's, …]}
class RegionFiles {
 public:
  /// Reads the partitionings that `options` name. `folder` is for files of single regions. Both must outlive it.
  RegionFiles(const CompileOptions& options, const std::filesystem::path& folder);

  /// Throws kInput when a file has another number of regions.
  void CheckNumber(size_t num_regions) const;

  /// Makes the files of a region those that its compilation by `own` reads and writes.
  void SetFiles(size_t region, CompileOptions& own) const;

  /// Puts together what was written of `regions`, which `module` calls.
  void Write(const IRModule& module, const std::vector<DistinctRegion>& regions) const;

 private:
  std::filesystem::path Written(size_t region, const std::string& ending) const;
  void WritePartitioning(size_t num_regions) const;
  void WriteModule(const IRModule& module, const std::vector<DistinctRegion>& regions) const;

  const CompileOptions& options_;
  const std::filesystem::path& folder_;
  std::vector<std::string> given_;
  std::vector<std::vector<std::string>> also_;  ///< by file
};

}  // namespace collage
