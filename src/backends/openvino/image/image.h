// image.h: the blob of a kernel: what OpenVINO exported, and the model that it was compiled from, so that another
// version of OpenVINO, whose plugin cannot read the former, compiles the latter when the executable is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::openvino {

/// Parts that a blob is written from.
struct ImageParts {
  std::string version;    ///< OpenVINO's version, which made the export
  std::string precision;  ///< precision of the computation: f32, bf16, f16
  std::string exported;   ///< the plugin's own format
  std::string model;      ///< OpenVINO IR, XML
  std::string weights;    ///< bytes that hold the IR's constants
};

/// The bytes of a kernel's blob:
///
///     header (64 bytes) | exported | version | precision | model | chunks | own weights
///
/// Weights are nearly always in `exported` as well, byte by byte: chunks say from where in the blob they are copied, so
/// that they are not stored twice.
std::vector<std::byte> WriteImage(const ImageParts& parts);

/// A blob taken apart; views of it.
class Image {
 public:
  /// Throws kCorrupt for what is no such blob.
  explicit Image(std::span<const std::byte> blob);

  std::span<const std::byte> exported() const { return exported_; }
  std::string_view version() const { return version_; }
  std::string_view precision() const { return precision_; }
  std::string_view model() const { return model_; }
  size_t weights_bytes() const { return weights_bytes_; }
  /// Puts the model's weights together; `to` has `weights_bytes()`.
  void CopyWeights(std::byte* to) const;

 private:
  std::span<const std::byte> blob_;
  std::span<const std::byte> exported_;
  std::string_view version_, precision_, model_;
  std::span<const std::byte> chunks_;
  size_t weights_bytes_ = 0;
};

}  // namespace collage::openvino
