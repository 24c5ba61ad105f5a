// reduction.cc: loops that combine many elements into one, and what is normalised by such sums.
#include <algorithm>
#include <cmath>

#include "backends/native/compiler/stages.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// How elements are combined, in MLIR's terms.
struct Combiner {
  const char* vector;    ///< operation on vectors
  const char* horizontal;  ///< kind of vector.reduction
  double neutral;
};

constexpr Combiner kSum{"arith.addf", "add", 0};
constexpr Combiner kMax{"arith.maximumf", "maximumf", -INFINITY};
constexpr Combiner kMin{"arith.minimumf", "minimumf", INFINITY};
constexpr Combiner kProduct{"arith.mulf", "mul", 1};

constexpr int kAccumulators = 4;  // independent chains that hide the latency of an addition

std::string Horizontal(Emitter& e, const Combiner& combiner, const std::string& vector) {
  return e.Def(fmt::format("vector.reduction <{}>, {} : {} into f32", combiner.horizontal, vector, e.FloatVector()));
}

/// Lanes that do not exist become neutral.
std::string MaskOut(Emitter& e, const Combiner& combiner, const std::string& value) {
  if (e.mask().empty()) return value;
  return e.Def(fmt::format("arith.select {}, {}, {} : vector<{}xi1>, {}", e.mask(), value, e.Splat(combiner.neutral),
                           e.lanes(), e.FloatVector()));
}

/// Combines `value(first)` over a row of `length`, in vectors; returns a vector whose lanes are still to be combined.
std::string ReduceRow(Emitter& e, const Combiner& combiner, int64_t length, std::string start,
                      const std::function<std::string(const std::string& first)>& value) {
  const int64_t lanes = e.lanes();
  const int64_t blocks = length / lanes;
  const int64_t groups = blocks / kAccumulators;
  const auto combine = [&](const std::string& a, const std::string& b) {
    return e.Def(fmt::format("{} {}, {} : {}", combiner.vector, a, b, e.FloatVector()));
  };
  if (groups > 0) {
    std::vector<std::string> sums{start};
    for (int i = 1; i < kAccumulators; ++i) sums.push_back(e.Splat(combiner.neutral));
    sums = e.ForCarrying(e.Int(0), e.Int(groups), sums, e.FloatVector(), [&](const std::string& group, const std::vector<std::string>& carried) {
      std::vector<std::string> next;
      for (int i = 0; i < kAccumulators; ++i) {
        const std::string first = e.Plus(e.MulInt(group, kAccumulators * lanes), i * lanes);
        next.push_back(combine(carried[static_cast<size_t>(i)], value(first)));
      }
      return next;
    });
    start = combine(combine(sums[0], sums[1]), combine(sums[2], sums[3]));
  }
  for (int64_t block = groups * kAccumulators; block < blocks; ++block) start = combine(start, value(e.Int(block * lanes)));
  if (length % lanes != 0) {
    // ForLanes makes the mask; its one masked turn is all that is left.
    std::string result;
    e.MaskedRest(length, [&](const std::string& first) { result = combine(start, MaskOut(e, combiner, value(first))); });
    start = result;
  }
  return start;
}

const Combiner& CombinerOf(const std::string& name) {
  if (name == "max" || name.find("max_pool") != std::string::npos) return kMax;
  if (name == "min") return kMin;
  if (name == "prod") return kProduct;
  return kSum;
}

bool IsMean(const std::string& name) { return name == "mean" || name.find("avg_pool") != std::string::npos; }

std::vector<bool> ReducedAxes(const CallNode& call, size_t rank) {
  std::vector<bool> reduced(rank);
  if (call.op()->name.starts_with("nn.global")) {
    for (size_t i = 2; i < rank; ++i) reduced[i] = true;
    return reduced;
  }
  if (call.attrs().IsNone("axis")) return std::vector<bool>(rank, true);
  for (int64_t axis : call.attrs().Ints("axis")) {
    reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  if (call.attrs().Bool("exclude")) reduced.flip();
  return reduced;
}

/// The axis along which `expr` lies one element apart in memory: a buffer's, else the last.
size_t LaneAxis(PartitionState& state, const Expr& expr) {
  const Shape shape = ShapeOf(expr);
  size_t axis = shape.size() - 1;
  const Buffer* buffer = state.expressions.FindBuffer(expr);
  for (size_t i = 0; buffer != nullptr && i < shape.size(); ++i) {
    if (buffer->strides[i] == 1 && shape[i] > 1) axis = i;
  }
  return axis;
}

/// Stores the epilogue of one result (a vector) at `indices` of the result.
void StoreResult(PartitionState& state, const StageOutput& output, const Indices& indices, const std::string& value) {
  state.expressions.SetRegister(output.result, {value});
  state.emitter.Store(output.buffer, indices, state.expressions.At(output.epilogue, indices));
  state.expressions.ClearRegisters();
}

}  // namespace

void EmitReduction(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Expr& x = call.args()[0];
  const Shape shape = ShapeOf(x);
  if (shape.empty()) throw Error(ErrorCategory::kUnsupported, "a reduction of a scalar");
  const std::vector<bool> reduced = ReducedAxes(call, shape.size());
  const bool keeps = call.op()->name.starts_with("nn.global") || call.attrs().Bool("keepdims");
  const Combiner& combiner = CombinerOf(call.op()->name);
  const size_t lane_axis = LaneAxis(state, x);
  const bool lane_reduced = reduced[lane_axis];
  std::vector<size_t> kept_axes;
  std::vector<size_t> inner_axes;
  std::vector<int64_t> kept_sizes;
  std::vector<int64_t> inner_sizes;
  int64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i]) elements *= shape[i];
    if (i == lane_axis) continue;
    (reduced[i] ? inner_axes : kept_axes).push_back(i);
    (reduced[i] ? inner_sizes : kept_sizes).push_back(shape[i]);
  }
  const int64_t rows = NumElements(kept_sizes);
  const int64_t inner = NumElements(inner_sizes);
  const auto finish = [&](const std::string& vector) {
    if (!IsMean(call.op()->name)) return vector;
    return state.expressions.Binary("arith.mulf", vector, e.Splat(1.0 / static_cast<double>(elements)));
  };
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& row) {
      const std::vector<std::string> parts = Delinearise(e, row, kept_sizes);
      Indices at(shape.size());
      for (size_t i = 0; i < kept_axes.size(); ++i) at[kept_axes[i]] = {parts[i], 0};
      const auto set_inner = [&](const std::string& flat) {
        const std::vector<std::string> inner_parts = Delinearise(e, flat, inner_sizes);
        for (size_t i = 0; i < inner_axes.size(); ++i) at[inner_axes[i]] = {inner_parts[i], 0};
      };
      const auto result_indices = [&](const Index& lane) {
        Indices result;
        for (size_t i = 0; i < shape.size(); ++i) {
          if (i == lane_axis && !lane_reduced) result.push_back(lane);
          else if (!reduced[i]) result.push_back(at[i]);
          else if (keeps) result.push_back({e.Int(0), 0});
        }
        return result;
      };
      if (!lane_reduced) {
        e.ForLanes(shape[lane_axis], [&](const std::string& first) {
          at[lane_axis] = {first, 1};
          const std::vector<std::string> sum = e.ForCarrying(
              e.Int(0), e.Int(inner), {e.Splat(combiner.neutral)}, e.FloatVector(),
              [&](const std::string& flat, const std::vector<std::string>& carried) -> std::vector<std::string> {
                set_inner(flat);
                return {state.expressions.Binary(combiner.vector, carried[0], state.expressions.At(x, at).name)};
              });
          StoreResult(state, output, result_indices({first, 1}), finish(sum[0]));
        });
        return;
      }
      const std::vector<std::string> sum = e.ForCarrying(
          e.Int(0), e.Int(inner), {e.Splat(combiner.neutral)}, e.FloatVector(),
          [&](const std::string& flat, const std::vector<std::string>& carried) -> std::vector<std::string> {
            set_inner(flat);
            return {ReduceRow(e, combiner, shape[lane_axis], carried[0], [&](const std::string& first) {
              at[lane_axis] = {first, 1};
              return state.expressions.At(x, at).name;
            })};
          });
      const std::string total = Horizontal(e, combiner, sum[0]);
      e.SetLanes(1);
      const std::string one = e.Broadcast(total);
      StoreResult(state, output, result_indices({e.Int(0), 0}), finish(one));
      e.SetLanes(e.native_lanes());
    });
  });
  e.Call(name, rows, state.IsParallel(static_cast<double>(NumElements(shape)) * 2));
}

void EmitRowNormalisation(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  Expressions& x = state.expressions;
  const Expr& data = call.args()[0];
  const Shape shape = ShapeOf(data);
  const auto last = shape.size() - 1;
  const int64_t axis = call.attrs().Int("axis");
  if (axis != -1 && axis != static_cast<int64_t>(last)) throw Error(ErrorCategory::kUnsupported, "normalises the last axis only");
  if (output.buffer.strides[last] != 1) throw Error(ErrorCategory::kUnsupported, "normalises contiguous rows only");
  const int64_t length = shape[last];
  const bool is_layer_norm = call.op()->name == "nn.layer_norm";
  const bool is_log = call.op()->name == "nn.log_softmax";
  // An operand that is computed in place is computed once and kept in the result's row.
  const bool keep = x.FindBuffer(data) == nullptr;
  std::vector<int64_t> outer(shape.begin(), shape.end() - 1);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& row) {
      Indices at;
      for (const std::string& part : Delinearise(e, row, outer)) at.push_back({part, 0});
      at.push_back({});
      const auto place = [&](const std::string& first) {
        at[last] = {first, 1};
        return at;
      };
      const auto load = [&](const std::string& first) {
        return keep ? e.Load(output.buffer, place(first)).name : x.At(data, place(first)).name;
      };
      const auto first_pass = [&](const std::string& first) {
        const Value value = x.At(data, place(first));
        if (keep) e.Store(output.buffer, place(first), value);
        return value.name;
      };
      if (is_layer_norm) {
        const double scale = 1.0 / static_cast<double>(length);
        const std::string sum = Horizontal(e, kSum, ReduceRow(e, kSum, length, e.Splat(0), first_pass));
        const std::string mean = e.Broadcast(e.Def(fmt::format("arith.mulf {}, {} : f32", sum, e.Float(scale))));
        const std::string squares = Horizontal(e, kSum, ReduceRow(e, kSum, length, e.Splat(0), [&](const std::string& first) {
          const std::string centred = x.Binary("arith.subf", load(first), mean);
          return x.Binary("arith.mulf", centred, centred);
        }));
        const std::string variance = e.Def(fmt::format("arith.mulf {}, {} : f32", squares, e.Float(scale)));
        const std::string shifted = e.Def(fmt::format("arith.addf {}, {} : f32", variance, e.Float(call.attrs().Double("epsilon"))));
        const std::string root = e.Def(fmt::format("math.sqrt {} : f32", shifted));
        const std::string factor = e.Broadcast(e.Def(fmt::format("arith.divf {}, {} : f32", e.Float(1), root)));
        e.ForLanes(length, [&](const std::string& first) {
          std::string value = x.Binary("arith.mulf", x.Binary("arith.subf", load(first), mean), factor);
          if (call.attrs().Bool("scale")) value = x.Binary("arith.mulf", value, x.At(call.args()[1], {{first, 1}}).name);
          if (call.attrs().Bool("center")) value = x.Binary("arith.addf", value, x.At(call.args()[2], {{first, 1}}).name);
          StoreResult(state, output, place(first), value);
        });
        return;
      }
      const std::string largest = e.Broadcast(Horizontal(e, kMax, ReduceRow(e, kMax, length, e.Splat(-INFINITY), first_pass)));
      const std::string sum = Horizontal(e, kSum, ReduceRow(e, kSum, length, e.Splat(0), [&](const std::string& first) {
        const std::string value = x.Exp(x.Binary("arith.subf", load(first), largest));
        if (!is_log) e.Store(output.buffer, place(first), {value});
        return value;
      }));
      if (is_log) {
        const std::string log = e.Broadcast(e.Def(fmt::format("math.log {} : f32", sum)));
        e.ForLanes(length, [&](const std::string& first) {
          StoreResult(state, output, place(first), x.Binary("arith.subf", x.Binary("arith.subf", load(first), largest), log));
        });
        return;
      }
      const std::string factor = e.Broadcast(e.Def(fmt::format("arith.divf {}, {} : f32", e.Float(1), sum)));
      e.ForLanes(length, [&](const std::string& first) {
        StoreResult(state, output, place(first), x.Binary("arith.mulf", e.Load(output.buffer, place(first)).name, factor));
      });
    });
  });
  e.Call(name, NumElements(outer), state.IsParallel(static_cast<double>(NumElements(shape)) * 10));
}

void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Expr& data = call.args()[0];
  const Shape in = ShapeOf(data);
  const Shape out = ShapeOf(output.result);
  if (in.size() != 4) throw Error(ErrorCategory::kUnsupported, "pools over two dimensions only");
  const auto pair = [&](const char* name) {
    std::vector<int64_t> values = call.attrs().Ints(name);
    if (values.size() == 1) values.push_back(values[0]);
    return values;
  };
  const std::vector<int64_t> size = pair("pool_size");
  const std::vector<int64_t> stride = pair("strides");
  const std::vector<int64_t> dilation = pair("dilation");
  const std::vector<int64_t> pad = pair("padding");
  const bool is_max = call.op()->name == "nn.max_pool2d";
  if (dilation[0] != 1 || dilation[1] != 1) throw Error(ErrorCategory::kUnsupported, "dilated pools");
  const bool counts_padding = !is_max && call.attrs().Bool("count_include_pad");
  if (counts_padding && call.attrs().Bool("ceil_mode")) throw Error(ErrorCategory::kUnsupported, "padding counted in partial windows");
  const Buffer buffer = Materialise(state, data, output.buffer.strides[1] == 1 ? Layout::kChannelsLast : Layout::kPlain);
  const bool channels_last = output.buffer.strides[1] == 1 && out[1] > 1;
  const size_t lane_axis = channels_last ? 1 : 3;
  const Combiner& combiner = is_max ? kMax : kSum;
  // In plain layout lanes run along the width, where windows at the border differ: one element at a time.
  if (!channels_last) e.SetLanes(1);
  std::vector<int64_t> outer;
  std::vector<size_t> axes;
  for (size_t axis : channels_last ? std::vector<size_t>{0, 2, 3} : std::vector<size_t>{0, 1, 2}) {
    axes.push_back(axis);
    outer.push_back(out[axis]);
  }
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& row) {
      Indices at(4);
      const std::vector<std::string> parts = Delinearise(e, row, outer);
      for (size_t i = 0; i < axes.size(); ++i) at[axes[i]] = {parts[i], 0};
      e.ForLanes(out[lane_axis], [&](const std::string& lane) {
        at[lane_axis] = {lane, 1};
        // The window's rows and columns that exist: [low, high).
        std::string low[2];
        std::string high[2];
        for (size_t d = 0; d < 2; ++d) {
          const std::string start = e.Plus(e.MulInt(at[d + 2].base, stride[d]), -pad[d]);
          low[d] = e.Def(fmt::format("arith.maxsi {}, {} : i64", start, e.Int(0)));
          high[d] = e.Def(fmt::format("arith.minsi {}, {} : i64", e.Plus(start, size[d]), e.Int(in[d + 2])));
        }
        const auto sum = e.ForCarrying(low[0], high[0], {e.Splat(combiner.neutral)}, e.FloatVector(),
            [&](const std::string& h, const std::vector<std::string>& by_row) {
              return e.ForCarrying(low[1], high[1], by_row, e.FloatVector(),
                  [&](const std::string& w, const std::vector<std::string>& carried) -> std::vector<std::string> {
                    Indices from = at;
                    from[2] = {h, 0};
                    from[3] = {w, channels_last ? 0 : 1};
                    return {state.expressions.Binary(combiner.vector, carried[0], e.Load(buffer, from).name)};
                  });
            });
        std::string result = sum[0];
        if (!is_max) {
          std::string count = e.Int(size[0] * size[1]);
          if (!counts_padding) {
            const auto extent = [&](size_t d) { return e.Def(fmt::format("arith.subi {}, {} : i64", high[d], low[d])); };
            count = e.Def(fmt::format("arith.muli {}, {} : i64", extent(0), extent(1)));
          }
          result = state.expressions.Binary("arith.divf", result, e.Broadcast(e.Def(fmt::format("arith.sitofp {} : i64 to f32", count))));
        }
        StoreResult(state, output, at, result);
      });
    });
  });
  e.Call(name, NumElements(outer), state.IsParallel(static_cast<double>(NumElements(out) * size[0] * size[1])));
  e.SetLanes(e.native_lanes());
}

}  // namespace collage::native
