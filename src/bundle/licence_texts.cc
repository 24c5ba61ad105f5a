// licence_texts.cc: dpkg-query says which package a file is of; /usr/share/doc/PACKAGE/copyright is its licence (Debian
// policy, 12.5). NAME.dist-info/RECORD lists the files of a Python package, licences among them.
#include "bundle/licence_texts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "collage/support/error.h"
#include "support/dynamic_library.h"
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

/// The files of a Python package, read from lines "../../libdnnl.so.3,sha256=…,54569528".
std::vector<fs::path> FilesOfPackage(const fs::path& record) {
  std::vector<fs::path> files;
  std::ifstream lines(record);
  for (std::string line; std::getline(lines, line);) {
    files.push_back(record.parent_path().parent_path() / line.substr(0, line.find(',')));
  }
  return files;
}

/// Whether both are paths of one file. Records list thousands, so that names are compared first.
bool IsSame(const fs::path& one, const fs::path& other) {
  std::error_code ignored;
  return one.filename() == other.filename() && fs::equivalent(one, other, ignored);
}

bool IsLicence(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("LICENSE") || name.starts_with("NOTICE") || name.starts_with("THIRD-PARTY") ||
         name.starts_with("third-party") || file.parent_path().filename() == "licensing";
}

/// Adds the texts of the Python packages that `files` are of, and returns the files that are of none.
std::vector<fs::path> AddPythonPackages(std::vector<fs::path> files, LicenceTexts& texts) {
  for (const fs::path& folder : PackageFolders()) {
    std::error_code ignored;  // a folder that cannot be read holds no packages
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (files.empty()) return files;
      if (entry.path().extension() != ".dist-info") continue;
      const std::vector<fs::path> all = FilesOfPackage(entry.path() / "RECORD");
      std::vector<fs::path> licences;
      std::ranges::copy_if(all, std::back_inserter(licences), IsLicence);
      if (licences.empty()) continue;
      const auto is_of = [&](const fs::path& file) {
        return std::ranges::any_of(all, [&](const fs::path& one) { return IsSame(one, file); });
      };
      if (std::erase_if(files, is_of) > 0) texts.by_package[entry.path().stem().string()] = licences;
    }
  }
  return files;
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
  std::vector<fs::path> rest;
  for (const fs::path& file : files) {
    bool is_found = false;
    for (const std::string& name : NamesOf(file)) {
      const auto package = packages.find(name);
      if (package == packages.end()) continue;
      const fs::path text = fs::path("/usr/share/doc") / package->second / "copyright";
      std::error_code ignored;
      if (!fs::exists(text, ignored)) continue;
      texts.by_package[package->second] = {text};
      is_found = true;
    }
    if (!is_found) rest.push_back(file);
  }
  for (const fs::path& file : AddPythonPackages(std::move(rest), texts)) {
    texts.without.push_back(file.filename().string());
  }
  return texts;
}

}  // namespace collage
