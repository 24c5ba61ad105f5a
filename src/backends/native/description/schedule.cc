// schedule.cc: the table of a schedule's numbers, and their text.
#include "backends/native/description/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "collage/support/error.h"

namespace collage::native {
namespace {

/// One number: what it is called, and what it may be.
struct Row {
  const char* name;
  int64_t Schedule::*field;
  int64_t most;                    ///< at least 1
  std::vector<const char*> words;  ///< what 1, 2 … are called, where they have names
};

const std::vector<Row>& Rows() {
  constexpr int64_t kMostBlock = int64_t{1} << 30;
  static const std::vector<Row> rows{
      {"algorithm", &Schedule::algorithm, 5, {"direct", "winograd2", "winograd4", "strassen", "warpgroups"}},
      {"lanes", &Schedule::lanes, 16, {}},
      {"rows", &Schedule::rows, 256, {}},
      {"width", &Schedule::width, 8, {}},
      {"unroll", &Schedule::unroll, 16, {}},
      {"block", &Schedule::block, kMostBlock, {}},
      {"parts", &Schedule::parts, 1024, {}},
      {"parallel", &Schedule::parallel, 2, {"no", "yes"}},
      {"pack", &Schedule::pack, 2, {"no", "yes"}},
      {"warps", &Schedule::warps, 8, {}},
      {"stages", &Schedule::stages, 8, {}},
  };
  return rows;
}

std::string ValueText(const Row& row, int64_t value) {
  return row.words.empty() ? std::to_string(value) : row.words.at(static_cast<size_t>(value - 1));
}

[[noreturn]] void Fail(const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, "", hint);
}

const Row& RowNamed(std::string_view name) {
  std::string known;
  for (const Row& row : Rows()) {
    if (name == row.name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  Fail(fmt::format("a schedule has no '{}'", name), "there are: " + known);
}

int64_t ValueOf(const Row& row, std::string_view text) {
  if (!row.words.empty()) {
    std::string known;
    for (size_t i = 0; i < row.words.size(); ++i) {
      if (text == row.words[i]) return static_cast<int64_t>(i) + 1;
      known += (known.empty() ? "" : ", ") + std::string(row.words[i]);
    }
    Fail(fmt::format("'{}' of a schedule is one of {}, got '{}'", row.name, known, text));
  }
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > row.most) {
    Fail(fmt::format("'{}' of a schedule is from 1 to {}, got '{}'", row.name, row.most, text));
  }
  return value;
}

}  // namespace

std::string Schedule::ToString() const {
  std::string text;
  for (const Row& row : Rows()) {
    if (this->*row.field == 0) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", row.name, ValueText(row, this->*row.field));
  }
  return text;
}

Schedule Schedule::Parse(std::string_view text) {
  Schedule schedule;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || comma == text.size() - 1) {
      Fail(fmt::format("'{}' is no part of a schedule", equals == std::string_view::npos ? item : ","),
           "write NAME=VALUE,NAME=VALUE");
    }
    const Row& row = RowNamed(item.substr(0, equals));
    if (schedule.*row.field != 0) Fail(fmt::format("'{}' of a schedule is given twice", row.name));
    schedule.*row.field = ValueOf(row, item.substr(equals + 1));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  const int64_t lanes = schedule.lanes;
  if (lanes != 0 && lanes != 4 && lanes != 8 && lanes != 16) {
    Fail(fmt::format("'lanes' of a schedule is one of 4, 8, 16, got '{}'", lanes));
  }
  return schedule;
}

Schedule Schedule::With(const Schedule& over) const {
  Schedule result = *this;
  for (const Row& row : Rows()) {
    if (over.*row.field != 0) result.*row.field = over.*row.field;
  }
  return result;
}

}  // namespace collage::native
