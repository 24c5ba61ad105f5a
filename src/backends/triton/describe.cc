// describe.cc: finds out which program computes a match: attention has a softmax between two products, a product one,
// and rows have a reduction or a normalisation. All other calls become lines of the function that each program calls.
#include "backends/triton/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "backends/triton/programs.h"
#include "backends/triton/tile_code.h"
#include "collage/ir/op.h"

namespace collage::triton {
namespace {

using matches::MatchReader;
using matches::Refusal;
using matches::TensorOf;

/// More calls would make a function that no registers suffice for.
constexpr size_t kMostCalls = 32;
/// A row is in registers as a whole.
constexpr int64_t kMostColumns = 16384;

std::vector<Multiplier> MultipliersFor(DataType factor, Precision precision) {
  if (factor != kFloat32) return {Multiplier::kExact};
  if (precision.allows_tf32) return {Multiplier::kTf32};
  if (precision.is_exact) return {Multiplier::kExact};
  return {Multiplier::kExact, Multiplier::kThreeTf32};
}

void CheckSizes(const Instance& instance) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max(), kMostBatch = 65535;
  const Sizes& s = instance.sizes;
  if (s.batch > kMostBatch) throw Refusal{fmt::format("takes up to {} matrices, got {}", kMostBatch, s.batch)};
  for (const int64_t elements : {s.batch * s.m * s.n, s.batch * s.m * s.k, s.batch * s.n * s.k, s.batch * s.n * s.width,
                                 s.batch * s.m * s.width}) {
    if (elements > kMost) throw Refusal{"counts elements in 31 bits"};
  }
}

/// Emits all but `product`, which a program computes itself.
void EmitAllBut(const Call& product, const MatchReader& reader, TileCode& code) {
  for (const Call& call : reader.calls()) {
    if (call != product) code.Emit(call);
  }
}

void Finish(const MatchReader& reader, const TileCode& code, Description& description) {
  Instance& instance = description.instance;
  if (!code.Has(reader.root())) throw Refusal{"its operators form no chain"};
  instance.behind = code.Function(reader.root());
  for (const Parameter& other : code.others()) instance.parameters.push_back(other);
}

void DescribeProduct(const MatchReader& reader, const Call& product, Description& description) {
  ReadProduct(reader, product, description);
  const Sizes& sizes = description.instance.sizes;
  TileCode code(reader, description.constants, sizes.batch * sizes.m, sizes.n);
  code.Define(product);
  EmitAllBut(product, reader, code);
  if (code.Has(reader.root()) && code.IsReduced(reader.root())) throw Refusal{"computes whole rows behind products"};
  Finish(reader, code, description);
}

/// Rows are those of the first tensor that is computed over.
void DescribeRows(const MatchReader& reader, const Call& over, Description& description) {
  const Shape shape = TensorOf(over->args()[0]).static_shape();
  if (shape.empty()) throw Refusal{"computes over rows, got a number"};
  Instance& instance = description.instance;
  instance.program = Program::kRows;
  instance.sizes.n = shape.back();
  instance.sizes.m = NumElements(shape) / shape.back();
  if (instance.sizes.n > kMostColumns) {
    throw Refusal{fmt::format("computes rows of up to {} elements, got {}", kMostColumns, instance.sizes.n)};
  }
  TileCode code(reader, description.constants, instance.sizes.m, instance.sizes.n);
  EmitAllBut(nullptr, reader, code);
  Finish(reader, code, description);
  instance.constants = {{"ROWS", std::to_string(instance.sizes.m)},
                        {"COLUMNS", std::to_string(instance.sizes.n)},
                        {"IS_REDUCED", code.IsReduced(reader.root()) ? "True" : "False"}};
}

void DescribeElements(const MatchReader& reader, Description& description) {
  Instance& instance = description.instance;
  instance.program = Program::kElements;
  instance.sizes.m = NumElements(TensorOf(reader.root()).static_shape());
  TileCode code(reader, description.constants, instance.sizes.m, /*columns=*/0);
  EmitAllBut(nullptr, reader, code);
  Finish(reader, code, description);
  instance.constants = {{"COUNT", std::to_string(instance.sizes.m)}};
}

Description Read(const Function& function, const BoundaryLayouts& layouts, Precision precision) {
  const MatchReader reader(function, layouts);
  if (reader.calls().empty()) throw Refusal{"computes nothing"};
  if (reader.calls().size() > kMostCalls) {
    throw Refusal{fmt::format("computes up to {} operators, got {}", kMostCalls, reader.calls().size())};
  }
  if (reader.result_layout() != Layout::kPlain) throw Refusal{"makes plain tensors only"};
  Description description;
  description.instance.result = TensorOf(reader.root()).dtype();
  if (!KindOf(description.instance.result)) {
    throw Refusal{"makes no " + description.instance.result.ToString()};
  }
  std::vector<Call> products;
  std::ranges::copy_if(reader.calls(), std::back_inserter(products), [](const Call& call) { return IsProduct(*call); });
  const auto over = std::ranges::find_if(reader.calls(), [](const Call& call) { return IsOverRow(*call); });
  const bool has_over = over != reader.calls().end();
  if (products.size() == 2 && has_over) {
    DescribeAttention(reader, products[0], *over, products[1], description);
  } else if (products.size() == 1 && !has_over) {
    DescribeProduct(reader, products[0], description);
  } else if (!products.empty()) {
    throw Refusal{"computes one product, or attention"};
  } else if (has_over) {
    DescribeRows(reader, *over, description);
  } else {
    DescribeElements(reader, description);
  }
  CheckSizes(description.instance);
  if (!products.empty()) description.multipliers = MultipliersFor(description.instance.factor, precision);
  return description;
}

}  // namespace

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision) {
  try {
    return Read(function, layouts, precision);
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "triton"};
  }
}

}  // namespace collage::triton
