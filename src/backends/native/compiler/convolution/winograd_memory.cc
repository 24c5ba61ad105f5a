// winograd_memory.cc: sizes and places of the buffers of Winograd's algorithm, and its transformed taps.
//
// In bfloat16 the factors of the products are rounded, the spectrum as it is stored and the transformed taps when they
// are packed, and multiplied in pairs of neighbouring channels (pair_dot.h); all else is float32. Zeros fill the last
// pair of an odd number of channels.
#include "backends/native/compiler/convolution/winograd_memory.h"

#include <algorithm>

#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/stages/padded_data.h"

namespace collage::native {
namespace {

constexpr int64_t kLineFloats = 16;  // of a cache line

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Returns a length of at least `floats` that is an odd number of cache lines: runs that begin at multiples of it fall
/// on different sets of a cache.
int64_t OddLines(int64_t floats) { return (((floats + kLineFloats - 1) / kLineFloats) | 1) * kLineFloats; }

/// [slot][position][tile of the block][row]
Buffer AddBlock(PartitionState& state, const WinogradBlocks& blocks, int64_t row) {
  const int64_t position = OddLines(blocks.block * row);
  const int64_t slot = blocks.tiles.positions * position;
  Buffer buffer = state.AddWorkspace({blocks.slots, slot}, Layout::kPlain);
  buffer.shape = {blocks.slots, blocks.tiles.positions, blocks.block, row};
  buffer.strides = {slot, position, row, 1};
  return buffer;
}

Buffer AsBFloat16(Buffer pairs) {
  pairs.dtype = kBFloat16;
  pairs.shape.back() *= 2;
  for (size_t d = 0; d + 1 < pairs.strides.size(); ++d) pairs.strides[d] *= 2;
  return pairs;
}

/// Transforms the taps, as [position][panel][C][width], or as pairs of C.
Buffer PackTaps(PartitionState& state, const WinogradBlocks& blocks, int64_t num_taps, const Tensor& taps) {
  const auto [positions, panels, width] = std::tuple(blocks.tiles.positions, blocks.panels, blocks.width);
  const int64_t inputs = blocks.channels_in;
  const int64_t rows = blocks.are_in_pairs ? 2 * blocks.depth : blocks.depth;
  const Tensor packed = Tensor::Zeros({positions, panels, rows, width}, kFloat32);
  std::vector<double> filters(static_cast<size_t>(num_taps * width));  // [tap][channel of the panel]
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t count = std::min(width, blocks.channels_out - panel * width);
    std::fill(filters.begin(), filters.end(), 0);
    for (int64_t c = 0; c < inputs; ++c) {
      for (int64_t k = 0; k < count; ++k) {
        const float* from = taps.data<float>() + ((panel * width + k) * inputs + c) * num_taps;
        for (int64_t t = 0; t < num_taps; ++t) filters[static_cast<size_t>(t * width + k)] = from[t];
      }
      const std::vector<double> transformed = TransformTaps(blocks.tiles.transforms, filters, width);
      for (int64_t p = 0; p < positions; ++p) {
        std::transform(transformed.begin() + p * width, transformed.begin() + (p + 1) * width,
                       packed.data<float>() + ((p * panels + panel) * rows + c) * width,
                       [](double value) { return static_cast<float>(value); });
      }
    }
  }
  return state.AddConstant(blocks.are_in_pairs ? InPairs(packed, DotKind::kBFloat16) : packed);
}

/// Returns the data, channels-last. Elements that have 16 bits in memory are widened as they are read.
Buffer DataOf(PartitionState& state, const Expr& data) {
  const Buffer* own = state.expressions.FindBuffer(data);
  return ChannelsLastData(state, data, own == nullptr ? kFloat32 : own->dtype);
}

}  // namespace

WinogradBlocks::WinogradBlocks(PartitionState& state, const ConvolutionGeometry& conv, const PlainConvolution& sizes,
                               const WinogradPlan& plan, int num_slots)
    : tiles(conv, sizes, plan.tile),
      rows(plan.rows),
      block(std::min(plan.block, RoundUp(tiles.count, plan.rows))),
      channel_parts(plan.channel_parts),
      channels_in(conv.data[1]),
      channels_out(conv.result[1]),
      lanes(state.emitter.lanes()),
      width(PanelWidth(state, kFloat32)),
      panels((channels_out + width - 1) / width),
      are_in_pairs(sizes.in_bfloat16),
      depth(are_in_pairs ? (channels_in + 1) / 2 : channels_in),
      slots(num_slots) {}

WinogradMemory::WinogradMemory(PartitionState& state, const CallNode& call, const WinogradBlocks& blocks,
                               const PlainConvolution& sizes, const Tensor& weights) {
  const WinogradTiles& tiles = blocks.tiles;
  const auto [slots, lanes] = std::pair(blocks.slots, blocks.lanes);
  data = DataOf(state, call.args()[0]);
  taps = PackTaps(state, blocks, sizes.num_taps(), weights);
  const int64_t channels = RoundUp(blocks.channels_in, lanes);
  spectrum = AddBlock(state, blocks, SpreadRow(blocks.are_in_pairs ? channels / 2 : channels));
  if (blocks.are_in_pairs) bf16_view = AsBFloat16(spectrum);
  products = AddBlock(state, blocks, SpreadRow(blocks.panels * blocks.width));
  zeros = state.AddConstant(Tensor::Zeros({channels}, kFloat32));
  pixels = state.AddWorkspace({slots, tiles.side[0], tiles.side[1], tiles.side[2]}, Layout::kPlain, kInt64);
  partial = state.AddWorkspace({slots, tiles.tile[tiles.down], tiles.side[tiles.across], lanes}, Layout::kPlain);
  const auto [through, down, across] =
      std::tuple(tiles.side[tiles.through], tiles.side[tiles.down], tiles.side[tiles.across]);
  planes = state.AddWorkspace({slots, through, down, across, lanes}, Layout::kPlain);
}

Value ReadVector(Emitter& e, const Buffer& buffer, const I64s& at) {
  return {e.VectorAt(e.Address(buffer, Bases(at)), /*masked=*/false).name()};
}

void WriteVector(Emitter& e, const Buffer& buffer, const I64s& at, const Value& value) {
  e.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", value.name,
                     e.Address(buffer, Bases(at)), e.FloatVector()));
}

void WriteSpectrum(Emitter& e, const WinogradMemory& memory, const I64s& at, const Value& value) {
  if (memory.bf16_view.shape.empty()) return WriteVector(e, memory.spectrum, at, value);
  const std::string type = fmt::format("vector<{}xbf16>", e.lanes());
  const Vector rounded{e.Def(fmt::format("arith.truncf {} : {} to {}", value.name, e.FloatVector(), type))};
  e.Line(fmt::format("llvm.store {}, {} {{alignment = 2 : i64}} : {}, !llvm.ptr", rounded,
                     e.Address(memory.bf16_view, Bases(at)), type));
}

void ForEachBelow(Emitter& e, int64_t count, const std::function<void(const I64&)>& body) {
  if (count == 1) return body(e.Int(0));
  e.For(e.Int(0), e.Int(count), 1, body);
}

}  // namespace collage::native
