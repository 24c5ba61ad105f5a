// nbits_product.cc: the loops of products with weights of few bits. Few rows are multiplied by numbers that are taken
// out in registers, block by block; for many, a panel is written out as floats first, and stays in the cache while all
// rows pass.
#include "backends/native/compiler/nbits/nbits_product.h"

#include <algorithm>
#include <utility>

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/nbits/nbits_data.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// Stores the sums of `count` rows from `row` times all of `panel`: vector v of row t is element t * vectors + v.
void StoreSums(PartitionState& state, const NBitsWeights& weights, const StageOutput& output, const Vectors& sums,
               const I64& row, int64_t count, const I64& panel) {
  Emitter& e = state.emitter;
  const int64_t vectors = weights.vectors();
  for (int64_t v = 0; v < vectors; ++v) {
    const I64 channel = e.Plus(e.MulInt(panel, weights.width()), v * e.lanes());
    const auto store = [&] {
      for (int64_t t = 0; t < count; ++t) {
        const Indices at{{e.Plus(row, t), 0}, {channel, 1, {}, e.lanes()}};
        StoreResult(state, output, at, {sums[static_cast<size_t>(t * vectors + v)].name(), ElementKind::kFloat});
      }
    };
    if (weights.channels() % weights.width() == 0) {
      store();
    } else {
      e.MaskedBefore(channel, e.Int(weights.channels()), store);
    }
  }
}

/// Sums of a few rows times a panel, block by block: within a block numbers are multiplied without their scales.
class NBitsTile {
 public:
  NBitsTile(PartitionState& state, const NBitsWeights& weights, const Buffer& rows, const ByteRows* bytes)
      : state_(state), e_(state.emitter), weights_(weights), rows_(rows), bytes_(bytes) {}

  /// Returns the sums of `count` rows from `row`, as StoreSums takes them.
  Vectors Emit(const I64& row, int64_t count, const I64& panel) {
    row_ = row;
    count_ = count;
    panel_ = panel;
    const Vectors start(static_cast<size_t>(count * weights_.vectors()), e_.Splat(0));
    return e_.ForCarrying(e_.Int(0), e_.Int(weights_.blocks()), start, e_.FloatVector(),
                          [&](const I64& block, const Vectors& totals) { return EmitBlock(block, totals); });
  }

 private:
  bool is_bytes() const { return bytes_ != nullptr; }
  std::string SumType() const { return is_bytes() ? fmt::format("vector<{}xi32>", e_.lanes()) : e_.FloatVector(); }

  Vectors EmitBlock(const I64& block, const Vectors& totals) {
    constexpr int64_t kBytesAhead = 4096;  // memory answers meanwhile, and the first cache keeps them
    constexpr int64_t kWordsAtOnce = 4;
    if (!state_.target.has_tensor_cores && weights_.panels() > 1) weights_.FetchAhead(panel_, block, kBytesAhead);
    zeros_.clear();
    for (int v = 0; v < weights_.vectors(); ++v) zeros_.push_back(weights_.Zeros(panel_, block, v));
    const int64_t words = weights_.words_per_block();
    const int64_t first = std::min(words, kWordsAtOnce);
    int64_t turn = first;
    while (words % turn != 0) --turn;
    const I64 begin = e_.MulInt(block, words);
    Vectors sums = Starts(block);
    const auto add = [&](const I64& word, Vectors so_far) {
      pairs_.assign(so_far.size(), Vector());
      for (int64_t i = 0; i < turn; ++i) so_far = AddWord(e_.Plus(word, i), std::move(so_far));
      for (size_t at = 0; at < so_far.size(); ++at) {
        if (!pairs_[at].is_none()) so_far[at] = Widened(pairs_[at], so_far[at]);
      }
      return so_far;
    };
    if (turn == words) {
      sums = add(begin, sums);
    } else {
      sums = e_.ForCarrying(e_.Int(0), e_.Int(words / turn), sums, SumType(), [&](const I64& i, const Vectors& so_far) {
        return add(e_.AddInt(begin, e_.MulInt(i, turn)), so_far);
      });
    }
    return Scaled(block, sums, totals);
  }

  /// Independent sums of a row and vector: the instructions of too few would wait for each other.
  int64_t Chains() const {
    constexpr int64_t kEnough = 8;
    int64_t chains = 1;
    while (!is_bytes() && chains * count_ * weights_.vectors() < kEnough && chains < 4) chains *= 2;
    return chains;
  }

  Vectors Starts(const I64& block) {
    const int64_t vectors = weights_.vectors();
    Vectors starts;
    for (int64_t t = 0; t < count_; ++t) {
      Vector start{e_.Def(fmt::format("arith.constant dense<{}> : {}", is_bytes() ? "0" : "0.0", SumType()))};
      if (is_bytes() && weights_.zero()) start = Vector{Broadcast(bytes_->starts, t, block, "i32", SumType())};
      starts.insert(starts.end(), static_cast<size_t>(vectors), start);
    }
    const Vectors once = starts;
    for (int64_t chain = 1; chain < Chains(); ++chain) starts.insert(starts.end(), once.begin(), once.end());
    return starts;
  }

  /// An element of [rows, …] in row `row` of the tile, in all lanes.
  std::string Broadcast(const Buffer& from, int64_t row, const I64& at, const char* element, const std::string& type) {
    const Ptr address = e_.Address(from, Bases({e_.Plus(row_, row), at}));
    const std::string one =
        e_.Def(fmt::format("llvm.load {} {{alignment = {} : i64}} : !llvm.ptr -> {}", address, 4, element));
    return e_.Def(fmt::format("vector.broadcast {} : {} to {}", one, element, type));
  }

  Vectors AddWord(const I64& word, Vectors sums) {
    Vectors words;
    for (int v = 0; v < weights_.vectors(); ++v) words.push_back(weights_.Words(panel_, word, v));
    const I64 k = e_.MulInt(word, weights_.per_word());
    return is_bytes() ? AddBytes(words, k, std::move(sums)) : AddFloats(words, k, std::move(sums));
  }

  Vectors AddFloats(const Vectors& words, const I64& k, Vectors sums) {
    const auto vectors = static_cast<size_t>(weights_.vectors());
    for (int64_t position = 0; position < weights_.per_word(); ++position) {
      const auto chain = static_cast<size_t>(position % Chains() * count_) * vectors;
      Vectors numbers;
      for (size_t v = 0; v < vectors; ++v) numbers.push_back(weights_.Numbers(words[v], position, zeros_[v]));
      for (int64_t t = 0; t < count_; ++t) {
        const std::string data = Broadcast(rows_, t, e_.Plus(k, position), "f32", SumType());
        for (size_t v = 0; v < vectors; ++v) {
          Vector& sum = sums[chain + static_cast<size_t>(t) * vectors + v];
          sum = Vector{e_.Def(fmt::format("math.fma {}, {}, {} : {}", data, numbers[v], sum, SumType()))};
        }
      }
    }
    return sums;
  }

  Vectors AddBytes(const Vectors& words, const I64& k, Vectors sums) {
    constexpr int64_t kBytes = 4;  // of a word
    const auto vectors = static_cast<size_t>(weights_.vectors());
    for (int64_t group = 0; group < weights_.per_word() / kBytes; ++group) {
      Vectors numbers;
      for (size_t v = 0; v < vectors; ++v) numbers.push_back(weights_.Bytes(words[v], group));
      for (int64_t t = 0; t < count_; ++t) {
        const Vector data{Broadcast(bytes_->bytes, t, e_.Plus(k, group * kBytes), "i32", SumType())};
        for (size_t v = 0; v < vectors; ++v) {
          const size_t at = static_cast<size_t>(t) * vectors + v;
          AddProducts(numbers[v], data, pairs_[at], sums[at]);
        }
      }
    }
    return sums;
  }

  /// Adds products of bytes to `sum`. Instructions that add two of them in 16 bits add those of numbers of up to 4 bits
  /// to `pairs`, which hold the few words that are taken at once.
  void AddProducts(const Vector& numbers, const Vector& data, Vector& pairs, Vector& sum) {
    if (state_.target.has_byte_products) {
      sum = AddIntegerProducts(e_, DotKind::kBytes, /*has_vnni=*/true, numbers, data, sum);
      return;
    }
    if (weights_.byte_offset() != 0) {  // two products fill 16 bits
      const auto [sizes, turned] = SignsMoved(e_, numbers, data);
      sum = Widened(BytePairs(e_, sizes, turned), sum);
      return;
    }
    const Vector more = BytePairs(e_, numbers, data);
    pairs = pairs.is_none()
                ? more
                : Vector{e_.Def(fmt::format("arith.addi {}, {} : vector<{}xi16>", pairs, more, 2 * e_.lanes()))};
  }

  /// `sum` and both halves of each word of `pairs`.
  Vector Widened(const Vector& pairs, const Vector& sum) {
    const std::string type = fmt::format("vector<{}xi16>", 2 * e_.lanes());
    const auto as_words = [&](const std::string& value) {
      return Vector{e_.Def(fmt::format("vector.bitcast {} : {} to {}", value, type, SumType()))};
    };
    const Vector ones = as_words(e_.Def(fmt::format("arith.constant dense<1> : {}", type)));
    return AddIntegerProducts(e_, DotKind::kInt16, /*has_vnni=*/false, as_words(pairs.name()), ones, sum);
  }

  /// `totals` and a block's sums times its scales.
  Vectors Scaled(const I64& block, Vectors sums, const Vectors& totals) {
    const auto tile = totals.size();
    for (size_t i = tile; i < sums.size(); ++i) {
      sums[i % tile] = Vector{e_.Def(fmt::format("arith.addf {}, {} : {}", sums[i % tile], sums[i], SumType()))};
    }
    const auto vectors = static_cast<size_t>(weights_.vectors());
    Vectors scales;
    for (size_t v = 0; v < vectors; ++v) scales.push_back(weights_.Scales(panel_, block, static_cast<int>(v)));
    Vectors next;
    const std::string& type = e_.FloatVector();
    for (int64_t t = 0; t < count_; ++t) {
      const std::string step = is_bytes() ? Broadcast(bytes_->steps, t, block, "f32", type) : "";
      for (size_t v = 0; v < vectors; ++v) {
        const size_t i = static_cast<size_t>(t) * vectors + v;
        std::string scale = scales[v].name(), sum = sums[i].name();
        if (is_bytes()) {
          scale = e_.Def(fmt::format("arith.mulf {}, {} : {}", scale, step, type));
          sum = LessZeros(e_.Def(fmt::format("arith.sitofp {} : {} to {}", sum, SumType(), type)), t, block, v);
        }
        next.emplace_back(e_.Def(fmt::format("math.fma {}, {}, {} : {}", sum, scale, totals[i], type)));
      }
    }
    return next;
  }

  /// A sum of bytes times numbers that had no zero point subtracted, less the zero points times the sum of the bytes.
  std::string LessZeros(const std::string& sum, int64_t row, const I64& block, size_t vector) {
    if (weights_.zero()) return sum;
    const std::string& type = e_.FloatVector();
    const std::string whole = Broadcast(bytes_->starts, row, block, "i32", SumType());
    const std::string bytes = e_.Def(fmt::format("arith.sitofp {} : {} to {}", whole, SumType(), type));
    std::string zeros = zeros_[vector].name();
    if (weights_.byte_offset() != 0) {
      const Vector offset = e_.Splat(static_cast<double>(weights_.byte_offset()));
      zeros = e_.Def(fmt::format("arith.subf {}, {} : {}", zeros, offset, type));
    }
    const std::string product = e_.Def(fmt::format("arith.mulf {}, {} : {}", bytes, zeros, type));
    return e_.Def(fmt::format("arith.subf {}, {} : {}", sum, product, type));
  }

  PartitionState& state_;
  Emitter& e_;
  const NBitsWeights& weights_;
  const Buffer& rows_;
  const ByteRows* bytes_;  ///< null: data are floats
  // The tile that is being written:
  I64 row_, panel_;
  int64_t count_ = 0;
  Vectors zeros_;
  Vectors pairs_;  ///< for each sum, its products that are still in 16 bits
};

/// A product in panels that are written out as floats, for any number of rows.
class WrittenPanels {
 public:
  WrittenPanels(PartitionState& state, const NBitsWeights& weights, const Buffer& rows, const StageOutput& output)
      : state_(state), e_(state.emitter), weights_(weights), output_(output) {
    form_.rows = rows.shape[0];
    form_.channels = weights.channels();
    form_.inner = {weights.depth()};
    form_.row_stride = rows.strides[0];
    form_.a_address = [this, rows](const I64s&, const I64& row, const I64s& k) {
      return e_.Address(rows, Bases({row, k[0]}));
    };
    form_.b_address = [this](const I64s&, const I64&, const I64s& k) {
      return e_.ElementAt(panel_, e_.MulInt(k[0], weights_.width()), "f32");
    };
  }

  /// Writes, in the function of a stage, all rows times `panel`.
  void Emit(const I64& panel) {
    panel_ = e_.Scratch(weights_.depth() * weights_.width() * static_cast<int64_t>(sizeof(float)));
    e_.For(e_.Int(0), e_.Int(weights_.blocks()), 1, [&](const I64& block) { WriteBlock(panel, block); });
    ForTiles(e_, e_.Int(0), e_.Int(form_.rows), MostTileRows(state_, kFloat32),
             [&](const I64& row, int64_t count) { EmitTile(row, count, panel); });
  }

 private:
  void WriteBlock(const I64& panel, const I64& block) {
    const auto vectors = static_cast<int>(weights_.vectors());
    Vectors scales, zeros;
    for (int v = 0; v < vectors; ++v) {
      scales.push_back(weights_.Scales(panel, block, v));
      zeros.push_back(weights_.Zeros(panel, block, v));
    }
    const I64 first = e_.MulInt(block, weights_.words_per_block());
    e_.For(e_.Int(0), e_.Int(weights_.words_per_block()), 1, [&](const I64& i) {
      const I64 word = e_.AddInt(first, i);
      const Ptr to = e_.ElementAt(panel_, e_.MulInt(word, weights_.per_word() * weights_.width()), "f32");
      for (int v = 0; v < vectors; ++v) {
        const Vector words = weights_.Words(panel, word, v);
        const auto of = static_cast<size_t>(v);
        for (int64_t position = 0; position < weights_.per_word(); ++position) {
          const Vector number = weights_.Numbers(words, position, zeros[of]);
          const std::string weight =
              e_.Def(fmt::format("arith.mulf {}, {} : {}", number, scales[of], e_.FloatVector()));
          e_.StoreAt(e_.ElementAt(to, position * weights_.width() + v * e_.lanes(), "f32"),
                     {weight, ElementKind::kFloat}, kFloat32);
        }
      }
    });
  }

  void EmitTile(const I64& row, int64_t count, const I64& panel) {
    const auto vectors = static_cast<int>(weights_.vectors());
    const Vectors sums = EmitRegisterTile(state_, form_, {}, row, count, panel, vectors, weights_.width());
    StoreSums(state_, weights_, output_, sums, row, count, panel);
  }

  PartitionState& state_;
  Emitter& e_;
  const NBitsWeights& weights_;
  const StageOutput& output_;
  Contraction form_;
  Ptr panel_;  ///< float32 [depth, width]
};

/// Runs `body` for each panel.
void ForPanels(PartitionState& state, const NBitsWeights& weights, double rows,
               const std::function<void(const I64& panel)>& body) {
  Emitter& e = state.emitter;
  const double flops = 2 * rows * static_cast<double>(weights.channels() * weights.depth());
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) { e.For(begin, end, 1, body); });
  e.Call(name, weights.panels(), state.IsParallel(flops));
}

// Sums and totals of more rows do not fit into the registers.
constexpr int64_t kMostRows = 6;

/// Tiles of `rows` rows by numbers that are taken out in registers.
void EmitBlockTiles(PartitionState& state, const NBitsWeights& weights, const Buffer& rows, const ByteRows* bytes,
                    const StageOutput& output) {
  Emitter& e = state.emitter;
  const int64_t count = rows.shape[0];
  const int64_t most = e.native_lanes() >= 16 ? kMostRows : 2;
  const int64_t tile = std::min(count, most);
  ForPanels(state, weights, static_cast<double>(count), [&](const I64& panel) {
    NBitsTile block(state, weights, rows, bytes);
    const auto emit = [&](const I64& row, int64_t height) {
      StoreSums(state, weights, output, block.Emit(row, height, panel), row, height, panel);
    };
    const int64_t whole = count / tile * tile;
    e.For(e.Int(0), e.Int(whole), tile, [&](const I64& row) { emit(row, tile); });
    if (whole < count) emit(e.Int(whole), count - whole);
  });
}

}  // namespace

void EmitNBitsProduct(PartitionState& state, const CallNode& call, const StageOutput& output) {
  const NBitsWeights weights(state, call);
  const Buffer rows = FloatRows(state, call.args()[0], weights);
  if (rows.shape[0] * weights.channels() == 0) return;
  if (state.options.rounds_data) {
    const ByteRows bytes = RoundToBytes(state, rows, weights);
    ++state.num_narrow;
    return EmitBlockTiles(state, weights, rows, &bytes, output);
  }
  // A GPU's warps have no cache of their own that a panel would stay in.
  if (rows.shape[0] <= 2 * kMostRows || state.target.has_tensor_cores) {
    return EmitBlockTiles(state, weights, rows, nullptr, output);
  }
  WrittenPanels panels(state, weights, rows, output);
  ForPanels(state, weights, static_cast<double>(rows.shape[0]), [&](const I64& panel) { panels.Emit(panel); });
}

void EmitDynamicNBitsProduct(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const Buffer* rows = state.expressions.FindBuffer(call.args()[0]);
  if (rows == nullptr) throw Error(ErrorCategory::kUnsupported, "a product of what is not in memory");
  const NBitsWeights weights(state, call);
  WrittenPanels panels(state, weights, *rows, output);
  constexpr double kManyRows = 16;
  constexpr int64_t kFewRows = 3;
  ForPanels(state, weights, kManyRows, [&](const I64& panel) {
    const I64 count = e.Int(rows->shape[0]);
    e.If(e.IntCompare("sle", count, e.Int(kFewRows)), [&] {
      NBitsTile tile(state, weights, *rows, nullptr);
      e.For(e.Int(0), count, 1,
            [&](const I64& row) { StoreSums(state, weights, output, tile.Emit(row, 1, panel), row, 1, panel); });
    });
    e.If(e.IntCompare("sgt", count, e.Int(kFewRows)), [&] { panels.Emit(panel); });
  });
}

}  // namespace collage::native
