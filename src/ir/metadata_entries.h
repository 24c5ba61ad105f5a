// metadata_entries.h: what both forms of the metadata section are made of.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "ir/metadata.h"

namespace collage::metadata {

inline constexpr const char* kConstants = "relay.Constant";
inline constexpr const char* kDevices = "VirtualDevice";

/// Throws kInput.
[[noreturn]] void Fail(const std::string& message);

/// Bytes of the elements of `shape`; fails for what no memory holds, before anything is allocated.
size_t CheckedBytes(const Shape& shape, DataType dtype, const std::string& entry);

/// A constant of `bytes`, as many as its type needs. Whatever a bool holds, it is 0 or 1.
Constant ConstantOf(Shape shape, DataType dtype, std::string_view bytes);

/// Reads TVM's form: `{"root": …, "nodes": […], "b64ndarrays": […]}`.
Metadata ReadNodeGraph(const nlohmann::json& json);

}  // namespace collage::metadata
