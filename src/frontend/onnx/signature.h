// signature.h: what an ONNX operator takes and gives, checked before its converter runs.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

class NodeContext;

/// The elements that an input may have.
enum class OnnxElements : uint8_t {
  kAny,
  kFloat,
  kInt,
  kNumber,
  kBool,
  kSame,
  kSequence,  ///< a sequence in place of a tensor
  kValue,     ///< a tensor, a sequence, or an optional value that is not there
};

/// One input of an operator.
struct OnnxOperand {
  std::string name;
  OnnxElements elements = OnnxElements::kAny;
  int least_rank = 0;
  int most_rank = std::numeric_limits<int>::max();
  /// Whether ONNX has the operator for higher ranks than `most_rank`, too.
  bool exists_above = false;
  bool is_optional = false;
  bool is_variadic = false;  ///< the last one: any number of inputs from here on
  int64_t since = 0;         ///< the opset from which on the operator has this input
};

/// Inputs and outputs of an operator.
///
/// Written as ONNX writes them, with the ranks that an input may have in brackets:
///
///     X: float[3..5+], W: float[3..5+], B?: float[1] -> Y
///     data, pads@11: int[1], constant_value?@11: [0..1] -> output
///
/// `?` is optional, `*` any number, `+` one or more, `@11` there since opset 11. The elements are `float`, `int`
/// (signed and unsigned), `number` (both), `bool`, or anything; `sequence` is a sequence, `value` it or a tensor.
/// `[1..]` is rank 1 and above; `[3..5+]` is rank 3 to 5, and ONNX allows more than Collage has.
struct OnnxSignature {
  std::vector<OnnxOperand> inputs;
  size_t least_inputs = 0;  ///< least number of values of a variadic input
  size_t least_outputs = 0;
  size_t most_outputs = 0;

  explicit OnnxSignature(std::string_view text);
};

/// Throws what is wrong with the inputs and outputs of `node`: kInput where ONNX forbids it, kUnsupported where Collage
/// has not what ONNX allows. Sizes may be unknown.
void CheckOperands(const NodeContext& node, const OnnxSignature& signature);

/// Converts one node to its outputs, in order. Its operands are as many, and of the ranks, that the row says.
using OnnxConverter = std::function<std::vector<Expr>(NodeContext& node)>;

/// How an operator treats inputs of narrow types (narrow_types.h).
enum class NarrowUse : uint8_t {
  kNone,    ///< there are none
  kMoves,   ///< results have the type of the first input
  kItsOwn,  ///< the converter reads types of numbers and says those of results
  kReads,   ///< as kItsOwn, and there may be strings
};

/// One ONNX operator.
struct OnnxRow {
  OnnxConverter convert;
  OnnxSignature signature;
  NarrowUse narrow = NarrowUse::kNone;

  OnnxRow(OnnxConverter converter, std::string_view text, NarrowUse use)
      : convert(std::move(converter)), signature(text), narrow(use) {}
};

/// The rows by name of the operator.
class OnnxConverters {
 public:
  /// Adds a row; `signature` as in OnnxSignature.
  void Add(const std::string& op, OnnxConverter convert, std::string_view signature,
           NarrowUse narrow = NarrowUse::kNone);
  /// Null when there is none.
  const OnnxRow* Find(const std::string& op) const;
  /// Names of all operators, in order.
  std::vector<std::string> Names() const;

 private:
  std::unordered_map<std::string, OnnxRow> rows_;
};

}  // namespace collage
