// convolution.cc: convolutions as products: rows are the pixels of an image row, the inner dimensions are the taps and
// the channels of a group. A transposed convolution is one product for each phase of its output positions modulo the
// strides: the taps that reach a phase are evenly spaced, and so are the inputs that they read. Some convolutions have
// algorithms of their own, which are asked first.
#include "backends/native/compiler/convolution.h"

#include <algorithm>
#include <numeric>

#include "backends/native/compiler/byte_products.h"
#include "backends/native/compiler/narrow_products.h"
#include "backends/native/compiler/winograd.h"
#include "collage/support/error.h"

namespace collage::native {

ConvolutionGeometry::ConvolutionGeometry(const CallNode& call, const Expr& out)
    : rank(ShapeOf(out).size() - 2),
      groups(call.attrs().Int("groups")),
      data(ShapeOf(call.args()[0])),
      weight(ShapeOf(call.args()[1])),
      result(ShapeOf(out)) {
  const auto per_dimension = [&](const char* name) {
    std::vector<int64_t> values = call.attrs().Ints(name);
    while (values.size() < rank) values.push_back(values[0]);
    return values;
  };
  stride = per_dimension("strides");
  dilation = per_dimension("dilation");
  std::vector<int64_t> pad = per_dimension("padding");
  if (pad.size() == rank) pad.insert(pad.end(), pad.begin(), pad.end());
  pad_before.assign(pad.begin(), pad.begin() + static_cast<int64_t>(rank));
  pad_after.assign(pad.begin() + static_cast<int64_t>(rank), pad.end());
}

int64_t ConvolutionGeometry::taps() const { return NumElements(Shape(weight.begin() + 2, weight.end())); }

double ConvolutionGeometry::flops() const {
  return 2.0 * static_cast<double>(NumElements(result)) * static_cast<double>(taps() * weight[1]);
}

Buffer ChannelsLastData(PartitionState& state, const Expr& data, DataType dtype) {
  const Buffer own = ProductOperand(state, data, Layout::kChannelsLast, dtype);
  if (own.shape[1] == 1 || own.strides[1] == 1) return own;
  const Buffer turned = state.AddWorkspace(own.shape, Layout::kChannelsLast, dtype);
  EmitElements(state, turned, [&](const Indices& at) { return state.emitter.Load(own, at); });
  return turned;
}

namespace {

/// Whether pixels follow each other without gaps.
bool IsDense(const Buffer& data) {
  return data.strides == LayoutStrides(data.shape, Layout::kChannelsLast) || NumElements(data.shape) <= 1;
}

}  // namespace

Buffer PaddedData(PartitionState& state, const Expr& expr, const std::vector<int64_t>& before,
                  const std::vector<int64_t>& after, DataType dtype, const std::function<Value()>& fill) {
  Emitter& e = state.emitter;
  const auto is_none = [](const std::vector<int64_t>& pad) {
    return std::all_of(pad.begin(), pad.end(), [](int64_t p) { return p == 0; });
  };
  const bool is_padded = !is_none(before) || !is_none(after);
  // What is copied between zeros is converted on the way.
  const DataType own = TensorTypeOf(expr).dtype();
  const bool converts = is_padded && KindOf(own) == KindOf(dtype);
  const Buffer data = ChannelsLastData(state, expr, converts ? own : dtype);
  if (!is_padded && IsDense(data)) return data;
  const size_t rank = before.size();
  Shape shape = data.shape;
  for (size_t d = 0; d < rank; ++d) shape[d + 2] += before[d] + after[d];
  const Buffer padded = state.AddWorkspace(shape, Layout::kChannelsLast, dtype);
  const int64_t channels = shape[1];
  // Units are rows: an image, the leading spatial dimensions; a row of pixels is one run of memory.
  Shape units{shape[0]};
  for (size_t d = 0; d + 1 < rank; ++d) units.push_back(shape[d + 2]);
  const auto as_rows = [&](const Buffer& buffer) {
    Buffer rows = buffer;
    rows.shape = {buffer.shape[0]};
    rows.strides = {buffer.strides[0]};
    for (size_t d = 0; d + 1 < rank; ++d) {
      rows.shape.push_back(buffer.shape[d + 2]);
      rows.strides.push_back(buffer.strides[d + 2]);
    }
    rows.shape.push_back(buffer.shape[rank + 1] * channels);
    rows.strides.push_back(1);
    return rows;
  };
  const Buffer target = as_rows(padded);
  const Buffer source = as_rows(data);
  const int64_t left = before[rank - 1] * channels;
  const int64_t width = data.shape[rank + 1] * channels;
  const int64_t right = after[rank - 1] * channels;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& unit) {
      const Names parts = Delinearise(e, unit, units);
      const auto at = [&](const std::string& first, int64_t from) {
        Indices indices = Bases(parts);
        indices.push_back({e.Plus(first, from), 1});
        return indices;
      };
      const auto fill_run = [&](int64_t from, int64_t count) {
        e.ForLanes(count, [&](const std::string& first) {
          e.Store(target, at(first, from), fill ? fill() : state.math().Number(0, KindOf(dtype)));
        });
      };
      std::string inside = e.Def("arith.constant true");
      Indices read{{parts[0], 0}};
      for (size_t d = 0; d + 1 < rank; ++d) {
        const std::string row = e.Plus(parts[d + 1], -before[d]);
        read.push_back({row, 0});
        const std::string above = e.IntCompare("sge", row, e.Int(0));
        const std::string below = e.IntCompare("slt", row, e.Int(data.shape[d + 2]));
        inside = e.Def(
            fmt::format("arith.andi {}, {} : i1", inside, e.Def(fmt::format("arith.andi {}, {} : i1", above, below))));
      }
      const std::string outside = e.Def(fmt::format("arith.xori {}, {} : i1", inside, e.Def("arith.constant true")));
      e.If(inside, [&] {
        fill_run(0, left);
        read.push_back({});
        e.ForLanes(width, [&](const std::string& first) {
          read.back() = {first, 1};
          e.Store(target, at(first, left), e.Load(source, read));
        });
        fill_run(left + width, right);
      });
      e.If(outside, [&] { fill_run(0, left + width + right); });
    });
  });
  e.Call(name, NumElements(units), state.IsParallel(static_cast<double>(NumElements(shape)) * 2));
  return padded;
}

namespace {

/// One spatial dimension of a product: output `first + o * step` reads the padded data at o * stride + j * tap_step +
/// base for j in [0, taps), with the weight's tap first_tap + j * tap_distance.
struct Walk {
  int64_t outputs = 1, first = 0, step = 1;
  int64_t stride = 1, tap_step = 1, base = 0;
  int64_t taps = 1, first_tap = 0, tap_distance = 1;
};

class ConvolutionEmitter {
 public:
  ConvolutionEmitter(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        call_(call),
        output_(output),
        conv_(call, output.result),
        is_transposed_(call.op()->name.ends_with("_transpose")),
        dtype_(SumType(TensorTypeOf(call.args()[0]).dtype())),
        channels_(conv_.data[1]) {}

  void Run() {
    if (NumElements(conv_.result) == 0) return;
    if (ReadBytes()) return is_transposed_ ? RunTransposed() : RunPlain();
    if (!is_transposed_ && EmitSmallGroups(state_, call_, conv_, output_)) return;
    const Expr& data = call_.args()[0];
    if (IsInPairs(state_, data, call_.args()[1], conv_.data[1] / conv_.groups)) {
      ++state_.num_narrow;
      per_element_ = 2;
      return is_transposed_ ? RunTransposed() : RunPlain();
    }
    if (!is_transposed_ && EmitWinograd(state_, call_, conv_, output_)) return;
    is_transposed_ ? RunTransposed() : RunPlain();
  }

 private:
  /// Whether it is a product of integers of 8 bits; if so, how it is computed is kept.
  bool ReadBytes() {
    const auto is_some = [](int64_t pad) { return pad != 0; };
    const bool is_padded = is_transposed_ || std::ranges::any_of(conv_.pad_before, is_some) ||
                           std::ranges::any_of(conv_.pad_after, is_some);
    bytes_ = ReadByteProduct(state_, call_.args()[0], call_.args()[1], is_transposed_ ? 1 : 0, is_padded,
                             /*may_be_late=*/false);
    if (!bytes_) return false;
    // Words hold channels of one group. Where groups have few, lanes run over several of them instead
    // (EmitSmallGroups).
    const int64_t group_in = conv_.data[1] / conv_.groups;
    const bool fits = group_in % bytes_->per_word == 0 && conv_.result[1] / conv_.groups * 2 >= e_.lanes();
    if (conv_.groups > 1 && !fits) {
      bytes_.reset();
      return false;
    }
    PadWeight(*bytes_, is_transposed_ ? 0 : 1);
    per_element_ = bytes_->per_word;
    channels_ = conv_.groups > 1 ? conv_.data[1] : bytes_->RoundUp(conv_.data[1]);
    dtype_ = kInt32;
    return true;
  }

  void RunPlain() {
    if (!bytes_ && per_element_ == 2 && SkipsPixels()) {
      data_ = AsPairs(PixelsThatAreRead(), 1);
      std::ranges::fill(conv_.stride, 1);
    } else {
      data_ = Data(conv_.pad_before, conv_.pad_after);
    }
    std::vector<Walk> walks;
    for (size_t d = 0; d < conv_.rank; ++d) {
      Walk walk;
      walk.outputs = conv_.result[d + 2];
      walk.stride = conv_.stride[d];
      walk.tap_step = conv_.dilation[d];
      walk.taps = conv_.weight[d + 2];
      walks.push_back(walk);
    }
    EmitWalks(walks);
  }

  void RunTransposed() {
    std::vector<std::vector<Walk>> phases;
    std::vector<int64_t> before;
    std::vector<int64_t> after;
    for (size_t d = 0; d < conv_.rank; ++d) {
      phases.push_back(Phases(d));
      int64_t low = 0;
      int64_t high = conv_.data[d + 2] - 1;
      for (const Walk& walk : phases.back()) {
        if (walk.taps == 0) continue;
        const int64_t reach = (walk.taps - 1) * walk.tap_step;
        low = std::min(low, walk.base + std::min<int64_t>(reach, 0));
        high = std::max(high, walk.base + std::max<int64_t>(reach, 0) + walk.outputs - 1);
      }
      before.push_back(-low);
      after.push_back(high - conv_.data[d + 2] + 1);
      for (Walk& walk : phases.back()) walk.base -= low;
    }
    data_ = Data(before, after);
    std::vector<Walk> walks(conv_.rank);
    const std::function<void(size_t)> choose = [&](size_t d) {
      if (d == conv_.rank) return EmitWalks(walks);
      for (const Walk& walk : phases[d]) {
        walks[d] = walk;
        choose(d + 1);
      }
    };
    choose(0);
  }

  Buffer Data(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
    const Expr& data = call_.args()[0];
    if (bytes_) return WordImage(state_, *bytes_, before, after);
    if (per_element_ == 1) return PaddedData(state_, data, before, after, dtype_);
    return AsPairs(PaddedData(state_, data, before, after, kBFloat16), 1);
  }

  /// Whether there is one tap, which steps over pixels of data that lie in memory channels-last.
  bool SkipsPixels() const {
    const auto all_are = [](const std::vector<int64_t>& values, int64_t wanted) {
      return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
    };
    const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
    return conv_.taps() == 1 && !all_are(conv_.stride, 1) && all_are(conv_.pad_before, 0) &&
           all_are(conv_.pad_after, 0) && data != nullptr && data->strides[1] == 1;
  }

  /// These alone, rounded to bfloat16: those between them need not be.
  Buffer PixelsThatAreRead() {
    Shape shape = conv_.data;
    for (size_t d = 0; d < conv_.rank; ++d) shape[d + 2] = conv_.result[d + 2];
    const Buffer pixels = state_.AddWorkspace(shape, Layout::kChannelsLast, kBFloat16);
    EmitElements(state_, pixels, [&](Indices at) {
      for (size_t d = 0; d < conv_.rank; ++d) at[d + 2] = e_.Scaled(at[d + 2], conv_.stride[d]);
      return state_.expressions.At(call_.args()[0], at);
    });
    return pixels;
  }

  /// Output o gets tap k of input i where i * stride = o + pad - k * dilation: with o + pad = q * stride + phase, the
  /// taps of the phase are every (stride / g)-th, g = gcd(stride, dilation), and each step of them goes dilation / g
  /// inputs back.
  std::vector<Walk> Phases(size_t d) const {
    const int64_t stride = conv_.stride[d];
    const int64_t dilation = conv_.dilation[d];
    const int64_t pad = conv_.pad_before[d];
    const int64_t kernel = conv_.weight[d + 2];
    const int64_t common = std::gcd(stride, dilation);
    std::vector<Walk> phases;
    for (int64_t first = 0; first < std::min(stride, conv_.result[d + 2]); ++first) {
      Walk walk;
      walk.first = first;
      walk.step = stride;
      walk.outputs = (conv_.result[d + 2] - first + stride - 1) / stride;
      const int64_t phase = (first + pad) % stride;
      walk.first_tap = 0;
      while (walk.first_tap < kernel && (walk.first_tap * dilation) % stride != phase) ++walk.first_tap;
      walk.tap_distance = stride / common;
      walk.taps = walk.first_tap < kernel ? (kernel - walk.first_tap + walk.tap_distance - 1) / walk.tap_distance : 0;
      walk.tap_step = -(dilation / common);
      walk.base = (first + pad - walk.first_tap * dilation) / stride;
      // The division is exact but for phases without taps, where it does not matter.
      phases.push_back(walk);
    }
    return phases;
  }

  /// Where they are no bytes, the packed weights alone.
  PackedWords Pack(const std::vector<Walk>& walks) {
    const int64_t group_in = channels_ / conv_.groups;
    const int64_t group_out = conv_.result[1] / conv_.groups;
    PackedWeights packing;
    packing.groups = conv_.groups;
    packing.channels = group_out;
    for (const Walk& walk : walks) packing.inner.push_back(walk.taps);
    packing.inner.push_back(group_in);
    packing.at = [&, walks](const Index& group, const Index& channel, const Indices& inner) {
      Indices at;
      if (is_transposed_) {
        at = {e_.Sum(e_.Scaled(group, group_in), inner.back()), channel};
      } else {
        at = {e_.Sum(e_.Scaled(group, group_out), channel), inner.back()};
      }
      for (size_t d = 0; d < walks.size(); ++d)
        at.push_back(e_.Shifted(e_.Scaled(inner[d], walks[d].tap_distance), walks[d].first_tap));
      return at;
    };
    packing.offset = [&, walks](const Shape& shape, int64_t group, int64_t channel, const std::vector<int64_t>& inner) {
      int64_t at = is_transposed_ ? (group * group_in + inner.back()) * shape[1] + channel
                                  : (group * group_out + channel) * shape[1] + inner.back();
      for (size_t d = 0; d < walks.size(); ++d)
        at = at * shape[d + 2] + walks[d].first_tap + inner[d] * walks[d].tap_distance;
      return at;
    };
    if (bytes_) return PackWords(state_, *bytes_, packing);
    if (per_element_ == 2) return {PackPairs(state_, call_.args()[1], packing), {}, {}};
    return {PackWeights(state_, call_.args()[1], packing, dtype_), {}, {}};
  }

  void EmitWalks(const std::vector<Walk>& walks) {
    const size_t rank = walks.size();
    const int64_t group_in = channels_ / per_element_ / conv_.groups;
    const int64_t group_out = conv_.result[1] / conv_.groups;
    const PackedWords packed = Pack(walks);
    const Buffer& b = packed.words;
    ProductForm form;
    form.dtype = dtype_;
    form.factors = bytes_ ? bytes_->factors : per_element_ == 2 ? Factors::kBFloat16 : Factors::kOne;
    form.flips_signs = bytes_ && bytes_->flips_signs;
    packed.ReadBy(form, state_);
    form.channels = group_out;
    form.depth_stride = data_.shape[1] == 1 ? 1 : data_.strides[1];
    form.b_row_stride = b.shape.back();
    const auto channel_of = [&, group_out](const std::string& group, const Index& channel) {
      return conv_.groups == 1 ? channel : e_.Sum(e_.Scaled({group, 0}, group_out), channel);
    };
    // [groups, panels, taps and channels flattened, width]
    form.b_address = [&, walks](const Names& outer, const std::string& panel, const Names& k) {
      std::string flat = k[0];
      for (size_t d = 1; d < k.size(); ++d)
        flat = e_.AddInt(e_.MulInt(flat, d < walks.size() ? walks[d].taps : group_in), k[d]);
      return e_.Address(b, Bases({outer[0], panel, flat, e_.Int(0)}));
    };
    if (IsPointwise(walks)) return EmitPixels(form, b, channel_of);
    form.outer = {conv_.groups, conv_.result[0]};
    for (size_t d = 0; d + 1 < rank; ++d) form.outer.push_back(walks[d].outputs);
    form.rows = walks.back().outputs;
    for (const Walk& walk : walks) form.inner.push_back(walk.taps);
    form.inner.push_back(group_in);
    form.row_stride = data_.strides[rank + 1] * walks.back().stride;
    form.result_row_stride = output_.buffer.strides[rank + 1] * walks.back().step;
    form.a_address = [&, walks](const Names& outer, const std::string& row, const Names& k) {
      Names at{outer[1], e_.AddInt(e_.MulInt(outer[0], group_in), k.back())};
      for (size_t d = 0; d < walks.size(); ++d) {
        const std::string& o = d + 1 < walks.size() ? outer[d + 2] : row;
        at.push_back(
            e_.Plus(e_.AddInt(e_.MulInt(o, walks[d].stride), e_.MulInt(k[d], walks[d].tap_step)), walks[d].base));
      }
      return e_.Address(data_, Bases(at));
    };
    form.result = [&, walks](const Names& outer, const std::string& row, const Index& channel) {
      Indices at{{outer[1], 0}, channel_of(outer[0], channel)};
      for (size_t d = 0; d < walks.size(); ++d) {
        const std::string& o = d + 1 < walks.size() ? outer[d + 2] : row;
        at.push_back({e_.Plus(e_.MulInt(o, walks[d].step), walks[d].first), 0});
      }
      return at;
    };
    EmitProduct(state_, form, output_);
  }

  /// One tap, each pixel of the result the same pixel of the data: all pixels of all images are one column of rows.
  bool IsPointwise(const std::vector<Walk>& walks) const {
    return std::all_of(walks.begin(), walks.end(),
                       [](const Walk& walk) {
                         return walk.taps == 1 && walk.stride == 1 && walk.base == 0 && walk.step == 1;
                       }) &&
           Shape(data_.shape.begin() + 2, data_.shape.end()) == Shape(conv_.result.begin() + 2, conv_.result.end()) &&
           IsDense(data_);
  }

  void EmitPixels(ProductForm& form, const Buffer& b,
                  const std::function<Index(const std::string&, const Index&)>& channel_of) {
    const int64_t channels = channels_ / per_element_;
    const int64_t group_in = channels / conv_.groups;
    form.outer = {conv_.groups};
    form.rows = NumElements(conv_.result) / conv_.result[1];
    form.inner = {group_in};
    form.row_stride = channels;
    if (IsDense(output_.buffer)) form.result_row_stride = conv_.result[1];
    Buffer flat = data_;
    flat.shape = {form.rows, channels};
    flat.strides = {channels, 1};
    form.a_address = [&, flat](const Names& outer, const std::string& row, const Names& k) {
      return e_.Address(flat, Bases({row, e_.AddInt(e_.MulInt(outer[0], group_in), k[0])}));
    };
    form.b_address = [&](const Names& outer, const std::string& panel, const Names& k) {
      return e_.Address(b, Bases({outer[0], panel, k[0], e_.Int(0)}));
    };
    Shape pixels{conv_.result[0]};
    pixels.insert(pixels.end(), conv_.result.begin() + 2, conv_.result.end());
    form.result = [&, pixels](const Names& outer, const std::string& row, const Index& channel) {
      const Names parts = Delinearise(e_, row, pixels);
      Indices at{{parts[0], 0}, channel_of(outer[0], channel)};
      for (size_t d = 1; d < parts.size(); ++d) at.push_back({parts[d], 0});
      return at;
    };
    EmitProduct(state_, form, output_);
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  const StageOutput& output_;
  ConvolutionGeometry conv_;
  bool is_transposed_;
  DataType dtype_;
  std::optional<ByteProduct> bytes_;
  int64_t channels_;         ///< of the data, with those that fill the last word
  int64_t per_element_ = 1;  ///< channels in an element of the product: 2 in pairs
  Buffer data_;
};

}  // namespace

void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output) {
  ConvolutionEmitter(state, call, output).Run();
}

}  // namespace collage::native
