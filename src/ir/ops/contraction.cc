// contraction.cc: matrix products. References accumulate in double, in loops that compilers vectorise, since every
// candidate is compared with them.
#include "ir/ops/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "runtime/dispatch.h"
#include "support/clones.h"

namespace collage {

void Store(std::span<const double> sums, const Tensor& output, int64_t offset) {
  if (output.dtype() == kFloat32) {
    float* y = output.data<float>() + offset;
    for (size_t i = 0; i < sums.size(); ++i) y[i] = static_cast<float>(sums[i]);
    return;
  }
  DispatchType(output.dtype(), [&]<typename T>() {
    T* y = output.data<T>() + offset;
    for (size_t i = 0; i < sums.size(); ++i) y[i] = FromDouble<T>(sums[i]);
  });
}

DataType OutDType(const OpCall& call, DataType data) {
  const std::string& name = call.attrs.String("out_dtype");
  return name.empty() ? data : DataType::FromString(name);
}

void CheckSameDType(const OpCall& call) {
  if (TensorArg(call, 0).dtype() != TensorArg(call, 1).dtype()) {
    throw RelationFailure{
        fmt::format("expects equal dtypes, got {} and {}", ToString(call.args[0]), ToString(call.args[1]))};
  }
}

namespace {

constexpr int64_t kTileRows = 4;
/// sums [4, 16] = four rows of a, each [K], x panel [K, 16], in strips of two registers: their sums stay in registers,
/// also where there are sixteen.
template <int lanes>
__attribute__((always_inline)) inline void MultiplyTileOf(const std::array<const float*, kTileRows>& rows,
                                                          const float* panel, int64_t k, double* sums) {
  using Floats = typename Lanes<float, lanes>::Of;
  using Doubles = typename Lanes<double, lanes>::Of;
  for (int64_t column = 0; column < kPanelColumns; column += 2 * lanes) {
    Doubles tile[kTileRows][2] = {};
    for (int64_t i = 0; i < k; ++i) {
      Floats x[2];
      std::memcpy(x, panel + i * kPanelColumns + column, sizeof x);
      const auto x0 = __builtin_convertvector(x[0], Doubles);
      const auto x1 = __builtin_convertvector(x[1], Doubles);
      for (size_t r = 0; r < kTileRows; ++r) {
        const double factor = rows[r][i];
        tile[r][0] += factor * x0;
        tile[r][1] += factor * x1;
      }
    }
    for (size_t r = 0; r < kTileRows; ++r) {
      std::memcpy(sums + static_cast<int64_t>(r) * kPanelColumns + column, tile[r], sizeof tile[r]);
    }
  }
}

using TileProduct = void(const std::array<const float*, kTileRows>&, const float*, int64_t, double*);
COLLAGE_CLONES void MultiplyTile8(const std::array<const float*, kTileRows>& rows, const float* panel, int64_t k,
                                  double* sums) {
  MultiplyTileOf<8>(rows, panel, k, sums);
}
COLLAGE_CLONES void MultiplyTile4(const std::array<const float*, kTileRows>& rows, const float* panel, int64_t k,
                                  double* sums) {
  MultiplyTileOf<4>(rows, panel, k, sums);
}
COLLAGE_CLONES void MultiplyTile2(const std::array<const float*, kTileRows>& rows, const float* panel, int64_t k,
                                  double* sums) {
  MultiplyTileOf<2>(rows, panel, k, sums);
}

TileProduct* TileProductHere() {
  const int bytes = RegisterBytes();
  return bytes == 64 ? MultiplyTile8 : bytes == 32 ? MultiplyTile4 : MultiplyTile2;
}

}  // namespace

void MultiplyPanel(const float* a, int64_t m, int64_t k, const float* panel, int64_t columns, const Tensor& output,
                   int64_t offset, int64_t row_stride) {
  static TileProduct* const multiply_tile = TileProductHere();
  std::array<double, kTileRows * kPanelColumns> sums;
  for (int64_t row = 0; row < m; row += kTileRows) {
    std::array<const float*, kTileRows> rows;  // beyond the last row, the last once more
    for (int64_t r = 0; r < kTileRows; ++r) rows[r] = a + std::min(row + r, m - 1) * k;
    multiply_tile(rows, panel, k, sums.data());
    for (int64_t r = 0; r < std::min(kTileRows, m - row); ++r) {
      Store({sums.data() + r * kPanelColumns, static_cast<size_t>(columns)}, output, offset + (row + r) * row_stride);
    }
  }
}

namespace {

/// c [M, N] = a [M, K] x b, which is [N, K] when `is_turned`, else [K, N]; parallel over columns.
void MultiplyRows(const float* a, const float* b, bool is_turned, int64_t m, int64_t k, int64_t n, const Tensor& output,
                  int64_t offset) {
  InParallel((n + kPanelColumns - 1) / kPanelColumns, [&](int64_t begin, int64_t end) {
    std::vector<float> panel(static_cast<size_t>(k * kPanelColumns));
    for (int64_t column = begin * kPanelColumns; column < std::min(end * kPanelColumns, n); column += kPanelColumns) {
      const int64_t columns = std::min(kPanelColumns, n - column);
      for (int64_t i = 0; i < k; ++i) {
        float* row = panel.data() + i * kPanelColumns;
        if (is_turned) {
          for (int64_t c = 0; c < columns; ++c) row[c] = b[(column + c) * k + i];
        } else {
          std::copy_n(b + i * n + column, columns, row);
        }
      }
      MultiplyPanel(a, m, k, panel.data(), columns, output, offset + column, n);
    }
  });
}

Type MatmulRelation(const OpCall& call, bool transpose_a, bool transpose_b) {
  CheckSameDType(call);
  const TensorTypeNode& a = TensorArg(call, 0);
  const TensorTypeNode& b = TensorArg(call, 1, a.rank());
  const auto rank = static_cast<size_t>(a.rank());
  const Dim m = a.shape()[transpose_a ? rank - 1 : rank - 2];
  const Dim ka = a.shape()[transpose_a ? rank - 2 : rank - 1];
  const Dim kb = b.shape()[transpose_b ? rank - 1 : rank - 2];
  const Dim n = b.shape()[transpose_b ? rank - 2 : rank - 1];
  if (!ka.is_any() && !kb.is_any() && ka != kb) {
    throw RelationFailure{fmt::format("cannot multiply {} and {}", ToString(call.args[0]), ToString(call.args[1]))};
  }
  if (rank == 2) return TensorType(std::vector<Dim>{m, n}, OutDType(call, a.dtype()));
  const std::vector<Dim> batch = BroadcastShapes({a.shape()[0]}, {b.shape()[0]});
  return TensorType(std::vector<Dim>{batch[0], m, n}, OutDType(call, a.dtype()));
}

void MatmulReference(std::span<const Tensor> inputs, std::span<Tensor> outputs, bool transpose_a, bool transpose_b) {
  Tensor a = inputs[0].Cast(kFloat32);
  Tensor b = inputs[1].Cast(kFloat32);
  const auto with_batch = [](const Tensor& t) {
    return t.rank() == 3 ? t : t.Reshaped({1, t.shape()[0], t.shape()[1]});
  };
  a = with_batch(a);
  b = with_batch(b);
  const Tensor out = with_batch(outputs[0]);
  const int64_t m = out.shape()[1];
  const int64_t k = a.shape()[transpose_a ? 1 : 2];
  const int64_t n = out.shape()[2];
  if (transpose_a) {
    const Tensor rows = Tensor::Empty({a.shape()[0], m, k}, kFloat32);
    CopyStrided(a, {k * m, 1, m}, rows);
    a = rows;
  }
  const auto matrix = [](const Tensor& t, int64_t index) {
    return t.data<float>() + (t.shape()[0] == 1 ? 0 : index * t.shape()[1] * t.shape()[2]);
  };
  for (int64_t batch = 0; batch < out.shape()[0]; ++batch) {
    MultiplyRows(matrix(a, batch), matrix(b, batch), transpose_b, m, k, n, outputs[0], batch * m * n);
  }
}

double ProductMultiplyAdds(const OpCall& call, bool transpose_a, bool transpose_b) {
  const Shape a = AsTensorType(call.args[0])->static_shape();
  const Shape b = AsTensorType(call.args[1])->static_shape();
  const auto size = [](const Shape& shape, bool last) {
    return static_cast<double>(shape[shape.size() - (last ? 1 : 2)]);
  };
  const double batch = a.size() == 3 ? static_cast<double>(std::max(a[0], b[0])) : 1;
  return batch * size(a, transpose_a) * size(a, !transpose_a) * size(b, !transpose_b);
}

OpDef Dense() {
  OpDef op;
  op.name = "nn.dense";
  op.equal_dims = ProductDims(false, true);
  op.keeps_rows = RowsOfFirst;
  op.doc = "data [M, K] times the transpose of weight [N, K].";
  op.args = {"data", "weight"};
  op.attrs = {{"units", AttrKind::kInt, {}, "N; None: from the weight"},
              {"out_dtype", AttrKind::kDType, "", "dtype of the result; empty: the data's"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([](const OpCall& call) {
    TensorArg(call, 0, 2);
    return MatmulRelation(call, false, true);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    MatmulReference(inputs, outputs, false, true);
  };
  op.multiply_adds = [](const OpCall& call) { return ProductMultiplyAdds(call, false, true); };
  op.examples = {{{F32({1, 64}), F32({10, 64})}, {}},
                 {{F32({33, 47}), F32({65, 47})}, {}},
                 {{F32({16, 128}), F32({64, 128})}, {}}};
  return op;
}

OpDef Matmul(std::string name, int rank, std::string doc, std::vector<std::string> args) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = std::move(args);
  op.attrs = {{"transpose_a", AttrKind::kBool, false, "whether the left matrix is stored transposed"},
              {"transpose_b", AttrKind::kBool, false, "whether the right matrix is stored transposed"},
              {"out_dtype", AttrKind::kDType, "", "dtype of the result; empty: the data's"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.equal_dims = MatmulDims;
  if (rank == 2) {
    op.keeps_rows = [](const OpCall& call, const Type& result) {
      return RowsOfFirst(call, result) && !call.attrs.Bool("transpose_a");
    };
  }
  op.relation = Relation([rank](const OpCall& call) {
    TensorArg(call, 0, rank);
    return MatmulRelation(call, call.attrs.Bool("transpose_a"), call.attrs.Bool("transpose_b"));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    MatmulReference(inputs, outputs, attrs.Bool("transpose_a"), attrs.Bool("transpose_b"));
  };
  op.multiply_adds = [](const OpCall& call) {
    return ProductMultiplyAdds(call, call.attrs.Bool("transpose_a"), call.attrs.Bool("transpose_b"));
  };
  if (rank == 3) {
    op.examples = {{{F32({3, 17, 9}), F32({3, 9, 21})}, {}},
                   {{F32({3, 16, 32}), F32({3, 24, 32})}, {{"transpose_b", true}}},
                   {{F32({3, 5, 9}), F32({1, 9, 6})}, {}}};
  } else {
    op.examples = {{{F32({17, 9}), F32({9, 21})}, {}}, {{F32({17, 9}), F32({21, 9})}, {{"transpose_b", true}}}};
  }
  return op;
}

}  // namespace

void AddContractionOps(std::vector<OpDef>& rows) {
  rows.push_back(Dense());
  rows.push_back(Matmul("nn.matmul", 2, "Product of two matrices.", {"tensor_a", "tensor_b"}));
  rows.push_back(
      Matmul("nn.batch_matmul", 3, "Products of a batch of matrices; a batch of 1 is broadcast.", {"x", "y"}));
}

}  // namespace collage
