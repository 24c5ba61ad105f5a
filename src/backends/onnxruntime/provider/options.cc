// options.cc: keys of session options are "ep.NAME.KEY", with the provider's name in lower case, and "ep.context_…".
#include "backends/onnxruntime/provider/options.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "support/file_cache.h"

namespace collage::onnxruntime {
namespace {

// A session that is made without a limit is wanted soon.
constexpr const char* kBudget = "60s";

std::map<std::string, std::string> EntriesOf(const ProviderApi& api, const SessionOptions* session) {
  KeyValuePairs* pairs = nullptr;
  api.Ask<GetSessionConfigEntries>(session, &pairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api.Call<GetKeyValuePairs>(static_cast<const KeyValuePairs*>(pairs), &keys, &values, &count);
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  api.Call<ReleaseKeyValuePairs>(pairs);
  return entries;
}

std::string Prefix() {
  std::string prefix = fmt::format("ep.{}.", kProviderName);
  std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::tolower(c); });
  return prefix;
}

/// Adds "--key value" for each of the values.
void AddFlags(std::string key, const std::string& values, std::vector<std::string>& flags) {
  std::ranges::replace(key, '_', '-');
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find(';', begin), values.size());
    flags.push_back("--" + key);
    flags.push_back(values.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

ProviderOptions ReadOptions(const ProviderApi& api, const SessionOptions* session) {
  ProviderOptions options;
  options.cache_folder = UserCacheFolder() / "executables";
  const std::map<std::string, std::string> entries = EntriesOf(api, session);
  const auto value = [&](const std::string& key) {
    const auto found = entries.find(key);
    return found == entries.end() ? "" : found->second;
  };
  const std::string prefix = Prefix();
  if (value(prefix + "budget").empty()) options.flags = {"--budget", kBudget};
  for (const auto& [key, text] : entries) {
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size());
    if (name == "cache_folder") {
      options.cache_folder = text;
    } else {
      AddFlags(name, text, options.flags);
    }
  }
  options.writes_context = value("ep.context_enable") == "1";
  options.context_file = value("ep.context_file_path");
  options.embeds = value("ep.context_embed_mode") == "1";
  return options;
}

}  // namespace collage::onnxruntime
