// signal.cc: Fourier transforms and windows of ONNX. A transform is a product with a constant matrix of cosines and
// sines, a short-time one a convolution with them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

// A matrix of more elements than this costs more than it saves.
constexpr int64_t kLargestMatrix = int64_t{1} << 24;

/// cos and sin of 2 pi * row * column / length.
struct Turns {
  int64_t length;
  double Cos(int64_t row, int64_t column) const { return std::cos(Angle(row, column)); }
  double Sin(int64_t row, int64_t column) const { return std::sin(Angle(row, column)); }

 private:
  // The remainder first: the angle stays exact for long signals.
  double Angle(int64_t row, int64_t column) const {
    return 2 * M_PI * static_cast<double>(row * column % length) / static_cast<double>(length);
  }
};

/// The matrix that maps `in` samples (real, or pairs) to `out` of `length` frequencies (pairs, or real ones):
/// [out * out_parts, in * in_parts].
Tensor FourierMatrix(int64_t in, int64_t in_parts, int64_t out, int64_t out_parts, const Turns& turns, bool inverse,
                     bool half, DataType dtype) {
  Tensor matrix = Tensor::Empty({out * out_parts, in * in_parts}, dtype);
  const double sign = inverse ? 1 : -1;
  const double factor = inverse ? 1 / static_cast<double>(turns.length) : 1;
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      // If a spectrum's other half is its mirror image, all frequencies but the first and the middle one count twice.
      const double weight = half && i != 0 && 2 * i != turns.length ? 2 : 1;
      const double c = factor * weight * turns.Cos(o, i);
      const double s = factor * weight * sign * turns.Sin(o, i);
      const auto set = [&](int64_t row, int64_t column, double value) {
        if (row < out_parts && column < in_parts) {
          matrix.Set((o * out_parts + row) * in * in_parts + i * in_parts + column, value);
        }
      };
      set(0, 0, c);
      set(0, 1, -s);
      set(1, 0, s);
      set(1, 1, c);
    }
  }
  return matrix;
}

/// `x` with `axis` cut or padded with zeros to `length`.
Expr WithLength(NodeContext& node, const Expr& x, int64_t axis, int64_t length) {
  const Shape shape = node.ShapeOf(x);
  const int64_t own = shape[static_cast<size_t>(axis)];
  if (own == length) return x;
  if (own > length) return Slice(node, x, axis, 0, length);
  std::vector<V> widths(shape.size(), V{0, 0});
  widths[static_cast<size_t>(axis)][1] = length - own;
  return node.Op("nn.pad", {x, node.ScalarLike(0, x)}, {{"pad_width", AttrValue::List(widths.begin(), widths.end())}});
}

Results ConvertDft(NodeContext& node) {
  Expr x = node.Input(0);
  const int rank = node.Rank(x);
  const int64_t asked = node.opset() >= 20 ? (node.HasInput(2) ? node.ConstantInt(2) : -2) : node.Int("axis", 1);
  const int64_t axis = NormalAxis(node, asked, rank);
  if (axis == rank - 1) node.Invalid("cannot transform along the axis of real and imaginary parts");
  const bool inverse = node.Int("inverse", 0) != 0;
  const bool onesided = node.Int("onesided", 0) != 0;
  const int64_t parts = node.ShapeOf(x).back();
  if (parts != 1 && parts != 2) node.Invalid("the last dimension must be 1 (real) or 2 (complex)");
  // A one-sided inverse gets one half of the spectrum and gives real samples.
  const bool from_half = inverse && onesided;
  int64_t length = node.ShapeOf(x)[static_cast<size_t>(axis)];
  if (from_half) length = 2 * (length - 1);
  if (node.HasInput(1)) length = node.ConstantInt(1);
  if (length > kLargestMatrix) node.Unsupported(fmt::format("a transform of {} samples", length));
  if (length < 1) node.Invalid(fmt::format("cannot transform {} samples", length));
  const int64_t in = from_half ? length / 2 + 1 : length;
  const int64_t out = onesided && !inverse ? length / 2 + 1 : length;
  const int64_t out_parts = from_half ? 1 : 2;
  if (in * out > kLargestMatrix / (parts * out_parts))
    node.Unsupported(fmt::format("a transform of {} samples", length));
  x = WithLength(node, x, axis, in);
  // The axis beside its parts, at the end: [rows, in * parts].
  V order;
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  order.push_back(rank - 1);
  const Shape shape = node.ShapeOf(x);
  if (!std::ranges::is_sorted(order)) x = Transpose(node, x, order);
  x = node.Reshape(x, {NumElements(shape) / (in * parts), in * parts});
  const Tensor matrix =
      FourierMatrix(in, parts, out, out_parts, Turns{length}, inverse, from_half, node.TypeOf(x).dtype());
  x = node.Op("nn.dense", {x, MakeConstant(matrix)});
  Shape result;
  for (size_t i = 0; i + 2 < order.size(); ++i) result.push_back(shape[static_cast<size_t>(order[i])]);
  result.push_back(out);
  result.push_back(out_parts);
  x = node.Reshape(x, result);
  V back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {std::ranges::is_sorted(order) ? x : Transpose(node, x, back)};
}

Results ConvertStft(NodeContext& node) {
  Expr signal = node.Input(0);
  const Shape shape = node.ShapeOf(signal);
  const int64_t step = node.ConstantInt(1);
  const int64_t parts = shape.size() == 3 ? shape[2] : 1;
  if (parts < 1 || parts > 2) node.Invalid("expects a signal [batch, samples, 1 or 2]");
  int64_t length = 0;
  if (node.HasInput(3)) length = node.ConstantInt(3);
  if (length == 0 && node.HasInput(2)) length = node.ShapeOf(node.Input(2)).at(0);
  if (length == 0) length = shape[1];
  if (step < 1 || length < 1 || length > shape[1])
    node.Invalid(fmt::format("frames of {} samples every {} do not fit a signal of {}", length, step, shape[1]));
  if (length > kLargestMatrix) node.Unsupported(fmt::format("frames of {} samples", length));
  const bool onesided = node.Int("onesided", 1) != 0;
  const int64_t out = onesided ? length / 2 + 1 : length;
  if (length * out > kLargestMatrix / (2 * parts)) node.Unsupported(fmt::format("frames of {} samples", length));
  const DataType dtype = node.TypeOf(signal).dtype();
  const Tensor matrix = FourierMatrix(length, parts, out, 2, Turns{length}, false, false, dtype);
  // [out * 2, length, parts] → a kernel [out * 2, parts, length], scaled by the window.
  Expr kernel = Transpose(node, MakeConstant(matrix.Reshaped({out * 2, length, parts})), {0, 2, 1});
  if (node.HasInput(2)) kernel = node.Op("multiply", {kernel, node.Cast(node.Input(2), dtype)});
  signal = Transpose(node, node.Reshape(signal, {shape[0], shape[1], parts}), {0, 2, 1});
  const Expr frames =
      node.Op("nn.conv1d", {signal, kernel}, {{"strides", V{step}}, {"channels", out * 2}, {"kernel_size", V{length}}});
  const int64_t count = node.ShapeOf(frames)[2];
  return {Transpose(node, node.Reshape(frames, {shape[0], out, 2, count}), {0, 3, 1, 2})};
}

/// a - b * cos(2 pi n / N) + c * cos(4 pi n / N), N one less for a symmetric window.
OnnxConverter Window(double a, double b, double c) {
  return [a, b, c](NodeContext& node) -> Results {
    const int64_t size = node.ConstantInt(0);
    if (size < 0 || size > kLargestMatrix) node.Invalid(fmt::format("cannot make a window of {} samples", size));
    const DataType dtype = node.DTypeOf(node.Int("output_datatype", 1));
    const double period = static_cast<double>(node.Int("periodic", 1) != 0 ? size : size - 1);
    Tensor window = Tensor::Empty({size}, dtype);
    for (int64_t n = 0; n < size; ++n) {
      const double turn = size == 1 ? 0 : 2 * M_PI * static_cast<double>(n) / period;
      window.Set(n, size == 1 ? 1 : a - b * std::cos(turn) + c * std::cos(2 * turn));
    }
    return {MakeConstant(window)};
  };
}

/// Triangles over a spectrum, equally wide on the mel scale.
Results ConvertMelWeightMatrix(NodeContext& node) {
  const int64_t bands = node.ConstantInt(0);
  const int64_t length = node.ConstantInt(1);
  const auto rate = static_cast<double>(node.ConstantInt(2));
  const double low = node.ConstantNumber(3);
  const double high = node.ConstantNumber(4);
  if (bands < 1 || length < 1) node.Invalid(fmt::format("cannot make {} bands of {} samples", bands, length));
  const int64_t spectrum = length / 2 + 1;
  if (spectrum > kLargestMatrix / bands) node.Unsupported(fmt::format("{} bands of {} samples", bands, length));
  if (!(low >= 0 && low <= high && high <= rate))
    node.Invalid(
        fmt::format("bands from {} to {} hertz are not between 0 and the {} samples per second", low, high, rate));
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (to_mel(high) - to_mel(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + to_mel(low)) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  Tensor matrix = Tensor::Zeros({spectrum, bands}, node.DTypeOf(node.Int("output_datatype", 1)));
  const auto set = [&](int64_t row, int64_t band, double value) {
    if (row >= 0 && row < spectrum) matrix.Set(row * bands + band, value);
  };
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t begin = edges[static_cast<size_t>(band)];
    const int64_t peak = edges[static_cast<size_t>(band) + 1];
    const int64_t end = edges[static_cast<size_t>(band) + 2];
    if (begin == peak) set(peak, band, 1);
    for (int64_t i = begin; i < peak; ++i)
      set(i, band, static_cast<double>(i - begin) / static_cast<double>(peak - begin));
    if (begin != peak) set(peak, band, 1);
    for (int64_t i = peak; i < end; ++i) set(i, band, static_cast<double>(end - i) / static_cast<double>(end - peak));
  }
  return {MakeConstant(matrix)};
}

}  // namespace

void AddSignalConverters(OnnxConverters& converters) {
  converters.Add("DFT", ConvertDft, "input: float[2..], dft_length?: int[0..1], axis?@20: int[0..1] -> output");
  converters.Add("STFT", ConvertStft,
                 "signal: float[2..3], frame_step: int[0..1], window?: same[1], frame_length?: int[0..1] -> output");
  converters.Add("HannWindow", Window(0.5, 0.5, 0), "size: int[0..1] -> output");
  converters.Add("HammingWindow", Window(25.0 / 46, 21.0 / 46, 0), "size: int[0..1] -> output");
  converters.Add("BlackmanWindow", Window(0.42, 0.5, 0.08), "size: int[0..1] -> output");
  converters.Add("MelWeightMatrix", ConvertMelWeightMatrix,
                 "num_mel_bins: int[0..1], dft_length: same[0..1], sample_rate: same[0..1], lower_edge_hertz: "
                 "float[0..1], upper_edge_hertz: float[0..1] -> output");
}

}  // namespace collage
