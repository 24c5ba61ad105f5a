// text_names.h: how names are written in Relay text.
#pragma once

#include <string>

namespace collage {

/// `text` in double quotes, with escapes for quotes, backslashes and line breaks.
std::string QuotedText(const std::string& text);

/// A name as it is when it reads as one word that is no keyword, else in quotes.
std::string NameText(const std::string& name);

/// Returns an attribute's name as text; words may be joined by dots: `relay.reshape_only`.
std::string AttrNameText(const std::string& name);

}  // namespace collage
