// units.h: numbers as text, with units.
#pragma once

#include <string>

namespace collage {

/// "8.71 ms", "412 us": three significant digits with the unit that fits.
std::string FormatSeconds(double seconds);
/// "+1.20 ms", "-412 us", "0".
std::string FormatDifference(double seconds);
/// "437 MB".
std::string FormatBytes(double bytes);

}  // namespace collage
