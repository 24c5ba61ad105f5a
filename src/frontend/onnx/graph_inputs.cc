// graph_inputs.cc: the inputs of a model, with the shapes, sizes and values that options give them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/values.h"
#include "runtime/npy.h"
#include "support/argument_text.h"

namespace collage {
namespace {

Expr GivenConstant(const onnx::ValueInfoProto& input, const Tensor& value) {
  const NarrowType* narrow = FindNarrowType(input.type().tensor_type().elem_type());
  if (narrow != nullptr && narrow->is_text) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("input '{}' has strings, which cannot be given by an array", input.name()), "",
                fmt::format("give them as text: --constant {}=TEXT", input.name()));
  }
  const std::optional<DataType> dtype = StorageDType(input.type().tensor_type().elem_type());
  if (dtype != value.dtype()) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has elements of type {}, the constant given for it of type {}", input.name(),
                            dtype ? dtype->ToString() : "?", value.dtype().ToString()));
  }
  return MakeConstant(value);
}

/// The size that the file gives; nothing for a symbolic size.
std::optional<int64_t> KnownDim(const onnx::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() > 0 ? std::optional<int64_t>(dim.dim_value()) : std::nullopt;
}

/// "batch, 3, ?".
std::string DimsText(const onnx::TensorShapeProto& shape) {
  std::string text;
  for (const auto& dim : shape.dim()) {
    const std::optional<int64_t> known = KnownDim(dim);
    text += (text.empty() ? "" : ", ") + (known                     ? std::to_string(*known)
                                          : dim.dim_param().empty() ? "?"
                                                                    : dim.dim_param());
  }
  return text;
}

/// Numbers or strings separated by commas, or a file, as the input's type has them.
Expr ReadConstant(const onnx::ValueInfoProto& input, const std::string& text, StringNumbers& strings) {
  const std::string where = fmt::format("{}={}", input.name(), text);
  const auto& type = input.type().tensor_type();
  const NarrowType* narrow = FindNarrowType(type.elem_type());
  const bool is_text = narrow != nullptr && narrow->is_text;
  if (text.ends_with(".npy") || text.ends_with(".pb")) {
    const StoredArray array = ReadArray(text, strings);
    if (array.is_text && !is_text)
      throw Error(ErrorCategory::kInput, "strings are given for an input of numbers", where);
    return array.is_text ? Expr(MakeConstant(array.tensor)) : GivenConstant(input, array.tensor);
  }
  const std::optional<DataType> dtype = StorageDType(type.elem_type());
  if (!dtype) throw Error(ErrorCategory::kUnsupported, "an input of this type has no constants", where);
  std::vector<double> numbers;
  for (const std::string& part : SplitCommas(text))
    numbers.push_back(is_text ? static_cast<double>(strings.Add(part)) : ParseNumber(part));
  const auto count = static_cast<int64_t>(numbers.size());
  const Shape shape = type.shape().dim_size() == 0 && count == 1 ? Shape() : Shape{count};
  if (type.has_shape() && type.shape().dim_size() != static_cast<int>(shape.size())) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has shape [{}], {} number{} given", input.name(), DimsText(type.shape()), count,
                            count == 1 ? " is" : "s are"),
                where, "give a file, NAME=FILE.npy");
  }
  const Tensor tensor = Tensor::Empty(shape, *dtype);
  for (int64_t i = 0; i < count; ++i) tensor.Set(i, numbers[static_cast<size_t>(i)]);
  return MakeConstant(tensor);
}

/// "x[0]".
std::string PlaceText(const onnx::ValueInfoProto& input, int axis) { return fmt::format("{}[{}]", input.name(), axis); }

Var TypedVar(const std::string& name, std::vector<Dim> shape, DataType dtype, const std::string& where) {
  Shape sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.is_any() ? 1 : dim.size());
  if (!CheckedBytes(sizes, dtype)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has shape {}, which no tensor can have", name, ToString(sizes)), where);
  }
  Var var = MakeVar(name, TensorType(std::move(shape), dtype));
  var->set_checked_type(var->type_annotation());
  return var;
}

}  // namespace

bool OnnxGraph::IsGiven(const std::string& name) const {
  return options_.shapes.contains(name) || options_.constants.contains(name) || options_.constant_texts.contains(name);
}

std::optional<size_t> OnnxGraph::GivenLength(const std::string& name) const {
  const auto given = options_.lengths.find(name);
  if (given != options_.lengths.end()) return static_cast<size_t>(given->second);
  size_t length = 0;
  while (IsGiven(ElementName(name, length))) ++length;
  return length > 0 ? std::optional(length) : std::nullopt;
}

void OnnxGraph::ListTensors(const onnx::ValueInfoProto& input, std::vector<const onnx::ValueInfoProto*>& tensors) {
  const std::string& name = input.name();
  const bool is_optional = input.type().has_optional_type();
  const onnx::TypeProto& type = is_optional ? input.type().optional_type().elem_type() : input.type();
  if (!type.has_sequence_type() && !is_optional) return tensors.push_back(&input);
  const std::optional<size_t> length = GivenLength(name);
  if (is_optional && length == 0 && !IsGiven(name)) {
    scopes_[0][name] = {AbsentValue()};
    return;
  }
  if (!type.has_sequence_type()) {
    elements_.emplace_back().set_name(name);
    *elements_.back().mutable_type() = type;
    return tensors.push_back(&elements_.back());
  }
  if (!length) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("input '{}' is a sequence of unknown length", name),
                path_.string(),
                fmt::format("give its length, --length {}=2, or the shapes of its elements, --shape {}=1x3", name,
                            ElementName(name, 0)));
  }
  for (size_t i = 0; i < *length; ++i) {
    elements_.emplace_back().set_name(ElementName(name, i));
    *elements_.back().mutable_type() = type.sequence_type().elem_type();
    tensors.push_back(&elements_.back());
  }
  lists_.emplace_back(name, *length);
}

void OnnxGraph::AddInputs() {
  std::vector<const onnx::ValueInfoProto*> inputs, tensors;
  std::set<std::string> names;
  CheckLengths();
  for (const auto& input : model_.graph().input()) ListTensors(input, tensors);
  for (const onnx::ValueInfoProto* tensor : tensors) {
    const onnx::ValueInfoProto& input = *tensor;
    const std::string& name = input.name();
    const auto given = options_.constants.find(name);
    const auto text = options_.constant_texts.find(name);
    const bool is_given = given != options_.constants.end() || text != options_.constant_texts.end();
    // Inputs of old files are mostly weights, which an initializer gives: they are constants unless they are asked for.
    if (scopes_[0].contains(name) && !is_given && !options_.shapes.contains(name)) continue;
    if (!names.insert(name).second)
      throw Error(ErrorCategory::kInput, fmt::format("two inputs are called '{}'", name), path_.string());
    const NarrowType* narrow = FindNarrowType(input.type().tensor_type().elem_type());
    if (given != options_.constants.end()) {
      scopes_[0][name] = {GivenConstant(input, given->second), narrow};
    } else if (is_given) {
      scopes_[0][name] = {ReadConstant(input, text->second, reader_.strings()), narrow};
    } else {
      inputs.push_back(&input);
    }
  }
  CheckGivenNames(names);
  CheckDims(inputs);
  BindSymbols(inputs);
  for (const onnx::ValueInfoProto* input : inputs) {
    for (const auto& dim : input->type().tensor_type().shape().dim()) {
      if (!KnownDim(dim)) input_names_.insert(NameOf(dim));
    }
  }
  for (const onnx::ValueInfoProto* input : inputs) {
    params_.push_back(InputParam(*input));
    scopes_[0][input->name()] = {params_.back(), FindNarrowType(input->type().tensor_type().elem_type())};
  }
  for (const auto& [name, length] : lists_) {
    std::vector<Expr> elements;
    for (size_t i = 0; i < length; ++i) {
      const OnnxValue& element = scopes_[0].at(ElementName(name, i));
      if (element.narrow != nullptr) {
        throw Error(ErrorCategory::kUnsupported,
                    fmt::format("input '{}' is a sequence with element type {}", name, element.narrow->name),
                    path_.string());
      }
      elements.push_back(element.expr);
    }
    scopes_[0][name] = {MakeSequence(std::move(elements))};
  }
}

void OnnxGraph::CheckLengths() const {
  for (const auto& [name, length] : options_.lengths) {
    const auto& inputs = model_.graph().input();
    const auto input = std::ranges::find_if(inputs, [&](const auto& one) { return one.name() == name; });
    const bool is_list =
        input != inputs.end() && (input->type().has_sequence_type() || input->type().has_optional_type());
    if (is_list && length >= 0) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' cannot have the length {}: {}", name, length,
                            input == inputs.end() ? "the model has no such input"
                            : is_list             ? "it is below 0"
                                                  : "it is no sequence"),
                path_.string());
  }
}

void OnnxGraph::CheckGivenNames(const std::set<std::string>& names) const {
  std::set<std::string> asked;
  for (const auto& [name, shape] : options_.shapes) asked.insert(name);
  for (const auto& [name, value] : options_.constants) asked.insert(name);
  for (const auto& [name, text] : options_.constant_texts) asked.insert(name);
  for (const std::string& name : asked) {
    if (names.contains(name)) continue;
    std::string hint;
    for (const std::string& candidate : names) hint += (hint.empty() ? "its inputs are '" : ", '") + candidate + "'";
    const bool is_dimension = std::ranges::any_of(model_.graph().input(), [&](const auto& input) {
      return std::ranges::any_of(input.type().tensor_type().shape().dim(),
                                 [&](const auto& dim) { return !KnownDim(dim) && NameOf(dim) == name; });
    });
    if (is_dimension) hint = fmt::format("it is a dimension, whose size is given by --dim {}=<size>", name);
    throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), path_.string(), hint);
  }
}

/// The name of a symbolic size; "" where the model gives none. Some tools write "?" or "None" instead.
std::string OnnxGraph::NameOf(const onnx::TensorShapeProto::Dimension& dim) {
  const std::string& name = dim.dim_param();
  const bool has_letter = std::ranges::any_of(name, [](unsigned char c) { return std::isalpha(c) || c >= 0x80; });
  return has_letter && name != "None" ? name : "";
}

std::optional<SizeRange> OnnxGraph::GivenRange(const onnx::ValueInfoProto& input, int axis) const {
  for (const std::string& name : {PlaceText(input, axis), NameOf(input.type().tensor_type().shape().dim(axis))}) {
    const auto given = options_.dims.find(name);
    if (given != options_.dims.end()) return given->second;
  }
  return std::nullopt;
}

void OnnxGraph::CheckDims(const std::vector<const onnx::ValueInfoProto*>& inputs) const {
  std::set<std::string> names, places;
  for (const onnx::ValueInfoProto* input : inputs) {
    const auto& dims = input->type().tensor_type().shape().dim();
    for (int i = 0; i < dims.size(); ++i) {
      places.insert(PlaceText(*input, i));
      if (KnownDim(dims[i])) continue;
      names.insert(NameOf(dims[i]).empty() ? PlaceText(*input, i) : NameOf(dims[i]));
    }
  }
  for (const auto& [name, range] : options_.dims) {
    if (range.low < 0 || range.low > range.high) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("dimension '{}' cannot have sizes from {} to {}", name, range.low, range.high),
                  path_.string());
    }
    if (names.contains(name) || places.contains(name)) continue;
    throw Error(ErrorCategory::kInput, fmt::format("the model has no dimension '{}'", name), path_.string(),
                names.empty() ? "all its sizes are known; one of input x is given another size by --dim x[0]=<size>"
                              : fmt::format("there are: {}", fmt::join(names, ", ")));
  }
}

/// A dimension that is given for one input is given for all that the model calls by the same name, unless several are
/// given that differ.
void OnnxGraph::BindSymbols(const std::vector<const onnx::ValueInfoProto*>& inputs) {
  std::set<std::string> ambiguous;
  for (const onnx::ValueInfoProto* input : inputs) {
    const auto given = options_.shapes.find(input->name());
    const auto& dims = input->type().tensor_type().shape().dim();
    if (given == options_.shapes.end() || given->second.size() != static_cast<size_t>(dims.size())) continue;
    for (int i = 0; i < dims.size(); ++i) {
      const std::string name = NameOf(dims[i]);
      if (KnownDim(dims[i]) || name.empty()) continue;
      const int64_t size = given->second[static_cast<size_t>(i)];
      if (size >= 0 && bound_.emplace(name, size).first->second != size) ambiguous.insert(name);
    }
  }
  for (const std::string& name : ambiguous) bound_.erase(name);
  for (const auto& [name, range] : options_.dims) {
    if (range.low == range.high) bound_[name] = range.low;
  }
}

std::string OnnxGraph::ShapeHint() const {
  std::string example;
  for (const auto& input : model_.graph().input()) {
    const auto& dims = input.type().tensor_type().shape().dim();
    const bool is_open = std::ranges::any_of(dims, [](const auto& dim) { return !KnownDim(dim); });
    if (!is_open || scopes_[0].find(input.name()) == scopes_[0].end()) continue;
    if (As<ConstantNode>(scopes_[0].at(input.name()).expr) != nullptr) continue;
    example += " --shape " + ShapeExample(input);
  }
  return example.empty() ? "" : "give the shapes of the model's inputs, as in" + example;
}

std::string OnnxGraph::ShapeExample(const onnx::ValueInfoProto& input) const {
  std::string sizes;
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    sizes += (sizes.empty() ? "" : "x") + std::to_string(GivenDim(dim).value_or(1));
  }
  return input.name() + "=" + sizes;
}

/// The size that the file, or a shape that is given for another input, gives; nothing for a symbolic size.
std::optional<int64_t> OnnxGraph::GivenDim(const onnx::TensorShapeProto::Dimension& dim) const {
  if (const std::optional<int64_t> known = KnownDim(dim)) return known;
  const auto bound = bound_.find(NameOf(dim));
  if (bound != bound_.end()) return bound->second;
  const std::optional<SizeSum> sum = SumOf(NameOf(dim));
  return sum && sum->names.empty() ? std::optional(sum->number) : std::nullopt;
}

void OnnxGraph::CheckGivenShape(const onnx::ValueInfoProto& input, const Shape& given) const {
  const auto& tensor = input.type().tensor_type();
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCategory::kInput,
                fmt::format("input '{}' has shape [{}], which {} does not fit{}", input.name(),
                            DimsText(tensor.shape()), ToString(given), reason),
                path_.string());
  };
  if (!tensor.has_shape()) return;
  if (static_cast<int>(given.size()) != tensor.shape().dim_size()) refuse("");
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const std::optional<SizeRange> range = GivenRange(input, i);
    const int64_t size = given[static_cast<size_t>(i)];
    if (!range || size < 0 || (size >= range->low && size <= range->high)) continue;
    const std::string name = NameOf(tensor.shape().dim(i));
    refuse(fmt::format(": '{}' is given other sizes", name.empty() ? PlaceText(input, i) : name));
  }
}

std::vector<Dim> OnnxGraph::KnownDims(const onnx::ValueInfoProto& input, const Shape& given) const {
  const auto& stated = input.type().tensor_type().shape();
  std::vector<Dim> dims;
  for (int i = 0; i < stated.dim_size(); ++i) {
    const std::optional<SizeRange> range = GivenRange(input, i);
    std::optional<int64_t> size = GivenDim(stated.dim(i));
    if (range) size = range->low == range->high ? std::optional(range->low) : std::nullopt;
    if (!given.empty() && given[static_cast<size_t>(i)] >= 0) size = given[static_cast<size_t>(i)];
    dims.push_back(size ? Dim(*size) : Dim::Any());
  }
  return dims;
}

Var OnnxGraph::InputParam(const onnx::ValueInfoProto& input) {
  const std::string where = path_.string();
  if (!input.type().has_tensor_type()) {
    throw Error(ErrorCategory::kUnsupported, fmt::format("input '{}' is no tensor", input.name()), where);
  }
  const auto& tensor = input.type().tensor_type();
  const std::optional<DataType> dtype = StorageDType(tensor.elem_type());
  if (!dtype) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("input '{}' has element type {}, which is not supported", input.name(),
                            OnnxDTypeName(tensor.elem_type())),
                where);
  }
  dimension_names_.emplace_back();
  const auto param = [&](std::vector<Dim> shape) { return TypedVar(input.name(), std::move(shape), *dtype, where); };
  const auto given = options_.shapes.find(input.name());
  const bool is_given = given != options_.shapes.end();
  if (is_given) CheckGivenShape(input, given->second);
  if (is_given && std::ranges::none_of(given->second, [](int64_t size) { return size < 0; })) {
    return param({given->second.begin(), given->second.end()});
  }
  std::vector<Dim> shape = KnownDims(input, is_given ? given->second : Shape());
  if (!tensor.has_shape()) {
    throw Error(ErrorCategory::kInput, fmt::format("input '{}' has no shape in the file", input.name()), where,
                fmt::format("give it, as in --shape {}=1x3x224x224", input.name()));
  }
  if (std::ranges::none_of(shape, &Dim::is_any)) return param(std::move(shape));
  dimension_names_.back().resize(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_any()) continue;
    const auto axis = static_cast<int>(i);
    const std::string name = NameOf(tensor.shape().dim(axis)), place = PlaceText(input, axis);
    const std::optional<SizeRange> given_range = GivenRange(input, axis);
    const SizeRange range = given_range.value_or(SizeRange{.low = least_size_});
    const std::optional<SizeSum> sum = given_range ? std::nullopt : SumOf(name);
    if (range != SizeRange() && !sum) dimension_ranges_[name.empty() ? place : name] = range;
    dimension_names_.back()[i] = sum ? sum->ToString() : name;
    shape[i] = Dim::Of(sum ? SizeOf(*sum) : name.empty() ? sizes_.Unnamed(place, range) : sizes_.Named(name, range));
  }
  const Var var = param(std::move(shape));
  sizes_.FoundIn(var);
  return var;
}

/// The sum that a name is, with numbers in place of the dimensions that have been given sizes; nothing where it is
/// none, or of names that no dimension of an input has.
std::optional<SizeSum> OnnxGraph::SumOf(const std::string& name) const {
  std::optional<SizeSum> sum = ReadSum(name);
  if (!sum) return std::nullopt;
  SizeSum rest{.number = sum->number};
  for (const std::string& term : sum->names) {
    if (!input_names_.contains(term)) return std::nullopt;
    const auto bound = bound_.find(term);
    if (bound == bound_.end()) {
      rest.names.push_back(term);
    } else {
      rest.number += bound->second;
    }
  }
  return rest;
}

SymbolicSize OnnxGraph::SizeOf(const SizeSum& sum) {
  SymbolicSize size = sum.number;
  for (const std::string& name : sum.names) {
    const auto given = options_.dims.find(name);
    size += sizes_.Named(name, given == options_.dims.end() ? SizeRange{.low = least_size_} : given->second);
  }
  return size;
}

bool OnnxGraph::HasDynamicSizes() const {
  return std::ranges::any_of(dimension_names_, [](const auto& names) { return !names.empty(); });
}

}  // namespace collage
