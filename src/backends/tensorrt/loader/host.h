// host.h: the text of host.py, which CMake puts into the module.
#pragma once

namespace collage::tensorrt {

extern const char* const kHostText;

}  // namespace collage::tensorrt
