// page_files.h: the files of the report's page, which the build puts into the library.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace collage {

/// The contents of the files by their place: those of the folder `page`, such as "graph/search.js", and those of D3,
/// which are Debian's, as "d3/d3-zoom.min.js" and "d3/copyright".
const std::map<std::string, std::string_view>& PageFiles();

}  // namespace collage
