// json_text.h: JSON from people.
#pragma once

#include <string>

namespace collage {

/// JSON, and the file that errors name.
struct JsonText {
  std::string text;
  std::string file = "text";
};

}  // namespace collage
