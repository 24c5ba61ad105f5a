// encoders.cc: operators of ai.onnx.ml that look numbers up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"
#include "frontend/onnx/narrow_types.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// The keys or values (`what`) of a LabelEncoder: a vector of one of its attributes. Sets `narrow` where they are
/// strings.
Tensor Table(NodeContext& node, const std::string& what, const NarrowType** narrow) {
  if (std::optional<Tensor> tensor = node.TensorAttr((what + "_tensor").c_str(), narrow)) return *std::move(tensor);
  const std::vector<std::string> texts = node.Strings((what + "_strings").c_str());
  if (!texts.empty()) {
    *narrow = TextType();
    return node.StringTensor(texts);
  }
  const V integers = node.Ints((what + "_int64s").c_str(), {});
  if (!integers.empty()) return Tensor::Of<int64_t>({static_cast<int64_t>(integers.size())}, kInt64, integers);
  const std::vector<double> floats = node.Floats((what + "_floats").c_str());
  if (floats.empty()) node.Invalid(fmt::format("has no {}", what));
  const Tensor tensor = Tensor::Empty({static_cast<int64_t>(floats.size())}, kFloat32);
  for (size_t i = 0; i < floats.size(); ++i) tensor.Set(static_cast<int64_t>(i), floats[i]);
  return tensor;
}

/// The value of what is no key.
Expr Fallback(NodeContext& node, DataType dtype, bool is_text) {
  const NarrowType* narrow = nullptr;
  if (const std::optional<Tensor> tensor = node.TensorAttr("default_tensor", &narrow)) {
    if (tensor->num_elements() != 1) node.Invalid("attribute 'default_tensor' has not one element");
    if ((narrow != nullptr) != is_text) node.Invalid("attribute 'default_tensor' has another type than the values");
    return MakeConstant(tensor->Cast(dtype).Reshaped({}));
  }
  if (is_text) return MakeConstant(node.StringTensor({node.String("default_string", "_Unused")}).Reshaped({}));
  if (dtype.is_floating()) return MakeScalar(node.Float("default_float", -0.0), dtype);
  return MakeConstant(Tensor::Of<int64_t>({}, kInt64, V{node.Int("default_int64", -1)}).Cast(dtype));
}

/// Elements `order` of `table`.
Tensor Chosen(const Tensor& table, const std::vector<size_t>& order) {
  const Tensor result = Tensor::Empty({static_cast<int64_t>(order.size())}, table.dtype());
  const size_t bytes = table.dtype().size_bytes();
  for (size_t i = 0; i < order.size(); ++i) {
    const std::byte* from = static_cast<const std::byte*>(table.raw()) + order[i] * bytes;
    std::copy_n(from, bytes, static_cast<std::byte*>(result.raw()) + i * bytes);
  }
  return result;
}

/// The value at the place that a key has among the sorted keys.
class Encoder {
 public:
  explicit Encoder(NodeContext& node) : node_(node) {
    const NarrowType* of_keys = nullptr;
    if (node.HasAttr("classes_strings")) {
      const Tensor texts = node.StringTensor(node.Strings("classes_strings"));
      const Tensor places = Tensor::Empty(texts.shape(), kInt64);
      for (int64_t i = 0; i < places.num_elements(); ++i) places.data<int64_t>()[i] = i;
      SetBoth(texts, places, of_keys);
    } else if (node.HasAttr("cats_strings")) {
      const V numbers = node.Ints("cats_int64s", {});
      SetBoth(node.StringTensor(node.Strings("cats_strings")),
              Tensor::Of<int64_t>({static_cast<int64_t>(numbers.size())}, kInt64, numbers), of_keys);
    } else {
      keys_ = Table(node, "keys", &of_keys);
      values_ = Table(node, "values", &of_values_);
    }
    if (of_keys != node.NarrowOf(0))
      node.Invalid(of_keys != nullptr ? "has keys of strings for numbers" : "has keys of numbers for strings");
    node.SetNarrow(0, of_values_);
    if (keys_.num_elements() != values_.num_elements())
      node.Invalid(fmt::format("has {} keys and {} values", keys_.num_elements(), values_.num_elements()));
    const DataType dtype = node.TypeOf(node.Input(0)).dtype();
    if (keys_.dtype() != dtype)
      node.Invalid(fmt::format("has keys of {} for {}", keys_.dtype().ToString(), dtype.ToString()));
  }

  Expr Run() {
    const Expr x = node_.Input(0);
    SortKeys();
    Expr result = Fallback(node_, values_.dtype(), of_values_ != nullptr);
    if (!order_.empty()) result = LookedUp(x, result);
    if (nan_) {
      const Expr value = MakeConstant(Chosen(values_, {*nan_}).Reshaped({}));
      result = node_.Op("where", {node_.Op("isnan", {x}), value, result});
    }
    return node_.BroadcastTo(result, node_.SizesOf(x));
  }

 private:
  /// Strings become numbers, and numbers strings.
  void SetBoth(const Tensor& texts, const Tensor& numbers, const NarrowType*& of_keys) {
    const bool is_text = node_.NarrowOf(0) != nullptr;
    keys_ = is_text ? texts : numbers;
    values_ = is_text ? numbers : texts;
    (is_text ? of_keys : of_values_) = TextType();
  }

  /// Sets the order of the keys without repeated ones; the first one of equal keys counts.
  void SortKeys() {
    const bool is_float = keys_.dtype().is_floating();
    const V integers = is_float ? V() : keys_.ToInts();
    for (size_t i = 0; i < static_cast<size_t>(keys_.num_elements()); ++i) {
      if (!is_float || !std::isnan(keys_.At(static_cast<int64_t>(i)))) {
        order_.push_back(i);
      } else if (!nan_) {
        nan_ = i;
      }
    }
    const auto is_less = [&](size_t a, size_t b) {
      if (!is_float) return integers[a] < integers[b];
      return keys_.At(static_cast<int64_t>(a)) < keys_.At(static_cast<int64_t>(b));
    };
    std::ranges::stable_sort(order_, is_less);
    const auto is_same = [&](size_t a, size_t b) { return !is_less(a, b) && !is_less(b, a); };
    const auto repeated = std::ranges::unique(order_, is_same);
    order_.erase(repeated.begin(), repeated.end());
  }

  /// As many keys are less than a key as stand before it.
  Expr LookedUp(const Expr& x, const Expr& fallback) {
    const Expr keys = MakeConstant(Chosen(keys_, order_)), values = MakeConstant(Chosen(values_, order_));
    const Expr element = node_.Op("expand_dims", {x}, {{"axis", node_.Rank(x)}});
    const Expr is_before = node_.Cast(node_.Op("less", {keys, element}), kInt32);
    const Expr place = node_.Op("sum", {is_before}, {{"axis", V{-1}}});
    const Expr found = node_.Op("equal", {node_.Op("take", {keys, place}, {{"axis", 0}}), x});
    return node_.Op("where", {found, node_.Op("take", {values, place}, {{"axis", 0}}), fallback});
  }

  NodeContext& node_;
  Tensor keys_, values_;
  const NarrowType* of_values_ = nullptr;  ///< set where they are strings
  std::vector<size_t> order_;
  std::optional<size_t> nan_;
};

Results ConvertLabelEncoder(NodeContext& node) { return {Encoder(node).Run()}; }

/// A 1 in the place of the category; zeros for what is none.
Results ConvertOneHotEncoder(NodeContext& node) {
  const bool is_text = node.NarrowOf(0) != nullptr;
  const V categories =
      is_text ? node.StringTensor(node.Strings("cats_strings")).ToInts() : node.Ints("cats_int64s", {});
  if (categories.empty()) node.Invalid(fmt::format("has no attribute '{}'", is_text ? "cats_strings" : "cats_int64s"));
  const Expr x = node.Cast(node.Input(0), kInt64);
  const Expr element = node.Op("expand_dims", {x}, {{"axis", node.Rank(x)}});
  return {node.Cast(node.Op("equal", {element, Int64s(categories)}), kFloat32)};
}

}  // namespace

void AddMlEncoders(OnnxConverters& converters) {
  converters.Add("ai.onnx.ml.LabelEncoder", ConvertLabelEncoder, "X: number -> Y", NarrowUse::kReads);
  converters.Add("ai.onnx.ml.CategoryMapper", ConvertLabelEncoder, "X: int -> Y", NarrowUse::kReads);
  converters.Add("ai.onnx.ml.OneHotEncoder", ConvertOneHotEncoder, "X: number[0..2] -> Y", NarrowUse::kReads);
}

}  // namespace collage
