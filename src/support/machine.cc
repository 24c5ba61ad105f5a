// machine.cc: read from /proc/cpuinfo.
#include "support/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "support/hash.h"

namespace collage {
namespace {

// Instruction sets that libraries and generated code choose by.
constexpr std::array kFeatures{"sse4_1",     "sse4_2",   "avx",         "f16c",        "fma",
                               "avx2",       "bmi2",     "avx512f",     "avx512bw",    "avx512dq",
                               "avx512vl",   "avx512cd", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                               "avx512vbmi", "avx_vnni", "amx_tile",    "amx_bf16",    "amx_int8"};

// LLVM's names of instruction sets, and Linux's. Sets for cryptography and the like are missing: no compiler uses
// them unasked.
constexpr std::pair<std::string_view, std::string_view> kInstructionSets[] = {
    {"sse3", "pni"},
    {"ssse3", "ssse3"},
    {"sse4.1", "sse4_1"},
    {"sse4.2", "sse4_2"},
    {"popcnt", "popcnt"},
    {"lzcnt", "abm"},
    {"bmi", "bmi1"},
    {"bmi2", "bmi2"},
    {"tbm", "tbm"},
    {"adx", "adx"},
    {"movbe", "movbe"},
    {"avx", "avx"},
    {"f16c", "f16c"},
    {"fma", "fma"},
    {"fma4", "fma4"},
    {"xop", "xop"},
    {"avx2", "avx2"},
    {"avxvnni", "avx_vnni"},
    {"avxifma", "avx_ifma"},
    {"avxneconvert", "avx_ne_convert"},
    {"avxvnniint8", "avx_vnni_int8"},
    {"avxvnniint16", "avx_vnni_int16"},
    {"gfni", "gfni"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512cd", "avx512cd"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
    {"avx512vp2intersect", "avx512_vp2intersect"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512fp16", "avx512_fp16"},
    {"amx-tile", "amx_tile"},
    {"amx-int8", "amx_int8"},
    {"amx-bf16", "amx_bf16"},
    {"neon", "asimd"},
    {"fullfp16", "asimdhp"},
    {"dotprod", "asimddp"},
    {"lse", "atomics"},
    {"bf16", "bf16"},
    {"i8mm", "i8mm"},
    {"sve", "sve"},
    {"sve2", "sve2"},
};

std::map<std::string, std::string> ReadCpuInfo() {
  std::map<std::string, std::string> info;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = line.substr(0, colon);
    while (!key.empty() && (key.back() == '\t' || key.back() == ' ')) key.pop_back();
    info[key] = colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return info;
}

MachineInfo Read() {
  MachineInfo machine;
  std::map<std::string, std::string> info = ReadCpuInfo();
  machine.cpu = info.contains("model name") ? info["model name"] : "unknown CPU";
#if defined(__x86_64__)
  machine.isa = "x86-64";
#elif defined(__aarch64__)
  machine.isa = "aarch64";
#else
  machine.isa = "unknown";
#endif
  std::istringstream flags(info["flags"]);
  for (std::string flag; flags >> flag;) {
    if (std::find(kFeatures.begin(), kFeatures.end(), flag) != kFeatures.end()) machine.features.push_back(flag);
  }
  std::sort(machine.features.begin(), machine.features.end());
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) machine.processors = CPU_COUNT(&set);
  std::string all = info["cache size"];
  for (const std::string& feature : machine.features) all += "," + feature;
  machine.fingerprint = fmt::format("{}-{}.{}.{}-{}", machine.isa, info["cpu family"], info["model"], info["stepping"],
                                    HexDigest(all).substr(0, 8));
  return machine;
}

}  // namespace

const MachineInfo& ThisMachine() {
  static const MachineInfo machine = Read();
  return machine;
}

bool IsInstructionSet(std::string_view name) {
  return std::any_of(std::begin(kInstructionSets), std::end(kInstructionSets),
                     [&](const auto& one) { return one.first == name; });
}

bool HasInstructionSet(std::string_view name) {
  static const std::set<std::string, std::less<>> flags = [] {
    std::map<std::string, std::string> info = ReadCpuInfo();
    std::istringstream words(info["flags"] + " " + info["Features"]);  // x86 and Arm
    return std::set<std::string, std::less<>>(std::istream_iterator<std::string>(words), {});
  }();
  return std::any_of(std::begin(kInstructionSets), std::end(kInstructionSets),
                     [&](const auto& one) { return one.first == name && flags.contains(one.second); });
}

bool HasVnni(std::span<const std::string> features) {
  return std::any_of(features.begin(), features.end(),
                     [](const std::string& one) { return one == "avx512_vnni" || one == "avx_vnni"; });
}

int64_t CacheSize(int level, int64_t usual) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int found = 0;
    int64_t kib = 0;
    if (!(std::ifstream(folder + "level") >> found) || !(std::ifstream(folder + "size") >> kib)) break;
    if (found == level && kib > 0) return kib << 10;
  }
  return usual;
}

}  // namespace collage
