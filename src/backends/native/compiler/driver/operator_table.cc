// operator_table.cc: the rows of operator_rows.inc, as the compiler needs them.
#include "backends/native/compiler/driver/operator_table.h"

#include <cmath>
#include <string>

#include "backends/native/compiler/contraction/matrix_product.h"
#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/inline_ops/inline_ops.h"
#include "backends/native/compiler/kernels/concatenate.h"
#include "backends/native/compiler/kernels/determinant.h"
#include "backends/native/compiler/kernels/nms.h"
#include "backends/native/compiler/kernels/recurrent.h"
#include "backends/native/compiler/kernels/scatter.h"
#include "backends/native/compiler/kernels/sort.h"
#include "backends/native/compiler/nbits/nbits_product.h"
#include "backends/native/compiler/reduction/normalisation.h"
#include "backends/native/compiler/reduction/pool.h"
#include "backends/native/compiler/reduction/reduction.h"
#include "backends/native/operators.h"

namespace collage::native {
namespace {

using namespace inline_ops;

RowsByName<OperatorRow> MakeTable() {
  RowsByName<OperatorRow> table;
#define NATIVE_OPERATOR(names, takes, takes_dynamic, ...) AddRow(names, OperatorRow __VA_ARGS__, table);
#include "backends/native/operator_rows.inc"
#undef NATIVE_OPERATOR
  return table;
}

}  // namespace

const OperatorRow* FindOperator(std::string_view name) {
  static const RowsByName<OperatorRow> table = MakeTable();
  const auto row = table.find(name);
  return row == table.end() ? nullptr : &row->second;
}

const OperatorRow* FindStage(std::string_view name) {
  const OperatorRow* row = FindOperator(name);
  return row != nullptr && row->stage != nullptr ? row : nullptr;
}

const InPlaceFn* FindInPlace(std::string_view name) {
  const OperatorRow* row = FindOperator(name);
  return row != nullptr && row->in_place ? &row->in_place : nullptr;
}

FieldInPlaceFn FindFieldInPlace(std::string_view name) {
  const OperatorRow* row = FindOperator(name);
  return row == nullptr ? nullptr : row->field_in_place;
}

}  // namespace collage::native
