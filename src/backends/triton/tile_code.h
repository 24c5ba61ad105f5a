// tile_code.h: Relay on a tile of a tensor, as lines of Triton's language.
//
// Elements have a row, a number over all dimensions but the last one, and a column. All dimensions are rows in
// kernels that compute elements. Floats are computed as float32.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "backends/fused_matches/match_reader.h"
#include "backends/triton/instance.h"
#include "backends/triton/operators.h"

namespace collage::triton {

class TileCode {
 public:
  /// A tile of `rows` and `columns`; without columns, of elements. Arguments must outlive it.
  TileCode(const matches::MatchReader& reader, std::vector<Tensor>& constants, int64_t rows, int64_t columns);

  /// Makes the value of `call`, which the kernel has before, that of the parameter `value`.
  void Define(const Call& call);
  /// Adds the lines of `call`. Throws a Refusal for what no line computes.
  void Emit(const Call& call);
  /// Whether there is a value of `call`.
  bool Has(const Expr& call) const { return values_.contains(call.get()); }
  /// Whether `call` has one value for each row.
  bool IsReduced(const Expr& call) const { return values_.at(call.get()).is_reduced; }

  /// The function `behind` with the value of `result`.
  std::string Function(const Expr& result) const;
  /// Parameters that the lines read, in the order of `others`.
  const std::vector<Parameter>& others() const { return others_; }

 private:
  struct TileValue {
    std::string text;
    Shape shape;
    bool is_reduced = false;  ///< one for each row
  };

  bool has_columns() const { return columns_ > 0; }
  TileValue Placed(std::string text, const Shape& shape) const;
  std::string NewLine(const std::string& text);
  void Set(const Call& call, const std::string& text);
  std::string TextOf(const Expr& expr, const Shape& result, const Shape& own);
  std::string Load(const matches::Operand& operand, const Shape& result, const Shape& own);
  size_t NumberOf(const matches::Operand& operand);
  std::string RowIndex(const Shape& result, const Shape& own, size_t dims) const;
  std::string Sum(const std::string& text);
  std::string Largest(const std::string& text);
  void EmitElement(const Call& call, const Shape& shape);
  bool EmitOverRow(const Call& call);
  void EmitReduction(const Call& call);
  void EmitSoftmax(const Call& call);
  void EmitLayerNorm(const Call& call);
  void CheckWholeRow(const Expr& data) const;

  const matches::MatchReader& reader_;
  std::vector<Tensor>& constants_;
  int64_t rows_, columns_;
  bool has_value_ = false;  ///< whether there is a parameter `value`
  std::vector<Parameter> others_;
  std::vector<const void*> keys_;  ///< parallel to others_: which tensor it is
  std::vector<std::string> lines_;
  std::unordered_map<std::string, std::string> known_;  ///< text → name of its line
  std::unordered_map<const ExprNode*, TileValue> values_;
};

/// Operators that are computed over a row: reductions and normalisations.
bool IsOverRow(const CallNode& call);

/// The bytes of a tensor.
int64_t BytesOf(const Shape& shape, DataType dtype);

}  // namespace collage::triton
