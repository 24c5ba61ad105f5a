// error.h: how Collage fails. A request that cannot go on throws `Error`; a "no" that is a normal answer is a `Result`
// (result.h); our own mistakes trip COLLAGE_CHECK.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace collage {

/// Who must act to make the request succeed. The command line's exit code follows from it (see `ExitCode`).
enum class ErrorCategory {
  kInput,        ///< the user's input is wrong: a file, an argument, a shape
  kUnsupported,  ///< valid input that Collage does not handle (yet): an unknown operator
  kUnavailable,  ///< something asked for is not on this machine: a toolchain, a device
  kCorrupt,      ///< a file that Collage wrote is damaged: executable, database
  kResource,     ///< disk, memory, permissions, time
  kInternal,     ///< Collage's own mistake
};

/// "input", "unsupported", … as shown in messages and JSON.
std::string_view ToString(ErrorCategory category);

/// Exit code of the command line for an error of `category`: 2 input, 3 unsupported, 4 unavailable, 5 corrupt,
/// 6 resource, 70 internal. 1 stays for "ran, but the answer is no" (a failed comparison).
int ExitCode(ErrorCategory category);

/// The one exception type of the public API.
///
/// `message` starts in lower case, has no final stop and says what was found and what was wanted, names in quotes.
/// `where` is a file, `file:line:column`, or a node; `hint` says what to do. Both may be empty.
class Error : public std::runtime_error {
 public:
  Error(ErrorCategory category, std::string message, std::string where = "", std::string hint = "");

  ErrorCategory category() const { return category_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

  /// "where: error: message" and, on a second line, "hint: …".
  std::string Format() const;

 private:
  ErrorCategory category_;
  std::string message_;
  std::string where_;
  std::string hint_;
};

namespace detail {

/// Collects the text of a failed check and throws it as kInternal at the end of the statement.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure() noexcept(false);
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace detail
}  // namespace collage

/// Guards an invariant of our own code; stays in release builds. User input must not be able to reach one.
#define COLLAGE_CHECK(condition) \
  if (condition) [[likely]] {    \
  } else                         \
    ::collage::detail::CheckFailure(__FILE__, __LINE__, #condition).stream()
