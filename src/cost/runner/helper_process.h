// helper_process.h: another program that is talked to in lines, over its standard input and output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// A running program. It is in a process group of its own, so that Ctrl-C at a terminal is for this process alone, and
/// sees the end of its input when this process ends, however that happens. Not thread-safe.
class HelperProcess {
 public:
  /// Starts `command`, a program (looked for in $PATH) and its arguments. Throws kUnavailable when it cannot be
  /// started, kResource when the system refuses.
  explicit HelperProcess(const std::vector<std::string>& command);
  /// Closes its input, gives it `kGrace` to end, then kills it with all of its group.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  enum class Status { kDone, kEnded, kSilent };

  /// Sends a line, given in parts without line breaks. kEnded when nobody reads any more, kSilent when not all of it
  /// was read within `patience` since the last progress.
  Status WriteLine(std::initializer_list<std::string_view> parts, std::chrono::milliseconds patience);
  /// The next line, without its end. kEnded at the end of the output, kSilent when nothing came for `patience`.
  Status ReadLine(std::string& line, std::chrono::milliseconds patience);

  /// Waits for its end as the destructor does and says how it ended: "ended with exit code 1".
  std::string Bury();
  /// Ends it at once.
  void Kill();
  /// Returns its last output to standard error; may be empty.
  std::string LastErrors() const;

  /// How long it may take to end when its input has.
  static constexpr std::chrono::milliseconds kGrace{8'000};

 private:
  Status Send(std::string_view data, std::chrono::milliseconds patience);
  /// Waits until it has ended, at most `grace`, then kills it. Returns the status of waitpid.
  int Stop(std::chrono::milliseconds grace);

  pid_t child_ = -1;
  int socket_ = -1;  ///< its standard input and output
  int errors_ = -1;  ///< an unlinked file with its standard error
  std::string unread_;
};

}  // namespace collage
