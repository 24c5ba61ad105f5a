// worker_message.h: messages between the compiler and a worker: a header, then text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace collage {

enum class MessageKind : uint32_t { kRequest = 1, kAnswer, kFailure, kProgress };

/// Header in front of the text. A toolchain that writes to descriptors it does not own seldom writes `kMagic`.
struct MessageHeader {
  static constexpr uint32_t kMagic = 0x436f6c57;
  static constexpr uint64_t kLargest = uint64_t{1} << 32;

  uint32_t magic = kMagic;
  MessageKind kind = MessageKind::kAnswer;
  /// Set if the worker should not be used again, and the answer counts only from a fresh worker.
  uint32_t is_last = 0;
  uint32_t is_suspect = 0;
  uint64_t size = 0;

  bool IsValid() const;
};

/// Header and text as they are written.
std::string MessageBytes(MessageHeader header, const std::string& text);

// The worker's side, which waits as long as it takes. False and nothing when the other end is gone.
bool SendMessage(int fd, const MessageHeader& header, const std::string& text);
std::optional<std::string> ReceiveRequest(int fd);

}  // namespace collage
