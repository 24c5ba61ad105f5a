// sentence.h: templates of sentences, filled with facts.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "report/fact.h"

namespace collage {

/// Looks up a template's facts in the innermost record that has the key, and notes which facts a text names.
class Scope {
 public:
  /// The scope of `record` within `outer`, which may be null.
  explicit Scope(const Fact& record, const Scope* outer = nullptr) : record_(record), outer_(outer) {}

  /// Fills a template as `Fact::sentence` says. `format` makes the text of a fact.
  std::string Fill(const std::string& sentence, const std::function<std::string(const Fact&)>& format);

  /// Whether a template of this scope named the fact.
  bool IsNamed(const Fact& fact) const { return named_.contains(&fact); }

 private:
  /// Text of one part of a template, and whether a fact in it is empty.
  struct Filled {
    std::string text;
    bool has_empty = false;
  };
  Filled FillPart(const std::string& sentence, const std::function<std::string(const Fact&)>& format);
  void FillPlaceholder(std::string name, const std::function<std::string(const Fact&)>& format, Filled& filled);
  const Fact& Lookup(const std::string& path) const;

  const Fact& record_;
  const Scope* outer_;
  std::set<const Fact*> named_;
};

}  // namespace collage
