// licence_texts.cc: dpkg-query says which package a file is of; /usr/share/doc/PACKAGE/copyright is its licence (Debian
// policy, 12.5).
#include "bundle/licence_texts.h"

#include <sstream>

#include "collage/support/error.h"
#include "support/programs/run_tool.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMerged = "/usr";

/// Names by which the database may know the file: packages made before /lib became a link to /usr/lib list it there.
std::vector<std::string> NamesOf(const fs::path& file) {
  std::error_code ignored;
  const std::string real = fs::canonical(file, ignored).string();
  std::vector<std::string> names{real};
  if (real.starts_with(std::string(kMerged) + "/lib")) names.push_back(real.substr(kMerged.size()));
  return names;
}

/// Package by file, read from lines "libpq5:amd64: /usr/lib/x86_64-linux-gnu/libpq.so.5.15".
std::map<std::string, std::string> ReadPackages(const std::string& answer) {
  std::map<std::string, std::string> packages;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": /");
    if (colon != line.npos) packages[line.substr(colon + 2)] = line.substr(0, line.find_first_of(":,"));
  }
  return packages;
}

}  // namespace

LicenceTexts FindLicenceTexts(const std::vector<fs::path>& files) {
  std::vector<std::string> question{"dpkg-query", "--search"};
  for (const fs::path& file : files) {
    for (std::string& name : NamesOf(file)) question.push_back(std::move(name));
  }
  std::map<std::string, std::string> packages;
  try {
    packages = ReadPackages(RunTool(question).output);  // fails for files of no package, and answers for the others
  } catch (const Error&) {
  }
  LicenceTexts texts;
  for (const fs::path& file : files) {
    bool is_found = false;
    for (const std::string& name : NamesOf(file)) {
      const auto package = packages.find(name);
      if (package == packages.end()) continue;
      const fs::path text = fs::path("/usr/share/doc") / package->second / "copyright";
      std::error_code ignored;
      if (!fs::exists(text, ignored)) continue;
      texts.by_package[package->second] = text;
      is_found = true;
    }
    if (!is_found) texts.without.push_back(file.filename().string());
  }
  return texts;
}

}  // namespace collage
