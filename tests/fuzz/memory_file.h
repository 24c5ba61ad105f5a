// memory_file.h: bytes as a file, for readers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "fuzz/target.h"

namespace collage::fuzz {

/// A file in memory. Its path ends in `name`, by which readers tell kinds apart.
class MemoryFile {
 public:
  MemoryFile(const std::string& bytes, const std::string& name)
      : folder_("/dev/shm/collage-fuzz-" + std::to_string(getpid())), path_(folder_ / name) {
    std::filesystem::create_directory(folder_);
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    Require(file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(), "no memory for files");
    std::fclose(file);
  }
  ~MemoryFile() { std::filesystem::remove_all(folder_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace collage::fuzz
