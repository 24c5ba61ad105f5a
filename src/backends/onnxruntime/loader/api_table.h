// api_table.h: calls of the functions in ONNX Runtime's table.
#pragma once

#include <fmt/format.h>

#include <string>

#include "backends/onnxruntime/loader/c_api.h"
#include "collage/support/error.h"

namespace collage::onnxruntime {

/// The table behind OrtGetApiBase.
class ApiTable {
 public:
  ApiTable() = default;
  explicit ApiTable(const void* const* api) : api_(api) {}

  template <typename Entry, typename... Args>
  auto Call(Args... args) const {
    return Entry::Of(api_)(args...);
  }

  /// Throws `category` when ONNX Runtime reports an error.
  template <typename Entry, typename... Args>
  void Check(ErrorCategory category, const char* doing, Args... args) const {
    Throw(category, doing, Call<Entry>(args...));
  }
  /// Throws `category` for a status that is an error, and releases it.
  void Throw(ErrorCategory category, const char* doing, Status* status) const {
    if (status == nullptr) return;
    const std::string message = Call<GetErrorMessage>(static_cast<const Status*>(status));
    Call<ReleaseStatus>(status);
    throw Error(category, fmt::format("ONNX Runtime cannot {}: {}", doing, message));
  }

 protected:
  const void* const* api_ = nullptr;
};

}  // namespace collage::onnxruntime
