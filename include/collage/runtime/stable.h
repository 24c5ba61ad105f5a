// stable.h: C++17 over the C API (c_api.h), with nothing in between: handles that release themselves, errors as
// exceptions. A program that uses only this keeps working with later libraries, whatever compiler they are made with;
// executable.h says more, but has no stable ABI.
//
//   collage::stable::Instance run(collage::stable::Executable::Load("model.clg"));
//   run.CopyInput(0, image.data(), image.size());
//   run.Run();
//   for (float score : run.Output<float>(0)) std::printf("%g\n", score);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "collage/runtime/c_api.h"

namespace collage::stable {

/// A failed call; `what()` is the whole message.
class Error : public std::runtime_error {
 public:
  explicit Error(const collage_error& error)
      : std::runtime_error(error.text),
        status_(error.status),
        message_(error.message),
        where_(error.where),
        hint_(error.hint) {}
  /// A wrong argument.
  explicit Error(const std::string& message)
      : std::runtime_error("error: " + message), status_(COLLAGE_ERROR_INPUT), message_(message) {}

  collage_status status() const { return status_; }
  std::string category() const { return collage_status_name(status_); }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }

 private:
  collage_status status_;
  std::string message_;
  std::string where_;
  std::string hint_;
};

/// Throws the calling thread's last error unless `status` is COLLAGE_OK.
inline void Check(collage_status status) {
  if (status != COLLAGE_OK) throw Error(*collage_last_error());
}

/// The dtype of a C++ type: float, double, bool, integers. 16-bit floats are read and written as DLPack tensors.
template <typename T>
constexpr collage_dtype DTypeOf() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "no dtype is this type");
  const int code = std::is_same_v<T, bool>       ? COLLAGE_DTYPE_BOOL
                   : std::is_floating_point_v<T> ? COLLAGE_DTYPE_FLOAT
                   : std::is_signed_v<T>         ? COLLAGE_DTYPE_INT
                                                 : COLLAGE_DTYPE_UINT;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(sizeof(T) * 8), 1};
}

/// An input or output of an executable.
struct TensorInfo {
  std::string name;
  collage_dtype dtype;
  std::vector<int64_t> shape;  ///< -1 where known at run time only
  uint64_t size_bytes;         ///< 0 where known at run time only
};

/// Elements that an instance holds, or that were bound to it.
template <typename T>
struct View {
  T* data;
  size_t size;

  T* begin() const { return data; }
  T* end() const { return data + size; }
  T& operator[](size_t index) const { return data[index]; }
};

/// A compiled model. A handle: copies share it. May be used by several threads at once.
class Executable {
 public:
  /// Throws Error when the file cannot be read, is damaged, or cannot run here; so do all that follow.
  static Executable Load(const std::string& path) {
    collage_executable* handle = nullptr;
    Check(collage_executable_load(path.c_str(), &handle));
    return Executable(handle);
  }
  /// From the bytes of such a file, which are copied. Errors call them `name`.
  static Executable FromBytes(const void* bytes, size_t size, const std::string& name = "memory") {
    collage_executable* handle = nullptr;
    Check(collage_executable_load_memory(bytes, size, name.c_str(), &handle));
    return Executable(handle);
  }

  std::vector<TensorInfo> inputs() const {
    return Describe(collage_executable_num_inputs, collage_executable_get_input);
  }
  std::vector<TensorInfo> outputs() const {
    return Describe(collage_executable_num_outputs, collage_executable_get_output);
  }
  size_t FindInput(const std::string& name) const { return Get<size_t>(collage_executable_find_input, name.c_str()); }
  size_t FindOutput(const std::string& name) const { return Get<size_t>(collage_executable_find_output, name.c_str()); }
  int num_threads() const { return Get<int32_t>(collage_executable_num_threads); }
  std::string metadata_json() const { return Get<const char*>(collage_executable_metadata); }

  const collage_executable* handle() const { return handle_.get(); }

 private:
  explicit Executable(collage_executable* handle) : handle_(handle, collage_executable_release) {}

  template <typename T, typename Function, typename... Args>
  T Get(Function function, Args... args) const {
    T result{};
    Check(function(handle(), args..., &result));
    return result;
  }

  template <typename Count, typename Get>
  std::vector<TensorInfo> Describe(Count count, Get get) const {
    size_t size = 0;
    Check(count(handle(), &size));
    std::vector<TensorInfo> infos;
    for (size_t i = 0; i < size; ++i) {
      collage_tensor_info info;
      Check(get(handle(), i, &info, sizeof info));
      infos.push_back({info.name, info.dtype, {info.shape, info.shape + info.ndim}, info.size_bytes});
    }
    return infos;
  }

  std::shared_ptr<collage_executable> handle_;
};

/// One execution of an executable, for one thread at a time.
class Instance {
 public:
  explicit Instance(const Executable& executable) {
    collage_instance* handle = nullptr;
    Check(collage_instance_create(executable.handle(), &handle));
    handle_.reset(handle);
  }

  /// Copies `count` elements into the instance. `T` must be the input's dtype.
  template <typename T>
  void CopyInput(size_t index, const T* data, size_t count) {
    Input<T>(index);
    Check(collage_instance_copy_input(handle(), index, data, count * sizeof(T)));
  }

  /// Reads from `data` in all later runs, written to `data` respectively: aligned to COLLAGE_ALIGNMENT, kept by the
  /// caller.
  template <typename T>
  void BindInput(size_t index, const T* data, size_t count) {
    Input<T>(index);
    Check(collage_instance_bind_input(handle(), index, data, count * sizeof(T)));
  }
  template <typename T>
  void BindOutput(size_t index, T* data, size_t count) {
    Output<T>(index);
    Check(collage_instance_bind_output(handle(), index, data, count * sizeof(T)));
  }
  /// Binds a DLPack tensor.
  void BindInput(size_t index, const collage_tensor& tensor) {
    Check(collage_instance_bind_input_tensor(handle(), index, &tensor));
  }
  void BindOutput(size_t index, const collage_tensor& tensor) {
    Check(collage_instance_bind_output_tensor(handle(), index, &tensor));
  }

  /// Computes all outputs.
  void Run() { Check(collage_instance_run(handle())); }

  /// Gives an input the shape that is known at run time only; it is then all zeros until it is written or bound.
  void SetInputShape(size_t index, const std::vector<int64_t>& shape) {
    Check(collage_instance_set_input_shape(handle(), index, shape.data(), static_cast<int32_t>(shape.size())));
  }
  /// Returns shape and type of output `index` as the last run wrote it.
  TensorInfo OutputInfo(size_t index) {
    collage_tensor_info info;
    Check(collage_instance_get_output_info(handle(), index, &info, sizeof info));
    return {info.name, info.dtype, {info.shape, info.shape + info.ndim}, info.size_bytes};
  }

  /// Returns the memory that an input is read from, or an output written to: the bound memory, or the instance's own.
  collage_tensor InputTensor(size_t index) {
    collage_tensor tensor;
    Check(collage_instance_get_input(handle(), index, &tensor));
    return tensor;
  }
  collage_tensor OutputTensor(size_t index) {
    collage_tensor tensor;
    Check(collage_instance_get_output(handle(), index, &tensor));
    return tensor;
  }
  /// Their elements. `T` must be the dtype.
  template <typename T>
  View<T> Input(size_t index) {
    return ViewAs<T>(InputTensor(index), "input", index);
  }
  template <typename T>
  View<T> Output(size_t index) {
    return ViewAs<T>(OutputTensor(index), "output", index);
  }

  collage_instance* handle() const { return handle_.get(); }

 private:
  struct Release {
    void operator()(collage_instance* instance) const { collage_instance_release(instance); }
  };

  template <typename T>
  static View<T> ViewAs(const collage_tensor& tensor, const char* what, size_t index) {
    const collage_dtype wanted = DTypeOf<T>();
    if (tensor.dtype.code != wanted.code || tensor.dtype.bits != wanted.bits || tensor.dtype.lanes != 1) {
      throw Error(std::string(what) + " " + std::to_string(index) + " is not of the dtype of the elements given");
    }
    size_t size = 1;
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) size *= static_cast<size_t>(tensor.shape[axis]);
    return {static_cast<T*>(tensor.data), size};
  }

  std::unique_ptr<collage_instance, Release> handle_;
};

}  // namespace collage::stable
