// processors.h: what a control group grants, in processors.
#pragma once

#include <filesystem>
#include <string_view>

namespace collage {

/// A large number: no limit.
inline constexpr int kUnlimitedProcessors = 1 << 20;

/// Processors that the text of a `cpu.max` file grants ("150000 100000": microseconds of each period), rounded, at
/// least 1; no limit for "max 100000" and for text that is no quota.
int QuotaProcessors(std::string_view cpu_max);

/// The least that `group` ("/a/b", as /proc/self/cgroup names it) and the groups around it grant, their files being
/// under `root`.
int CgroupProcessors(const std::filesystem::path& root, std::string_view group);

}  // namespace collage
