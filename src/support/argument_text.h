// argument_text.h: durations, sizes, numbers, shapes, lists and JSON, as people write them on a command line or in
// Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collage/support/json_text.h"

namespace collage {

/// Returns the integer that all of `text` spells in decimal. Throws kInput.
int64_t ParseInteger(std::string_view text);

/// Returns the number that all of `text` spells. Throws kInput.
double ParseNumber(std::string_view text);

/// Returns the seconds of "500ms", "90s", "10m", "1h", "90d", or of a plain number; at most 100 years. Throws kInput.
double ParseDuration(std::string_view text);

/// Returns "90s", "30m" or "2h": the text that ParseDuration reads, in the largest unit of which it is a whole number.
std::string FormatDuration(double seconds);

/// Returns the bytes of "12GiB", "500MB" or of a plain number. Throws kInput.
int64_t ParseBytes(std::string_view text);

/// Returns "12GiB": the text that ParseBytes reads, in the largest binary unit of which it is a whole number.
std::string FormatBinaryBytes(int64_t bytes);

/// Splits at commas; drops empty parts.
std::vector<std::string> SplitCommas(std::string_view text);

/// Reads "x=1x3x640x640", or "x=" for a scalar; several of them, by name. Throws kInput, also for a name given twice.
std::map<std::string, std::vector<int64_t>> ParseShapes(const std::vector<std::string>& texts);

/// Reads "sequence=16,128"; several of them, by name. Throws kInput, also for a name given twice.
std::map<std::string, std::vector<int64_t>> ParseSizes(const std::vector<std::string>& texts);

/// Reads "batch=1" and "sequence=1..512" as [1] and [1, 512]; several of them, by name. Throws kInput, also for a name
/// given twice.
std::map<std::string, std::vector<int64_t>> ParseDimensions(const std::vector<std::string>& texts);

/// Returns JSON written in place ("{…}", "[…]"), which errors call `where`, or that of the file so named. Throws
/// kInput for a file that cannot be read.
JsonText ReadJsonArgument(const std::string& argument, const std::string& where);

}  // namespace collage
