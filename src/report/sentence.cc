// sentence.cc: templates of sentences, filled with facts.
#include "report/sentence.h"

#include <charconv>

#include "collage/support/error.h"

namespace collage {
namespace {

/// The position of the bracket that closes a part which begins at `start`.
size_t FindClosing(const std::string& sentence, size_t start) {
  for (size_t i = start; i < sentence.size(); ++i) {
    if (sentence[i] != ']') continue;
    if (i + 1 == sentence.size() || sentence[i + 1] != ']') return i;
    ++i;
  }
  COLLAGE_CHECK(false) << "no bracket closes in '" << sentence << "'";
  return sentence.size();
}

/// The first `length` bytes, but no part of a character.
std::string Shorten(const std::string& text, size_t length) {
  if (text.size() <= length) return text;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  return text.substr(0, length);
}

bool IsOne(const Fact& fact) {
  const int64_t* value = std::get_if<int64_t>(&fact.value);
  return value != nullptr && *value == 1;
}

}  // namespace

std::string Scope::Fill(const std::string& sentence, const std::function<std::string(const Fact&)>& format) {
  return FillPart(sentence, format).text;
}

Scope::Filled Scope::FillPart(const std::string& sentence, const std::function<std::string(const Fact&)>& format) {
  Filled filled;
  for (size_t i = 0; i < sentence.size(); ++i) {
    const char c = sentence[i];
    const bool is_doubled = i + 1 < sentence.size() && sentence[i + 1] == c;
    if ((c == '{' || c == '[' || c == ']') && is_doubled) {
      filled.text += sentence[i++];
    } else if (c == '{') {
      const size_t end = sentence.find('}', i);
      COLLAGE_CHECK(end != std::string::npos) << "no brace closes in '" << sentence << "'";
      FillPlaceholder(sentence.substr(i + 1, end - i - 1), format, filled);
      i = end;
    } else if (c == '[') {
      const size_t end = FindClosing(sentence, i + 1);
      const Filled part = FillPart(sentence.substr(i + 1, end - i - 1), format);
      if (!part.has_empty) filled.text += part.text;
      i = end;
    } else {
      filled.text += c;
    }
  }
  return filled;
}

void Scope::FillPlaceholder(std::string name, const std::function<std::string(const Fact&)>& format, Filled& filled) {
  if (name.empty()) {  // the record's own sentence
    filled.text += Fill(record_.sentence, format);
    return;
  }
  if (name.starts_with("s:")) {
    filled.text += IsOne(Lookup(name.substr(2))) ? "" : "s";
    return;
  }
  const bool is_silent = name.front() == '?' || name.front() == '!';
  const bool wants_empty = name.front() == '!';
  if (is_silent) name.erase(0, 1);
  size_t length = std::string::npos;
  if (const size_t colon = name.find(':'); colon != std::string::npos) {
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), length);
    name.resize(colon);
  }
  const Fact& fact = Lookup(name);
  named_.insert(&fact);
  filled.has_empty = filled.has_empty || fact.IsEmpty() != wants_empty;
  if (!is_silent) filled.text += Shorten(format(fact), length);
}

const Fact& Scope::Lookup(const std::string& path) const {
  const size_t dot = path.find('.');
  const std::string first = path.substr(0, dot);
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const Fact* found = scope->record_.Find(first);
    if (found != nullptr && dot != std::string::npos) found = found->Find(path.substr(dot + 1));
    if (found != nullptr) return *found;
  }
  COLLAGE_CHECK(false) << "a sentence names '" << path << "', which is no fact of its record";
  return record_;
}

}  // namespace collage
