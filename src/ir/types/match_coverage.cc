// match_coverage.cc: the matrix of patterns is taken apart column by column (L. Maranget, "Warnings for pattern
// matching", 2007): for each constructor that a first column may hold, the rows that fit it must cover what is behind.
#include "ir/types/match_coverage.h"

#include "ir/text_names.h"

namespace collage {
namespace {

using Row = std::vector<const Pattern*>;  // null: anything

constexpr int kMostSteps = 100000;

const Pattern* General(const Pattern& pattern) {
  const bool is_general = pattern.kind == Pattern::Kind::kWildcard || pattern.kind == Pattern::Kind::kVar;
  return is_general ? nullptr : &pattern;
}

class Coverage {
 public:
  explicit Coverage(const IRModule& module) : module_(module) {}

  /// Texts of values for the columns that no row fits.
  std::optional<std::vector<std::string>> Unmatched(const std::vector<Row>& rows, size_t columns) {
    if (++steps_ > kMostSteps) return std::nullopt;
    if (columns == 0) {
      if (!rows.empty()) return std::nullopt;
      return std::vector<std::string>{};
    }
    const Pattern* head = nullptr;
    for (const Row& row : rows) {
      if (row[0] != nullptr) head = row[0];
    }
    if (head == nullptr) return Rest(rows, columns, "_");
    if (head->kind == Pattern::Kind::kTuple) {
      return Inside(rows, columns, nullptr, head->sub_patterns.size());
    }
    const TypeData* type = Find(head->constructor->belongs_to()->name());
    if (type == nullptr) return std::nullopt;
    for (const Constructor& constructor : type->constructors) {
      const bool occurs = Occurs(rows, *constructor);
      std::optional<std::vector<std::string>> found =
          occurs ? Inside(rows, columns, constructor.get(), constructor->inputs().size())
                 : Rest(rows, columns,
                        Text(constructor.get(), std::vector<std::string>(constructor->inputs().size(), "_")));
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  const TypeData* Find(const std::string& name) const {
    auto it = module_.types().find(name);
    return it == module_.types().end() ? nullptr : &it->second;
  }

  static bool Occurs(const std::vector<Row>& rows, const ConstructorNode& constructor) {
    for (const Row& row : rows) {
      if (row[0] != nullptr && row[0]->constructor->name() == constructor.name()) return true;
    }
    return false;
  }

  /// The first column is something that only general patterns fit.
  std::optional<std::vector<std::string>> Rest(const std::vector<Row>& rows, size_t columns, const std::string& first) {
    std::vector<Row> rest;
    for (const Row& row : rows) {
      if (row[0] == nullptr) rest.emplace_back(row.begin() + 1, row.end());
    }
    std::optional<std::vector<std::string>> found = Unmatched(rest, columns - 1);
    if (found) found->insert(found->begin(), first);
    return found;
  }

  /// The first column is `constructor` (null: a tuple) with `fields` fields, which become columns.
  std::optional<std::vector<std::string>> Inside(const std::vector<Row>& rows, size_t columns,
                                                 const ConstructorNode* constructor, size_t fields) {
    std::vector<Row> inside;
    for (const Row& row : rows) {
      const Pattern* first = row[0];
      if (first != nullptr && constructor != nullptr && first->constructor->name() != constructor->name()) continue;
      Row& added = inside.emplace_back();
      for (size_t i = 0; i < fields; ++i) added.push_back(first == nullptr ? nullptr : General(first->sub_patterns[i]));
      added.insert(added.end(), row.begin() + 1, row.end());
    }
    std::optional<std::vector<std::string>> found = Unmatched(inside, columns - 1 + fields);
    if (!found) return found;
    const auto end = found->begin() + static_cast<std::ptrdiff_t>(fields);
    const std::string text = Text(constructor, {found->begin(), end});
    found->erase(found->begin(), end);
    found->insert(found->begin(), text);
    return found;
  }

  static std::string Text(const ConstructorNode* constructor, const std::vector<std::string>& fields) {
    std::string inside;
    for (const std::string& field : fields) inside += (inside.empty() ? "" : ", ") + field;
    if (constructor == nullptr) return "(" + inside + (fields.size() == 1 ? ",)" : ")");
    return NameText(constructor->name()) + (fields.empty() ? "" : "(" + inside + ")");
  }

  const IRModule& module_;
  int steps_ = 0;
};

}  // namespace

std::optional<std::string> FindUnmatched(const std::vector<Clause>& clauses, const IRModule& module) {
  std::vector<Row> rows;
  for (const Clause& clause : clauses) rows.push_back({General(clause.pattern)});
  const std::optional<std::vector<std::string>> found = Coverage(module).Unmatched(rows, 1);
  if (!found) return std::nullopt;
  return found->front();
}

}  // namespace collage
