// recurrent_sums.cc: units of `lanes` neurons multiply the last output with their rows of the recurrence, which is
// packed so that all gates of a unit lie together. The gates are computed from the sums in registers.
#include "backends/native/compiler/kernels/recurrent_sums.h"

#include <algorithm>

#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {
namespace {

using Values = std::vector<Value>;

/// Fewer multiplications a step than this are not worth a second thread.
constexpr double kParallelStepFlops = 300e3;

}  // namespace

Value PreviousOutput(Emitter& e, const RecurrentMemory& memory, const RecurrentPlace& at) {
  return e.Load(memory.h, {{at.from, 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron});
}

void RecurrentSums::Emit(const RecurrentPass& pass) {
  const int64_t lanes = e_.lanes();
  const int64_t whole = layer_.hidden / lanes;
  if (whole > 0) EmitBlocks(pass, 0, whole, 0);
  if (layer_.hidden % lanes != 0) EmitBlocks(pass, whole, 1, layer_.hidden % lanes);
}

void RecurrentSums::EmitBlocks(const RecurrentPass& pass, int64_t first, int64_t blocks, int64_t rest) {
  const int64_t hidden = layer_.hidden;
  const double flops = 2.0 * static_cast<double>(at_once_ * layer_.batch * hidden * hidden * pass.count);
  const std::string name = state_.NextStageName();
  e_.Function(name, [&](const I64& begin, const I64& end) {
    const I64 step = e_.LoadInt(memory_.counter, {e_.Int(0)});
    const I1 is_odd = e_.IntCompare("ne", e_.IntOp("andi", step, e_.Int(1)), e_.Int(0));
    e_.For(begin, end, 1, [&](const I64& unit) {
      const I64s parts = Delinearise(e_, unit, {at_once_, blocks});
      // Every other step goes backwards: what the last one read at its end is still in the cache.
      const I64 mirrored = e_.IntOp("subi", e_.Int(blocks - 1), parts[1]);
      const I64 number = e_.Plus(e_.SelectInt(is_odd, mirrored, parts[1]), first);
      EmitBlock(pass, {.step = step, .direction = e_.Plus(parts[0], first_direction_), .number = number, .rest = rest});
    });
  });
  e_.Call(name, at_once_ * blocks, state_.num_threads > 1 && flops > kParallelStepFlops);
}

void RecurrentSums::EmitBlock(const RecurrentPass& pass, const Block& block) {
  const int64_t batch = layer_.batch;
  const int64_t most = std::max<int64_t>(24 / pass.count, 1);
  const int64_t tiles = (batch + most - 1) / most;
  const int64_t rows = tiles == 0 ? 1 : (batch + tiles - 1) / tiles;
  const int64_t whole = batch / rows * rows;
  if (whole > 0) {
    e_.For(e_.Int(0), e_.Int(whole), rows, [&](const I64& first) { EmitRows(pass, block, {first, rows}); });
  }
  if (whole < batch) EmitRows(pass, block, {e_.Int(whole), batch - whole});
}

void RecurrentSums::EmitRows(const RecurrentPass& pass, const Block& block, const Rows& rows) {
  const I64 one = e_.Int(1);
  const I64 from = e_.IntOp("andi", block.step, one);
  const I64 to = e_.IntOp("xori", from, one);
  const Values sums = Multiply(pass, block, rows, pass.source.shape[0] == 2 ? from : e_.Int(0));
  const auto finish_rows = [&] {
    for (int64_t r = 0; r < rows.count; ++r) {
      RecurrentPlace at = PlaceOf(block, e_.Plus(rows.first, r));
      at.from = from;
      at.to = to;
      Finish(pass, at, {sums.begin() + r * pass.count, sums.begin() + (r + 1) * pass.count});
    }
  };
  if (block.rest == 0) return finish_rows();
  e_.MaskedRest(block.rest, [&](const I64&) { finish_rows(); });
}

std::vector<Value> RecurrentSums::Multiply(const RecurrentPass& pass, const Block& block, const Rows& rows,
                                           const I64& half) {
  const int64_t count = pass.count;
  // Few accumulators: several k apart.
  int64_t chains = 1;
  while (rows.count * count * chains < 8 && layer_.hidden % (chains * 2) == 0) chains *= 2;
  const auto total = static_cast<size_t>(rows.count * count);
  const Values start(total * static_cast<size_t>(chains), m_.Number(0, ElementKind::kFloat));
  const auto multiply = [&](const I64& turn, const Values& carried) {
    Values next;
    for (int64_t chain = 0; chain < chains; ++chain) {
      const I64 k = e_.Plus(e_.MulInt(turn, chains), chain);
      Values weights;
      for (int64_t g = 0; g < count; ++g) {
        const Ptr address = e_.Address(pass.packed, Bases({block.direction, block.number, k, e_.Int(g), e_.Int(0)}));
        weights.push_back({e_.VectorAt(address, /*masked=*/false).name()});
      }
      for (int64_t r = 0; r < rows.count; ++r) {
        const I64s at{half, block.direction, e_.Plus(rows.first, r), k};
        const Value h{e_.Broadcast(e_.LoadScalar(pass.source, at)).name()};
        for (int64_t g = 0; g < count; ++g) {
          next.push_back(m_.FusedMultiplyAdd(h, weights[static_cast<size_t>(g)], carried[next.size()]));
        }
      }
    }
    return next;
  };
  Values sums = e_.ForValues(e_.Int(0), e_.Int(layer_.hidden / chains), start, multiply);
  for (size_t i = total; i < sums.size(); ++i) sums[i % total] = m_.Add(sums[i % total], sums[i]);
  return sums;
}

void RecurrentSums::Finish(const RecurrentPass& pass, const RecurrentPlace& at, const Values& sums) {
  if (at.is_running.is_none()) return pass.finish(at, sums);
  e_.If(at.is_running, [&] { pass.finish(at, sums); });
  const I1 has_ended = e_.Not(at.is_running);
  e_.If(has_ended, [&] {
    e_.Store(memory_.h, {{at.to, 0}, {at.direction, 0}, {at.sequence, 0}, at.neuron}, PreviousOutput(e_, memory_, at));
  });
}

RecurrentPlace RecurrentSums::PlaceOf(const Block& block, const I64& sequence) {
  RecurrentPlace at;
  at.direction = block.direction;
  at.sequence = sequence;
  at.neuron = {e_.MulInt(block.number, e_.lanes()), 1, {}, e_.lanes()};
  I64 length = e_.Int(layer_.steps);
  if (layer_.lengths != nullptr) {
    const Value own = state_.expressions.At(layer_.lengths, {{sequence, 0}});
    const I64 given = e_.FirstLane(own);
    length = e_.IntOp("minsi", given, length);
    at.is_running = e_.IntCompare("slt", block.step, length);
  }
  // Backward: the second direction, or the only one of a reverse layer.
  const I64 mirrored = e_.IntOp("subi", e_.Plus(length, -1), block.step);
  I64 time = block.step;
  if (layer_.directions == 2) {
    const I1 is_second = e_.IntCompare("eq", block.direction, e_.Int(1));
    time = e_.SelectInt(is_second, mirrored, block.step);
  } else if (layer_.is_reverse) {
    time = mirrored;
  }
  if (layer_.batch_first) {
    at.share_row = e_.AddInt(e_.MulInt(sequence, layer_.steps), time);
    at.output = {{sequence, 0}, {time, 0}, {block.direction, 0}, at.neuron};
  } else {
    at.share_row = e_.AddInt(e_.MulInt(time, layer_.batch), sequence);
    at.output = {{time, 0}, {block.direction, 0}, {sequence, 0}, at.neuron};
  }
  return at;
}

}  // namespace collage::native
