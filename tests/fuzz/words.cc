// words.cc: texts of users that are no modules.
#include "collage/target/target.h"
#include "dataflow/pattern.h"
#include "explain/explanation_file.h"
#include "fuzz/target.h"

namespace collage::fuzz {

void ReadWords(const std::string& given) {
  std::string bytes = given;
  switch (TakeNumber(bytes) % 3) {
    case 0: {
      const std::string text = Target::Parse(bytes).ToString();
      Require(Target::Parse(text).ToString() == text, "another target after writing: " + text);
      return;
    }
    case 1: {
      const std::string text = PatternText(*ParsePattern(bytes));
      Require(PatternText(*ParsePattern(text)) == text, "another pattern after writing: " + text);
      return;
    }
    default: ParseExplanation(bytes, "fuzz");
  }
}

}  // namespace collage::fuzz
