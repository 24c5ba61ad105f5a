// fact.h: one tree of facts for each report, which is rendered as text, as JSON and as Python objects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace collage {

/// How text shows a number. JSON and Python have the number itself, in the unit that its key or its page names.
enum class Unit : uint8_t {
  kNone,
  kCount,       ///< "12"
  kMillions,    ///< a count: "5.93 M"
  kBillions,    ///< a rate, in billions: "12.5"
  kBytes,       ///< "17.2 MB"
  kSeconds,     ///< "8.71 ms"
  kDifference,  ///< seconds more or less than something: "+1.20 ms"
  kElapsed,     ///< seconds that passed while Collage worked: "12.3 s"
  kPerSecond,   ///< "114.8"
  kPerMinute,   ///< "38"
  kShare,       ///< "12.5 %"
  kMoreShare,   ///< a share that is more or less: "+12.5 %"
  kRatio,       ///< "1.05x"
  kFineRatio,   ///< "1.053"
  kError,       ///< relative to the largest result: "1.2e-06"
};

/// One node of a report: a value with its name, or a group of such.
///
/// A report is a record. Its parts keep their order in all renderings:
///
///     record ─┬─ fact "winner": text
///             ├─ line ─┬─ fact "machine"       text shows the facts of a line together;
///             │        └─ fact "threads"       elsewhere they are parts of the record
///             ├─ record "search" ─── …
///             └─ table "play_off" ─┬─ record
///                                  └─ record   one for each row
///
/// A fact that is added to a record appears in every rendering. Text shows it behind the record's sentence as "12
/// states", unless the sentence names it, it is empty, or it is a detail.
struct Fact {
  enum class Kind : uint8_t { kFlag, kInteger, kNumber, kText, kList, kMap, kRecord, kLine, kTable };

  /// A column of a table in text.
  struct Column {
    std::string header;
    std::string cell;  ///< a template, as `sentence`
  };

  std::string key;    ///< in JSON and Python: snake_case; parts of a record without a key are in text only
  std::string label;  ///< in text; facts without a label are only there where a sentence names them
  Kind kind = Kind::kText;
  Unit unit = Unit::kNone;
  bool is_detail = false;                                                  ///< in text only if details are asked for
  std::variant<std::monostate, bool, int64_t, double, std::string> value;  ///< monostate: not known
  std::vector<Fact> parts;        ///< elements, entries, facts or rows; empty for single values
  std::string separator = " · ";  ///< between elements of a list in text

  /// The text of a record or a line. {key} is a fact of this record or of one around it, {seconds.total} a
  /// fact of a nested record, {example:160} its first 160 characters, {s:threads} an "s" unless there is one, {?extra}
  /// and {!extra} nothing. A part in [brackets] is left out when a fact in it is empty, or one with "!" is not. "{{",
  /// "[[" and "]]" are a brace and brackets.
  std::string sentence;
  /// The columns of a table; none: each row is a sentence. A row with a sentence of its own is shown below the table,
  /// unless a cell begins with "{}", which is that sentence.
  std::vector<Column> columns;
  bool may_not_apply = false;  ///< the thing itself may be missing: a value that is not known is "-" in text, not "?"
  bool is_inline = false;      ///< a table without columns whose rows stand on one line

  static Fact Flag(std::string key, std::string label, bool value);
  static Fact Text(std::string key, std::string label, std::optional<std::string> text);
  /// A count. Not known: empty.
  static Fact Count(std::string key, std::string label, std::optional<int64_t> value);
  static Fact Integer(std::string key, std::string label, std::optional<int64_t> value, Unit unit = Unit::kNone);
  static Fact Number(std::string key, std::string label, std::optional<double> value, Unit unit = Unit::kNone);
  static Fact Seconds(std::string key, std::string label, std::optional<double> value);
  static Fact Bytes(std::string key, std::string label, int64_t bytes);
  static Fact Texts(std::string key, std::string label, const std::vector<std::string>& texts);
  static Fact Integers(std::string key, std::string label, const std::vector<int>& integers);
  /// Integers that are sizes of dimensions.
  static Fact Sizes(std::string key, std::string label, const std::vector<int64_t>& sizes);
  static Fact Counts(std::string key, std::string label, const std::map<std::string, int64_t>& by_name);
  static Fact Numbers(std::string key, std::string label, const std::map<std::string, double>& by_name, Unit unit);

  static Fact Record(std::string key, std::string label, std::vector<Fact> facts);
  /// Facts of the enclosing record that text shows on one line.
  static Fact Line(std::string label, std::vector<Fact> facts);
  static Fact Table(std::string key, std::string label, std::vector<Fact> rows);
  /// The root: `schema` is raised when keys change or go.
  static Fact Report(int schema, std::vector<Fact> facts);

  Fact Says(std::string text) &&;
  Fact Columns(std::vector<Column> shown) &&;
  Fact Inline() &&;
  Fact SeparatedBy(std::string text) &&;
  Fact Detail(bool detail = true) &&;
  Fact OrNone() &&;  ///< sets `may_not_apply`

  /// Not known, false, 0, "", or without parts.
  bool IsEmpty() const;
  /// The fact of a record by its key, lines included; null when there is none.
  const Fact* Find(const std::string& wanted) const;
};

/// `text` such that a sentence shows it as it is.
std::string Literal(const std::string& text);

/// A table with a row for each of `items`.
template <typename Item>
Fact TableOf(std::string key, std::string label, const std::vector<Item>& items, Fact (*row)(const Item&)) {
  std::vector<Fact> rows;
  for (const Item& item : items) rows.push_back(row(item));
  return Fact::Table(std::move(key), std::move(label), std::move(rows));
}

}  // namespace collage
