// foreign.cc: attributes that TVM 0.18 writes and that nothing here needs: notes of its tuners, what the arguments say
// as well, choices of which one is implemented. Texts that have them are read all the same.
#include <algorithm>

#include "collage/support/error.h"
#include "ir/ops/families.h"

namespace collage {
namespace {

struct Row {
  std::vector<std::string> ops;
  std::vector<ForeignAttr> attrs;
};

std::vector<Row> Rows() {
  const AttrValue empty_text = "";
  const AttrValue empty_list = AttrValue::List{};
  const ForeignAttr no_dtype{"out_dtype", {empty_text}};
  return {
      {{"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense", "nn.matmul", "nn.batch_matmul", "qnn.conv2d", "qnn.dense",
        "qnn.batch_matmul"},
       {{"auto_scheduler_rewritten_layout", {empty_text}},
        {"meta_schedule_original_shape", {AttrValue(), empty_list}}}},
      {{"nn.matmul"}, {{"units", {}}}},
      {{"nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d", "nn.global_avg_pool1d",
        "nn.global_avg_pool2d", "nn.global_avg_pool3d"},
       {{"out_layout", {empty_text}}}},
      {{"strided_slice"}, {{"slice_mode", {"end"}}}},
      {{"dyn.strided_slice"}, {{"begin", {}}, {"end", {}}, {"strides", {}}, {"slice_mode", {"end"}}}},
      {{"arange"}, {{"start", {}}, {"stop", {}}, {"step", {}}}},
      {{"broadcast_to"}, {{"dtype", {}}}},
      {{"dyn.broadcast_to"}, {{"shape", {}}, {"dtype", {}}}},
      {{"dyn.full", "dyn.zeros", "dyn.ones"}, {{"shape", {}}}},
      {{"dyn.reshape"}, {{"newshape", {}}}},
      {{"dyn.tile"}, {{"reps", {}}}},
      {{"dyn.topk"}, {{"k", {}}}},
      {{"dyn.nn.pad"}, {{"pad_width", {}}}},
      {{"dyn.one_hot"}, {{"depth", {}}}},
      {{"dyn.squeeze"}, {{"axis", {}}}},
      {{"image.resize1d", "image.resize2d", "image.resize3d"}, {{"extrapolation_value", {0.0, 0}}, no_dtype}},
      {{"dyn.image.resize2d"}, {{"size", {}}, {"extrapolation_value", {0.0, 0}}, no_dtype}},
  };
}

}  // namespace

void AddForeignAttrs(std::vector<OpDef>& rows) {
  for (const Row& row : Rows()) {
    for (const std::string& name : row.ops) {
      const auto op = std::find_if(rows.begin(), rows.end(), [&](const OpDef& other) { return other.name == name; });
      COLLAGE_CHECK(op != rows.end()) << "there is no operator '" << name << "'";
      op->foreign_attrs.insert(op->foreign_attrs.end(), row.attrs.begin(), row.attrs.end());
    }
  }
}

}  // namespace collage
