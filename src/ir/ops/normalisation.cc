// normalisation.cc: operators that scale by statistics of their data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

/// A tensor seen as [outer][length][inner] around one axis.
struct AxisView {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;

  AxisView(const Shape& shape, int axis) : length(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  }
  int64_t At(int64_t o, int64_t l, int64_t i) const { return (o * length + l) * inner + i; }
};

int AxisOf(const Attrs& attrs, const Tensor& data) { return NormalAxis(attrs.Int("axis"), data.rank()); }

void SoftmaxReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, bool logarithm) {
  const Tensor& x = inputs[0];
  const AxisView view(x.shape(), AxisOf(attrs, x));
  InParallel(view.outer * view.inner, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t o = unit / view.inner;
      const int64_t i = unit % view.inner;
      double largest = -INFINITY;
      for (int64_t l = 0; l < view.length; ++l) largest = std::max(largest, x.At(view.At(o, l, i)));
      double sum = 0;
      for (int64_t l = 0; l < view.length; ++l) sum += std::exp(x.At(view.At(o, l, i)) - largest);
      for (int64_t l = 0; l < view.length; ++l) {
        const double shifted = x.At(view.At(o, l, i)) - largest;
        outputs[0].Set(view.At(o, l, i), logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
      }
    }
  });
}

OpDef Softmax(std::string name, bool logarithm) {
  OpDef op;
  op.name = std::move(name);
  op.doc = logarithm ? "Logarithm of softmax along an axis." : "Exponentials along an axis, scaled to sum to 1.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.summed_over = SummedOver::kAxis;
  op.equal_dims = SameShapeDims;
  op.keeps_rows = RowsOffAxis;
  op.relation = Relation([](const OpCall& call) {
    NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank());
    return call.args[0];
  });
  op.reference = [logarithm](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    SoftmaxReference(inputs, attrs, outputs, logarithm);
  };
  op.examples = {
      {{F32({3, 5, 33})}, {}, -4, 4}, {{F32({2, 128})}, {}, -4, 4}, {{F32({2, 7, 5})}, {{"axis", 1}}, -4, 4}};
  return op;
}

/// (x - mean) / sqrt(variance + epsilon) over `count` elements reached by `offset(i)`, scaled by `gamma(i)`, `beta(i)`.
template <typename OffsetFn, typename ScaleFn, typename ShiftFn>
void NormaliseGroup(const Tensor& x, const Tensor& y, int64_t count, double epsilon, OffsetFn offset, ScaleFn gamma,
                    ShiftFn beta) {
  double mean = 0;
  for (int64_t i = 0; i < count; ++i) mean += x.At(offset(i));
  mean /= static_cast<double>(count);
  double variance = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double centred = x.At(offset(i)) - mean;
    variance += centred * centred;
  }
  const double factor = 1 / std::sqrt(variance / static_cast<double>(count) + epsilon);
  for (int64_t i = 0; i < count; ++i) y.Set(offset(i), (x.At(offset(i)) - mean) * factor * gamma(i) + beta(i));
}

std::vector<AttrField> NormAttrs(int64_t axis) {
  return {{"axis", AttrKind::kInt, axis, "the axis that scale and shift belong to"},
          {"epsilon", AttrKind::kDouble, 1e-5, "added to the variance"},
          {"center", AttrKind::kBool, true, "whether beta is added"},
          {"scale", AttrKind::kBool, true, "whether gamma is multiplied"}};
}

/// All arguments but the first have one value per element of the axis.
Type NormRelation(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  const Dim length = data.shape()[NormalAxis(call.attrs.Int("axis"), data.rank())];
  for (size_t i = 1; i < call.args.size(); ++i) {
    const Dim given = TensorArg(call, i, 1).shape()[0];
    if (given != length && !length.is_any() && !given.is_any()) {
      throw RelationFailure{
          fmt::format("expects {} values as argument {}, got {}", length.ToString(), i, ToString(call.args[i]))};
    }
  }
  return call.args[0];
}

// The three below have no TOpPattern in Relay, which makes them opaque there. Here they are anchors: the native
// toolchain fuses element-wise operators behind them.

OpDef LayerNorm() {
  OpDef op;
  op.name = "nn.layer_norm";
  op.doc = "Normalises along an axis, then scales by gamma and adds beta.";
  op.args = {"data", "gamma", "beta"};
  op.attrs = NormAttrs(-1);
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.summed_over = SummedOver::kAxis;
  op.equal_dims = SameShapeDims;
  op.keeps_rows = RowsOffAxis;
  op.relation = Relation(NormRelation);
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisOf(attrs, inputs[0]));
    const bool scale = attrs.Bool("scale");
    const bool center = attrs.Bool("center");
    InParallel(view.outer * view.inner, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        NormaliseGroup(
            inputs[0], outputs[0], view.length, attrs.Double("epsilon"),
            [&](int64_t l) { return view.At(unit / view.inner, l, unit % view.inner); },
            [&](int64_t l) { return scale ? inputs[1].At(l) : 1.0; },
            [&](int64_t l) { return center ? inputs[2].At(l) : 0.0; });
      }
    });
  };
  op.examples = {{{F32({2, 9, 33}), F32({33}), F32({33})}, {}},
                 {{F32({4, 96}), F32({96}), F32({96})}, {{"epsilon", 1e-6}}}};
  return op;
}

OpDef InstanceNorm() {
  OpDef op;
  op.name = "nn.instance_norm";
  op.doc = "Normalises each channel of each sample over its spatial dimensions.";
  op.args = {"data", "gamma", "beta"};
  op.attrs = NormAttrs(1);
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.summed_over = SummedOver::kSample;
  op.equal_dims = SameShapeDims;
  op.keeps_rows = RowsOfFirst;
  op.relation = Relation([](const OpCall& call) {
    const int rank = TensorArg(call, 0).rank();
    if (rank < 2 || NormalAxis(call.attrs.Int("axis"), rank) != 1)
      throw RelationFailure{"normalises channels of axis 1 only, got " + ToString(call.args[0])};
    return NormRelation(call);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const int64_t pixels = NumElements(Shape(shape.begin() + 2, shape.end()));
    for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
      NormaliseGroup(
          inputs[0], outputs[0], pixels, attrs.Double("epsilon"), [&](int64_t i) { return plane * pixels + i; },
          [&](int64_t) { return inputs[1].At(plane % shape[1]); },
          [&](int64_t) { return inputs[2].At(plane % shape[1]); });
    }
  };
  op.examples = {{{F32({2, 5, 7, 9}), F32({5}), F32({5})}, {}}};
  return op;
}

OpDef GroupNorm() {
  OpDef op = InstanceNorm();
  op.name = "nn.group_norm";
  op.doc = "Normalises groups of channels of each sample, then scales and shifts each channel.";
  op.attrs.push_back({"num_groups", AttrKind::kInt, 1, "groups of channels"});
  op.relation = Relation([](const OpCall& call) {
    NormRelation(call);
    const TensorTypeNode& data = TensorArg(call, 0);
    if (NormalAxis(call.attrs.Int("axis"), data.rank()) != 1)
      throw RelationFailure{"normalises groups of axis 1 only, got " + ToString(call.args[0])};
    const int64_t groups = call.attrs.Int("num_groups");
    const Dim channels = data.shape()[1];
    if (groups < 1 || (!channels.is_any() && channels.size() % groups != 0)) {
      throw RelationFailure{fmt::format("{} groups do not divide {} channels", groups, channels.ToString())};
    }
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const int64_t groups = attrs.Int("num_groups");
    const int64_t pixels = NumElements(Shape(shape.begin() + 2, shape.end()));
    const int64_t channels = shape[1] / groups;
    const bool scale = attrs.Bool("scale");
    const bool center = attrs.Bool("center");
    for (int64_t unit = 0; unit < shape[0] * groups; ++unit) {
      const auto channel = [&](int64_t i) { return unit % groups * channels + i / pixels; };
      NormaliseGroup(
          inputs[0], outputs[0], channels * pixels, attrs.Double("epsilon"),
          [&](int64_t i) { return unit * channels * pixels + i; },
          [&](int64_t i) { return scale ? inputs[1].At(channel(i)) : 1.0; },
          [&](int64_t i) { return center ? inputs[2].At(channel(i)) : 0.0; });
    }
  };
  op.examples = {{{F32({2, 6, 5, 7}), F32({6}), F32({6})}, {{"num_groups", 3}}}};
  return op;
}

OpDef Lrn() {
  OpDef op;
  op.name = "nn.lrn";
  op.doc = "Divides by a power of the mean square of neighbouring channels.";
  op.args = {"data"};
  op.attrs = {{"size", AttrKind::kInt, 5, "how many neighbours"},
              {"axis", AttrKind::kInt, 1, "the axis of the channels"},
              {"bias", AttrKind::kDouble, 2.0, "added to the scaled mean"},
              {"alpha", AttrKind::kDouble, 1e-4, "factor of the mean"},
              {"beta", AttrKind::kDouble, 0.75, "the exponent"}};
  op.pattern = OpPatternKind::kOpaque;
  op.summed_over = SummedOver::kAxis;
  op.keeps_rows = RowsOffAxis;
  op.relation = Relation([](const OpCall& call) {
    NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank());
    if (call.attrs.Int("size") < 1)
      throw RelationFailure{fmt::format("expects a size of at least 1, got {}", call.attrs.Int("size"))};
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisOf(attrs, inputs[0]));
    const int64_t size = attrs.Int("size");
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t l = 0; l < view.length; ++l) {
        for (int64_t i = 0; i < view.inner; ++i) {
          double squares = 0;
          for (int64_t n = std::max<int64_t>(0, l - (size - 1) / 2); n <= std::min(view.length - 1, l + size / 2);
               ++n) {
            squares += inputs[0].At(view.At(o, n, i)) * inputs[0].At(view.At(o, n, i));
          }
          const double base = attrs.Double("bias") + attrs.Double("alpha") * squares / static_cast<double>(size);
          outputs[0].Set(view.At(o, l, i), inputs[0].At(view.At(o, l, i)) / std::pow(base, attrs.Double("beta")));
        }
      }
    }
  };
  op.examples = {{{F32({1, 7, 3, 4})}, {{"alpha", 0.1}}}};
  return op;
}

OpDef L2Normalize() {
  OpDef op;
  op.name = "nn.l2_normalize";
  op.doc = "Divides by the length, which is not below the root of eps, of the vectors along axes.";
  op.args = {"data"};
  op.attrs = {{"eps", AttrKind::kDouble, {}, "lower bound of the squared length", true},
              {"axis", AttrKind::kInts, std::vector<int64_t>{1}, "the axes"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.summed_over = SummedOver::kAxes;
  op.equal_dims = SameShapeDims;
  op.keeps_rows = RowsOffAxis;
  op.relation = Relation([](const OpCall& call) {
    for (int64_t axis : call.attrs.Ints("axis")) NormalAxis(axis, TensorArg(call, 0).rank());
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    Shape kept = inputs[0].shape();
    for (int64_t axis : attrs.Ints("axis")) kept[NormalAxis(axis, inputs[0].rank())] = 1;
    const std::vector<int64_t> strides = BroadcastStrides(kept, inputs[0].shape());
    std::vector<double> squares(static_cast<size_t>(NumElements(kept)), 0);
    int64_t from = 0;
    ForEachIndex(inputs[0].shape(), [&](const std::vector<int64_t>& index) {
      const double x = inputs[0].At(from++);
      squares[Offset(index, strides)] += x * x;
    });
    from = 0;
    ForEachIndex(inputs[0].shape(), [&](const std::vector<int64_t>& index) {
      const double square = std::max(squares[Offset(index, strides)], attrs.Double("eps"));
      outputs[0].Set(from, inputs[0].At(from) / std::sqrt(square));
      ++from;
    });
  };
  op.examples = {{{F32({2, 7, 3})}, {{"eps", 1e-10}}}};
  return op;
}

OpDef BatchNorm() {
  OpDef op;
  op.name = "nn.batch_norm";
  op.doc = "Normalises by given statistics; the result is a triple with the statistics unchanged.";
  op.args = {"data", "gamma", "beta", "moving_mean", "moving_var"};
  op.attrs = NormAttrs(1);
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([](const OpCall& call) {
    NormRelation(call);
    return TupleType({call.args[0], call.args[3], call.args[4]});
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisOf(attrs, inputs[0]));
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const int64_t c = i / view.inner % view.length;
      const double gamma = attrs.Bool("scale") ? inputs[1].At(c) : 1.0;
      const double beta = attrs.Bool("center") ? inputs[2].At(c) : 0.0;
      const double factor = gamma / std::sqrt(inputs[4].At(c) + attrs.Double("epsilon"));
      outputs[0].Set(i, (inputs[0].At(i) - inputs[3].At(c)) * factor + beta);
    }
    outputs[1] = inputs[3];
    outputs[2] = inputs[4];
  };
  return op;
}

OpDef BiasAdd() {
  OpDef op;
  op.name = "nn.bias_add";
  op.doc = "Adds a vector along an axis.";
  op.args = {"data", "bias"};
  op.attrs = {{"axis", AttrKind::kInt, 1, "the axis"}};
  op.pattern = OpPatternKind::kBroadcast;
  op.layout_agnostic = true;
  op.per_channel = true;
  op.equal_dims = PerChannelDims;
  op.keeps_rows = RowsOffAxis;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const int axis = NormalAxis(call.attrs.Int("axis"), data.rank());
    const Dim size = data.shape()[axis], given = TensorArg(call, 1, 1).shape()[0];
    if (size != given && !size.is_any() && !given.is_any()) {
      throw RelationFailure{
          fmt::format("expects {} numbers along axis {}, got {}", size.ToString(), axis, ToString(call.args[1]))};
    }
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisOf(attrs, inputs[0]));
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      outputs[0].Set(i, inputs[0].At(i) + inputs[1].At(i / view.inner % view.length));
    }
  };
  op.examples = {{{F32({2, 5, 3, 7}), F32({5})}, {}}};
  return op;
}

OpDef Prelu() {
  OpDef op = BiasAdd();
  op.name = "nn.prelu";
  op.doc = "x where x > 0, else alpha * x, with one alpha per channel.";
  op.args = {"data", "alpha"};
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const AxisView view(inputs[0].shape(), AxisOf(attrs, inputs[0]));
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const double x = inputs[0].At(i);
      outputs[0].Set(i, x > 0 ? x : x * inputs[1].At(i / view.inner % view.length));
    }
  };
  return op;
}

OpDef Dropout() {
  OpDef op;
  op.name = "nn.dropout";
  op.doc = "Identity when a model runs; the result is a pair with the mask.";
  op.args = {"data"};
  op.attrs = {{"rate", AttrKind::kDouble, 0.5, "share of elements dropped in training"}};
  op.pattern = OpPatternKind::kOpaque;
  op.is_exact = true;
  op.relation = Relation([](const OpCall& call) {
    TensorArg(call, 0);
    return TupleType({call.args[0], call.args[0]});
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    outputs[0] = inputs[0];
    for (int64_t i = 0; i < outputs[1].num_elements(); ++i) outputs[1].Set(i, 1);
  };
  return op;
}

}  // namespace

void AddNormalisationOps(std::vector<OpDef>& rows) {
  rows.push_back(Softmax("nn.softmax", false));
  rows.push_back(Softmax("nn.log_softmax", true));
  rows.push_back(LayerNorm());
  rows.push_back(InstanceNorm());
  rows.push_back(GroupNorm());
  rows.push_back(Lrn());
  rows.push_back(L2Normalize());
  rows.push_back(BatchNorm());
  rows.push_back(BiasAdd());
  rows.push_back(Prelu());
  rows.push_back(Dropout());
}

}  // namespace collage
