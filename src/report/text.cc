// text.cc: a report for people to read.
#include "report/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/sentence.h"
#include "report/text_table.h"
#include "report/units.h"

namespace collage {
namespace {

constexpr size_t kLabelWidth = 12;

/// Whether the fact fits into a sentence: no record, no table.
bool IsSingle(const Fact& fact) { return fact.kind <= Fact::Kind::kMap; }

std::string FormatNumber(double number, Unit unit) {
  switch (unit) {
    case Unit::kSeconds: return FormatSeconds(number);
    case Unit::kDifference: return FormatDifference(number);
    case Unit::kElapsed: return fmt::format("{:.1f} s", number);
    case Unit::kPerSecond: return fmt::format("{:.1f}", number);
    case Unit::kBillions: return fmt::format("{:.{}f}", number / 1e9, number < 10e9 ? 2 : 1);
    case Unit::kPerMinute: return fmt::format("{:.0f}", number);
    case Unit::kShare: return fmt::format("{:.1f} %", 100 * number);
    case Unit::kMoreShare: return fmt::format("{:+.1f} %", 100 * number);
    case Unit::kRatio: return fmt::format("{:.2f}x", number);
    case Unit::kFineRatio: return fmt::format("{:.3f}", number);
    case Unit::kError: return fmt::format("{:.1e}", number);
    default: return std::isnan(number) ? "unknown" : fmt::format("{:.6g}", number);
  }
}

std::string FormatInteger(int64_t integer, Unit unit) {
  if (unit == Unit::kBytes) return FormatBytes(static_cast<double>(integer));
  if (unit == Unit::kMillions) return fmt::format("{:.2f} M", static_cast<double>(integer) / 1e6);
  return std::to_string(integer);
}

/// An operator of a large model has thousands of users: a table with a column that wide could not be read.
std::string FormatList(const Fact& list) {
  constexpr size_t kShown = 12;
  std::vector<std::string> texts;
  for (const Fact& element : list.parts) texts.push_back(FormatFact(element));
  const bool is_of_integers = !list.parts.empty() && list.parts.front().kind == Fact::Kind::kInteger;
  if (!is_of_integers || texts.size() <= kShown) return fmt::format("{}", fmt::join(texts, list.separator));
  const size_t left = texts.size() - (kShown - 1);
  texts.resize(kShown - 1);
  return fmt::format("{}{}... {} more", fmt::join(texts, list.separator), list.separator, left);
}

std::string FormatMap(const Fact& map) {
  std::vector<std::string> texts;
  for (const Fact& entry : map.parts) texts.push_back(fmt::format("{} {}", entry.label, FormatFact(entry)));
  return fmt::format("{}", fmt::join(texts, map.separator));
}

/// A fact that its sentence doesn't name: "12 states", "schedule plain".
std::string FormatWithLabel(const Fact& fact) {
  if (fact.kind == Fact::Kind::kFlag) return fact.label;
  const bool is_count = fact.unit == Unit::kCount || fact.unit == Unit::kMillions;
  return is_count ? fmt::format("{} {}", FormatFact(fact), fact.label)
                  : fmt::format("{} {}", fact.label, FormatFact(fact));
}

class TextRenderer {
 public:
  explicit TextRenderer(const TextOptions& options) : options_(options) {}

  std::string Render(const Fact& report) {
    Scope scope(report);
    AddLine("", Say(report, scope));
    AddSections(report, scope);
    return std::move(text_);
  }

 private:
  bool IsHidden(const Fact& fact) const { return fact.is_detail && !options_.details; }

  std::string Format(const Fact& fact, const Scope& scope) {
    if (IsSingle(fact)) return FormatFact(fact);
    if (fact.kind == Fact::Kind::kTable) return JoinRows(fact, scope);
    Scope inner(fact, &scope);
    return Say(fact, inner);
  }

  std::string Fill(const std::string& sentence, Scope& scope) {
    return scope.Fill(sentence, [&](const Fact& fact) { return Format(fact, scope); });
  }

  /// The sentence, and behind it the facts that it doesn't name.
  std::string Say(const Fact& record, Scope& scope) {
    std::string text = Fill(record.sentence, scope);
    for (const Fact& part : record.parts) {
      if (!IsSingle(part) || part.label.empty() || part.IsEmpty() || scope.IsNamed(part) || IsHidden(part)) continue;
      text += (text.empty() ? "" : " · ") + FormatWithLabel(part);
    }
    return text;
  }

  std::vector<std::string> SayRows(const Fact& table, const Scope& outer) {
    std::vector<std::string> texts;
    for (const Fact& row : table.parts) {
      if (IsHidden(row)) continue;
      Scope scope(row, &outer);
      if (std::string text = Say(row, scope); !text.empty()) texts.push_back(std::move(text));
    }
    return texts;
  }

  std::string JoinRows(const Fact& table, const Scope& outer) {
    return fmt::format("{}", fmt::join(SayRows(table, outer), table.separator));
  }

  void AddLine(const std::string& label, const std::string& line) {
    if (line.empty()) return;
    text_ += fmt::format("{:{}}{}{}", label, label.empty() ? 0 : kLabelWidth, line, line.back() == '\n' ? "" : "\n");
    is_behind_columns_ = false;
  }

  /// Parts that are records, lines and tables.
  void AddSections(const Fact& record, Scope& scope) {
    for (const Fact& part : record.parts) {
      if (IsSingle(part) || scope.IsNamed(part) || IsHidden(part)) continue;
      if (part.kind == Fact::Kind::kTable) {
        AddTable(part, scope);
        continue;
      }
      Scope inner(part, &scope);
      AddLine(part.label, Say(part, inner));
      AddSections(part, inner);
    }
  }

  void AddTable(const Fact& table, const Scope& outer) {
    if (!table.columns.empty()) return AddColumns(table, outer);
    if (table.is_inline) return AddLine(table.label, JoinRows(table, outer));
    std::string label = table.label;
    for (const Fact& row : table.parts) {
      if (IsHidden(row)) continue;
      Scope scope(row, &outer);
      AddLine(label, Say(row, scope));
      if (!label.empty()) label = " ";
      const size_t length = text_.size();
      AddSections(row, scope);
      if (text_.size() > length) text_ += "\n";
    }
  }

  void AddColumns(const Fact& table, const Scope& outer) {
    const bool has_own_sentences =
        std::ranges::any_of(table.columns, [](const Fact::Column& column) { return column.cell.starts_with("{}"); });
    std::vector<const Fact*> rows;
    std::vector<std::vector<std::string>> cells;
    std::vector<std::string> below;
    std::set<std::string> named;
    for (const Fact& row : table.parts) {
      if (IsHidden(row)) continue;
      Scope scope(row, &outer);
      if (!has_own_sentences && !row.sentence.empty()) {
        below.push_back(Fill(row.sentence, scope));
        continue;
      }
      rows.push_back(&row);
      cells.emplace_back();
      for (const Fact::Column& column : table.columns) cells.back().push_back(Fill(column.cell, scope));
      for (const Fact& part : row.parts) {
        if (scope.IsNamed(part)) named.insert(part.key);
      }
    }
    std::vector<std::string> header;
    for (const Fact::Column& column : table.columns) header.push_back(column.header);
    AddOtherColumns(rows, named, header, cells);
    if (!rows.empty()) {
      TextTable text(header);
      for (const std::vector<std::string>& row : cells) text.Add(row);
      text_ += (is_behind_columns_ ? "\n" : "") + (options_.markdown ? text.ToMarkdown() : text.ToText());
      is_behind_columns_ = true;
    }
    for (const std::string& sentence : below) AddLine("", "  " + sentence);
  }

  /// Columns of facts that no cell names, where a row has them.
  void AddOtherColumns(const std::vector<const Fact*>& rows, const std::set<std::string>& named,
                       std::vector<std::string>& header, std::vector<std::vector<std::string>>& cells) const {
    if (rows.empty()) return;
    for (const Fact& part : rows.front()->parts) {
      if (!IsSingle(part) || part.label.empty() || named.contains(part.key) || IsHidden(part)) continue;
      const auto value_in = [&](const Fact* row) {
        const Fact* own = row->Find(part.key);
        return own == nullptr || own->IsEmpty() ? "" : FormatFact(*own);
      };
      if (std::ranges::all_of(rows, [&](const Fact* row) { return value_in(row).empty(); })) continue;
      header.push_back(part.label);
      for (size_t i = 0; i < rows.size(); ++i) cells[i].push_back(value_in(rows[i]));
    }
  }

  const TextOptions options_;
  std::string text_;
  bool is_behind_columns_ = false;
};

}  // namespace

std::string FormatFact(const Fact& fact) {
  if (fact.kind == Fact::Kind::kList) return fact.parts.empty() ? "-" : FormatList(fact);
  if (fact.kind == Fact::Kind::kMap) return FormatMap(fact);
  if (const bool* flag = std::get_if<bool>(&fact.value)) return *flag ? "yes" : "no";
  if (const int64_t* integer = std::get_if<int64_t>(&fact.value)) return FormatInteger(*integer, fact.unit);
  if (const double* number = std::get_if<double>(&fact.value)) return FormatNumber(*number, fact.unit);
  if (const std::string* text = std::get_if<std::string>(&fact.value)) return *text;
  return fact.may_not_apply ? "-" : "?";
}

std::string RenderText(const Fact& report, const TextOptions& options) { return TextRenderer(options).Render(report); }

}  // namespace collage
