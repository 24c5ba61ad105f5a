// decode.h: `collage benchmark --decode`: decoders of text as they are used, a prompt and then token by token.
#pragma once

#include <string>
#include <vector>

#include "report/fact.h"

namespace collage::cli {

struct DecodeArguments {
  std::vector<std::string> executables;
  int tokens = 0;  ///< to be decoded behind the prompt
  int prompt = 128;
};

/// Times programs that take tokens and the keys and values of earlier ones: the prompt, and then single tokens, in
/// turns. Throws kInput, naming file and input, where one is no such program or has no room for all tokens.
Fact DecodeFacts(const DecodeArguments& arguments);

}  // namespace collage::cli
