// contraction.cc: convolutions and matrix products by register tiles: `rows` consecutive rows of the result (pixels of an
// image row, or rows of a matrix) times a panel of output channels stay in registers while the inner dimensions are walked.
// Constant weights are packed so that a panel's channels of one tap are contiguous: [panel][taps][channels in][panel width].
#include <algorithm>

#include "backends/native/compiler/stages.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

using Names = std::vector<std::string>;

/// A register tile: how many rows at most, how many vectors of channels.
struct Tile {
  int rows;
  int vectors;
};

/// Accumulators must leave room for the panel's vectors: 12 x 2 of 32 registers, 6 x 2 of 16.
Tile TileFor(int lanes) { return lanes == 16 ? Tile{12, 2} : Tile{6, 2}; }

/// Rows per tile so that `length` splits evenly.
int64_t EvenRows(int64_t length, int64_t most) {
  const int64_t tiles = (length + most - 1) / most;
  return (length + tiles - 1) / tiles;
}

/// A contraction in the common form: result[outer, row, channel] += a(outer, row, k…) * b(k…, channel).
struct Form {
  std::vector<int64_t> outer;  ///< sizes of the outer dimensions
  int64_t rows = 1;
  int64_t channels = 1;
  std::vector<int64_t> inner;  ///< sizes of the dimensions that are summed over, innermost last
  bool outer_selects_b = false;
  /// The address of a(outer, row, inner); rows follow each other at `row_stride` elements.
  std::function<std::string(const Names& outer, const std::string& row, const Names& inner)> a_address;
  int64_t row_stride = 1;
  /// The address of b(inner, first channel of panel).
  std::function<std::string(const Names& outer, const std::string& panel, const Names& inner)> b_address;
  /// Whether b's vectors may be read beyond the last channel (packed) or must be masked.
  bool b_is_padded = true;
  /// Indices of the result.
  std::function<Indices(const Names& outer, const std::string& row, const Index& channel)> result;
};

class FormEmitter {
 public:
  FormEmitter(PartitionState& state, const Form& form, const StageOutput& output)
      : state_(state), e_(state.emitter), form_(form), output_(output), tile_(TileFor(e_.native_lanes())) {}

  void Run() {
    const int64_t width = static_cast<int64_t>(tile_.vectors) * e_.lanes();
    const int64_t panels = form_.channels / width;
    if (panels > 0) EmitPanels(panels, 0, tile_.vectors, width);
    const int64_t rest = form_.channels - panels * width;
    if (rest > 0) EmitPanels(1, panels, static_cast<int>((rest + e_.lanes() - 1) / e_.lanes()), rest);
  }

 private:
  /// A stage over `count` panels from `first`, each of `width` channels in `vectors` vectors.
  void EmitPanels(int64_t count, int64_t first, int vectors, int64_t width) {
    std::vector<int64_t> sizes{count};
    sizes.insert(sizes.end(), form_.outer.begin(), form_.outer.end());
    double flops = 2.0 * static_cast<double>(width * count * form_.rows) * static_cast<double>(NumElements(form_.inner));
    for (int64_t size : form_.outer) flops *= static_cast<double>(size);
    // Few panels and outer positions: blocks of rows are units of work too.
    const int64_t rows = EvenRows(form_.rows, tile_.rows);
    const int64_t tiles = form_.rows / rows;
    const bool split_rows = tiles > 1;
    if (split_rows) sizes.push_back(tiles);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const std::string& begin, const std::string& end) {
      e_.For(begin, end, 1, [&](const std::string& unit) {
        Names parts = Delinearise(e_, unit, sizes);
        const std::string panel = e_.Plus(parts[0], first);
        const Names outer(parts.begin() + 1, parts.begin() + 1 + static_cast<int64_t>(form_.outer.size()));
        const std::string row = split_rows ? e_.MulInt(parts.back(), rows) : e_.Int(0);
        EmitTile(outer, row, rows, panel, vectors, width);
      });
    });
    e_.Call(name, NumElements(sizes), state_.IsParallel(flops));
    if (form_.rows % rows == 0) return;
    sizes.resize(1 + form_.outer.size());
    const std::string rest = state_.NextStageName();
    e_.Function(rest, [&](const std::string& begin, const std::string& end) {
      e_.For(begin, end, 1, [&](const std::string& unit) {
        const Names parts = Delinearise(e_, unit, sizes);
        EmitTile(Names(parts.begin() + 1, parts.end()), e_.Int(tiles * rows), form_.rows % rows, e_.Plus(parts[0], first), vectors, width);
      });
    });
    e_.Call(rest, NumElements(sizes), state_.IsParallel(flops / static_cast<double>(tiles)));
  }

  void EmitTile(const Names& outer, const std::string& row, int64_t rows, const std::string& panel, int vectors, int64_t width) {
    Names sums;
    for (int64_t i = 0; i < rows * vectors; ++i) sums.push_back(e_.Splat(0));
    sums = Accumulate(outer, row, rows, panel, vectors, width, 0, {}, sums);
    const int64_t full_width = static_cast<int64_t>(tile_.vectors) * e_.lanes();
    for (int v = 0; v < vectors; ++v) {
      const std::string channel = e_.Plus(e_.MulInt(panel, full_width), v * e_.lanes());
      const auto store_rows = [&] {
        for (int64_t t = 0; t < rows; ++t) {
          const Indices at = form_.result(outer, e_.Plus(row, t), {channel, 1});
          state_.expressions.SetRegister(output_.result, {sums[static_cast<size_t>(t * vectors + v)]});
          e_.Store(output_.buffer, at, state_.expressions.At(output_.epilogue, at));
          state_.expressions.ClearRegisters();
        }
      };
      const int64_t left = width - static_cast<int64_t>(v) * e_.lanes();
      if (left >= e_.lanes()) store_rows();
      else e_.MaskedRest(left, [&](const std::string&) { store_rows(); });
    }
  }

  /// Loops over the inner dimensions from `depth` on, carrying the accumulators.
  Names Accumulate(const Names& outer, const std::string& row, int64_t rows, const std::string& panel, int vectors,
                   int64_t width, size_t depth, const Names& inner, const Names& sums) {
    if (depth < form_.inner.size()) {
      return e_.ForCarrying(e_.Int(0), e_.Int(form_.inner[depth]), sums, e_.FloatVector(),
                            [&](const std::string& k, const Names& carried) {
                              Names deeper = inner;
                              deeper.push_back(k);
                              return Accumulate(outer, row, rows, panel, vectors, width, depth + 1, deeper, carried);
                            });
    }
    const std::string b_base = form_.b_address(outer, panel, inner);
    Names b;
    for (int v = 0; v < vectors; ++v) {
      const std::string address = e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr) -> !llvm.ptr, f32", b_base, v * e_.lanes()));
      const int64_t left = width - static_cast<int64_t>(v) * e_.lanes();
      if (form_.b_is_padded || left >= e_.lanes()) {
        b.push_back(e_.VectorAt(address, false));
      } else {
        e_.MaskedRest(left, [&](const std::string&) { b.push_back(e_.VectorAt(address, true)); });
      }
    }
    const std::string a_base = form_.a_address(outer, row, inner);
    Names next;
    for (int64_t t = 0; t < rows; ++t) {
      const std::string address = e_.Def(fmt::format("llvm.getelementptr {}[{}] : (!llvm.ptr) -> !llvm.ptr, f32", a_base, t * form_.row_stride));
      const std::string a = e_.Broadcast(e_.Def(fmt::format("llvm.load {} {{alignment = 4 : i64}} : !llvm.ptr -> f32", address)));
      for (int v = 0; v < vectors; ++v) {
        next.push_back(e_.Def(fmt::format("math.fma {}, {}, {} : {}", a, b[static_cast<size_t>(v)],
                                          sums[static_cast<size_t>(t * vectors + v)], e_.FloatVector())));
      }
    }
    return next;
  }

  PartitionState& state_;
  Emitter& e_;
  const Form& form_;
  const StageOutput& output_;
  Tile tile_;
};

const Tensor& ConstantOf(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr) throw Error(ErrorCategory::kUnsupported, "native products want constant weights here");
  return constant->value();
}

/// weight [O, K…] as [panel][K…][width], channels innermost, zeros behind the last.
Tensor PackPanels(const Tensor& weight, const std::vector<int64_t>& inner_order, int64_t width) {
  const Tensor w = weight.Cast(kFloat32);
  const int64_t channels = w.shape()[0];
  const int64_t inner = w.num_elements() / channels;
  const int64_t panels = (channels + width - 1) / width;
  Tensor packed = Tensor::Zeros({panels, inner, width}, kFloat32);
  for (int64_t o = 0; o < channels; ++o) {
    for (int64_t k = 0; k < inner; ++k) {
      packed.data<float>()[(o / width * inner + k) * width + o % width] =
          w.data<float>()[o * inner + inner_order[static_cast<size_t>(k)]];
    }
  }
  return packed;
}

std::vector<int64_t> Identity(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
  return order;
}

Indices Bases(const Names& names) {
  Indices indices;
  for (const std::string& name : names) indices.push_back({name, 0});
  return indices;
}

void EmitDense(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Buffer a = Materialise(state, call.args()[0], Layout::kPlain);
  const Tensor& weight = ConstantOf(call.args()[1]);
  const int64_t width = static_cast<int64_t>(TileFor(e.native_lanes()).vectors) * e.native_lanes();
  const Buffer b = state.AddConstant(PackPanels(weight, Identity(weight.shape()[1]), width));
  Form form;
  form.rows = a.shape[0];
  form.channels = weight.shape()[0];
  form.inner = {weight.shape()[1]};
  form.row_stride = a.strides[0];
  form.a_address = [&](const Names&, const std::string& row, const Names& k) { return e.Address(a, Bases({row, k[0]})); };
  form.b_address = [&](const Names&, const std::string& panel, const Names& k) { return e.Address(b, Bases({panel, k[0], e.Int(0)})); };
  form.result = [](const Names&, const std::string& row, const Index& channel) { return Indices{{row, 0}, channel}; };
  FormEmitter(state, form, output).Run();
}

void EmitBatchMatmul(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  if (call.attrs().Bool("transpose_a")) throw Error(ErrorCategory::kUnsupported, "transpose_a");
  const bool transposed = call.attrs().Bool("transpose_b");
  const Buffer a = Materialise(state, call.args()[0], Layout::kPlain);
  const Shape y = ShapeOf(call.args()[1]);
  Shape plain = y;
  if (transposed) std::swap(plain[1], plain[2]);
  // The right matrix row by row in memory: as it is, or turned in the workspace.
  Buffer b = transposed ? state.AddWorkspace(plain, Layout::kPlain) : Materialise(state, call.args()[1], Layout::kPlain);
  if (transposed) {
    EmitPointwiseFrom(state, call.args()[1], b, [](const Indices& at) { return Indices{at[0], at[2], at[1]}; });
  }
  const int64_t width = static_cast<int64_t>(TileFor(e.native_lanes()).vectors) * e.native_lanes();
  Form form;
  form.outer = {ShapeOf(output.result)[0]};
  form.rows = a.shape[1];
  form.channels = plain[2];
  form.inner = {plain[1]};
  form.row_stride = a.strides[1];
  form.b_is_padded = false;
  form.a_address = [&](const Names& outer, const std::string& row, const Names& k) { return e.Address(a, Bases({outer[0], row, k[0]})); };
  form.b_address = [&](const Names& outer, const std::string& panel, const Names& k) {
    return e.Address(b, Bases({outer[0], k[0], e.MulInt(panel, width)}));
  };
  form.result = [](const Names& outer, const std::string& row, const Index& channel) { return Indices{{outer[0], 0}, {row, 0}, channel}; };
  FormEmitter(state, form, output).Run();
}

struct Convolution {
  std::vector<int64_t> stride, dilation, pad;
  int64_t groups;
  Shape data, weight, result;

  Convolution(const CallNode& call, const Expr& out) : groups(call.attrs().Int("groups")) {
    const auto pair = [&](const char* name, size_t count) {
      std::vector<int64_t> values = call.attrs().Ints(name);
      while (values.size() < count) values.push_back(values[values.size() == 1 ? 0 : values.size() - 2]);
      return values;
    };
    stride = pair("strides", 2);
    dilation = pair("dilation", 2);
    pad = pair("padding", 4);
    data = ShapeOf(call.args()[0]);
    weight = ShapeOf(call.args()[1]);
    result = ShapeOf(out);
  }
  bool is_padded() const { return std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p != 0; }); }
};

/// The data with zeros around it, channels innermost: a copy in the workspace when there is padding, or when it lies
/// otherwise and is small enough to turn.
Buffer PaddedData(PartitionState& state, const CallNode& call, const Convolution& conv) {
  Emitter& e = state.emitter;
  Buffer data = Materialise(state, call.args()[0], Layout::kChannelsLast);
  if (!conv.is_padded()) return data;
  const Shape shape{conv.data[0], conv.data[1], conv.data[2] + conv.pad[0] + conv.pad[2], conv.data[3] + conv.pad[1] + conv.pad[3]};
  const Buffer padded = state.AddWorkspace(shape, Layout::kChannelsLast);
  const bool contiguous = data.strides == LayoutStrides(conv.data, Layout::kChannelsLast);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& unit) {
      const Names at = Delinearise(e, unit, {shape[0], shape[2]});
      const int64_t channels = shape[1];
      // A row as one run of memory.
      const Buffer row_buffer{padded.number, padded.offset_bytes, kFloat32, {shape[0], shape[2], shape[3] * channels},
                              {padded.strides[0], padded.strides[2], 1}};
      const auto fill = [&](int64_t from, int64_t count) {
        e.ForLanes(count, [&](const std::string& first) {
          e.Store(row_buffer, {{at[0], 0}, {at[1], 0}, {e.Plus(first, from), 1}}, {e.Splat(0)});
        });
      };
      const std::string source_row = e.Plus(at[1], -conv.pad[0]);
      const std::string above = e.Def(fmt::format("arith.cmpi sge, {}, {} : i64", source_row, e.Int(0)));
      const std::string below = e.Def(fmt::format("arith.cmpi slt, {}, {} : i64", source_row, e.Int(conv.data[2])));
      const std::string inside = e.Def(fmt::format("arith.andi {}, {} : i1", above, below));
      e.Open(fmt::format("scf.if {} {{", inside));
      if (conv.pad[1] > 0) fill(0, conv.pad[1] * channels);
      if (contiguous) {
        const Buffer source{data.number, data.offset_bytes, kFloat32, {shape[0], conv.data[2], conv.data[3] * channels},
                            {data.strides[0], data.strides[2], 1}};
        e.ForLanes(conv.data[3] * channels, [&](const std::string& first) {
          const Value value = e.Load(source, {{at[0], 0}, {source_row, 0}, {first, 1}});
          e.Store(row_buffer, {{at[0], 0}, {at[1], 0}, {e.Plus(first, conv.pad[1] * channels), 1}}, value);
        });
      } else {
        e.For(e.Int(0), e.Int(conv.data[3]), 1, [&](const std::string& w) {
          e.ForLanes(channels, [&](const std::string& c) {
            const Value value = e.Load(data, {{at[0], 0}, {c, 1}, {source_row, 0}, {w, 0}});
            e.Store(padded, {{at[0], 0}, {c, 1}, {at[1], 0}, {e.Plus(w, conv.pad[1]), 0}}, value);
          });
        });
      }
      if (conv.pad[3] > 0) fill((conv.pad[1] + conv.data[3]) * channels, conv.pad[3] * channels);
      e.Close("} else {");
      e.Open("");
      fill(0, shape[3] * channels);
      e.Close();
    });
  });
  e.Call(name, shape[0] * shape[2], state.IsParallel(static_cast<double>(NumElements(shape)) * 2));
  return padded;
}

void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Convolution conv(call, output.result);
  const Tensor& weight = ConstantOf(call.args()[1]);
  const Buffer data = PaddedData(state, call, conv);
  const int64_t kh = conv.weight[2];
  const int64_t kw = conv.weight[3];
  const int64_t channels = conv.weight[1];
  const int64_t width = static_cast<int64_t>(TileFor(e.native_lanes()).vectors) * e.native_lanes();
  std::vector<int64_t> order;  // [kh][kw][channel] from the weight's [channel][kh][kw]
  for (int64_t tap = 0; tap < kh * kw; ++tap) {
    for (int64_t c = 0; c < channels; ++c) order.push_back(c * kh * kw + tap);
  }
  const Buffer b = state.AddConstant(PackPanels(weight, order, width));
  Form form;
  form.channels = conv.weight[0];
  const bool is_pointwise = kh == 1 && kw == 1 && conv.stride[0] == 1 && conv.stride[1] == 1 &&
                            data.strides[2] == data.shape[3] * data.strides[3];
  if (is_pointwise) {
    // All pixels of an image in one row.
    const int64_t image_width = conv.result[3];
    form.outer = {conv.result[0]};
    form.rows = conv.result[2] * conv.result[3];
    form.inner = {channels};
    form.row_stride = data.strides[3];
    form.a_address = [&](const Names& outer, const std::string& row, const Names& k) {
      const Buffer flat{data.number, data.offset_bytes, kFloat32, {data.shape[0], channels, form.rows},
                        {data.strides[0], data.strides[1], data.strides[3]}};
      return e.Address(flat, Bases({outer[0], k[0], row}));
    };
    form.b_address = [&](const Names&, const std::string& panel, const Names& k) { return e.Address(b, Bases({panel, k[0], e.Int(0)})); };
    form.result = [&e, image_width](const Names& outer, const std::string& row, const Index& channel) {
      const std::string size = e.Int(image_width);
      const std::string h = e.Def(fmt::format("arith.divui {}, {} : i64", row, size));
      const std::string w = e.Def(fmt::format("arith.remui {}, {} : i64", row, size));
      return Indices{{outer[0], 0}, channel, {h, 0}, {w, 0}};
    };
    FormEmitter(state, form, output).Run();
    return;
  }
  form.outer = {conv.result[0], conv.result[2]};
  form.rows = conv.result[3];
  form.inner = {kh, kw, channels};
  form.row_stride = data.strides[3] * conv.stride[1];
  form.a_address = [&](const Names& outer, const std::string& row, const Names& k) {
    const std::string h = e.AddInt(e.MulInt(outer[1], conv.stride[0]), e.MulInt(k[0], conv.dilation[0]));
    const std::string w = e.AddInt(e.MulInt(row, conv.stride[1]), e.MulInt(k[1], conv.dilation[1]));
    return e.Address(data, Bases({outer[0], k[2], h, w}));
  };
  form.b_address = [&](const Names&, const std::string& panel, const Names& k) {
    const std::string tap = e.AddInt(e.MulInt(k[0], kw), k[1]);
    return e.Address(b, Bases({panel, e.AddInt(e.MulInt(tap, channels), k[2]), e.Int(0)}));
  };
  form.result = [](const Names& outer, const std::string& row, const Index& channel) {
    return Indices{{outer[0], 0}, channel, {outer[1], 0}, {row, 0}};
  };
  FormEmitter(state, form, output).Run();
}

/// One channel in, one out: vectors of channels, a few pixels at a time.
void EmitDepthwise(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Convolution conv(call, output.result);
  const Tensor weight = ConstantOf(call.args()[1]).Cast(kFloat32);
  const Buffer data = PaddedData(state, call, conv);
  const int64_t channels = conv.weight[0];
  const int64_t kh = conv.weight[2];
  const int64_t kw = conv.weight[3];
  Tensor packed = Tensor::Empty({kh, kw, channels}, kFloat32);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < kh * kw; ++tap) packed.data<float>()[tap * channels + c] = weight.data<float>()[c * kh * kw + tap];
  }
  const Buffer taps = state.AddConstant(packed);
  const int64_t rows = EvenRows(conv.result[3], 6);
  const auto tile = [&](const Names& outer, const std::string& column, int64_t count) {
    e.ForLanes(channels, [&](const std::string& c) {
      Names sums;
      for (int64_t t = 0; t < count; ++t) sums.push_back(e.Splat(0));
      sums = e.ForCarrying(e.Int(0), e.Int(kh), sums, e.FloatVector(), [&](const std::string& i, const Names& carried) {
        Names next = carried;
        const std::string h = e.AddInt(e.MulInt(outer[1], conv.stride[0]), e.MulInt(i, conv.dilation[0]));
        for (int64_t j = 0; j < kw; ++j) {
          const std::string w = e.Load(taps, {{i, 0}, {e.Int(j), 0}, {c, 1}}).name;
          for (int64_t t = 0; t < count; ++t) {
            const std::string x = e.Plus(e.MulInt(column, conv.stride[1]), t * conv.stride[1] + j * conv.dilation[1]);
            const std::string value = e.Load(data, {{outer[0], 0}, {c, 1}, {h, 0}, {x, 0}}).name;
            next[static_cast<size_t>(t)] = e.Def(fmt::format("math.fma {}, {}, {} : {}", value, w, next[static_cast<size_t>(t)], e.FloatVector()));
          }
        }
        return next;
      });
      for (int64_t t = 0; t < count; ++t) {
        const Indices at{{outer[0], 0}, {c, 1}, {outer[1], 0}, {e.Plus(column, t), 0}};
        state.expressions.SetRegister(output.result, {sums[static_cast<size_t>(t)]});
        e.Store(output.buffer, at, state.expressions.At(output.epilogue, at));
        state.expressions.ClearRegisters();
      }
    });
  };
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& unit) {
      const Names outer = Delinearise(e, unit, {conv.result[0], conv.result[2]});
      const int64_t whole = conv.result[3] / rows * rows;
      e.For(e.Int(0), e.Int(whole), rows, [&](const std::string& column) { tile(outer, column, rows); });
      if (whole < conv.result[3]) tile(outer, e.Int(whole), conv.result[3] - whole);
    });
  });
  e.Call(name, conv.result[0] * conv.result[2], state.IsParallel(static_cast<double>(NumElements(conv.result) * kh * kw * 2)));
}

}  // namespace

std::string WhyNotContraction(const CallNode& call) {
  const std::string& name = call.op()->name;
  if (name == "nn.batch_matmul") return call.attrs().Bool("transpose_a") ? "transpose_a is not supported" : "";
  const ConstantNode* weight = As<ConstantNode>(call.args()[1]);
  if (weight == nullptr) return "the weight is not constant";
  if (name == "nn.dense") return "";
  const int64_t groups = call.attrs().Int("groups");
  const Shape& shape = weight->value().shape();
  if (groups == 1 || (groups == shape[0] && shape[1] == 1 && ShapeOf(call.args()[0])[1] == groups)) return "";
  return "grouped convolutions that are not depthwise are not supported";
}

void EmitContraction(PartitionState& state, const CallNode& call, const StageOutput& output) {
  const std::string& name = call.op()->name;
  if (name == "nn.dense") return EmitDense(state, call, output);
  if (name == "nn.batch_matmul") return EmitBatchMatmul(state, call, output);
  if (output.buffer.strides[1] != 1 && output.buffer.shape[1] > 1) {
    throw Error(ErrorCategory::kUnsupported, "convolutions give channels-last results only");
  }
  call.attrs().Int("groups") == 1 ? EmitConvolution(state, call, output) : EmitDepthwise(state, call, output);
}

}  // namespace collage::native
