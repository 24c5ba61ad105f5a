// random.cc: operators that draw random numbers. All distributions of the front ends are made of these two.
#include "ir/ops/random/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "collage/support/error.h"
#include "ir/eval/random_draws.h"
#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

/// A number in [0, 1) of 32 random bits, as many as float32 holds.
double UnitFloat(uint32_t word) { return (word >> 8) * 0x1p-24; }
/// A number in [0, 1) of 64 random bits, as many as float64 holds.
double UnitDouble(uint32_t low, uint32_t high) {
  return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

/// Two independent numbers of mean 0 and deviation 1, of `u` in (0, 1] and `v` in [0, 1) (Box and Muller, "A note on
/// the generation of random normal deviates", 1958).
std::pair<double, double> NormalPair(double u, double v) {
  const double radius = std::sqrt(-2 * std::log(u));
  const double angle = 2 * std::numbers::pi * v;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void FillUniform(const Philox& words, const Tensor& output) {
  const int64_t count = output.num_elements();
  const bool is_double = output.dtype() == kFloat64;
  const int64_t per_block = is_double ? 2 : 4;
  for (int64_t i = 0; i < count; i += per_block) {
    const Philox::Block block = words.At(static_cast<uint64_t>(i / per_block));
    for (size_t j = 0; j < static_cast<size_t>(std::min(per_block, count - i)); ++j) {
      const double value = is_double ? UnitDouble(block[2 * j], block[2 * j + 1]) : UnitFloat(block[j]);
      output.Set(i + static_cast<int64_t>(j), value);
    }
  }
}

void FillNormal(const Philox& words, const Tensor& output) {
  const int64_t count = output.num_elements();
  for (int64_t i = 0; i < count; i += 2) {
    const Philox::Block block = words.At(static_cast<uint64_t>(i / 2));
    const auto [a, b] = NormalPair(1 - UnitDouble(block[0], block[1]), UnitDouble(block[2], block[3]));
    output.Set(i, a);
    if (i + 1 < count) output.Set(i + 1, b);
  }
}

/// A row of the table of operators.
struct Distribution {
  const char* name;
  const char* doc;
  void (*fill)(const Philox& words, const Tensor& output);
};

constexpr std::array kDistributions{
    Distribution{"random.uniform", "Random numbers, uniform in [0, 1).", FillUniform},
    Distribution{"random.normal", "Random numbers of a normal distribution, of mean 0 and deviation 1.", FillNormal},
};

const Distribution* Find(const OpDef& op) {
  const auto found = std::ranges::find(kDistributions, op.name, &Distribution::name);
  return found == kDistributions.end() ? nullptr : &*found;
}

OpDef Random(const Distribution& distribution) {
  OpDef op;
  op.name = distribution.name;
  op.doc = distribution.doc;
  op.args = {"like"};
  op.min_args = 0;
  op.attrs = {
      {"shape", AttrKind::kInts, AttrValue(), "the result's shape; None: that of the argument, which is not read"},
      {"dtype", AttrKind::kDType, "float32", "float32 or float64"},
      {"seed", AttrKind::kInt, AttrValue(), "the seed; None: one that is new in each run"},
      {"stream", AttrKind::kInt, 0, "calls of different streams are independent"}};
  op.pattern = OpPatternKind::kOpaque;
  op.equal_dims = [](const OpCall& call, const Type& result, DimEquations& equations) {
    if (!call.args.empty()) SameShapeDims(call, result, equations);
  };
  op.relation = Relation([](const OpCall& call) {
    const DataType dtype = call.attrs.Type("dtype");
    if (dtype != kFloat32 && dtype != kFloat64) {
      throw RelationFailure{fmt::format("draws float32 or float64, not {}", dtype.ToString())};
    }
    if (call.args.empty() == call.attrs.IsNone("shape")) {
      throw RelationFailure{"expects a tensor of the result's shape, or attribute 'shape'"};
    }
    if (!call.args.empty()) return TensorType(TensorArg(call, 0).shape(), dtype);
    const std::vector<int64_t> sizes = call.attrs.Ints("shape");
    for (const int64_t size : sizes) {
      if (size < 0) throw RelationFailure{fmt::format("cannot make a tensor with a dimension of {}", size)};
    }
    return TensorType(std::vector<Dim>(sizes.begin(), sizes.end()), dtype);
  });
  op.examples = {{{}, {{"shape", std::vector<int64_t>{3, 7}}, {"seed", 1}}},
                 {{F32({2, 5})}, {{"dtype", "float64"}, {"seed", 2}}}};
  return op;
}

}  // namespace

bool DrawsNumbers(const OpDef& op) { return Find(op) != nullptr; }

void DrawNumbers(const OpDef& op, const Attrs& attrs, const Tensor& output, RandomDraws& draws) {
  const Distribution* distribution = Find(op);
  COLLAGE_CHECK(distribution != nullptr) << "'" << op.name << "' draws no random numbers";
  std::optional<int64_t> seed;
  if (!attrs.IsNone("seed")) seed = attrs.Int("seed");
  distribution->fill(draws.Next(seed, attrs.Int("stream")), output);
}

void AddRandomOps(std::vector<OpDef>& rows) {
  for (const Distribution& distribution : kDistributions) rows.push_back(Random(distribution));
}

}  // namespace collage
