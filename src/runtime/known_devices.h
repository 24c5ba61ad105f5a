// known_devices.h: the devices with memory of their own that there are modules for, and whether they are here.
#pragma once

#include <string>
#include <vector>

namespace collage {

struct KnownDevice {
  std::string name;         ///< the type's: "cuda"
  std::string description;  ///< "NVIDIA H100 80GB HBM3, sm_90, …"; empty where it is not here
  std::string reason;       ///< why it is not here
};

/// Returns the name of the module for a type of device: "libcollage_device_cuda.so".
std::string DeviceModule(int device_type);

/// Returns the devices whose modules (GetDevice) are in a folder of modules. A module says what is here by C symbol
/// `collage_describe_device`, of type DescribeDeviceFn; without it, its device counts as not here. Opens the libraries
/// of devices: children that are forked later may be unable to use them.
std::vector<KnownDevice> DescribeDevices();

/// Sets the text; throws Error with the reason where the device is not here.
using DescribeDeviceFn = void(std::string& text);

}  // namespace collage
