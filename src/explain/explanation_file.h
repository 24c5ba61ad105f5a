// explanation_file.h: where explanations are kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"
#include "explain/explanation.h"

namespace collage {

/// Puts the text of an explanation inside of the executable at `file`, which has not its name yet. Runs do not read it.
void PutInside(const std::filesystem::path& file, const std::string& text);

/// Returns the text of the explanation inside of an executable or a program, or of a file of JSON; nothing for an
/// executable without one. Throws kInput for a file that cannot be read or is neither, kCorrupt for one that is
/// damaged, kUnavailable for an executable of another format.
std::optional<std::string> FindExplanationText(const std::filesystem::path& path);

/// Returns the text of the explanation that came with a loaded executable or program; nothing if there was none. Throws
/// kCorrupt when it is damaged.
std::optional<std::string> ExplanationTextOf(const Executable& executable);
std::optional<std::string> ExplanationTextOf(const vm::Executable& program);

/// Reads an explanation. Throws as FindExplanationText, kInput for an executable without one, kUnavailable for an
/// explanation of another schema, kCorrupt for a text that is none.
Explanation ReadExplanation(const std::filesystem::path& path);

/// Reads the text of an explanation, which messages call `path`. Throws as ReadExplanation.
Explanation ParseExplanation(const std::string& text, const std::filesystem::path& path);

/// The sizes of the parts of an executable or a program.
ExplainedMemory MemoryOf(const std::filesystem::path& file);

}  // namespace collage
