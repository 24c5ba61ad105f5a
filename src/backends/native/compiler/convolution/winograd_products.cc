// winograd_products.cc: spectrum x taps -> products, one matrix product for each position within a tile.
#include "backends/native/compiler/convolution/winograd_steps.h"

namespace collage::native {

I64 FirstPanel(Emitter& e, const WinogradBlocks& blocks, const I64& part) {
  if (blocks.channel_parts == 1) return e.MulInt(part, blocks.panels);
  return e.IntOp("divui", e.MulInt(part, blocks.panels), e.Int(blocks.channel_parts));
}

Contraction WinogradProducts::Form() {
  Contraction form;
  form.outer = {blocks_.tiles.positions};
  form.rows = blocks_.block;
  form.channels = blocks_.channels_out;
  if (form.channels >= blocks_.width) form.panel_vectors = blocks_.width / blocks_.lanes;
  form.factors = blocks_.are_in_pairs ? DotKind::kBFloat16 : DotKind::kOne;
  form.inner = {blocks_.depth};
  form.row_stride = memory_.spectrum.strides[2];
  form.a_address = [this](const I64s& outer, const I64& row, const I64s& k) {
    return e_.Address(memory_.spectrum, Bases({slot_, outer[0], row, k[0]}));
  };
  form.b_address = [this](const I64s& outer, const I64& panel, const I64s& k) {
    return e_.Address(memory_.taps, Bases({outer[0], panel, k[0], e_.Int(0)}));
  };
  return form;
}

void WinogradProducts::Emit(const I64& count, const I64& part) {
  const int64_t whole = blocks_.channels_out / blocks_.width;  // panels
  const int64_t rest = (blocks_.channels_out % blocks_.width + blocks_.lanes - 1) / blocks_.lanes;
  // Rows of the last register tile beyond the block's tiles hold whatever was there, and so do their products.
  const I64 register_tiles = e_.IntOp("divui", e_.Plus(count, blocks_.rows - 1), e_.Int(blocks_.rows));
  const I64 from = FirstPanel(e_, blocks_, part);
  const I64 to = FirstPanel(e_, blocks_, e_.Plus(part, 1));
  e_.For(e_.Int(0), e_.Int(blocks_.tiles.positions), 1, [&](const I64& position) {
    if (whole > 0) {
      e_.For(from, e_.IntOp("minsi", to, e_.Int(whole)), 1,
             [&](const I64& panel) { EmitPanel(register_tiles, position, panel, blocks_.width / blocks_.lanes); });
    }
    if (rest > 0) {
      e_.If(e_.IntCompare("eq", to, e_.Int(blocks_.panels)),
            [&] { EmitPanel(register_tiles, position, e_.Int(whole), rest); });
    }
  });
}

void WinogradProducts::EmitPanel(const I64& register_tiles, const I64& position, const I64& panel,
                                 int64_t num_vectors) {
  const int64_t lanes = blocks_.lanes;
  e_.For(e_.Int(0), register_tiles, 1, [&](const I64& register_tile) {
    const I64 row = e_.MulInt(register_tile, blocks_.rows);
    const Vectors sums = EmitRegisterTile(state_, form_, {position}, row, blocks_.rows, panel,
                                          static_cast<int>(num_vectors), num_vectors * lanes);
    for (int64_t t = 0; t < blocks_.rows; ++t) {
      for (int64_t v = 0; v < num_vectors; ++v) {
        WriteVector(e_, memory_.products,
                    {slot_, position, e_.Plus(row, t), e_.Plus(e_.MulInt(panel, blocks_.width), v * lanes)},
                    {sums[static_cast<size_t>(t * num_vectors + v)].name()});
      }
    }
  });
}

}  // namespace collage::native
