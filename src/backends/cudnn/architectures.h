// architectures.h: properties of GPUs, for plans that are made where no such GPU is.
#pragma once

#include <string>
#include <vector>

namespace collage::cudnn {

/// "sm_80", …
std::vector<std::string> KnownArchitectures();

/// Properties of a GPU of `architecture` as the JSON that cuDNN reads as a device's. Throws kInput for one that is not
/// known.
std::string DeviceProperties(const std::string& architecture);

}  // namespace collage::cudnn
