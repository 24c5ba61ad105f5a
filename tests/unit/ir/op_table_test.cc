// What holds for every row of the op table, whatever the operator.
#include <gtest/gtest.h>

#include <set>

#include "collage/ir/op.h"
#include "collage/support/error.h"
#include "ir/ops/random/random.h"

namespace collage {
namespace {

TEST(OpTableTest, EveryRowIsDocumentedAndComplete) {
  EXPECT_GT(AllOps().size(), 190u);
  for (const Op& op : AllOps()) {
    const OpDef& row = op->def();
    SCOPED_TRACE(row.name);
    EXPECT_FALSE(row.doc.empty());
    EXPECT_TRUE(row.relation);
    EXPECT_NE(static_cast<bool>(row.reference), DrawsNumbers(row));
    std::set<std::string> names;
    for (const AttrField& field : row.attrs) {
      SCOPED_TRACE(field.name);
      EXPECT_FALSE(field.doc.empty());
      EXPECT_TRUE(names.insert(field.name).second);
    }
    for (const ForeignAttr& foreign : row.foreign_attrs) EXPECT_TRUE(names.insert(foreign.name).second) << foreign.name;
  }
}

TEST(OpTableTest, DefaultsFitTheirFields) {
  for (const Op& op : AllOps()) {
    OpDef row = op->def();
    Attrs defaults;
    for (AttrField& field : row.attrs) {
      if (field.required) {
        field.required = false;
      } else {
        defaults.Set(field.name, field.default_value);
      }
    }
    EXPECT_NO_THROW(CompleteAttrs(row, defaults)) << row.name;
  }
}

/// Fusion kinds as Relay has them, where one would guess otherwise.
TEST(OpTableTest, FusionKindsAreRelays) {
  const std::vector<std::pair<char, std::vector<const char*>>> kinds{
      {'A',
       {"nn.softmax", "nn.log_softmax", "nn.batch_norm", "nn.max_pool2d", "nn.avg_pool1d", "nn.global_avg_pool2d",
        "one_hot", "nn.batch_matmul", "nn.dense", "nn.conv1d", "nn.conv2d", "nn.conv3d"}},
      {'B', {"nn.bias_add", "where", "expand_dims", "tile", "repeat", "nn.prelu"}},
      {'E', {"nn.relu", "nn.leaky_relu", "clip", "cast", "full"}},
      {'I',
       {"reshape", "transpose", "concatenate", "split", "nn.pad", "nn.batch_flatten", "take", "gather", "strided_slice",
        "image.resize2d"}},
      {'O',
       {"nn.dropout", "nn.lrn", "cumsum", "arange", "shape_of", "scatter_elements", "scatter_nd", "unique", "argwhere",
        "topk", "sort", "argsort", "vision.all_class_non_max_suppression"}},
      {'R', {"sum", "mean", "max", "argmax"}}};
  for (const auto& [kind, names] : kinds) {
    for (const char* name : names) EXPECT_EQ(KindLetter(GetOp(name)->def().pattern), kind) << name;
  }
}

/// Whether every value of `narrow` is one of `wide`: equal but for sizes that `wide` leaves open.
bool Covers(const Type& wide, const Type& narrow) {
  if (const TupleTypeNode* tuple = AsTupleType(wide)) {
    const TupleTypeNode* other = AsTupleType(narrow);
    if (other == nullptr || other->fields().size() != tuple->fields().size()) return false;
    for (size_t i = 0; i < tuple->fields().size(); ++i) {
      if (!Covers(tuple->fields()[i], other->fields()[i])) return false;
    }
    return true;
  }
  const TensorTypeNode* a = AsTensorType(wide);
  const TensorTypeNode* b = AsTensorType(narrow);
  if (a == nullptr || b == nullptr || a->rank() != b->rank() || a->dtype() != b->dtype()) return false;
  for (int d = 0; d < a->rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    if (!a->shape()[at].is_any() && a->shape()[at] != b->shape()[at]) return false;
  }
  return true;
}

/// The tensor types inside `args`, of which `open` chooses dimensions to become `?`.
template <typename Open>
Type Opened(const Type& type, int* tensor, const Open& open) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields()) fields.push_back(Opened(field, tensor, open));
    return TupleType(std::move(fields));
  }
  std::vector<Dim> shape = AsTensorType(type)->shape();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (open(*tensor, d)) shape[d] = Dim::Any();
  }
  ++*tensor;
  return TensorType(std::move(shape), AsTensorType(type)->dtype());
}

TEST(OpTableTest, TheWorkOfEveryExampleIsKnown) {
  size_t count = 0;
  for (const Op& op : AllOps()) {
    const OpDef& row = op->def();
    if (!row.multiply_adds) continue;
    for (const OpExample& example : row.examples) {
      const Attrs attrs = CompleteAttrs(row, example.attrs);
      EXPECT_NO_THROW(EXPECT_GT(row.multiply_adds({example.args, attrs}), 0) << row.name) << row.name;
      ++count;
    }
  }
  EXPECT_GT(count, 30u);
}

/// Type relations are the shape functions, too: on types with `?` they must not say what the real sizes contradict, and
/// on the real sizes they say all.
TEST(OpTableTest, RelationsTakeSizesThatAreNotKnown) {
  std::set<std::string> declines;
  for (const Op& op : AllOps()) {
    const OpDef& row = op->def();
    for (const OpExample& example : row.examples) {
      const Attrs attrs = CompleteAttrs(row, example.attrs);
      const Result<Type> known = row.relation({example.args, attrs});
      ASSERT_TRUE(known) << row.name;
      const auto check = [&](const auto& open, const std::string& what) {
        std::vector<Type> args;
        int tensor = 0;
        for (const Type& type : example.args) args.push_back(Opened(type, &tensor, open));
        try {
          const Result<Type> result = row.relation({args, attrs});
          if (!result) {
            declines.insert(row.name);
          } else {
            EXPECT_TRUE(Covers(*result, *known))
                << row.name << " with " << what << " open: " << ToString(*result) << " for " << ToString(*known);
          }
        } catch (const Error& error) {
          ADD_FAILURE() << row.name << " with " << what << " open: " << error.Format();
        }
      };
      for (int t = 0; t < 4; ++t) {
        for (size_t d = 0; d < 4; ++d) {
          check([&](int tensor, size_t dim) { return tensor == t && dim == d; },
                "dimension " + std::to_string(d) + " of tensor " + std::to_string(t));
        }
      }
      check([](int, size_t) { return true; }, "everything");
      check([](int tensor, size_t dim) { return tensor == 0 && dim == 0; }, "the batch");
    }
  }
  std::string names;
  for (const std::string& name : declines) names += name + " ";
  // These refuse, with a reason; the others take any of their sizes as unknown.
  EXPECT_EQ(names, "gather_nd image.grid_sample linalg.det nn.depth_to_space nn.space_to_depth scatter_nd ");
}

TEST(OpTableTest, SlicesAndPartsHaveLimits) {
  const Type data = TensorType(std::vector<Dim>{Dim::Any(), 4}, kFloat32);
  const auto reason = [&](const char* op, const Type& type, Attrs attrs) {
    const OpDef& row = GetOp(op)->def();
    attrs = CompleteAttrs(row, std::move(attrs));
    const std::vector<Type> args{type};
    const Result<Type> result = row.relation({args, attrs});
    return result ? ToString(*result) : result.reason().text;
  };
  using V = std::vector<int64_t>;
  EXPECT_EQ(reason("strided_slice", data, {{"begin", V{1, 1}}, {"end", V{3, 3}}}), "Tensor[(?, 2), float32]");
  EXPECT_EQ(reason("strided_slice", data, {{"begin", V{1, 1}}, {"end", V{3, 3}}, {"axes", V{1}}}),
            "begin, end and axes differ in length");
  EXPECT_EQ(reason("strided_slice", data, {{"begin", V{1}}, {"end", V{3, 3}}}), "begin, end and axes differ in length");
  EXPECT_EQ(reason("strided_slice", data, {{"begin", V{0, 0, 0}}, {"end", V{1, 1, 1}}}),
            "begin has more entries than the data dimensions");
  EXPECT_EQ(reason("split", data, {{"indices_or_sections", 2}}), "(Tensor[(?, 4), float32], Tensor[(?, 4), float32])");
  EXPECT_EQ(reason("split", data, {{"indices_or_sections", 1000000000}}), "cannot split into 1000000000 equal parts");
  EXPECT_EQ(reason("split", TensorType(Shape{0}, kFloat32), {{"indices_or_sections", 1000000000}}),
            "cannot split 0 into 1000000000 equal parts");
}

}  // namespace
}  // namespace collage
