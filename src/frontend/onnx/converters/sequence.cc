// sequence.cc: sequences of tensors and optional values. Their lengths, and whether there is a value, are known while a
// model is imported, so that what is left of an operator is at most a slice of its tensors.
#include <fmt/format.h>

#include <limits>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/values.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

const Results& Elements(NodeContext& node, size_t input = 0) { return *AsSequence(node.Input(input)); }

/// Input `input`, a place in a sequence of `length`, from the front; `end` more is a place, too.
int64_t Place(NodeContext& node, size_t input, int64_t length, int64_t end) {
  const int64_t place = node.ConstantInt(input);
  const int64_t most = length - 1 + end;
  if (place < -length || place > most)
    node.Invalid(fmt::format("place {} is out of range for a sequence of {}", place, length));
  return place < 0 ? place + length : place;
}

Results ConvertConstruct(NodeContext& node) { return {MakeSequence(node.inputs())}; }

Results ConvertEmpty(NodeContext&) { return {MakeSequence({})}; }

Results ConvertLength(NodeContext& node) { return {MakeScalar(static_cast<double>(Elements(node).size()), kInt64)}; }

/// An element that a run chooses, of elements that have one type.
Expr ChosenElement(NodeContext& node, const Results& elements) {
  Results rows;
  for (const Expr& element : elements) {
    if (!TypeEqual(element->checked_type(), elements[0]->checked_type()))
      node.Unsupported("a place that only a run knows, in a sequence of elements that differ in type");
    rows.push_back(node.Op("expand_dims", {element}, {{"axis", 0}}));
  }
  const Expr place = node.Reshape(node.Input(1), {});
  return node.Op("take", {Concatenate(node, std::move(rows), 0), place}, {{"axis", 0}});
}

Results ConvertAt(NodeContext& node) {
  const Results& elements = Elements(node);
  if (elements.empty()) node.Invalid("the sequence has no elements");
  if (!node.IsConstant(1)) return {ChosenElement(node, elements)};
  return {elements[static_cast<size_t>(Place(node, 1, static_cast<int64_t>(elements.size()), 0))]};
}

Results ConvertInsert(NodeContext& node) {
  Results elements = Elements(node);
  const auto length = static_cast<int64_t>(elements.size());
  const int64_t place = node.HasInput(2) ? Place(node, 2, length, 1) : length;
  elements.insert(elements.begin() + place, node.Input(1));
  return {MakeSequence(std::move(elements))};
}

Results ConvertErase(NodeContext& node) {
  Results elements = Elements(node);
  const auto length = static_cast<int64_t>(elements.size());
  if (length == 0) node.Invalid("the sequence has no elements");
  elements.erase(elements.begin() + (node.HasInput(1) ? Place(node, 1, length, 0) : length - 1));
  return {MakeSequence(std::move(elements))};
}

Results ConvertConcatFrom(NodeContext& node) {
  const Results& elements = Elements(node);
  if (elements.empty()) node.Invalid("the sequence has no elements");
  if (!node.HasAttr("axis")) node.Invalid("has no attribute 'axis'");
  const int rank = node.Rank(elements[0]);
  if (node.Int("new_axis", 0) == 0) return {Concatenate(node, elements, NormalAxis(node, node.Int("axis", 0), rank))};
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), rank + 1);
  Results rows;
  for (const Expr& element : elements) rows.push_back(node.Op("expand_dims", {element}, {{"axis", axis}}));
  return {Concatenate(node, std::move(rows), axis)};
}

/// The lengths of the parts that input `split` asks for: all the same but for the last one, or each by itself.
V PartLengths(NodeContext& node, int64_t length) {
  if (!node.HasInput(1)) return V(static_cast<size_t>(length), 1);
  const Tensor split = node.Constant(1);
  V lengths = split.ToInts();
  if (split.rank() == 0) {
    const int64_t part = lengths[0];
    if (part < 1) node.Invalid(fmt::format("parts of {} elements", part));
    lengths.assign(static_cast<size_t>(length / part), part);
    if (length % part > 0) lengths.push_back(length % part);
  }
  int64_t sum = 0;
  for (const int64_t part : lengths) {
    if (part < 0 || part > length - sum) node.Invalid(fmt::format("parts that are not those of {} elements", length));
    sum += part;
  }
  if (sum != length) node.Invalid(fmt::format("parts of {} elements, there are {}", sum, length));
  return lengths;
}

/// Whether the lengths of all parts are given, and the last one tells how long the data must be.
bool HasLastPart(NodeContext& node) {
  if (!node.IsConstant(1) || node.Rank(node.Input(1)) != 1) return false;
  const V lengths = node.ConstantInts(1);
  return !lengths.empty() && lengths.back() > 0;
}

/// Parts of lengths that are given, of data whose size is not known: a run checks that the last part is as long as it
/// is said to be.
Expr OpenParts(NodeContext& node, const Expr& data, int64_t axis) {
  const V lengths = node.ConstantInts(1);
  const int64_t most = std::numeric_limits<int32_t>::max();
  Results parts;
  int64_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t part = lengths[i];
    if (part < 0 || part > most || begin > most) node.Invalid(fmt::format("a part of {} elements", part));
    const bool is_last = i + 1 == lengths.size();
    const Expr slice = Slice(node, data, axis, begin, is_last ? std::numeric_limits<int64_t>::max() : begin + part);
    parts.push_back(node.WithSizeAlong(slice, node.SizesOf(slice), axis, part));
    begin += part;
  }
  return MakeSequence(std::move(parts));
}

Results ConvertSplitTo(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), node.Rank(data));
  const SymbolicSize size = node.SizesOf(data)[static_cast<size_t>(axis)];
  if (!size.is_known() && HasLastPart(node)) return {OpenParts(node, data, axis)};
  const int64_t length = node.Known(size, "how many elements are split");
  const bool keeps = node.HasInput(1) || node.Int("keepdims", 1) != 0;
  Results parts;
  int64_t begin = 0;
  for (const int64_t part : PartLengths(node, length)) {
    const Expr slice = Slice(node, data, axis, begin, begin + part);
    parts.push_back(keeps ? slice : node.Op("squeeze", {slice}, {{"axis", V{axis}}}));
    begin += part;
  }
  return {MakeSequence(std::move(parts))};
}

/// The graph for each element; sequences give it their elements, tensors themselves.
Results ConvertMap(NodeContext& node) {
  const size_t length = Elements(node).size();
  std::vector<Results> outputs(node.num_outputs());
  for (size_t i = 0; i < length; ++i) {
    Results inputs;
    for (const Expr& input : node.inputs()) {
      const Results* elements = AsSequence(input);
      if (elements != nullptr && elements->size() != length)
        node.Invalid(fmt::format("sequences of {} and of {} elements", length, elements->size()));
      inputs.push_back(elements == nullptr ? input : (*elements)[i]);
    }
    const Results results = node.ConvertSubgraph("body", inputs);
    if (results.size() != outputs.size())
      node.Invalid(fmt::format("the body has {} results, the node {}", results.size(), outputs.size()));
    for (size_t o = 0; o < outputs.size(); ++o) outputs[o].push_back(results[o]);
  }
  Results sequences;
  for (Results& elements : outputs) sequences.push_back(MakeSequence(std::move(elements)));
  return sequences;
}

// ---- optional values ----

Results ConvertOptional(NodeContext& node) { return {node.HasInput(0) ? node.Input(0) : AbsentValue()}; }

Results ConvertHasElement(NodeContext& node) {
  return {MakeScalar(node.HasInput(0) && !IsAbsent(node.Input(0)) ? 1 : 0, kBool)};
}

Results ConvertGetElement(NodeContext& node) {
  if (IsAbsent(node.Input(0))) node.Invalid("the optional value is not there");
  return {node.Input(0)};
}

}  // namespace

void AddSequenceConverters(OnnxConverters& converters) {
  converters.Add("SequenceConstruct", ConvertConstruct, "inputs+ -> output_sequence");
  converters.Add("SequenceEmpty", ConvertEmpty, "-> output");
  converters.Add("SequenceLength", ConvertLength, "input_sequence: sequence -> length");
  converters.Add("SequenceAt", ConvertAt, "input_sequence: sequence, position: int[0..1] -> tensor");
  converters.Add("SequenceInsert", ConvertInsert,
                 "input_sequence: sequence, tensor, position?: int[0..1] -> output_sequence");
  converters.Add("SequenceErase", ConvertErase, "input_sequence: sequence, position?: int[0..1] -> output_sequence");
  converters.Add("ConcatFromSequence", ConvertConcatFrom, "input_sequence: sequence -> concat_result");
  converters.Add("SplitToSequence", ConvertSplitTo, "input: [1..], split?: int[0..1] -> output_sequence");
  converters.Add("SequenceMap", ConvertMap, "input_sequence: sequence, additional_inputs*: value -> out_sequence+");
  converters.Add("Optional", ConvertOptional, "input?: value -> output");
  converters.Add("OptionalHasElement", ConvertHasElement, "input?: value -> output");
  converters.Add("OptionalGetElement", ConvertGetElement, "input: value -> output");
}

}  // namespace collage
