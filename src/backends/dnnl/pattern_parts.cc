// pattern_parts.cc: putting pieces of patterns together.
#include "backends/dnnl/pattern_parts.h"

namespace collage::dnnl_toolchain {

std::string Around(std::string_view text, const std::string& inner) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("{0}")) {
      result += inner;
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string AnySimple(const std::string& inner) {
  std::string text;
  for (const Part& part : kSimple) text += (text.empty() ? "(" : " | ") + Around(part, inner);
  return text + ")";
}

std::string AnyActivation(const std::string& inner) {
  std::string text = AnySimple(inner);
  text.pop_back();
  for (const Part& part : kWritten) text += " | " + Around(part, inner);
  for (const Part& part : kPrelu) text += " | " + Around(part, inner);
  return text + ")";
}

void Add(std::vector<PatternTableEntry>& table, const std::string& name, std::string text) {
  table.push_back({"dnnl." + name, std::move(text), CheckComposite});
}

void AddCombining(std::vector<PatternTableEntry>& table, const std::string& name, std::string text) {
  table.push_back({"dnnl." + name, std::move(text), CheckCombining});
}

void AddAside(std::vector<PatternTableEntry>& table, const std::string& name, std::string text) {
  table.push_back({"dnnl." + name, std::move(text), CheckComposite, /*is_greedy=*/false});
}

}  // namespace collage::dnnl_toolchain
