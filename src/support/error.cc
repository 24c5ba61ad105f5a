// error.cc: text and exit codes of errors.
#include "collage/support/error.h"

#include <utility>

namespace collage {

std::string_view ToString(ErrorCategory category) {
  switch (category) {
    case ErrorCategory::kInput: return "input";
    case ErrorCategory::kUnsupported: return "unsupported";
    case ErrorCategory::kUnavailable: return "unavailable";
    case ErrorCategory::kCorrupt: return "corrupt";
    case ErrorCategory::kResource: return "resource";
    case ErrorCategory::kInternal: return "internal";
  }
  return "internal";
}

int ExitCode(ErrorCategory category) {
  switch (category) {
    case ErrorCategory::kInput: return 2;
    case ErrorCategory::kUnsupported: return 3;
    case ErrorCategory::kUnavailable: return 4;
    case ErrorCategory::kCorrupt: return 5;
    case ErrorCategory::kResource: return 6;
    case ErrorCategory::kInternal: return 70;
  }
  return 70;
}

Error::Error(ErrorCategory category, std::string message, std::string where, std::string hint)
    : std::runtime_error(where.empty() ? message : where + ": " + message),
      category_(category),
      message_(std::move(message)),
      where_(std::move(where)),
      hint_(std::move(hint)) {}

std::string Error::Format() const {
  std::string text = where_.empty() ? "" : where_ + ": ";
  text += category_ == ErrorCategory::kInternal ? "internal error: " : "error: ";
  text += message_;
  if (!hint_.empty()) text += "\nhint: " + hint_;
  return text;
}

namespace detail {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << file << ":" << line << ": check failed: " << condition << ": ";
}

CheckFailure::~CheckFailure() noexcept(false) { throw Error(ErrorCategory::kInternal, stream_.str()); }

}  // namespace detail
}  // namespace collage
