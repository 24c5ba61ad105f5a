// text_table.h: columns of text.
#pragma once

#include <string>
#include <vector>

namespace collage {

/// Columns aligned by their widest cell; numbers right, the first column left. Further lines of a cell stand below its
/// first one.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(const std::vector<std::string>& row);

  /// The header alone is shown, too.
  std::string ToText() const;
  /// As a table of Markdown.
  std::string ToMarkdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace collage
