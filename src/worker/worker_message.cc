// worker_message.cc: writing and reading whole messages.
#include "worker/worker_message.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace collage {
namespace {

bool ReadWhole(int fd, void* data, size_t size) {
  char* position = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(fd, position, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    position += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool MessageHeader::IsValid() const {
  return magic == kMagic && size <= kLargest && kind >= MessageKind::kRequest && kind <= MessageKind::kProgress;
}

std::string MessageBytes(MessageHeader header, const std::string& text) {
  header.size = text.size();
  std::string bytes(sizeof header + text.size(), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
  return bytes;
}

bool SendMessage(int fd, const MessageHeader& header, const std::string& text) {
  const std::string bytes = MessageBytes(header, text);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t written = write(fd, bytes.data() + sent, bytes.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    sent += static_cast<size_t>(written);
  }
  return true;
}

std::optional<std::string> ReceiveRequest(int fd) {
  MessageHeader header;
  if (!ReadWhole(fd, &header, sizeof header) || !header.IsValid()) return std::nullopt;
  std::string text(header.size, '\0');
  if (!ReadWhole(fd, text.data(), text.size())) return std::nullopt;
  return text;
}

}  // namespace collage
