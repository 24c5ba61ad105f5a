// evaluation.h: what a plan of the stand-in for cuDNN computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace standin::cudnn {

struct Tensor {
  int64_t id = 0;
  int type = 0;  ///< cudnnDataType_t
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  int64_t alignment = 1;
  bool is_virtual = false;
  bool is_by_value = false;

  size_t element_bytes() const { return type == 0 ? 4 : 2; }
  /// From the address of the first element to the end of the last.
  size_t bytes() const;
};

/// An operation: tensors and numbers by cudnnBackendAttributeName_t, those of the descriptors that it names included.
struct Operation {
  int kind = 0;
  std::map<int, int64_t> tensors;
  std::map<int, std::vector<double>> numbers;
};

struct Program {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
  bool rounds_factors = false;  ///< factors of products and convolutions are rounded to TF32

  const Tensor& tensor(int64_t id) const;
};

/// Computes `program`; `places` are those of tensors that are not virtual, by id.
void Evaluate(const Program& program, const std::map<int64_t, std::byte*>& places);

}  // namespace standin::cudnn
