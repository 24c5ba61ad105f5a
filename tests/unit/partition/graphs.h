// graphs.h: functions and toolchains on which dataflow, rules and search are tried.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"
#include "partition/partition_spec.h"

namespace collage::testing_graphs {

inline Var Param(const std::string& name, const Shape& shape) { return MakeVar(name, TensorType(shape, kFloat32)); }
inline Expr Scalar(double value) { return MakeScalar(value, kFloat32); }
inline Expr Weights(const Shape& shape) {
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, 0.01 * static_cast<double>(i % 17) - 0.07);
  return MakeConstant(tensor);
}

inline Function Typed(std::vector<Var> params, const Expr& body) {
  const Function function = MakeFunction(std::move(params), body);
  InferType(function);
  return function;
}

/// abs(x); relu; relu: calls 3, 4, 5.
inline Function Std() {
  const Var x = Param("x", {5, 7});
  return Typed({x}, MakeCall("nn.relu", {MakeCall("nn.relu", {MakeCall("abs", {x})})}));
}

/// The tail of GPT-2: dense 6, add 8, reshape 9, multiply 11, power 15, multiply 17, add 18, multiply 20, tanh 21, add
/// 23, multiply 24; constants 5 and 7.
inline Function GptTail() {
  const Var x = Param("x", {16, 8});
  const Expr dense = MakeCall("nn.dense", {x, Weights({12, 8})});
  const Expr bias = MakeCall("add", {dense, Weights({12})});
  const Expr shaped = MakeCall("reshape", {bias}, {{"newshape", std::vector<int64_t>{1, 16, 12}}});
  const Expr cube = MakeCall("multiply", {MakeCall("power", {shaped, Scalar(3)}), Scalar(0.044715)});
  const Expr inner = MakeCall("multiply", {MakeCall("add", {shaped, cube}), Scalar(0.797885)});
  const Expr sum = MakeCall("add", {MakeCall("tanh", {inner}), Scalar(1)});
  return Typed({x}, MakeCall("multiply", {MakeCall("multiply", {shaped, Scalar(0.5)}), sum}));
}

/// Keys and values of attention: split 6, projections 7 and 11, reshape 8 and 12, transpose 9 and 13, expand_dims 10
/// and 14, tuple 15, concatenate 16, the function 17.
inline Function Tuples() {
  const Var x = Param("x", {1, 3, 12});
  const Expr split = MakeCall("split", {x}, {{"indices_or_sections", std::vector<int64_t>{4, 8}}, {"axis", 2}});
  const auto part = [&](int field, std::vector<int64_t> axes) {
    const Expr shaped =
        MakeCall("reshape", {MakeTupleGetItem(split, field)}, {{"newshape", std::vector<int64_t>{1, 3, 2, 2}}});
    return MakeCall("expand_dims", {MakeCall("transpose", {shaped}, {{"axes", axes}})},
                    {{"axis", 0}, {"num_newaxis", 1}});
  };
  const Expr tuple = MakeTuple({part(1, {0, 2, 1, 3}), part(2, {0, 2, 1, 3})});
  return Typed({x}, MakeCall("concatenate", {tuple}, {{"axis", 0}}));
}

/// Takes every operator.
class AnyToolchain : public Toolchain {
 public:
  explicit AnyToolchain(std::string name = "acme", FusionStyle style = FusionStyle::kArbitrary, int max_depth = 3,
                        bool maximal = false)
      : name_(std::move(name)), style_(style), max_depth_(max_depth), maximal_(maximal) {}

  std::string name() const override { return name_; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 1; }
  Result<void> SupportsCall(const CallNode&) const override { return {}; }
  bool is_native() const override { return name_ == "native"; }
  FusionStyle fusion_style() const override { return style_; }
  int max_depth() const override { return max_depth_; }
  bool wants_maximal() const override { return maximal_; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override { return Reason{"never", name_}; }

 private:
  std::string name_;
  FusionStyle style_;
  int max_depth_;
  bool maximal_;
};

/// Specs of toolchains by their own rules.
inline std::vector<PartitionSpec> SpecsOf(const std::vector<const Toolchain*>& toolchains) {
  std::vector<PartitionSpec> specs;
  for (const Toolchain* toolchain : toolchains) specs.push_back(SpecOf(*toolchain));
  return specs;
}

using Sets = std::vector<std::vector<int>>;

/// The members of all candidates, sorted.
inline Sets Members(const std::vector<CandidatePartition>& candidates) {
  Sets sets;
  for (const CandidatePartition& candidate : candidates) sets.push_back(candidate.sub_graph.members());
  std::sort(sets.begin(), sets.end());
  return sets;
}

inline Sets Find(const DataflowGraph& graph, const PartitionRule& rule) {
  static const AnyToolchain toolchain;
  RuleLog log;
  return Members(rule.AllCandidates(graph, toolchain, log));
}

/// Random dataflow over values of shape (2, 4, 6): `count` steps, each one to four operators, with constants,
/// reductions, products, reshapes, and tuples taken apart and put together. Every value is used.
inline Function RandomFunction(int count, std::mt19937& random) {
  const Var x = Param("x", {2, 4, 6});
  const Var y = Param("y", {2, 4, 6});
  std::vector<Expr> values{x, y};
  const auto recent = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)]; };
  for (int i = 0; i < count; ++i) {
    const Expr last = values.back();
    switch (random() % 9) {
      case 0: values.push_back(MakeCall("nn.relu", {last})); break;
      case 1: values.push_back(MakeCall("add", {last, recent()})); break;
      case 2: values.push_back(MakeCall("multiply", {recent(), MakeCall("tanh", {last})})); break;
      case 3:
        values.push_back(MakeCall(
            "subtract", {last, MakeCall("sum", {recent()}, {{"axis", std::vector<int64_t>{2}}, {"keepdims", true}})}));
        break;
      case 4: values.push_back(MakeCall("nn.softmax", {last}, {{"axis", -1}})); break;
      case 5: {
        const Expr flat = MakeCall("reshape", {last}, {{"newshape", std::vector<int64_t>{8, 6}}});
        const Expr dense = MakeCall("nn.dense", {flat, Weights({6, 6})});
        values.push_back(MakeCall("reshape", {MakeCall("add", {dense, Weights({6})})},
                                  {{"newshape", std::vector<int64_t>{2, 4, 6}}}));
        break;
      }
      case 6: {
        const Expr split = MakeCall("split", {last}, {{"indices_or_sections", 2}, {"axis", 2}});
        const Expr halves = MakeTuple({MakeTupleGetItem(split, 1), MakeCall("nn.relu", {MakeTupleGetItem(split, 0)})});
        values.push_back(MakeCall("concatenate", {halves}, {{"axis", 2}}));
        break;
      }
      case 7: {
        const Expr both = MakeCall("concatenate", {MakeTuple({last, recent()})}, {{"axis", 1}});
        values.push_back(MakeTupleGetItem(MakeCall("split", {both}, {{"indices_or_sections", 2}, {"axis", 1}}), 0));
        break;
      }
      default: values.push_back(MakeCall("maximum", {last, Weights({4, 6})}));
    }
  }
  return Typed({x, y}, random() % 4 == 0 ? MakeTuple({values.back(), recent()}) : values.back());
}

}  // namespace collage::testing_graphs
