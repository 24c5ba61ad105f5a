// decompose.cc: operators whose loops are those of others.
//
// A deformable convolution: every tap's pixels are a grid's samples, which are multiplied with the weights as a
// convolution of one tap. Einsum, term by term: what nobody else needs is summed up, then the next term is multiplied
// with what there is, as matrices where labels are summed on the way. So each product is one that there are fast loops
// for, and transpositions and reshapes around it are read in place.
#include "backends/native/description/decompose.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/ops/linalg/einsum.h"
#include "ir/ops/relations.h"

namespace collage::native {
namespace {

using V = std::vector<int64_t>;

bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

class EinsumWriter {
 public:
  explicit EinsumWriter(const CallNode& call) {
    const std::vector<Expr>& fields = As<TupleNode>(call.args()[0])->fields();
    std::vector<std::vector<Dim>> shapes;
    std::vector<int> ranks;
    for (const Expr& field : fields) {
      shapes.push_back(AsTensorType(field->checked_type())->shape());
      ranks.push_back(static_cast<int>(shapes.back().size()));
    }
    dtype_ = AsTensorType(call.checked_type())->dtype();
    const Einsum einsum(call.attrs().String("equation"), ranks);
    for (const auto& [label, size] : einsum.Sizes(shapes)) sizes_[label] = size.size();
    for (size_t i = 0; i < fields.size(); ++i) terms_.push_back(MakeTerm(fields[i], shapes[i], einsum.inputs[i]));
    output_ = einsum.output;
  }

  Expr Run() {
    Term all = Summed(terms_[0], LaterLabels(1));
    for (size_t i = 1; i < terms_.size(); ++i) {
      const Term next = Summed(terms_[i], all.labels + LaterLabels(i + 1));
      const std::string wanted = LaterLabels(i + 1);
      all = Product(Summed(all, next.labels + wanted), next, wanted);
    }
    std::string order;
    for (char label : output_) {
      COLLAGE_CHECK(!Has(order, label)) << "einsum repeats a label in its result";
      if (Has(all.labels, label)) order += label;
    }
    const Expr result = Reshaped(Arranged(all, order), SizesOf(order), SizesOf(output_));
    return is_half() ? MakeCall("cast", {result}, {{"dtype", dtype_}}) : result;
  }

 private:
  /// A tensor whose dimensions have labels: each once, none of size 1.
  struct Term {
    Expr value;
    std::string labels;
  };

  /// Whether values are 16-bit floats: then everything between the terms and the result is float32, rounded once.
  bool is_half() const { return dtype_.is_floating() && dtype_.bits == 16; }

  Term MakeTerm(const Expr& field, const std::vector<Dim>& shape, const std::string& labels) const {
    Term term{field, ""};
    V all, kept;
    for (size_t d = 0; d < shape.size(); ++d) {
      all.push_back(shape[d].size());
      if (all.back() == 1) continue;
      kept.push_back(all.back());
      term.labels += labels[d];
    }
    const Expr wide = is_half() ? MakeCall("cast", {field}, {{"dtype", kFloat32}}) : field;
    term.value = Reshaped(wide, all, kept);
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (const size_t j = term.labels.find(term.labels[i], i + 1); j != std::string::npos) {
        term = Diagonal(term, i, j);
        i = static_cast<size_t>(-1);  // the order has changed
      }
    }
    return term;
  }

  /// Takes the diagonal of dimensions `i` and `j`, which have the same label.
  Term Diagonal(const Term& term, size_t i, size_t j) const {
    const int64_t n = sizes_.at(term.labels[i]);
    V axes, sizes;
    std::string labels;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (d == i || d == j) continue;
      axes.push_back(static_cast<int64_t>(d));
      labels += term.labels[d];
    }
    sizes = SizesOf(labels);
    sizes.push_back(n * n);
    const auto last = static_cast<int64_t>(axes.size());
    axes.insert(axes.end(), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
    const Expr moved = MakeCall("transpose", {term.value}, {{"axes", axes}});
    const Expr flat = MakeCall("reshape", {moved}, {{"newshape", sizes}, {"allowzero", true}});
    const Attrs steps{{"begin", V{0}}, {"end", V{n * n}}, {"strides", V{n + 1}}, {"axes", V{last}}};
    return {MakeCall("strided_slice", {flat}, steps), labels + term.labels[i]};
  }

  /// Labels of the result and of terms from `first` on.
  std::string LaterLabels(size_t first) const {
    std::string labels = output_;
    for (size_t i = first; i < terms_.size(); ++i) labels += terms_[i].labels;
    return labels;
  }

  V SizesOf(const std::string& labels) const {
    V sizes;
    for (char label : labels) sizes.push_back(sizes_.at(label));
    return sizes;
  }
  int64_t CountOf(const std::string& labels) const {
    int64_t count = 1;
    for (char label : labels) count *= sizes_.at(label);
    return count;
  }

  static Expr Reshaped(const Expr& value, const V& from, const V& to) {
    if (from == to) return value;
    return MakeCall("reshape", {value}, {{"newshape", to}, {"allowzero", true}});
  }

  static Expr Arranged(const Term& term, const std::string& order) {
    if (term.labels == order) return term.value;
    V axes;
    for (char label : order) axes.push_back(static_cast<int64_t>(term.labels.find(label)));
    return MakeCall("transpose", {term.value}, {{"axes", axes}});
  }

  /// Without labels that are not `wanted`.
  static Term Summed(const Term& term, const std::string& wanted) {
    V axes;
    std::string kept;
    for (size_t d = 0; d < term.labels.size(); ++d) {
      if (Has(wanted, term.labels[d])) {
        kept += term.labels[d];
      } else {
        axes.push_back(static_cast<int64_t>(d));
      }
    }
    if (axes.empty()) return term;
    return {MakeCall("sum", {term.value}, {{"axis", axes}}), kept};
  }

  /// Labels of both that are not `wanted` are summed.
  Term Product(const Term& a, const Term& b, const std::string& wanted) const {
    std::string batch, summed, rows, columns;
    for (char label : a.labels) (!Has(b.labels, label) ? rows : Has(wanted, label) ? batch : summed) += label;
    for (char label : b.labels) {
      if (!Has(a.labels, label)) columns += label;
    }
    const std::string labels = batch + rows + columns;
    if (summed.empty()) {
      V left = SizesOf(batch + rows), right = SizesOf(batch);
      left.insert(left.end(), columns.size(), 1);
      right.insert(right.end(), rows.size(), 1);
      for (int64_t size : SizesOf(columns)) right.push_back(size);
      const Expr x = Reshaped(Arranged(a, batch + rows), SizesOf(batch + rows), left);
      const Expr y = Reshaped(Arranged(b, batch + columns), SizesOf(batch + columns), right);
      return {MakeCall("multiply", {x, y}), labels};
    }
    const bool transpose_a = a.labels == batch + summed + rows;
    const bool transpose_b = b.labels == batch + columns + summed;
    const Expr x = Matrix(a, batch, transpose_a ? summed : rows, transpose_a ? rows : summed);
    const Expr y = Matrix(b, batch, transpose_b ? columns : summed, transpose_b ? summed : columns);
    const Expr product = MakeCall(batch.empty() ? "nn.matmul" : "nn.batch_matmul", {x, y},
                                  {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
    V shape{CountOf(rows), CountOf(columns)};
    if (!batch.empty()) shape.insert(shape.begin(), CountOf(batch));
    return {Reshaped(product, shape, SizesOf(labels)), labels};
  }

  Expr Matrix(const Term& term, const std::string& batch, const std::string& rows, const std::string& columns) const {
    V shape{CountOf(rows), CountOf(columns)};
    if (!batch.empty()) shape.insert(shape.begin(), CountOf(batch));
    return Reshaped(Arranged(term, batch + rows + columns), SizesOf(batch + rows + columns), shape);
  }

  DataType dtype_;
  std::map<char, int64_t> sizes_;
  std::vector<Term> terms_;
  std::string output_;
};

class DeformableWriter {
 public:
  explicit DeformableWriter(const CallNode& call) : call_(call) {
    for (const Expr& arg : call.args()) InferType(arg);
    dtype_ = TypeOf(0).dtype();
    data_ = TypeOf(0).static_shape();
    offsets_ = TypeOf(1).static_shape();
    weight_ = TypeOf(2).static_shape();
    taps_ = weight_[2] * weight_[3];
    shared_ = call.attrs().Int("deformable_groups");
    points_ = offsets_[2] * offsets_[3];
  }

  Expr Run() const {
    const int64_t groups = call_.attrs().Int("groups");
    const int64_t images = data_[0] * shared_;
    // [image and group of offsets, its channels, tap, point]
    const Expr image = Reshaped(Wide(0), {images, data_[1] / shared_, data_[2], data_[3]});
    Expr samples = MakeCall("image.grid_sample", {image, Grid()}, {{"method", "bilinear"}, {"align_corners", false}});
    if (call_.args().size() > 3) {
      samples = MakeCall("multiply", {samples, Reshaped(Wide(3), {images, 1, taps_, points_})});
    }
    // Channels of a tap follow each other, so that vectors of them are of one place.
    const int64_t channels = weight_[1];
    const Expr split = Reshaped(samples, {data_[0], groups, channels, taps_, points_});
    const Expr pixels =
        Reshaped(Transposed(split, {0, 1, 3, 2, 4}), {data_[0], groups * taps_ * channels, offsets_[2], offsets_[3]});
    const Expr taps = Transposed(Reshaped(Wide(2), {weight_[0], channels, taps_}), {0, 2, 1});
    const Expr result =
        MakeCall("nn.conv2d", {pixels, Reshaped(taps, {weight_[0], taps_ * channels, 1, 1})}, {{"groups", groups}});
    return is_half() ? MakeCall("cast", {result}, {{"dtype", dtype_}}) : result;
  }

 private:
  const TensorTypeNode& TypeOf(size_t i) const { return *AsTensorType(call_.args()[i]->checked_type()); }
  bool is_half() const { return dtype_.is_floating() && dtype_.bits == 16; }

  /// Argument `i`; of 16-bit floats as float32, so that the result is rounded once.
  Expr Wide(size_t i) const {
    const Expr& arg = call_.args()[i];
    return is_half() ? MakeCall("cast", {arg}, {{"dtype", kFloat32}}) : arg;
  }
  static Expr Reshaped(const Expr& value, const V& shape) {
    return MakeCall("reshape", {value}, {{"newshape", shape}, {"allowzero", true}});
  }
  static Expr Transposed(const Expr& value, const V& axes) { return MakeCall("transpose", {value}, {{"axes", axes}}); }

  /// Returns the coordinates that each tap reads for each point, x first, in float64: [image and group of offsets, 2,
  /// tap, point]. Pixel p of n is at (2 p + 1) / n - 1 of a grid.
  Expr Grid() const {
    const V strides = PerDimension(call_.attrs().Ints("strides"), 2);
    const V dilation = PerDimension(call_.attrs().Ints("dilation"), 2);
    const Padding padding = SpatialPadding(call_.attrs(), 2);
    const Tensor regular = Tensor::Empty({1, taps_, 2, points_}, kFloat64);
    const Tensor scale = Tensor::Empty({1, 1, 2, 1}, kFloat64);
    for (size_t d = 0; d < 2; ++d) {
      const auto size = static_cast<double>(data_[d + 2]);
      scale.Set(static_cast<int64_t>(d), 2 / size);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int64_t of_tap = (d == 0 ? tap / weight_[3] : tap % weight_[3]) * dilation[d] - padding.before[d];
        for (int64_t point = 0; point < points_; ++point) {
          const int64_t place = (d == 0 ? point / offsets_[3] : point % offsets_[3]) * strides[d] + of_tap;
          regular.Set((tap * 2 + static_cast<int64_t>(d)) * points_ + point,
                      static_cast<double>(2 * place + 1) / size - 1);
        }
      }
    }
    const Expr moved = Reshaped(call_.args()[1], {data_[0] * shared_, taps_, 2, points_});
    const Expr steps = MakeCall("multiply", {MakeCall("cast", {moved}, {{"dtype", kFloat64}}), MakeConstant(scale)});
    const Expr places = MakeCall("add", {steps, MakeConstant(regular)});
    return Transposed(MakeCall("reverse", {places}, {{"axis", 2}}), {0, 2, 1, 3});
  }

  const CallNode& call_;
  DataType dtype_;
  Shape data_, offsets_, weight_;
  int64_t taps_;
  int64_t shared_;  ///< groups of channels that share offsets
  int64_t points_;  ///< of the result
};

}  // namespace

Expr Decompose(const Expr& body) {
  const Expr written = Rewrite(body, [](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return expr;
    if (call->op()->name == "nn.deformable_conv2d") return DeformableWriter(*call).Run();
    if (call->op()->name != "einsum") return expr;
    for (const Expr& field : As<TupleNode>(call->args()[0])->fields()) InferType(field);
    return EinsumWriter(*call).Run();
  });
  InferType(written);
  return written;
}

}  // namespace collage::native
