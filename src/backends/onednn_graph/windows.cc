// windows.cc: convolutions and pools.
#include "backends/onednn_graph/translations.h"
#include "ir/ops/relations.h"

namespace collage::onednn_graph {
namespace {

using nlohmann::json;

void RequireChannelsFirst(const Call& call, const char* attribute, std::string_view order) {
  const std::string given = call->attrs().StringOr(attribute, "");
  if (!given.empty() && !given.starts_with(order)) throw Refusal{"takes channels on axis 1 only, got " + given};
}

json WindowAttrs(const Call& call) {
  const Attrs& attrs = call->attrs();
  const int rank = static_cast<int>(ShapeOf(call).size()) - 2;
  const Padding padding = SpatialPadding(attrs, rank);
  return {{"strides", PerDimension(attrs.Ints("strides"), rank)},
          {"dilations", PerDimension(attrs.Ints("dilation"), rank)},
          {"pads_begin", padding.before},
          {"pads_end", padding.after},
          {"data_format", "NCX"}};
}

void AddPool(Builder& graph, const Call& call, const char* kind, json attrs) {
  const DataType dtype = RequireFloats(call);
  const Shape shape = ShapeOf(call);
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), {graph.Shaped(call->args()[0])}, shape, dtype), shape});
}

}  // namespace

void Convolution(Builder& graph, const Call& call, const char* kind) {
  const DataType dtype = RequireFloats(call);
  const bool is_transposed = call->op()->name.ends_with("_transpose");
  const Shape result = ShapeOf(call);
  RequireChannelsFirst(call, "data_layout", "NC");
  RequireChannelsFirst(call, "kernel_layout", is_transposed ? "IO" : "OI");
  json attrs = WindowAttrs(call);
  attrs["groups"] = call->attrs().Int("groups");
  attrs["weights_format"] = is_transposed ? "IOX" : "OIX";
  if (is_transposed) {
    if (call->attrs().Int("groups") != 1) throw Refusal{"has transposed convolutions of one group only"};
    attrs["output_padding"] = PerDimension(call->attrs().Ints("output_padding"), static_cast<int>(result.size()) - 2);
  }
  const std::vector<int> inputs{graph.Shaped(call->args()[0]), graph.Shaped(call->args()[1])};
  graph.Set(call, Value{graph.Add(call, kind, std::move(attrs), inputs, result, dtype), result});
}

void Pool(Builder& graph, const Call& call, const char* kind) {
  RequireChannelsFirst(call, "layout", "NC");
  const Shape from = ShapeOf(call->args()[0]), to = ShapeOf(call);
  const bool is_max = call->op()->name.starts_with("nn.max");
  json attrs = WindowAttrs(call);
  const std::vector<int64_t> kernel = PerDimension(call->attrs().Ints("pool_size"), static_cast<int>(to.size()) - 2);
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t reach = attrs["dilations"][d].get<int64_t>() * (kernel[d] - 1) + 1;
    const int64_t padded = from[d + 2] + attrs["pads_begin"][d].get<int64_t>() + attrs["pads_end"][d].get<int64_t>();
    const int64_t whole = (padded - reach) / attrs["strides"][d].get<int64_t>() + 1;
    if (whole != to[d + 2]) throw Refusal{"has no windows that hang over the end"};
    if (!is_max && attrs["dilations"][d] != 1) throw Refusal{"has no averages of windows with gaps"};
  }
  attrs["kernel"] = kernel;
  attrs["rounding_type"] = "floor";
  if (!is_max) {
    attrs.erase("dilations");
    attrs["exclude_pad"] = !call->attrs().Bool("count_include_pad");
  }
  AddPool(graph, call, kind, std::move(attrs));
}

void GlobalPool(Builder& graph, const Call& call, const char* kind) {
  RequireChannelsFirst(call, "layout", "NC");
  const Shape from = ShapeOf(call->args()[0]);
  const std::vector<int64_t> kernel(from.begin() + 2, from.end());
  const std::vector<int64_t> zeros(kernel.size(), 0);
  const bool is_max = call->op()->name.starts_with("nn.global_max");
  json attrs{{"kernel", kernel},     {"strides", std::vector<int64_t>(kernel.size(), 1)},
             {"pads_begin", zeros},  {"pads_end", zeros},
             {"data_format", "NCX"}, {"rounding_type", "floor"}};
  if (!is_max) attrs["exclude_pad"] = false;
  AddPool(graph, call, kind, std::move(attrs));
}

}  // namespace collage::onednn_graph
