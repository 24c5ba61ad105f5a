// ngrams.cc: counts of n-grams of integers, by comparisons with all that are asked for.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Attributes of a TfIdfVectorizer.
struct NgramForm {
  V pool;     ///< n-grams, those of one length together
  V begins;   ///< the first element of the n-grams of each length
  V indexes;  ///< the place of the count of each n-gram
  std::vector<double> weights;
  int64_t least = 1;
  int64_t most = 1;
  int64_t most_skipped = 0;
  std::string mode;

  /// The end of the n-grams of `length` in the pool.
  int64_t EndOf(int64_t length) const {
    const auto next = static_cast<size_t>(length);
    return next < begins.size() ? begins[next] : static_cast<int64_t>(pool.size());
  }
};

NgramForm ReadForm(NodeContext& node) {
  const std::vector<std::string> texts = node.Strings("pool_strings");
  if (texts.empty() != (node.NarrowOf(0) == nullptr)) node.Invalid("the pool has not the input's type of elements");
  NgramForm form;
  form.pool = texts.empty() ? node.Ints("pool_int64s", {}) : node.StringTensor(texts).ToInts();
  form.begins = node.Ints("ngram_counts", {});
  form.indexes = node.Ints("ngram_indexes", {});
  form.weights = node.Floats("weights");
  const auto longest = static_cast<int64_t>(form.begins.size());
  form.least = node.IntWithin("min_gram_length", 1, 1, longest);
  form.most = node.IntWithin("max_gram_length", 1, form.least, longest);
  form.most_skipped = node.IntWithin("max_skip_count", 0, 0, INT32_MAX);
  form.mode = node.OneOf("mode", "TF", {"TF", "IDF", "TFIDF"});
  size_t ngrams = 0;
  for (int64_t length = 1; length <= longest; ++length) {
    const int64_t begin = form.begins[static_cast<size_t>(length - 1)], end = form.EndOf(length);
    if (begin < 0 || end < begin || end > static_cast<int64_t>(form.pool.size()) || (end - begin) % length != 0) {
      node.Invalid(fmt::format("attribute 'ngram_counts' does not divide {} elements of the pool", form.pool.size()));
    }
    ngrams += static_cast<size_t>((end - begin) / length);
  }
  const auto is_index = [](int64_t index) { return index >= 0 && index < INT32_MAX; };
  if (form.indexes.size() != ngrams || !std::ranges::all_of(form.indexes, is_index)) {
    node.Invalid(fmt::format("attribute 'ngram_indexes' has not an index for each of {} n-grams", ngrams));
  }
  if (!form.weights.empty() && form.weights.size() != ngrams) {
    node.Invalid(fmt::format("{} weights for {} n-grams", form.weights.size(), ngrams));
  }
  return form;
}

/// How often each n-gram of `length` is in the rows of `rows` [N, C], with `step` between its elements: [N, ngrams].
Expr CountsOf(NodeContext& node, const Expr& rows, int64_t places, const NgramForm& form, int64_t length,
              int64_t step) {
  const int64_t begin = form.begins[static_cast<size_t>(length - 1)];
  const int64_t count = (form.EndOf(length) - begin) / length;
  Expr all;
  for (int64_t k = 0; k < length; ++k) {
    const Tensor wanted = Tensor::Empty({1, 1, count}, kInt64);
    for (int64_t i = 0; i < count; ++i) {
      wanted.data<int64_t>()[i] = form.pool[static_cast<size_t>(begin + i * length + k)];
    }
    const Expr at = node.Op("expand_dims", {Slice(node, rows, 1, k * step, k * step + places)}, {{"axis", 2}});
    const Expr equal = node.Op("equal", {at, MakeConstant(wanted)});
    all = all == nullptr ? equal : node.Op("logical_and", {all, equal});
  }
  return node.Op("sum", {node.Cast(all, kFloat32)}, {{"axis", V{1}}});
}

/// Counts of all n-grams, in the order of the pool: [N, ngrams].
Expr AllCounts(NodeContext& node, const Expr& rows, int64_t width, const NgramForm& form) {
  const SymbolicSize batch = node.SizesOf(rows)[0];
  Results parts;
  for (int64_t length = 1; length <= static_cast<int64_t>(form.begins.size()); ++length) {
    const int64_t count = (form.EndOf(length) - form.begins[static_cast<size_t>(length - 1)]) / length;
    if (count == 0) continue;
    Expr sum;
    for (int64_t step = 1; step <= (length == 1 ? 1 : form.most_skipped + 1); ++step) {
      const int64_t places = width - (length - 1) * step;
      if (places < 1 || length < form.least || length > form.most) break;
      const Expr counts = CountsOf(node, rows, places, form, length, step);
      sum = sum == nullptr ? counts : node.Op("add", {sum, counts});
    }
    parts.push_back(sum != nullptr ? sum : node.Full(node.Scalar(0, kFloat32), {batch, count}));
  }
  if (parts.empty()) node.Invalid("there are no n-grams");
  return Concatenate(node, std::move(parts), 1);
}

Results ConvertTfIdfVectorizer(NodeContext& node) {
  const NgramForm form = ReadForm(node);
  const Expr data = node.Cast(node.Input(0), kInt64);
  const bool is_row = node.Rank(data) == 1;
  const Expr rows = is_row ? node.Op("expand_dims", {data}, {{"axis", 0}}) : data;
  const int64_t width = node.Known(node.SizesOf(rows)[1], "the length of its sequences");
  Expr counts = AllCounts(node, rows, width, form);
  if (form.mode == "IDF") counts = node.Op("minimum", {counts, node.Scalar(1, kFloat32)});
  // A column for each n-gram, with its weight where its count goes.
  const auto ngrams = static_cast<int64_t>(form.indexes.size());
  const int64_t results = *std::ranges::max_element(form.indexes) + 1;
  const Tensor place = ZerosOf(node, {ngrams, results}, kFloat32);
  for (int64_t i = 0; i < ngrams; ++i) {
    const auto at = static_cast<size_t>(i);
    const double weight = form.mode == "TF" || form.weights.empty() ? 1 : form.weights[at];
    place.Set(i * results + form.indexes[at], weight);
  }
  const Expr placed = MultiplyMatrices(node, counts, MakeConstant(place));
  return {is_row ? node.Reshape(placed, {results}) : placed};
}

}  // namespace

void AddNgramConverters(OnnxConverters& converters) {
  converters.Add("TfIdfVectorizer", ConvertTfIdfVectorizer, "X: int[1..2] -> Y", NarrowUse::kReads);
}

}  // namespace collage
