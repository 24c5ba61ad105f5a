// machine.cc: what Linux says of the machine (Documentation/admin-guide/pm/cpufreq.rst, mm/transhuge.rst,
// cgroup-v2.rst).
#include "doctor/machine.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "report/units.h"
#include "support/machine.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

// As many processes beside a measurement make its times longer now and then.
constexpr double kBusy = 0.5;

std::optional<std::string> FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// "key: value kB" lines of /proc/meminfo, in bytes.
std::map<std::string, double> MemoryOf(const fs::path& root) {
  std::map<std::string, double> bytes;
  std::ifstream file(root / "proc/meminfo");
  std::string key, unit;
  for (double value = 0; file >> key >> value; std::getline(file, unit)) {
    key.pop_back();
    bytes[key] = value * 1024;
  }
  return bytes;
}

Finding Processors(const fs::path& root) {
  const int usable = ThisMachine().processors;
  const auto online = static_cast<int>(std::thread::hardware_concurrency());
  std::string text = fmt::format("{}, {} processor{}", ThisMachine().cpu, usable, usable == 1 ? "" : "s");
  const std::string siblings =
      FirstLine(root / "sys/devices/system/cpu/cpu0/topology/thread_siblings_list").value_or("");
  const bool shares = siblings.find_first_of(",-") != std::string::npos;
  if (shares) text += fmt::format("; processors {} are threads of one core", siblings);
  // quota and period in microseconds, or "max"
  const std::string quota = FirstLine(root / "sys/fs/cgroup/cpu.max").value_or("max");
  double allowed = 0, period = 0;
  if (std::istringstream(quota) >> allowed >> period && period > 0 && allowed / period < usable) {
    return {"processors", State::kProblem,
            text + fmt::format("; a control group allows {:.3g} of them", allowed / period),
            "kernels stop in the middle of a period: raise the quota, or bind to whole processors"};
  }
  if (usable < online) text += fmt::format("; this process may use {} of {}", usable, online);
  if (shares) {
    return {"processors", State::kNote, text, "one thread for each core is often fastest: --threads"};
  }
  return {"processors", State::kFine, text, ""};
}

Finding Frequency(const fs::path& root) {
  const fs::path folder = root / "sys/devices/system/cpu";
  const std::optional<std::string> governor = FirstLine(folder / "cpu0/cpufreq/scaling_governor");
  if (!governor) return {"frequency", State::kNote, "the system does not say, as virtual machines do not", ""};
  std::string text = fmt::format("governor '{}'", *governor);
  const std::string boost = FirstLine(folder / "cpufreq/boost").value_or("");
  const std::string no_turbo = FirstLine(folder / "intel_pstate/no_turbo").value_or("");
  if (boost == "1" || no_turbo == "0") text += "; boost is on";
  if (*governor == "performance") return {"frequency", State::kFine, text, ""};
  return {"frequency", State::kProblem, text,
          "the clock follows the load: cpupower frequency-set --governor performance"};
}

Finding Load(const fs::path& root) {
  const double busy = BusyProcesses(0.2, root);
  double average = 0;
  std::ifstream(root / "proc/loadavg") >> average;
  const std::string text = fmt::format("{:.1f} other processes run now, {:.1f} in the last minute", busy, average);
  if (busy < kBusy) return {"load", State::kFine, text, ""};
  return {"load", State::kProblem, text, "stop them, or wait: times of kernels are too long and vary"};
}

/// Time that another virtual machine had, since this one began.
std::optional<Finding> Stolen(const fs::path& root) {
  std::ifstream file(root / "proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, steal = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> wait >> interrupts >> soft >> steal)) return std::nullopt;
  const double share = steal / std::max(user + nice + system + interrupts + soft + steal, 1.0);
  const std::string text = fmt::format("{:.1f} % of the time that processes wanted", 100 * share);
  constexpr double kMuch = 0.02;
  if (share < kMuch) return Finding{"stolen time", State::kFine, text, ""};
  return Finding{"stolen time", State::kProblem, text,
                 "other machines share the processors of this virtual one: measure more often, or elsewhere"};
}

Finding Memory(const fs::path& root) {
  const std::map<std::string, double> bytes = MemoryOf(root);
  const auto of = [&](const char* key) { return bytes.contains(key) ? bytes.at(key) : 0; };
  std::string text = fmt::format("{} of {} available", FormatBytes(of("MemAvailable")), FormatBytes(of("MemTotal")));
  const double swapped = of("SwapTotal") - of("SwapFree");
  if (swapped > 0) text += fmt::format("; {} swapped out", FormatBytes(swapped));
  constexpr double kLittle = 2e9;
  if (of("MemAvailable") >= kLittle) return {"memory", State::kFine, text, ""};
  return {"memory", State::kProblem, text, "compiling large models needs more: --candidate-memory limits a candidate"};
}

Finding HugePages(const fs::path& root) {
  const std::string line = FirstLine(root / "sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const size_t begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos) {
    return {"huge pages", State::kNote, "the system does not say", ""};
  }
  const std::string mode = line.substr(begin + 1, end - begin - 1);
  if (mode != "never") return {"huge pages", State::kFine, fmt::format("transparent ones: {}", mode), ""};
  return {"huge pages", State::kProblem, "transparent ones: never",
          "weights are slower to read: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding Counters(const fs::path& root) {
  const std::optional<std::string> paranoid = FirstLine(root / "proc/sys/kernel/perf_event_paranoid");
  if (!paranoid) return {"counters", State::kNote, "this system has none", "`collage profile` goes without"};
  const std::string text = fmt::format("kernel.perf_event_paranoid is {}", *paranoid);
  constexpr int kOwnProcess = 2;  // at most: a process may count its own events
  if (std::atoi(paranoid->c_str()) <= kOwnProcess) return {"counters", State::kFine, text, ""};
  return {"counters", State::kNote, text,
          "`collage profile` shows no hardware counters: sysctl kernel.perf_event_paranoid=2"};
}

/// A millisecond of dependent multiplications, about.
double TimeLoop() {
  constexpr int kSteps = 300'000;
  const auto started = std::chrono::steady_clock::now();
  double value = 1;
  for (int i = 0; i < kSteps; ++i) {
    value *= 1.0000001;
    asm volatile("" : "+x"(value));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

}  // namespace

double BusyProcesses(double seconds, const fs::path& root) {
  constexpr int kLooks = 10;
  double sum = 0;
  for (int look = 0; look < kLooks; ++look) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / kLooks));
    std::ifstream file(root / "proc/stat");
    std::string line;
    while (std::getline(file, line)) {
      constexpr std::string_view kRunning = "procs_running ";
      if (line.starts_with(kRunning)) sum += std::max(std::atoi(line.c_str() + kRunning.size()) - 1, 0);
    }
  }
  return sum / kLooks;
}

std::vector<Finding> ExamineMachine(const fs::path& root) {
  std::vector<Finding> findings{Processors(root), Frequency(root), Load(root)};
  if (std::optional<Finding> stolen = Stolen(root)) findings.push_back(*std::move(stolen));
  findings.push_back(Memory(root));
  findings.push_back(HugePages(root));
  findings.push_back(Counters(root));
  return findings;
}

Finding ExamineSteadiness(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  TimeLoop();
  std::vector<double> times;
  while (std::chrono::steady_clock::now() < end || times.size() < 10) times.push_back(TimeLoop());
  std::ranges::sort(times);
  const double ratio = times[times.size() * 9 / 10] / times[times.size() / 2];
  const std::string text = fmt::format("of {} equal loops, one in ten took {:.1f} % longer than the median",
                                       times.size(), 100 * (ratio - 1));
  constexpr double kUnsteady = 1.05;
  if (ratio < kUnsteady) return {"steadiness", State::kFine, text, ""};
  return {"steadiness", State::kProblem, text, "the clock changes, or something else takes the processor away"};
}

std::string BusyWarning() {
  const double busy = BusyProcesses(0.1);
  if (busy < kBusy) return "";
  return fmt::format("{:.1f} other processes are running: times will be too long and vary (`collage doctor`)", busy);
}

}  // namespace collage
