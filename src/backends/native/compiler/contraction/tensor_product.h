// tensor_product.h: the products of tensor cores, a block of 16 rows and 8 columns at a time.
//
// Thread 4 g + t has columns 2 t and 2 t + 1 of rows g and g + 8 of a block of sums, which is what the instruction
// mma.sync leaves behind (PTX ISA, "Matrix Fragments for mma.m16n8k8"). It reads words of 32 bits: one number, two of
// 16 bits, or four bytes.
#pragma once

#include <string>

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Writes such products of a form, which must outlive it.
class TensorProduct {
 public:
  static constexpr int64_t kRows = 16;  ///< in a block
  static constexpr int64_t kColumns = 8;
  static constexpr int64_t kSums = 4;  ///< the sums of one thread in a block

  /// Whether tensor cores compute such sums: there are some, and they multiply such factors.
  static bool Multiplies(const PartitionState& state, DataType dtype, DotKind factors);
  /// Whether they compute those of `form`: it has rows enough, and words lie at even distances that are known.
  static bool Takes(const PartitionState& state, const Contraction& form);

  TensorProduct(Emitter& e, const Contraction& form);

  /// The types of vectors of sums and of words.
  const std::string& sums() const { return sums_; }
  const std::string& words() const { return words_; }
  Vector Zeros();
  /// Words as they are multiplied: of the data (a), or of b.
  Vectors Prepared(Vectors words, bool is_data);
  /// Adds the products of four words of rows (g, g + 8, and both again four words on) and two of columns.
  void Add(const Vectors& rows, const Vectors& columns, Vectors::iterator sums);
  /// Returns the function of four warps for `columns` columns and `words` vectors of words of rows.
  std::string DeclareGroup(int64_t columns, int64_t words);
  /// Writes two neighbouring sums, and reads one, of shared memory.
  void Write(const Vector& places, int64_t behind, const Vector& first, const Vector& second);
  Vector Read(const Vector& places, int64_t behind);
  /// Waits for all threads of the warp.
  void Synchronise();
  /// A constant vector of i32.
  Vector Numbers(const std::function<int64_t(int64_t lane)>& number);

 private:
  Emitter& e_;
  const Contraction& form_;
  std::string sums_, words_;
  std::string multiply_, write_, read_;
};

}  // namespace collage::native
