// executable_state.h: what handles of one executable share, and how it is stored in a file of pieces, by itself or
// beside others: a program has several, and what they have in common is stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "runtime/plan/piece_file.h"

namespace collage {

struct Executable::State {
  ExecutionPlan plan;
  std::vector<std::span<const std::byte>> blobs;  ///< the code alone
  std::shared_ptr<void> file;                     ///< owner of the file's bytes; null for one made in memory
  std::string name;                               ///< the file's name
  std::vector<uint64_t> constant_checksums;       ///< as the file states; empty for one made in memory
  std::shared_ptr<const LazyPieces> pieces;       ///< constants of all executables in the file; null as above
  Tensor explanation;                             ///< as the file has it; undefined where there is none

  /// Throws kCorrupt, naming file and constant, unless the bytes of constant `index` are those that were written. They
  /// are read the first time that somebody asks. Thread-safe.
  void CheckConstant(size_t index) const;
};

/// A file that executables are read from.
struct ExecutableSource {
  PieceReader reader;
  std::shared_ptr<LazyPieces> pieces;
  std::shared_ptr<void> owner;  ///< keeps the file's bytes
  std::string name;             ///< the file's name
};

/// Writes constants and code of `executable`. Returns an index that refers to them: all else that RestoreExecutable
/// needs.
nlohmann::json StoreExecutable(const Executable& executable, PieceWriter& pieces);
/// Returns the bytes of the explanation in a file with this index, undefined if there is none. They are checked with
/// all constants, or when somebody wants them.
Tensor FindExplanation(const nlohmann::json& index, ExecutableSource& source);
/// Reads and checks what StoreExecutable wrote. Throws kCorrupt without a place, or nlohmann's exceptions, where it is
/// damaged, kUnavailable when this processor cannot run it.
Executable RestoreExecutable(const nlohmann::json& index, ExecutableSource& source);

}  // namespace collage
