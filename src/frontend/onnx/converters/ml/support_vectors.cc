// support_vectors.cc: support vector machines of ai.onnx.ml: kernels of the data and constant vectors, and for classes
// a vote of all pairs; probabilities by pairwise coupling (Wu, Lin and Weng, 2004), as LIBSVM does it.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

// Turns of the coupling's iteration are written out: it comes to its end after four or fewer.
constexpr int kCouplingTurns = 6;
constexpr size_t kMostCoupledClasses = 16;

void CheckCount(NodeContext& node, const char* name, size_t found, size_t wanted) {
  if (found != wanted) node.Invalid(fmt::format("attribute '{}' has {} elements, {} are wanted", name, found, wanted));
}

/// The kernels of rows and vectors.
class Kernel {
 public:
  explicit Kernel(NodeContext& node)
      : node_(node),
        type_(node.OneOf("kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"})),
        parameters_(node.Floats("kernel_params")),
        x_(node.Cast(RowsOfFeatures(node, node.Input(0)), kFloat32)),
        features_(node.Known(node.SizesOf(x_)[1], "the number of features")) {
    if (type_ != "LINEAR" || !parameters_.empty()) CheckCount(node, "kernel_params", parameters_.size(), 3);
  }

  /// [N, count]: the kernel, as the attribute says or linear, of each row and each of `vectors` [count, F].
  Expr Of(const std::vector<double>& vectors, int64_t count, bool is_linear) {
    CheckCount(node_, is_linear ? "coefficients" : "support_vectors", vectors.size(),
               static_cast<size_t>(count * features_));
    const std::string type = is_linear ? "LINEAR" : type_;
    if (type == "RBF") return Radial(vectors, count);
    const Expr product = node_.Op("nn.dense", {x_, Numbers({count, features_}, kFloat32, vectors)});
    if (type == "LINEAR") return product;
    const Expr affine = Shifted(node_, Scaled(node_, product, parameters_[0]), parameters_[1]);
    if (type == "SIGMOID") return node_.Op("tanh", {affine});
    return node_.Op("power", {affine, node_.ScalarLike(parameters_[2], affine)});
  }

 private:
  /// exp(-gamma |x - v|^2), from differences: squares of large numbers would cancel out.
  Expr Radial(const std::vector<double>& vectors, int64_t count) {
    const Expr rows = node_.Op("expand_dims", {x_}, {{"axis", 1}});
    const Expr difference = node_.Op("subtract", {rows, Numbers({1, count, features_}, kFloat32, vectors)});
    const Expr sum = node_.Op("sum", {node_.Op("multiply", {difference, difference})}, {{"axis", V{2}}});
    return node_.Op("exp", {Scaled(node_, sum, -parameters_[0])});
  }

  NodeContext& node_;
  std::string type_;
  std::vector<double> parameters_;  ///< gamma, coef0, degree
  Expr x_;
  int64_t features_;
};

Results ConvertRegressor(NodeContext& node) {
  const int64_t count = node.Int("n_supports", 0);
  const std::vector<double> coefficients = node.Floats("coefficients"), rho = node.Floats("rho");
  if (rho.empty()) node.Invalid("has no attribute 'rho'");
  Kernel kernel(node);
  Expr y;
  if (count > 0) {
    CheckCount(node, "coefficients", coefficients.size(), static_cast<size_t>(count));
    const Expr kernels = kernel.Of(node.Floats("support_vectors"), count, /*is_linear=*/false);
    y = node.Op("nn.dense", {kernels, Numbers({1, count}, kFloat32, coefficients)});
  } else {
    y = kernel.Of(coefficients, 1, /*is_linear=*/true);
  }
  y = Shifted(node, y, rho[0]);
  if (node.Int("one_class", 0) == 0) return {y};
  const Expr is_inside = node.Op("greater", {y, node.ScalarLike(0, y)});
  return {node.Op("where", {is_inside, node.ScalarLike(1, y), node.ScalarLike(-1, y)})};
}

/// Two scores of the one that tells two classes apart.
Expr ScoresOfPair(NodeContext& node, const Expr& score, const std::string& transform) {
  if (transform == "PROBIT") node.Unsupported("post_transform PROBIT of the score that stands for two classes");
  const Expr own = transform == "LOGISTIC" ? PostTransformed(node, score, transform) : score;
  return BothScores(node, own, /*is_probability=*/transform != "NONE");
}

/// Classes distinguished by a classifier for each pair.
class PairwiseClassifier {
 public:
  PairwiseClassifier(NodeContext& node, V labels, V vectors_per_class)
      : node_(node), labels_(std::move(labels)), count_(static_cast<int64_t>(labels_.size())) {
    CheckCount(node, "vectors_per_class", vectors_per_class.size(), labels_.size());
    for (const int64_t vectors : vectors_per_class) {
      if (vectors < 0) node.Invalid("attribute 'vectors_per_class' has negative numbers");
      first_.push_back(num_vectors_);
      num_vectors_ += vectors;
    }
    first_.push_back(num_vectors_);
    const auto pairs = static_cast<size_t>(count_ * (count_ - 1) / 2);
    prob_a_ = node.Floats("prob_a");
    prob_b_ = node.Floats("prob_b");
    rho_ = node.Floats("rho");
    CheckCount(node, "rho", rho_.size(), pairs);
    CheckCount(node, "prob_b", prob_b_.size(), prob_a_.size());
    if (!prob_a_.empty()) CheckCount(node, "prob_a", prob_a_.size(), pairs);
  }

  Results Run() {
    const std::string transform = PostTransform(node_);
    const Expr scores = PairScores();
    const Expr label = LabelsAt(node_, labels_, MostVoted(scores));
    if (!prob_a_.empty()) return {label, PostTransformed(node_, Probabilities(scores), transform)};
    if (count_ == 2) return {label, ScoresOfPair(node_, scores, transform)};
    return {label, PostTransformed(node_, scores, transform)};
  }

 private:
  /// [N, pairs]: (0, 1), (0, 2), …, (1, 2), …; positive for the first class of the pair.
  Expr PairScores() {
    const std::vector<double> given = node_.Floats("coefficients");
    CheckCount(node_, "coefficients", given.size(), static_cast<size_t>((count_ - 1) * num_vectors_));
    std::vector<double> matrix;
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t j = i + 1; j < count_; ++j) {
        std::vector<double> row(static_cast<size_t>(num_vectors_), 0);
        const auto copy = [&](int64_t of, int64_t from_row) {
          for (int64_t v = first_[static_cast<size_t>(of)]; v < first_[static_cast<size_t>(of) + 1]; ++v)
            row[static_cast<size_t>(v)] = given[static_cast<size_t>(from_row * num_vectors_ + v)];
        };
        copy(i, j - 1);
        copy(j, i);
        matrix.insert(matrix.end(), row.begin(), row.end());
      }
    }
    const auto pairs = static_cast<int64_t>(rho_.size());
    const Expr kernels = Kernel(node_).Of(node_.Floats("support_vectors"), num_vectors_, /*is_linear=*/false);
    const Expr sums = node_.Op("nn.dense", {kernels, Numbers({pairs, num_vectors_}, kFloat32, matrix)});
    return node_.Op("add", {sums, Numbers({pairs}, kFloat32, rho_)});
  }

  /// [N]: the first class with the most votes. Each pair votes for one of its two.
  Expr MostVoted(const Expr& scores) {
    const auto pairs = static_cast<int64_t>(rho_.size());
    std::vector<double> sign(static_cast<size_t>(count_ * pairs), 0), offset(static_cast<size_t>(count_), 0);
    int64_t pair = 0;
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t j = i + 1; j < count_; ++j, ++pair) {
        sign[static_cast<size_t>(i * pairs + pair)] = 1;
        sign[static_cast<size_t>(j * pairs + pair)] = -1;
        offset[static_cast<size_t>(j)] += 1;
      }
    }
    const Expr is_first = node_.Cast(node_.Op("greater", {scores, node_.ScalarLike(0, scores)}), kFloat32);
    const Expr votes = node_.Op("nn.dense", {is_first, Numbers({count_, pairs}, kFloat32, sign)});
    return node_.Op("argmax", {node_.Op("add", {votes, Numbers({count_}, kFloat32, offset)})}, {{"axis", V{1}}});
  }

  /// [N, classes].
  Expr Probabilities(const Expr& scores) {
    const auto classes = static_cast<size_t>(count_);
    if (classes > kMostCoupledClasses)
      node_.Unsupported(fmt::format("probabilities of {} classes, more than {}", classes, kMostCoupledClasses));
    const auto pairs = static_cast<int64_t>(prob_a_.size());
    const Expr line = node_.Op("add", {node_.Op("multiply", {scores, Numbers({pairs}, kFloat32, prob_a_)}),
                                       Numbers({pairs}, kFloat32, prob_b_)});
    const Expr share = node_.Op("sigmoid", {node_.Op("negative", {line})});
    const Expr limited = node_.Op("clip", {share}, {{"a_min", 1e-7}, {"a_max", 1 - 1e-7}});
    std::vector<Results> r(classes, Results(classes));
    int64_t pair = 0;
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = i + 1; j < classes; ++j) {
        r[i][j] = Column(node_, limited, pair++);
        r[j][i] = node_.Op("subtract", {node_.ScalarLike(1, r[i][j]), r[i][j]});
      }
    }
    return Coupled(QuadraticForm(r));
  }

  Expr Product(const Expr& a, const Expr& b) { return node_.Op("multiply", {a, b}); }
  Expr Sum(const Expr& a, const Expr& b) { return node_.Op("add", {a, b}); }

  /// Rows [N, classes] of the matrix Q that p Q p is to be least for.
  Results QuadraticForm(const std::vector<Results>& r) {
    Results rows;
    for (size_t i = 0; i < r.size(); ++i) {
      Results columns(r.size());
      for (size_t j = 0; j < r.size(); ++j) {
        if (j == i) continue;
        const Expr square = Product(r[j][i], r[j][i]);
        columns[i] = columns[i] ? Sum(columns[i], square) : square;
        columns[j] = node_.Op("negative", {Product(r[j][i], r[i][j])});
      }
      rows.push_back(Concatenate(node_, columns, 1));
    }
    return rows;
  }

  /// The probabilities [N, classes] that belong to `q`: one coordinate after the other, until all are near enough.
  Expr Coupled(const Results& q) {
    const auto classes = static_cast<int64_t>(q.size());
    const Expr zero = Scaled(node_, q[0], 0);
    Expr p = Shifted(node_, zero, 1.0 / static_cast<double>(classes));
    for (int turn = 0; turn < kCouplingTurns; ++turn) {
      Results products;
      for (const Expr& row : q) products.push_back(SumOf(Product(row, p)));
      Expr qp = Concatenate(node_, products, 1), pqp = SumOf(Product(p, qp));
      const Expr error =
          node_.Op("max", {node_.Op("abs", {node_.Op("subtract", {qp, pqp})})}, {{"axis", V{1}}, {"keepdims", true}});
      const Expr is_near = node_.Op("less", {error, node_.ScalarLike(0.005 / static_cast<double>(classes), error)});
      Expr next = p;
      for (int64_t i = 0; i < classes; ++i) {
        const Expr& row = q[static_cast<size_t>(i)];
        const Expr own = Column(node_, row, i), own_product = Column(node_, qp, i);
        const Expr step = node_.Op("divide", {node_.Op("subtract", {pqp, own_product}), own});
        const Expr scale = Shifted(node_, step, 1);
        std::vector<double> unit(static_cast<size_t>(classes), 0);
        unit[static_cast<size_t>(i)] = 1;
        next = node_.Op("divide", {Sum(next, Product(step, Numbers({1, classes}, kFloat32, unit))), scale});
        const Expr growth = Product(step, Sum(Product(step, own), Scaled(node_, own_product, 2)));
        pqp = node_.Op("divide", {node_.Op("divide", {Sum(pqp, growth), scale}), scale});
        qp = node_.Op("divide", {Sum(qp, Product(step, row)), scale});
      }
      p = node_.Op("where", {is_near, p, next});
    }
    return p;
  }

  Expr SumOf(const Expr& x) { return node_.Op("sum", {x}, {{"axis", V{1}}, {"keepdims", true}}); }

  NodeContext& node_;
  V labels_;
  int64_t count_;
  V first_;  ///< support vector with which each class begins
  int64_t num_vectors_ = 0;
  std::vector<double> prob_a_, prob_b_, rho_;
};

Results ConvertClassifier(NodeContext& node) {
  const V labels = ClassLabels(node, "classlabels_ints");
  const V vectors = node.Ints("vectors_per_class", {});
  const bool has_vectors = std::ranges::any_of(vectors, [](int64_t count) { return count > 0; });
  if (has_vectors && labels.size() > 1) return PairwiseClassifier(node, labels, vectors).Run();
  if (has_vectors) node.Invalid("has support vectors of one class");
  const std::vector<double> coefficients = node.Floats("coefficients"), rho = node.Floats("rho");
  if (rho.empty()) node.Invalid("has no attribute 'rho'");
  const auto classes = static_cast<int64_t>(labels.size());
  const Expr scores = Shifted(node, Kernel(node).Of(coefficients, classes, /*is_linear=*/true), rho[0]);
  const Expr best = node.Op("argmax", {scores}, {{"axis", V{1}}});
  Expr label = LabelsAt(node, labels, best);
  if (classes == 2 && node.Floats("prob_a").empty()) {
    // The second class is chosen where any score is high enough.
    const bool is_positive = std::ranges::all_of(coefficients, [](double number) { return number >= 0; });
    const Expr largest = node.Op("max", {scores}, {{"axis", V{1}}});
    const Expr bound = node.ScalarLike(is_positive ? 0.5 : 0, largest);
    const Expr is_second = node.Op(is_positive ? "greater_equal" : "greater", {largest, bound});
    label = node.Op("where", {is_second, MakeScalar(static_cast<double>(labels[1]), kInt64), label});
  }
  return {label, PostTransformed(node, scores, PostTransform(node))};
}

}  // namespace

void AddMlSupportVectors(OnnxConverters& converters) {
  converters.Add("ai.onnx.ml.SVMRegressor", ConvertRegressor, "X: number[1..2] -> Y");
  converters.Add("ai.onnx.ml.SVMClassifier", ConvertClassifier, "X: number[1..2] -> Y, Z?", NarrowUse::kItsOwn);
}

}  // namespace collage
