# cmake -DOUTPUT=X.cc -DFILES=NAME=PATH;… -P EmbedFiles.cmake: writes a source with the bytes of files, by name, as
# `PageFiles` of src/report/html/page_files.h.
set(arrays "")
set(rows "")
set(number 0)
foreach(entry ${FILES})
  string(REGEX MATCH "^([^=]+)=(.+)$" entry "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
  string(APPEND rows "      {\"${name}\", Text(kFile${number}, sizeof(kFile${number}) - 1)},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/EmbedFiles.cmake.
#include \"report/html/page_files.h\"

namespace collage {
namespace {
${arrays}
std::string_view Text(const unsigned char* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }
}  // namespace

const std::map<std::string, std::string_view>& PageFiles() {
  static const std::map<std::string, std::string_view> files = {
${rows}  };
  return files;
}
}  // namespace collage
")
