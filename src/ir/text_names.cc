// text_names.cc: names come from models and users, and may hold anything.
#include "ir/text_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace collage {
namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsWord(char c) { return IsLetter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool IsPlain(const std::string& name) {
  static constexpr std::array<std::string_view, 22> kKeywords{
      "let",       "fn",     "def",  "if",    "else", "type", "extern",   "match",  "ref", "ref_read",
      "ref_write", "meta",   "True", "False", "inff", "nanf", "free_var", "Tensor", "_",   "virtual_device",
      "None",      "nullptr"};
  return !name.empty() && IsLetter(name[0]) && std::all_of(name.begin(), name.end(), IsWord) &&
         std::find(kKeywords.begin(), kKeywords.end(), name) == kKeywords.end();
}

}  // namespace

std::string QuotedText(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string NameText(const std::string& name) { return IsPlain(name) ? name : QuotedText(name); }

std::string AttrNameText(const std::string& name) {
  std::string word = name;
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] == '.' && IsLetter(name[i + 1])) word[i] = '_';
  }
  return IsPlain(word) ? name : QuotedText(name);
}

}  // namespace collage
