// build.cc: operations, partitions, and what they leave for each other.
#include "backends/onednn_graph/graph/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collage/support/error.h"

namespace collage::onednn_graph {
namespace {

namespace graph = dnnl::graph;
using Attr = graph::op::attr;
using Kind = graph::op::kind;

constexpr size_t kAlignment = 64;
constexpr const char* kEnd = "End";

const std::map<std::string, Kind, std::less<>> kKinds{
    {"Abs", Kind::Abs},
    {"Add", Kind::Add},
    {"AvgPool", Kind::AvgPool},
    {"Clamp", Kind::Clamp},
    {"Concat", Kind::Concat},
    {"ConvTranspose", Kind::ConvTranspose},
    {"Convolution", Kind::Convolution},
    {"Dequantize", Kind::Dequantize},
    {"Divide", Kind::Divide},
    {kEnd, Kind::End},
    {"Exp", Kind::Exp},
    {"LayerNorm", Kind::LayerNorm},
    {"LeakyReLU", Kind::LeakyReLU},
    {"Log", Kind::Log},
    {"LogSoftmax", Kind::LogSoftmax},
    {"MatMul", Kind::MatMul},
    {"MaxPool", Kind::MaxPool},
    {"Maximum", Kind::Maximum},
    {"Minimum", Kind::Minimum},
    {"Multiply", Kind::Multiply},
    {"PReLU", Kind::PReLU},
    {"Quantize", Kind::Quantize},
    {"ReLU", Kind::ReLU},
    {"ReduceMax", Kind::ReduceMax},
    {"ReduceMean", Kind::ReduceMean},
    {"ReduceMin", Kind::ReduceMin},
    {"ReduceProd", Kind::ReduceProd},
    {"ReduceSum", Kind::ReduceSum},
    {"Round", Kind::Round},
    {"Sigmoid", Kind::Sigmoid},
    {"SoftMax", Kind::SoftMax},
    {"Sqrt", Kind::Sqrt},
    {"StaticReshape", Kind::StaticReshape},
    {"StaticTranspose", Kind::StaticTranspose},
    {"Subtract", Kind::Subtract},
    {"Tanh", Kind::Tanh},
    {"TypeCast", Kind::TypeCast},
    {kView, Kind::Wildcard},
    {"Wildcard", Kind::Wildcard},
};

/// How an attribute's value is given.
enum class AttrForm : uint8_t { kInt, kInts, kFloat, kFloats, kBool, kText };
struct AttrRow {
  Attr attr;
  AttrForm form;
};

const std::map<std::string, AttrRow, std::less<>> kAttrs{
    {"alpha", {Attr::alpha, AttrForm::kFloat}},
    {"axes", {Attr::axes, AttrForm::kInts}},
    {"axis", {Attr::axis, AttrForm::kInt}},
    {"begin_norm_axis", {Attr::begin_norm_axis, AttrForm::kInt}},
    {"data_format", {Attr::data_format, AttrForm::kText}},
    {"dilations", {Attr::dilations, AttrForm::kInts}},
    {"epsilon", {Attr::epsilon, AttrForm::kFloat}},
    {"exclude_pad", {Attr::exclude_pad, AttrForm::kBool}},
    {"groups", {Attr::groups, AttrForm::kInt}},
    {"keep_dims", {Attr::keep_dims, AttrForm::kBool}},
    {"keep_stats", {Attr::keep_stats, AttrForm::kBool}},
    {"kernel", {Attr::kernel, AttrForm::kInts}},
    {"max", {Attr::max, AttrForm::kFloat}},
    {"min", {Attr::min, AttrForm::kFloat}},
    {"order", {Attr::order, AttrForm::kInts}},
    {"output_padding", {Attr::output_padding, AttrForm::kInts}},
    {"pads_begin", {Attr::pads_begin, AttrForm::kInts}},
    {"pads_end", {Attr::pads_end, AttrForm::kInts}},
    {"per_channel_broadcast", {Attr::per_channel_broadcast, AttrForm::kBool}},
    {"qtype", {Attr::qtype, AttrForm::kText}},
    {"rounding_type", {Attr::rounding_type, AttrForm::kText}},
    {"scales", {Attr::scales, AttrForm::kFloats}},
    {"shape", {Attr::shape, AttrForm::kInts}},
    {"special_zero", {Attr::special_zero, AttrForm::kBool}},
    {"strides", {Attr::strides, AttrForm::kInts}},
    {"transpose_a", {Attr::transpose_a, AttrForm::kBool}},
    {"transpose_b", {Attr::transpose_b, AttrForm::kBool}},
    {"use_affine", {Attr::use_affine, AttrForm::kBool}},
    {"weights_format", {Attr::weights_format, AttrForm::kText}},
    {"zps", {Attr::zps, AttrForm::kInts}},
};

template <typename Row>
const Row& RowOf(const std::map<std::string, Row, std::less<>>& rows, const std::string& name) {
  const auto row = rows.find(name);
  if (row == rows.end()) throw Error(ErrorCategory::kCorrupt, "oneDNN's graphs have no '" + name + "'");
  return row->second;
}

void SetAttr(graph::op& op, const std::string& name, const nlohmann::json& value) {
  const AttrRow& row = RowOf(kAttrs, name);
  switch (row.form) {
    case AttrForm::kInt: op.set_attr<int64_t>(row.attr, value.get<int64_t>()); break;
    case AttrForm::kInts: op.set_attr<std::vector<int64_t>>(row.attr, value.get<std::vector<int64_t>>()); break;
    case AttrForm::kFloat: op.set_attr<float>(row.attr, value.get<float>()); break;
    case AttrForm::kFloats: op.set_attr<std::vector<float>>(row.attr, value.get<std::vector<float>>()); break;
    case AttrForm::kBool: op.set_attr<bool>(row.attr, value.get<bool>()); break;
    case AttrForm::kText: op.set_attr<std::string>(row.attr, value.get<std::string>()); break;
  }
}

LogicalTensor::data_type TypeOf(DataType dtype) {
  using Type = LogicalTensor::data_type;
  if (dtype == kFloat32) return Type::f32;
  if (dtype == kFloat16) return Type::f16;
  if (dtype == kBFloat16) return Type::bf16;
  if (dtype == kInt32) return Type::s32;
  if (dtype == kInt8) return Type::s8;
  if (dtype == kUInt8) return Type::u8;
  return Type::undef;
}

/// As it lies in memory: dense, with the channels innermost where its layout says so.
LogicalTensor Strided(const GraphSpec& spec, int number) {
  const GraphTensor& tensor = spec.tensors[static_cast<size_t>(number)];
  const size_t rank = tensor.shape.size();
  std::vector<size_t> order;  // of dimensions, the innermost first
  if (tensor.layout == Layout::kChannelsLast) order.push_back(1);
  for (size_t i = rank; i-- > 0;) {
    if (tensor.layout != Layout::kChannelsLast || i != 1) order.push_back(i);
  }
  LogicalTensor::dims strides(rank);
  int64_t stride = 1;
  for (size_t i : order) {
    strides[i] = stride;
    stride *= tensor.shape[i];
  }
  using Property = LogicalTensor::property_type;
  const Property property = tensor.constant >= 0 ? Property::constant : Property::variable;
  return {static_cast<size_t>(number), TypeOf(tensor.dtype), tensor.shape, strides, property};
}

/// The library may choose the format.
LogicalTensor Any(const GraphSpec& spec, int number) {
  const GraphTensor& tensor = spec.tensors[static_cast<size_t>(number)];
  return {static_cast<size_t>(number), TypeOf(tensor.dtype), tensor.shape, LogicalTensor::layout_type::any,
          LogicalTensor::property_type::variable};
}

std::vector<graph::partition> PartitionsOf(const GraphSpec& spec) {
  graph::graph whole(dnnl::engine::kind::cpu);
  for (size_t i = 0; i < spec.ops.size(); ++i) {
    const GraphOp& from = spec.ops[i];
    graph::op op(i, RowOf(kKinds, from.kind), fmt::format("{}_{}", from.kind, i));
    for (const auto& [name, value] : from.attrs.items()) SetAttr(op, name, value);
    for (int input : from.inputs) op.add_input(Strided(spec, input));
    for (int output : from.outputs) op.add_output(Strided(spec, output));
    whole.add_op(op);
  }
  whole.finalize();
  return whole.get_partitions(graph::partition::policy::fusion);
}

/// Its operations, but for marks of ends and views.
std::vector<int> OpsOf(const GraphSpec& spec, const graph::partition& partition) {
  std::vector<int> ops;
  for (size_t op : partition.get_ops()) {
    const std::string& kind = spec.ops.at(op).kind;
    if (kind != kEnd && kind != kView) ops.push_back(static_cast<int>(op));
  }
  std::ranges::sort(ops);
  return ops;
}

std::string KindsOf(const GraphSpec& spec, const std::vector<int>& ops) {
  std::string kinds;
  for (int op : ops) kinds += (kinds.empty() ? "" : "+") + spec.ops[static_cast<size_t>(op)].kind;
  return kinds;
}

bool IsGiven(const GraphTensor& tensor) { return tensor.input >= 0 || tensor.constant >= 0; }

class PartCompiler {
 public:
  explicit PartCompiler(const GraphSpec& spec) : spec_(spec), results_(spec.outputs.begin(), spec.outputs.end()) {
    for (const GraphOp& op : spec_.ops) {
      if (op.kind != kView) continue;
      built_.viewed[op.outputs.at(0)] = op.inputs.at(0);
      dense_.insert(op.inputs.at(0));
    }
    dense_.insert(results_.begin(), results_.end());
  }

  Built CompileAll() {
    std::vector<graph::partition> waiting = PartitionsOf(spec_);
    std::erase_if(waiting, [&](const graph::partition& one) { return OpsOf(spec_, one).empty(); });
    while (!waiting.empty()) {
      const auto next = std::ranges::find_if(waiting, [&](const graph::partition& one) { return IsReady(one); });
      if (next == waiting.end()) throw Error(ErrorCategory::kUnavailable, "oneDNN's partitions depend on each other");
      Compile(*next);
      waiting.erase(next);
    }
    return std::move(built_);
  }

 private:
  bool IsReady(const graph::partition& partition) const {
    const std::vector<LogicalTensor> ports = partition.get_input_ports();
    return std::ranges::all_of(ports, [&](const LogicalTensor& port) {
      const int root = built_.RootOf(static_cast<int>(port.get_id()));
      return IsGiven(spec_.tensors[static_cast<size_t>(root)]) || built_.tensors.contains(root);
    });
  }

  void Compile(const graph::partition& partition) {
    const std::vector<int> ops = OpsOf(spec_, partition);
    const std::string kinds = KindsOf(spec_, ops);
    if (!partition.is_supported()) {
      throw Error(ErrorCategory::kUnavailable, fmt::format("oneDNN's graphs compute no {} like this", kinds));
    }
    CompiledPart part{.compiled = {}, .inputs = {}, .outputs = {}, .kinds = kinds};
    std::vector<LogicalTensor> inputs, outputs;
    for (const LogicalTensor& port : partition.get_input_ports()) {
      const auto number = static_cast<int>(port.get_id());
      part.inputs.push_back(number);
      inputs.push_back(built_.tensors.try_emplace(number, Strided(spec_, number)).first->second);
    }
    for (const LogicalTensor& port : partition.get_output_ports()) {
      const auto number = static_cast<int>(port.get_id());
      part.outputs.push_back(number);
      outputs.push_back(dense_.contains(number) ? Strided(spec_, number) : Any(spec_, number));
    }
    part.compiled = partition.compile(inputs, outputs, Engine());
    for (int number : part.outputs) {
      const LogicalTensor found = part.compiled.query_logical_tensor(static_cast<size_t>(number));
      built_.tensors.insert_or_assign(number, found);
      if (results_.contains(number)) continue;
      built_.offsets[number] = built_.workspace_bytes;
      built_.workspace_bytes += (found.get_mem_size() + kAlignment - 1) / kAlignment * kAlignment;
    }
    built_.parts.push_back(std::move(part));
  }

  const GraphSpec& spec_;
  std::set<int> results_;
  std::set<int> dense_;  ///< results, and what is viewed: not in a format that the library chooses
  Built built_;
};

}  // namespace

std::vector<std::vector<int>> FindPartitions(const GraphSpec& spec) {
  std::vector<std::vector<int>> found;
  for (const graph::partition& partition : PartitionsOf(spec)) {
    if (!partition.is_supported()) continue;
    std::vector<int> ops = OpsOf(spec, partition);
    if (!ops.empty()) found.push_back(std::move(ops));
  }
  return found;
}

int Built::RootOf(int tensor) const {
  for (auto view = viewed.find(tensor); view != viewed.end(); view = viewed.find(tensor)) tensor = view->second;
  return tensor;
}

Built Build(const GraphSpec& spec) { return PartCompiler(spec).CompileAll(); }

}  // namespace collage::onednn_graph
