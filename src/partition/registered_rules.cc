// registered_rules.cc: the registry, and modules that bring functions along.
#include "partition/registered_rules.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "support/dynamic_library.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

constexpr std::string_view kPrefix = "libcollage_rules_";
constexpr std::string_view kSuffix = ".so";

template <typename Function>
std::string FindTaken(const std::map<std::string, Function>& known, const std::map<std::string, Function>& more) {
  for (const auto& [name, function] : more) {
    if (known.contains(name)) return name;
  }
  return "";
}

/// Thread-safe. Functions stay where they are.
class Registry {
 public:
  static Registry& Global() {
    static auto* const registry = new Registry;  // functions may be asked for as the process ends
    return *registry;
  }

  void Add(const PartitionRuleFunctions& functions) {
    const std::lock_guard lock(mutex_);
    AddLocked(functions);
  }

  template <typename Function>
  const Function& Find(const JsonReader& name, std::map<std::string, Function> PartitionRuleFunctions::*table,
                       const char* what) {
    const std::lock_guard lock(mutex_);
    const std::string wanted = name.String();
    const std::map<std::string, Function>& known = functions_.*table;
    if (!known.contains(wanted)) OpenModules();
    if (const auto it = known.find(wanted); it != known.end()) return it->second;
    std::vector<std::string> names;
    for (const auto& [one, function] : known) names.push_back(one);
    const std::vector<std::string> near = NearMisses(wanted, names);
    std::string hint = near.empty() ? "register it, or name the folder of its module in COLLAGE_MODULE_PATH"
                                    : "did you mean '" + near[0] + "'?";
    for (const std::string& failure : failures_) hint += "; " + failure;
    name.Fail(fmt::format("there is no {} '{}'", what, wanted), hint);
  }

 private:
  void AddLocked(const PartitionRuleFunctions& functions) {
    std::string taken = FindTaken(functions_.rules, functions.rules);
    if (taken.empty()) taken = FindTaken(functions_.predicates, functions.predicates);
    if (!taken.empty()) {
      throw Error(ErrorCategory::kInput, fmt::format("a function '{}' of rules is registered already", taken));
    }
    functions_.rules.insert(functions.rules.begin(), functions.rules.end());
    functions_.predicates.insert(functions.predicates.begin(), functions.predicates.end());
  }

  /// Opens modules that were not there before. They are never closed.
  void OpenModules() {
    for (const std::filesystem::path& folder : ModuleFolders()) {
      std::error_code ignored;  // a folder that cannot be read holds no modules
      for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const std::string file = entry.path().filename().string();
        if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix) || !opened_.insert(file).second) continue;
        if (const std::string failure = Open(entry.path()); !failure.empty()) {
          failures_.push_back(fmt::format("module '{}' {}", entry.path().string(), failure));
        }
      }
    }
  }

  std::string Open(const std::filesystem::path& file) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return fmt::format("cannot be opened: {}", dlerror());
    const auto* module = static_cast<const RulesModule*>(dlsym(handle, "collage_rules_module"));
    if (module == nullptr) return "lacks the symbol 'collage_rules_module'";
    if (module->interface_number != kRulesInterface) {
      return fmt::format("was built for interface {}, this is {}: build it again", module->interface_number,
                         kRulesInterface);
    }
    try {
      AddLocked(module->make());
      return "";
    } catch (const std::exception& error) {
      return fmt::format("failed: {}", error.what());
    }
  }

  std::recursive_mutex mutex_;  ///< modules may register more as they are opened
  PartitionRuleFunctions functions_;
  std::set<std::string> opened_;
  std::vector<std::string> failures_;
};

}  // namespace

void RegisterPartitionRules(const PartitionRuleFunctions& functions) { Registry::Global().Add(functions); }

const FindCandidatesFn& FindRegisteredRule(const JsonReader& name) {
  return Registry::Global().Find(name, &PartitionRuleFunctions::rules, "registered rule");
}
const PartitionPredicateFn& FindRegisteredPredicate(const JsonReader& name) {
  return Registry::Global().Find(name, &PartitionRuleFunctions::predicates, "registered predicate");
}

}  // namespace collage
