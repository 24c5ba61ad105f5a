// work.cc: counting products and bytes.
#include "partition/work.h"

#include <algorithm>
#include <map>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage {
namespace {

// 8-bit instructions do four products where float32 ones do one; tile units another four.
constexpr double kNarrowFactor = 16;
// Results of a tile along each axis in minimal filtering: of r taps it has 3 + r products where there are 4 r (Winograd
// 1980; Lavin and Gray 2016).
constexpr double kFilteredTile = 4;

/// The share of the products that an algorithm with fewer can spare: of matrices, and of convolutions of taps next to
/// each other, stride 1, no groups.
double SparedShare(const CallNode& call) {
  constexpr double kOfMatrices = 1.0 / 8;  // seven products of halves in place of eight (Strassen 1969)
  const std::string& name = call.op()->name;
  if (name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul") return kOfMatrices;
  if ((name != "nn.conv1d" && name != "nn.conv2d" && name != "nn.conv3d") || call.attrs().Int("groups") != 1) return 0;
  const auto is_one = [&](const char* attribute) {
    return std::ranges::all_of(call.attrs().Ints(attribute), [](int64_t value) { return value == 1; });
  };
  if (!is_one("strides") || !is_one("dilation")) return 0;
  const Shape weight = AsTensorType(call.args()[1]->checked_type())->static_shape();
  double left = 1;
  for (size_t d = 2; d < weight.size(); ++d) {
    const auto taps = static_cast<double>(weight[d]);
    if (taps > 1) left *= (kFilteredTile + taps - 1) / (kFilteredTile * taps);
  }
  return left == 1 ? kOfMatrices : 1 - left;
}

/// Products that an operator adds up; 0 of others.
double ProductsOf(const CallNode& call) {
  if (!call.op()->multiply_adds) return 0;
  std::vector<Type> types;
  for (const Expr& arg : call.args()) types.push_back(arg->checked_type());
  return call.op()->multiply_adds({types, call.attrs()});
}

std::vector<Type> ParameterTypes(const Function& function) {
  std::vector<Type> types;
  for (const Var& param : function->params()) {
    for (const Type& type : FlattenTensorTypes(param->checked_type())) types.push_back(type);
  }
  return types;
}

double BytesOf(const Type& type, Layout layout) {
  const TensorTypeNode* tensor = AsTensorType(type);
  return static_cast<double>(NumElements(tensor->static_shape())) *
         static_cast<double>(StoredType(layout, tensor->dtype()).size_bytes());
}

}  // namespace

Work WorkOf(const Function& function) {
  return WorkOf(function, PlainLayouts(ParameterTypes(function).size(),
                                       FlattenTensorTypes(function->body()->checked_type()).size()));
}

Work WorkOf(const Function& function, const BoundaryLayouts& layouts) {
  Work work;
  bool is_quantised = false;
  PostOrder(function->body(), [&](const Expr& expr) {
    if (const ConstantNode* constant = As<ConstantNode>(expr)) {
      work.constant_bytes += static_cast<double>(constant->value().size_bytes());
    }
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return;
    is_quantised = is_quantised || call->op()->name.starts_with("qnn.");
    work.rounds = work.rounds || call->op()->random_rounding;
    const double all = ProductsOf(*call);
    if (all == 0) return;
    const bool is_narrow = AsTensorType(call->args()[0]->checked_type())->dtype().size_bytes() < sizeof(float);
    const double products = all / (is_narrow ? kNarrowFactor : 1);
    work.products += all;
    work.multiply_adds += products;
    work.spared += products * SparedShare(*call);
  });
  if (is_quantised) {
    work.multiply_adds /= kNarrowFactor;
    work.spared /= kNarrowFactor;
  }
  const auto add = [&](const std::vector<Type>& types, const std::vector<Layout>& kept) {
    for (size_t i = 0; i < types.size(); ++i) work.boundary_bytes += BytesOf(types[i], kept.at(i));
  };
  add(ParameterTypes(function), layouts.inputs);
  add(FlattenTensorTypes(function->body()->checked_type()), layouts.outputs);
  return work;
}

Work InLowerPrecision(Work work) {
  constexpr double kSizeFactor = 2;
  work.multiply_adds /= kNarrowFactor;
  work.spared /= kNarrowFactor;
  work.constant_bytes /= kSizeFactor;
  return work;
}

std::vector<double> ProductsOfNodes(const Function& function, const std::vector<std::string>& nodes) {
  std::map<std::string, double> by_name;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) by_name[expr->span().source] += ProductsOf(*call);
  });
  std::vector<double> products;
  for (const std::string& node : nodes) products.push_back(by_name[node]);
  const bool has_none = std::ranges::all_of(products, [](double count) { return count == 0; });
  return has_none ? std::vector<double>{} : products;
}

}  // namespace collage
