// licence_texts.h: the licences of files that packages of the system, or of Python, installed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace collage {

struct LicenceTexts {
  std::map<std::string, std::vector<std::filesystem::path>> by_package;
  std::vector<std::string> without;  ///< names of files whose package, or its text, is not known
};

/// Finds the texts by Debian's package database, and by the records of Python packages (`PackageFolders`).
LicenceTexts FindLicenceTexts(const std::vector<std::filesystem::path>& files);

}  // namespace collage
