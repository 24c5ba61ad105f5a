// operation.h: a product in the library's words, and the algorithm that computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "backends/cublas/loader/library.h"
#include "backends/cublas/product.h"

namespace collage::cublas {

/// Memory that algorithms may use meanwhile, at most.
inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;

template <typename Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, Status (*)(Object)>;

/// Addresses on the device.
struct Addresses {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* addend = nullptr;
  void* result = nullptr;
};

/// A product as descriptors of the library, which counts rows within columns: for it, a row-major matrix is its
/// transpose, and A x B is computed as the transpose of B times that of A, with a bias for each of its rows. Only a
/// bias for each row of A x B is computed in row-major order.
class Operation {
 public:
  /// `scales` and `bias` are addresses on the device, null where the product has none. Throws kUnsupported where the
  /// library has no algorithm of the wanted rank.
  Operation(Handle handle, const Product& product, const void* scales, const void* bias);

  size_t workspace_bytes() const { return choice_.workspace_bytes; }
  /// Puts the product on `stream`.
  void Enqueue(const Addresses& addresses, void* workspace, cuda_driver::Stream stream) const;

 private:
  /// A matrix as it lies: elements of the inner dimension follow each other.
  struct Stored {
    int64_t outer = 1, inner = 1;
    int64_t leading = 1;       ///< elements from one of the outer dimension to the next
    int64_t batch_stride = 0;  ///< elements from one of the batch to the next
  };

  template <typename T>
  void Set(int attribute, const T& value);
  void DescribeOperator(const void* bias);
  Owned<Matrix> Describe(Type type, const Stored& stored) const;
  void Choose();

  Handle handle_;
  const Library& library_;
  Product product_;
  bool is_row_major_;
  const void* scales_;
  Owned<Operator> operator_{nullptr, nullptr};
  Owned<Matrix> a_{nullptr, nullptr};
  Owned<Matrix> b_{nullptr, nullptr};
  Owned<Matrix> addend_{nullptr, nullptr};
  Owned<Matrix> result_{nullptr, nullptr};
  Choice choice_{};
};

}  // namespace collage::cublas
