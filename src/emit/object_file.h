// object_file.h: data as a relocatable object file (ELF-64; System V gABI 4.1, chapter 4).
#pragma once

#include <span>
#include <string>

namespace collage {

/// Returns an object file for x86-64 in which `bytes`, aligned to 64, lie between the symbols `NAME_begin` and
/// `NAME_end`.
std::string DataObject(std::span<const std::byte> bytes, const std::string& name);

}  // namespace collage
