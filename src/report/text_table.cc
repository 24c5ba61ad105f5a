// text_table.cc: columns of text.
#include "report/text_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace collage {
namespace {

/// Characters that a terminal shows (UTF-8 continuation bytes do not count).
size_t DisplayWidth(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void TextTable::Add(const std::vector<std::string>& row) {
  const size_t first = rows_.size();
  rows_.emplace_back(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    std::istringstream lines(row[i]);
    std::string line;
    for (size_t at = first; std::getline(lines, line); ++at) {
      if (at == rows_.size()) rows_.emplace_back(row.size());
      rows_[at][i] = line;
    }
  }
}

std::string TextTable::ToText() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      const bool starts_with_digit = !row[i].empty() && (std::isdigit(static_cast<unsigned char>(row[i][0])) != 0);
      line += i > 0 && starts_with_digit ? padding + row[i] : row[i] + padding;
      if (i + 1 < row.size()) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string TextTable::ToMarkdown() const {
  std::string text;
  for (size_t i = 0; i < rows_.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows_[i], " | "));
    if (i > 0) continue;
    for (size_t column = 0; column < rows_[i].size(); ++column) text += column == 0 ? "| ---" : " | ---";
    text += " |\n";
  }
  return text;
}

}  // namespace collage
