// winograd.cc: a block of tiles at a time, the data's tiles are transformed (lanes run over channels), multiplied with
// the transformed taps, one product for each position within a tile, and transformed back; the epilogue is computed as
// results are stored. What is between the steps belongs to the thread that works on the block:
//
//     data [N, C, H, W] -> spectrum [position][tile][C] x taps [position][C][K] -> products [position][tile][K] ->
//     result
//
// Tiles at the border are copied to a patch with zeros around them; of tiles that reach beyond the result only what is
// in it is stored.
#include "backends/native/compiler/winograd.h"

#include <algorithm>
#include <cmath>

#include "backends/native/compiler/winograd_model.h"
#include "backends/native/compiler/winograd_transforms.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

constexpr int64_t kLineFloats = 16;  // of a cache line

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// A length of at least `floats` of an odd number of cache lines: runs that begin at multiples of it fall on different
/// sets of a cache.
int64_t OddLines(int64_t floats) { return (((floats + kLineFloats - 1) / kLineFloats) | 1) * kLineFloats; }

/// A row of `floats` floats: where its multiples would fall on two sets or one, a line more.
int64_t SpreadRow(int64_t floats) {
  constexpr int64_t kFew = 512;
  return floats % kFew == 0 ? floats + kLineFloats : floats;
}

/// Products of small matrices of constants with vectors, as instructions.
class MatrixWriter {
 public:
  explicit MatrixWriter(VectorMath& math) : math_(math) {}

  /// matrix x. Neighbouring rows that differ in the signs of their odd (or of their even) places share two sums.
  std::vector<Value> Rows(const Matrix& matrix, const std::vector<Value>& x) {
    std::vector<Value> result;
    for (size_t i = 0; i < matrix.size(); ++i) {
      const int sign = i + 1 < matrix.size() ? MirrorSign(matrix[i], matrix[i + 1]) : 0;
      if (sign == 0) {
        result.push_back(Combine(matrix[i], x));
        continue;
      }
      const Value even = Combine(Places(matrix[i], 0), x);
      const Value odd = Combine(Places(matrix[i], 1), x);
      result.push_back(math_.Add(even, odd));
      result.push_back(sign > 0 ? math_.Subtract(even, odd) : math_.Subtract(odd, even));
      ++i;
    }
    return result;
  }

  /// The same for a matrix of which neighbouring columns differ in the signs of their odd rows: x is added up and
  /// subtracted in pairs first.
  std::vector<Value> Columns(const Matrix& matrix, const std::vector<Value>& x) {
    std::vector<Value> sums = x;
    std::vector<Value> differences = x;
    Matrix folded = matrix;
    for (size_t p = 0; p + 1 < x.size(); ++p) {
      bool is_mirrored = true;
      for (size_t i = 0; i < matrix.size(); ++i) {
        is_mirrored = is_mirrored && matrix[i][p + 1] == (i % 2 == 0 ? matrix[i][p] : -matrix[i][p]);
      }
      if (!is_mirrored) continue;
      sums[p] = math_.Add(x[p], x[p + 1]);
      differences[p] = math_.Subtract(x[p], x[p + 1]);
      for (std::vector<double>& row : folded) row[p + 1] = 0;
      ++p;
    }
    std::vector<Value> result;
    for (size_t i = 0; i < matrix.size(); ++i) result.push_back(Combine(folded[i], i % 2 == 0 ? sums : differences));
    return result;
  }

 private:
  /// 1 when `b` is `a` with its odd places negated, -1 with its even ones, 0 otherwise.
  static int MirrorSign(const std::vector<double>& a, const std::vector<double>& b) {
    bool odd_negated = true;
    bool even_negated = true;
    for (size_t k = 0; k < a.size(); ++k) {
      odd_negated = odd_negated && b[k] == (k % 2 == 0 ? a[k] : -a[k]);
      even_negated = even_negated && b[k] == (k % 2 == 0 ? -a[k] : a[k]);
    }
    return odd_negated ? 1 : even_negated ? -1 : 0;
  }

  static std::vector<double> Places(std::vector<double> row, size_t parity) {
    for (size_t k = 0; k < row.size(); ++k) {
      if (k % 2 != parity) row[k] = 0;
    }
    return row;
  }

  /// The sum of factors[k] * x[k]; begins with a term that needs no multiplication, if there is one.
  Value Combine(const std::vector<double>& factors, const std::vector<Value>& x) {
    size_t first = 0;
    while (first < factors.size() && factors[first] != 1) ++first;
    if (first == factors.size()) {
      first = 0;
      while (factors[first] == 0) ++first;
    }
    Value sum = factors[first] == 1 ? x[first] : math_.Multiply(x[first], math_.Like(factors[first], x[first]));
    for (size_t k = 0; k < factors.size(); ++k) {
      if (k == first || factors[k] == 0) continue;
      const double size = std::abs(factors[k]);
      const Value term = size == 1 ? x[k] : math_.Multiply(x[k], math_.Like(size, x[k]));
      sum = factors[k] > 0 ? math_.Add(sum, term) : math_.Subtract(sum, term);
    }
    return sum;
  }

  VectorMath& math_;
};

class WinogradEmitter {
 public:
  WinogradEmitter(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output, const WinogradPlan& plan, int slots)
      : state_(state),
        e_(state.emitter),
        matrices_(state.math()),
        call_(call),
        conv_(conv),
        output_(output),
        plan_(plan),
        transforms_(WinogradTransformsFor(plan.tile)),
        side_(transforms_.side()),
        lanes_(e_.lanes()),
        width_(PanelWidth(e_, kFloat32)),
        panels_((conv.result[1] + width_ - 1) / width_),
        tiles_down_((conv.result[2] + plan.tile - 1) / plan.tile),
        tiles_across_((conv.result[3] + plan.tile - 1) / plan.tile),
        tiles_(conv.result[0] * tiles_down_ * tiles_across_),
        block_(std::min(plan.block, RoundUp(tiles_, plan.rows))),
        slots_(slots) {}

  void Run(const Tensor& taps) {
    data_ = ChannelsLastData(state_, call_.args()[0], kFloat32);
    taps_ = PackTaps(taps);
    const int64_t channels = RoundUp(conv_.data[1], lanes_);
    spectrum_ = AddBlock(SpreadRow(channels));
    products_ = AddBlock(SpreadRow(panels_ * width_));
    patch_ = state_.AddWorkspace({slots_, side_, side_, channels}, Layout::kPlain);
    half_ = state_.AddWorkspace({slots_, plan_.tile, side_, lanes_}, Layout::kPlain);
    const int64_t blocks = (tiles_ + block_ - 1) / block_;
    const std::vector<int64_t> units{blocks, plan_.channel_parts};
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const std::string& begin, const std::string& end) {
      e_.For(begin, end, 1, [&](const std::string& slot) {
        slot_ = slot;
        const auto share = [&](const std::string& of) {
          return e_.IntOp("divui", e_.MulInt(of, NumElements(units)), e_.Int(slots_));
        };
        e_.For(share(slot), share(e_.Plus(slot, 1)), 1, [&](const std::string& unit) {
          const Names parts = Delinearise(e_, unit, units);
          const std::string first = e_.MulInt(parts[0], block_);
          const std::string left = e_.IntOp("subi", e_.Int(tiles_), first);
          const std::string count = e_.IntOp("minsi", e_.Int(block_), left);
          TransformData(first, count);
          Multiply(count, parts[1]);
          TransformProducts(first, count, parts[1]);
        });
      });
    });
    e_.Call(name, slots_, slots_ > 1);
  }

 private:
  /// [slot][position][tile of the block][row]
  Buffer AddBlock(int64_t row) {
    const int64_t position = OddLines(block_ * row);
    const int64_t slot = transforms_.positions() * position;
    Buffer buffer = state_.AddWorkspace({slots_, slot}, Layout::kPlain);
    buffer.shape = {slots_, transforms_.positions(), block_, row};
    buffer.strides = {slot, position, row, 1};
    return buffer;
  }

  /// Transformed, as [position][panel][C][width].
  Buffer PackTaps(const Tensor& taps) {
    const int64_t inputs = conv_.data[1];
    const int64_t positions = transforms_.positions();
    const Tensor packed = Tensor::Zeros({positions, panels_, inputs, width_}, kFloat32);
    const TapsTransform transform(transforms_);
    std::vector<double> transformed(static_cast<size_t>(positions));
    constexpr int64_t kTaps = 9;
    for (int64_t k = 0; k < conv_.result[1]; ++k) {
      for (int64_t c = 0; c < inputs; ++c) {
        transform.Apply(taps.data<float>() + (k * inputs + c) * kTaps, transformed.data());
        float* to = packed.data<float>() + (k / width_ * inputs + c) * width_ + k % width_;
        for (int64_t p = 0; p < positions; ++p) {
          to[p * panels_ * inputs * width_] = static_cast<float>(transformed[static_cast<size_t>(p)]);
        }
      }
    }
    return state_.AddConstant(packed);
  }

  // ---- vectors of what is between the steps: whole ones, rows have room for them ----

  Value Read(const Buffer& buffer, const Names& at) {
    return {e_.VectorAt(e_.Address(buffer, Bases(at)), /*masked=*/false)};
  }
  void Write(const Buffer& buffer, const Names& at, const Value& value) {
    e_.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", value.name,
                        e_.Address(buffer, Bases(at)), e_.FloatVector()));
  }
  Names Numbers(int64_t count) {
    Names names;
    for (int64_t i = 0; i < count; ++i) names.push_back(e_.Int(i));
    return names;
  }

  /// Image, row and column of tiles.
  Names Place(const std::string& tile) { return Delinearise(e_, tile, {conv_.result[0], tiles_down_, tiles_across_}); }

  // ---- data -> spectrum ----

  void TransformData(const std::string& first, const std::string& count) {
    e_.For(e_.Int(0), count, 1, [&](const std::string& tile) {
      const Names place = Place(e_.AddInt(first, tile));
      const std::string y = e_.Plus(e_.MulInt(place[1], plan_.tile), -conv_.pad_before[0]);
      const std::string x = e_.Plus(e_.MulInt(place[2], plan_.tile), -conv_.pad_before[1]);
      const auto fits = [&](const std::string& from, int64_t length) {
        return And(e_.IntCompare("sge", from, e_.Int(0)), e_.IntCompare("sle", from, e_.Int(length - side_)));
      };
      const std::string inside = And(fits(y, conv_.data[2]), fits(x, conv_.data[3]));
      e_.If(inside, [&] {
        TransformTile(tile, [&](int64_t i, int64_t j, const std::string& channel) {
          return e_.Load(data_, {{place[0], 0}, {channel, 1, "", lanes_}, {e_.Plus(y, i), 0}, {e_.Plus(x, j), 0}});
        });
      });
      e_.If(Not(inside), [&] {
        CopyPatch(place[0], y, x);
        TransformTile(tile, [&](int64_t i, int64_t j, const std::string& channel) {
          return Read(patch_, {slot_, e_.Int(i), e_.Int(j), channel});
        });
      });
    });
  }

  std::string And(const std::string& a, const std::string& b) {
    return e_.Def(fmt::format("arith.andi {}, {} : i1", a, b));
  }
  std::string Not(const std::string& a) {
    return e_.Def(fmt::format("arith.xori {}, {} : i1", a, e_.Def("arith.constant true")));
  }

  /// The data of a tile, zeros where there are none.
  void CopyPatch(const std::string& image, const std::string& y, const std::string& x) {
    e_.For(e_.Int(0), e_.Int(side_), 1, [&](const std::string& i) {
      e_.For(e_.Int(0), e_.Int(side_), 1, [&](const std::string& j) {
        const std::string row = e_.AddInt(y, i);
        const std::string column = e_.AddInt(x, j);
        // Numbers below 0 are large without their sign.
        const std::string exists =
            And(e_.IntCompare("ult", row, e_.Int(conv_.data[2])), e_.IntCompare("ult", column, e_.Int(conv_.data[3])));
        e_.If(exists, [&] {
          e_.ForLanes(conv_.data[1], [&](const std::string& channel) {
            Write(patch_, {slot_, i, j, channel},
                  e_.Load(data_, {{image, 0}, {channel, 1, "", lanes_}, {row, 0}, {column, 0}}));
          });
        });
        e_.If(Not(exists), [&] {
          e_.For(e_.Int(0), e_.Int(patch_.shape[3]), lanes_, [&](const std::string& channel) {
            Write(patch_, {slot_, i, j, channel}, {e_.Splat(0)});
          });
        });
      });
    });
  }

  /// B^T d B of all channels, d given by `load`.
  void TransformTile(const std::string& tile,
                     const std::function<Value(int64_t i, int64_t j, const std::string& channel)>& load) {
    e_.ForLanes(conv_.data[1], [&](const std::string& channel) {
      std::vector<std::vector<Value>> half;  // columns of B^T d
      for (int64_t j = 0; j < side_; ++j) {
        std::vector<Value> column;
        for (int64_t i = 0; i < side_; ++i) column.push_back(load(i, j, channel));
        half.push_back(matrices_.Rows(transforms_.data, column));
      }
      for (int64_t i = 0; i < side_; ++i) {
        std::vector<Value> row;
        for (const std::vector<Value>& column : half) row.push_back(column[static_cast<size_t>(i)]);
        const std::vector<Value> whole = matrices_.Rows(transforms_.data, row);
        for (int64_t j = 0; j < side_; ++j) {
          Write(spectrum_, {slot_, e_.Int(i * side_ + j), tile, channel}, whole[static_cast<size_t>(j)]);
        }
      }
    });
  }

  // ---- spectrum x taps -> products ----

  /// The first panel of a part of the channels, or of the one behind it.
  std::string FirstPanel(const std::string& part) {
    if (plan_.channel_parts == 1) return e_.MulInt(part, panels_);
    return e_.IntOp("divui", e_.MulInt(part, panels_), e_.Int(plan_.channel_parts));
  }

  void Multiply(const std::string& count, const std::string& part) {
    ProductForm form;
    form.outer = {transforms_.positions()};
    form.rows = block_;
    form.channels = conv_.result[1];
    form.inner = {conv_.data[1]};
    form.row_stride = spectrum_.strides[2];
    form.a_address = [&](const Names& outer, const std::string& row, const Names& k) {
      return e_.Address(spectrum_, Bases({slot_, outer[0], row, k[0]}));
    };
    form.b_address = [&](const Names& outer, const std::string& panel, const Names& k) {
      return e_.Address(taps_, Bases({outer[0], panel, k[0], e_.Int(0)}));
    };
    const int64_t vectors = width_ / lanes_;
    const int64_t whole = conv_.result[1] / width_;  // panels
    const int64_t rest = (conv_.result[1] % width_ + lanes_ - 1) / lanes_;
    // Rows of the last register tile beyond the block's tiles hold whatever was there, and so do their products.
    const std::string register_tiles = e_.IntOp("divui", e_.Plus(count, plan_.rows - 1), e_.Int(plan_.rows));
    const std::string from = FirstPanel(part);
    const std::string to = FirstPanel(e_.Plus(part, 1));
    const auto multiply_panel = [&](const std::string& position, const std::string& panel, int64_t num_vectors) {
      e_.For(e_.Int(0), register_tiles, 1, [&](const std::string& register_tile) {
        const std::string row = e_.MulInt(register_tile, plan_.rows);
        const Names sums = EmitTileSums(state_, form, {position}, row, plan_.rows, panel, static_cast<int>(num_vectors),
                                        num_vectors * lanes_);
        for (int64_t t = 0; t < plan_.rows; ++t) {
          for (int64_t v = 0; v < num_vectors; ++v) {
            Write(products_, {slot_, position, e_.Plus(row, t), e_.Plus(e_.MulInt(panel, width_), v * lanes_)},
                  {sums[static_cast<size_t>(t * num_vectors + v)]});
          }
        }
      });
    };
    e_.For(e_.Int(0), e_.Int(transforms_.positions()), 1, [&](const std::string& position) {
      if (whole > 0) {
        e_.For(from, e_.IntOp("minsi", to, e_.Int(whole)), 1,
               [&](const std::string& panel) { multiply_panel(position, panel, vectors); });
      }
      if (rest > 0) {
        e_.If(e_.IntCompare("eq", to, e_.Int(panels_)), [&] { multiply_panel(position, e_.Int(whole), rest); });
      }
    });
  }

  // ---- products -> result ----

  void TransformProducts(const std::string& first, const std::string& count, const std::string& part) {
    const int64_t channels = conv_.result[1];
    const int64_t whole = channels / lanes_ * lanes_;
    const std::string from = e_.MulInt(FirstPanel(part), width_);
    const std::string to = FirstPanel(e_.Plus(part, 1));
    const std::string end = e_.IntOp("minsi", e_.MulInt(to, width_), e_.Int(whole));
    e_.For(e_.Int(0), count, 1, [&](const std::string& tile) {
      const Names place = Place(e_.AddInt(first, tile));
      if (whole > 0) e_.For(from, end, lanes_, [&](const std::string& channel) { StoreTile(tile, place, channel); });
      if (whole == channels) return;
      e_.If(e_.IntCompare("eq", to, e_.Int(panels_)),
            [&] { e_.MaskedRest(channels, [&](const std::string& channel) { StoreTile(tile, place, channel); }); });
    });
  }

  /// A^T m A of a vector of channels, row by row, as far as the result reaches.
  void StoreTile(const std::string& tile, const Names& place, const std::string& channel) {
    const Names numbers = Numbers(side_);
    for (int64_t j = 0; j < side_; ++j) {
      std::vector<Value> column;
      for (int64_t i = 0; i < side_; ++i) {
        column.push_back(Read(products_, {slot_, e_.Int(i * side_ + j), tile, channel}));
      }
      const std::vector<Value> half = matrices_.Columns(transforms_.result, column);
      for (int64_t i = 0; i < plan_.tile; ++i) {
        Write(half_, {slot_, numbers[static_cast<size_t>(i)], numbers[static_cast<size_t>(j)], numbers[0]},
              half[static_cast<size_t>(i)]);
      }
    }
    const std::string top = e_.MulInt(place[1], plan_.tile);
    const std::string left = e_.MulInt(place[2], plan_.tile);
    const std::string below = e_.IntOp("subi", e_.Int(conv_.result[2]), top);
    e_.For(numbers[0], e_.IntOp("minsi", e_.Int(plan_.tile), below), 1, [&](const std::string& i) {
      std::vector<Value> row;
      for (const std::string& j : numbers) row.push_back(Read(half_, {slot_, i, j, numbers[0]}));
      const std::vector<Value> results = matrices_.Columns(transforms_.result, row);
      const auto store = [&](int64_t columns) {
        for (int64_t j = 0; j < columns; ++j) {
          const Indices at{{place[0], 0}, {channel, 1, "", lanes_}, {e_.AddInt(top, i), 0}, {e_.Plus(left, j), 0}};
          StoreResult(state_, output_, at, results[static_cast<size_t>(j)]);
        }
      };
      const int64_t rest = conv_.result[3] % plan_.tile;
      if (rest == 0) return store(plan_.tile);
      const std::string last = e_.Int(tiles_across_ - 1);
      if (tiles_across_ > 1) e_.If(e_.IntCompare("slt", place[2], last), [&] { store(plan_.tile); });
      e_.If(e_.IntCompare("eq", place[2], last), [&] { store(rest); });
    });
  }

  PartitionState& state_;
  Emitter& e_;
  MatrixWriter matrices_;
  const CallNode& call_;
  const ConvolutionGeometry& conv_;
  const StageOutput& output_;
  const WinogradPlan& plan_;
  const WinogradTransforms& transforms_;
  int64_t side_;
  int64_t lanes_;
  int64_t width_;  ///< of a panel
  int64_t panels_;
  int64_t tiles_down_;
  int64_t tiles_across_;
  int64_t tiles_;
  int64_t block_;
  int64_t slots_;  ///< threads that have room of their own
  Buffer data_;
  Buffer taps_;
  Buffer spectrum_;
  Buffer products_;
  Buffer patch_;
  Buffer half_;       ///< A^T m, of one vector
  std::string slot_;  ///< the thread, in the function being written
};

bool IsCandidate(const CallNode& call, const ConvolutionGeometry& conv) {
  const auto is_one = [](int64_t value) { return value == 1; };
  return conv.rank == 2 && conv.groups == 1 && conv.weight[2] == 3 && conv.weight[3] == 3 && conv.data[1] > 0 &&
         std::all_of(conv.stride.begin(), conv.stride.end(), is_one) &&
         std::all_of(conv.dilation.begin(), conv.dilation.end(), is_one) &&
         TensorTypeOf(call.args()[0]).dtype() == kFloat32 && TensorTypeOf(call.args()[1]).dtype() == kFloat32;
}

}  // namespace

bool EmitWinograd(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output) {
  if (state.options.is_exact || !IsCandidate(call, conv) || TensorTypeOf(output.result).dtype() != kFloat32) {
    return false;
  }
  Emitter& e = state.emitter;
  const int threads = state.IsParallel(conv.flops()) ? state.num_threads : 1;
  const ProductMachine machine = ThisMachine(e.lanes(), MostTileRows(e, kFloat32), PanelWidth(e, kFloat32), threads);
  const Convolution3x3 sizes{conv.result[0], conv.data[1], conv.result[1], conv.result[2], conv.result[3]};
  const int tile = state.options.winograd_tile;
  const std::optional<WinogradPlan> plan =
      tile == 0 ? ChooseWinograd(sizes, machine) : std::optional(PlanWinograd(sizes, machine, tile));
  if (!plan) return false;
  const std::optional<Tensor> taps = ConstantValue(call.args()[1]);
  if (!taps) return false;
  WinogradEmitter(state, call, conv, output, *plan, threads).Run(*taps);
  return true;
}

}  // namespace collage::native
